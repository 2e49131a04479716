"""The rules: a row each, with its severity and its fix."""

from __future__ import annotations

from dataclasses import dataclass

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)


@dataclass(frozen=True)
class Rule:
    """An error or warning to look for: a name for machines, one for people, and the fix."""

    name: str
    severity: str
    title: str
    mend: str


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "shared-race",
            ERROR,
            "race in shared memory between warps",
            "put cuda.syncthreads() between the two, where all threads of the block reach it",
        ),
        Rule(
            "warp-race",
            ERROR,
            "race between lanes of a warp",
            "put cuda.syncwarp() between the two: since compute capability 7.0 lanes of a warp do "
            "not run in lockstep",
        ),
        Rule(
            "volatile-warp-race",
            WARNING,
            "lanes of a warp rely on volatile memory for their order",
            "put cuda.syncwarp() between the two: volatile keeps the accesses, but since compute "
            "capability 7.0 nothing keeps the lanes in lockstep",
        ),
        Rule(
            "one-instruction",
            ERROR,
            "lanes of a warp store different values to one element at once",
            "let one lane store, or use an atomic operation: which value stays is undefined",
        ),
        Rule(
            "global-race",
            ERROR,
            "race in global memory within a block",
            "put cuda.syncthreads() between the two, or let one thread do both",
        ),
        Rule(
            "block-race",
            ERROR,
            "race in global memory between blocks",
            "blocks run in any order: use an atomic operation, another element for each block, a "
            "second launch, or cuda.threadfence() before an atomic that the other block waits for",
        ),
        Rule(
            "copy-race",
            ERROR,
            "an access while an asynchronous copy is on its way",
            "wait for the copy's group (cp.async.wait_group, __pipeline_wait_prior) in the thread "
            "that began it, and put a barrier behind the wait where others access the element",
        ),
        Rule(
            "plain-flag",
            WARNING,
            "a flag that others wait for is raised by a plain store",
            "raise it by an atomic operation or in volatile memory, behind cuda.threadfence()",
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
            "move the barrier to where all threads of the block come by",
        ),
        Rule(
            "barrier-missed",
            ERROR,
            "a barrier that some threads of the block pass by",
            "move the barrier out of the condition or loop that not all threads enter",
        ),
        Rule(
            "barrier-after-return",
            WARNING,
            "a barrier after some threads of the block have returned",
            "let all threads live until the last barrier: before compute capability 7.0 this is "
            "undefined, and from then on the barrier is that of the threads left",
        ),
        Rule(
            "barrier-apart",
            ERROR,
            "some lanes of a warp at a barrier with a number",
            "let all threads of a warp come to it together: bar.sync and bar.arrive count warps",
        ),
        Rule(
            "standstill",
            ERROR,
            "threads wait for others that never come",
            "let every thread that is waited for reach the same barrier",
        ),
        Rule(
            "mask",
            ERROR,
            "a mask that does not name the lanes that take part",
            "make the call where all lanes that the mask names come by, name every lane that makes "
            "it, take the mask from cuda.ballot_sync before the branch, or give a shuffle of some "
            "lanes their number as its width",
        ),
        Rule(
            "uninitialised",
            ERROR,
            "memory is read that was never written",
            "store to the element first, and let a barrier stand before others read it",
        ),
        Rule(
            "bounds",
            ERROR,
            "an index outside its array",
            "guard the access with the array's length",
        ),
        Rule(
            "misaligned",
            ERROR,
            "a vector access that is not aligned to its width",
            "begin vector accesses at multiples of their number of elements",
        ),
        Rule(
            "read-only",
            ERROR,
            "a store to an array that is read-only",
            "pass an array that may be written",
        ),
        Rule(
            "residency",
            ERROR,
            "blocks wait for blocks that the GPU has not started",
            "launch no more blocks than the GPU holds at a time, or let blocks wait only for those "
            "before them",
        ),
        Rule(
            "no-progress",
            ERROR,
            "the kernel does not come to an end",
            "see that what the loop waits for happens; if it only needs longer, raise the step "
            "limit",
        ),
        Rule(
            "unset-variable",
            ERROR,
            "a variable is read that has no value on this path",
            "give the variable a value before the branch",
        ),
        Rule(
            "shift",
            ERROR,
            "a shift by a negative count or by the width or more",
            "keep the count between 0 and the number of bits less one",
        ),
        Rule(
            "cast",
            ERROR,
            "a floating-point number that its integer type cannot hold",
            "clamp the number to the type's range first",
        ),
        Rule(
            "division",
            ERROR,
            "an integer division that has no result",
            "guard the division against a divisor of 0 (and the least number against -1)",
        ),
        Rule(
            "fault",
            ERROR,
            "the kernel does what is undefined on a GPU",
            "see the message",
        ),
        Rule(
            "float-order",
            NOTE,
            "a floating-point sum whose last bits depend on the order of atomics",
            "add in a fixed order (a tree, then one thread) where results must repeat bit by bit",
        ),
        Rule(
            "left-out",
            ERROR,
            "elements of the input that the result leaves out",
            "check the loop's bound and stride against the number of threads",
        ),
        Rule(
            "doubled",
            ERROR,
            "elements of the input that are added more than once",
            "check that each element is taken by one thread in one iteration",
        ),
    )
}
