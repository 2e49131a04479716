"""The rules: a row each, with its severity and its fix."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpusim.launch.languages import PYTHON, TRITON

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)
_FUNCTION = re.compile(r"\{(\w+)\}(\(\))?")


def worded(text: str, language: str) -> str:
    """Return a text with the functions of PYTHON's dialect, or of CUDA C++."""
    return _FUNCTION.sub(r"cuda.\1\2" if language == PYTHON else r"__\1\2", text)


@dataclass(frozen=True)
class Rule:
    """An error or warning to look for: a name for machines, one for people, and the fix.

    Functions in the text of `fix_text` stand in braces, without the prefix of a language.
    `within_a_line` is the fix of a race between a read and a write of one line, `in_triton` the fix
    in a Triton kernel; if empty, `fix_text` applies.
    """

    name: str
    severity: str
    title: str
    fix_text: str
    within_a_line: str = ""
    in_triton: str = ""

    def fix_in(self, language: str, *, within: bool = False) -> str:
        """Return the fix with the functions of a language; `within` one line."""
        if language == TRITON and self.in_triton:
            return self.in_triton
        return worded((within and self.within_a_line) or self.fix_text, language)

    @property
    def fix(self) -> str:
        """The fix for both languages."""
        return _FUNCTION.sub(r"__\1\2 (Python: cuda.\1\2)", self.fix_text)


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "shared-race",
            ERROR,
            "race in shared memory between warps",
            "put {syncthreads}() between the two accesses, where all threads of the block reach it",
            "read into a variable, {syncthreads}(), write, {syncthreads}(); or read from one "
            "buffer and write to another one",
        ),
        Rule(
            "warp-race",
            ERROR,
            "race between lanes of a warp",
            "put {syncwarp}() between the two accesses: since compute capability 7.0 the lanes "
            "of a warp do not run in lockstep",
            "read into a variable, {syncwarp}(), write, {syncwarp}(); or read from one buffer and "
            "write to another one",
        ),
        Rule(
            "volatile-warp-race",
            WARNING,
            "lanes of a warp rely on volatile memory for their order",
            "put {syncwarp}() after each step of the tail, outside its condition: volatile orders "
            "no lanes, and since compute capability 7.0 they do not run in lockstep",
        ),
        Rule(
            "one-instruction",
            ERROR,
            "lanes of a warp store different values to one element in one instruction",
            "let one lane store, or use an atomic operation: the value left is undefined",
        ),
        Rule(
            "global-race",
            ERROR,
            "race in global memory within a block",
            "put {syncthreads}() between the two accesses, or let one thread make both",
            "read into a variable, {syncthreads}(), write, {syncthreads}(); or use an atomic "
            "operation, or read from one array and write to another one",
        ),
        Rule(
            "block-race",
            ERROR,
            "race in global memory between blocks",
            "blocks run in any order: use an atomic operation, another element for each block, a "
            "second launch, or {threadfence}() before an atomic that sets the other block's flag",
            "use an atomic operation, or read from one array and write to another one: blocks run "
            "in any order",
            "programs run in any order: use tl.atomic_add or another atomic, an element for each "
            "program, or a second launch",
        ),
        Rule(
            "cluster-race",
            ERROR,
            "race in distributed shared memory between blocks of a cluster",
            "put a barrier of the cluster (cluster.sync()) between the two accesses, where all "
            "threads of the cluster reach it",
        ),
        Rule(
            "cluster-start",
            ERROR,
            "an access to shared memory of a block that may not have started",
            "put a barrier of the cluster (cluster.sync()) before the first access to another "
            "block's shared memory",
        ),
        Rule(
            "cluster-end",
            ERROR,
            "an access to shared memory of a block that may have ended",
            "put a barrier of the cluster (cluster.sync()) after the last access to another "
            "block's shared memory, where all threads of both blocks reach it",
        ),
        Rule(
            "copy-race",
            ERROR,
            "an access while an asynchronous copy or wgmma is in flight",
            "wait for the copy's group (cp.async.wait_group, __pipeline_wait_prior) in the thread "
            "that issued it, and put a barrier after the wait where others access the element",
        ),
        Rule(
            "bulk-group",
            ERROR,
            "a bulk copy to global memory that no thread waits for",
            "commit its group (cp.async.bulk.commit_group), and wait for it "
            "(cp.async.bulk.wait_group) in the thread that copies, before the block ends",
        ),
        Rule(
            "proxy-fence",
            ERROR,
            "a bulk copy or wgmma of stores without a fence between the proxies",
            "put fence.proxy.async after the stores, in the threads that store, before the "
            "barrier that orders them before the copy",
        ),
        Rule(
            "mbarrier-init",
            ERROR,
            "an mbarrier of another block used before its initialisation is visible",
            "put fence.mbarrier_init.release.cluster after mbarrier.init, in the thread that "
            "initialises, or arrive at the barrier of the cluster with release semantics",
        ),
        Rule(
            "plain-flag",
            WARNING,
            "a plain store to a flag polled by other threads",
            "set it by an atomic operation or a volatile store, after {threadfence}()",
        ),
        Rule(
            "same-value",
            NOTE,
            "several threads store the same value to one element",
            "harmless on every GPU so far; let one thread store it to be sure",
        ),
        Rule(
            "barrier-place",
            ERROR,
            "threads of a block wait at different barriers",
            "move the barrier to code that all threads of the block reach",
        ),
        Rule(
            "barrier-missed",
            ERROR,
            "a divergent barrier: some threads of the block do not reach it",
            "move the barrier out of the divergent condition or loop",
        ),
        Rule(
            "barrier-after-return",
            WARNING,
            "a barrier after some threads of the block have exited",
            "let all threads reach the last barrier: before compute capability 7.0 this is "
            "undefined, from then on the barrier counts only the remaining threads",
        ),
        Rule(
            "barrier-apart",
            ERROR,
            "a divergent warp at a named barrier",
            "let all threads of a warp reach it converged: bar.sync and bar.arrive count warps",
        ),
        Rule(
            "deadlock",
            ERROR,
            "deadlock: threads wait at a barrier that others never reach",
            "let every participating thread reach the same barrier",
        ),
        Rule(
            "mask",
            ERROR,
            "a mask that differs from the participating lanes",
            "call it where every lane of the mask arrives, set the bit of every calling lane, take "
            "the mask from {ballot_sync} before the branch, or give a shuffle among fewer lanes "
            "their number as its width",
        ),
        Rule(
            "uninitialised",
            ERROR,
            "a read of uninitialised memory",
            "store to the element first, with a barrier before other threads read it",
            in_triton="give the tensor values first (torch.zeros), or mask the tl.load",
        ),
        Rule(
            "bounds",
            ERROR,
            "an out-of-bounds access",
            "guard the access with the array's length",
            in_triton="give the tl.load or tl.store a mask that is false there, as mask=i < n",
        ),
        Rule(
            "misaligned",
            ERROR,
            "a misaligned vector access",
            "start vector accesses at multiples of their number of elements",
        ),
        Rule(
            "read-only",
            ERROR,
            "a store to a read-only array",
            "pass a writable array",
        ),
        Rule(
            "residency",
            ERROR,
            "blocks wait for blocks that are not resident",
            "launch no more blocks than are resident at a time, or let blocks wait for blocks of "
            "lower index alone",
        ),
        Rule(
            "no-progress",
            ERROR,
            "no forward progress: the kernel does not end",
            "make the condition of the loop's exit come true; raise the step limit if the kernel "
            "only needs longer",
        ),
        Rule(
            "unset-variable",
            ERROR,
            "a read of a variable without a value on this path",
            "give the variable a value before the branch",
        ),
        Rule(
            "shift",
            ERROR,
            "a shift count out of range",
            "keep the count between 0 and the number of bits less one",
        ),
        Rule(
            "cast",
            ERROR,
            "a floating-point number outside the range of its integer type",
            "clamp the number to the type's range first",
        ),
        Rule(
            "division",
            ERROR,
            "an integer division by zero, or one that overflows",
            "guard the division against a divisor of 0 (and the least number against -1)",
        ),
        Rule(
            "fault",
            ERROR,
            "undefined behaviour on a GPU",
            "see the message",
        ),
        Rule(
            "float-order",
            NOTE,
            "a non-deterministic floating-point sum: its last bits depend on the order of atomics",
            "add in a fixed order (a tree, then one thread) where results must be reproducible",
        ),
        Rule(
            "index-overflow",
            NOTE,
            "an index beyond 32 bits",
            "compute the product in 64 bits: make one factor a long long or size_t first",
        ),
        Rule(
            "float-lost",
            WARNING,
            "a floating-point sum that has lost more than its last bits",
            "add in a wider type, or parts first: a sum for each block, then one atomic a block",
        ),
        Rule(
            "left-out",
            ERROR,
            "input elements missing from the result",
            "check the loop's bound and stride against the number of threads",
        ),
        Rule(
            "doubled",
            ERROR,
            "input elements added more than once",
            "check that each element is taken by one thread in one iteration",
        ),
        # Of whole programs, beside their kernels.
        Rule(
            "stream-race",
            ERROR,
            "a race between streams",
            "let one stream wait for an event of the other (cudaStreamWaitEvent)",
        ),
        Rule(
            "host-race",
            ERROR,
            "a race between the host and work on a stream",
            "wait for the stream first (cudaStreamSynchronize, cudaDeviceSynchronize)",
        ),
        Rule(
            "use-after-free",
            ERROR,
            "an access to freed device memory",
            "free the memory after the last launch that touches it",
        ),
        Rule(
            "uninitialised-copy",
            WARNING,
            "a copy to the host from uninitialised memory",
            "copy only initialised memory, or set it first (cudaMemset)",
        ),
        Rule(
            "copy-bounds",
            ERROR,
            "a copy or memset outside an allocation",
            "check its size in bytes, its pointer, and its direction",
        ),
        Rule(
            "free",
            ERROR,
            "a free of memory that is not allocated",
            "free each allocation once, by the pointer that allocated it",
        ),
        Rule(
            "leak",
            WARNING,
            "device memory that is never freed",
            "free it (cudaFree) when it is not needed any more",
        ),
        Rule(
            "unasked-error",
            WARNING,
            "a failed launch without a check for errors",
            "check cudaGetLastError() after a launch",
        ),
        Rule(
            "too-large",
            ERROR,
            "a cooperative launch with more blocks than can be resident",
            "size the grid by cudaOccupancyMaxActiveBlocksPerMultiprocessor",
        ),
    )
}
