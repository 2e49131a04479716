"""Counters: events of a launch, per launch, line, block and warp.

A counter is one decorated function from a `Tally` of a step to a number per warp; its
docstring is its documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpusim.isa.ops import BULK_LOAD, BULK_STORE, OPS, PEER_COPY
from gpusim.tracing.tally import Tally
from gpusim.typing import Array

Applies = Callable[[str, str], bool]  # of an op, and of the space that it accesses, "" for none


@dataclass(frozen=True)
class CounterSpec:
    """A counter: unit, origin of its numbers, Nsight Compute's name ("" if it has none)."""

    name: str
    unit: str
    follows: str
    ncu: str
    doc: str
    applies: Applies
    count: Callable[[Tally], Array]

    @property
    def kind(self) -> str:
        """`exact` or `model`, with the code of the lowering."""
        return KINDS[self.follows]

    def kind_with(self, compiler: str) -> str:
        """Return the kind in a compiler's own code: CODE counters are exact there."""
        return KINDS[SOURCE] if compiler and self.follows == CODE else self.kind

    def is_known_with(self, compiler: str) -> bool:
        """Whether the counter is known in a compiler's own code, without source conditions."""
        return not compiler or self.follows != CONDITIONS


# The origin of a counter's numbers, and the kind that follows from it.
SOURCE, CONDITIONS, CODE, HARDWARE = "source", "conditions", "code", "hardware"
KINDS = {
    SOURCE: "exact",  # addresses, masks and barriers: equal with any compiler
    CONDITIONS: "exact",  # conditions of the source, known to the lowering only
    CODE: "model",  # emitted instructions: here those of a lowering that imitates nvcc
    HARDWARE: "model",  # behaviour that no manual documents
}

COUNTERS: dict[str, CounterSpec] = {}


def counter(
    unit: str, follows: str, ncu: str, applies: Applies
) -> Callable[[Callable[[Tally], Array]], Callable[[Tally], Array]]:
    """Register a function as a counter of the steps that `applies` selects."""

    def register(function: Callable[[Tally], Array]) -> Callable[[Tally], Array]:
        name = function.__name__
        doc = " ".join((function.__doc__ or "").split())
        COUNTERS[name] = CounterSpec(name, unit, follows, ncu, doc, applies, function)
        return function

    return register


def _issued(op: str, _: str) -> bool:
    return OPS[op].issued


def _is_branch(op: str, _: str) -> bool:
    return OPS[op].is_branch


def _is_barrier(op: str, _: str) -> bool:
    return OPS[op].is_barrier


def _is_shuffle(op: str, _: str) -> bool:
    return OPS[op].kind == "shuffle"


def _op(name: str) -> Applies:
    return lambda op, _: op == name


def _access(kind: str, space: str) -> Applies:
    return lambda op, accessed: OPS[op].kind == kind and accessed == space


def _by_registers(kind: str, space: str) -> Applies:
    """Select loads and stores without the two halves of a copy to shared memory (LDGSTS)."""
    accesses = _access(kind, space)
    return lambda op, accessed: accesses(op, accessed) and OPS[op].issued and not OPS[op].copies


@counter("instructions", CODE, "smsp__inst_executed.sum", _issued)
def instructions(tally: Tally) -> Array:
    """Instructions issued, counted once per warp."""
    return tally.masks.one


@counter("thread instructions", CODE, "smsp__thread_inst_executed.sum", _issued)
def thread_instructions(tally: Tally) -> Array:
    """Instructions issued, counted once per active lane."""
    return tally.masks.active_lanes


@counter("thread instructions", CODE, "smsp__thread_inst_executed_pred_on.sum", _issued)
def thread_instructions_guard_on(tally: Tally) -> Array:
    """Instructions issued, counted once per lane with a true guard predicate."""
    return tally.masks.lanes_on


@counter("branches", CODE, "smsp__sass_branch_targets.sum", _is_branch)
def branches(tally: Tally) -> Array:
    """Branch instructions of the machine code, counted once per warp.

    Unrolling, predication and loop rotation remove branches.
    """
    return tally.masks.one


@counter("branches", CODE, "smsp__sass_branch_targets_threads_divergent.sum", _op("BRA"))
def divergent_branches(tally: Tally) -> Array:
    """Branch instructions with a divergent warp: some of its lanes took the branch, some did not.

    Short bodies are predicated instead, without a branch.
    """
    return tally.divergent


@counter("branches", CONDITIONS, "", _op(".IF"))
def source_branches(tally: Tally) -> Array:
    """Conditions in the source that a warp decided: if, while, for, and conditional expressions.

    They do not depend on the branches of the machine code.
    """
    return tally.masks.any_on


@counter("branches", CONDITIONS, "", _op(".IF"))
def source_divergent_branches(tally: Tally) -> Array:
    """Conditions in the source on which lanes of a warp disagreed.

    They do not depend on the branches of the machine code.
    """
    return tally.divergent


@counter("instructions", CODE, "smsp__inst_executed_op_shared_ld.sum", _access("load", "shared"))
def shared_load_instructions(tally: Tally) -> Array:
    """Loads from shared memory, also where no lane takes part.

    They include loads of matrices, a separate metric in Nsight Compute
    (`smsp__inst_executed_op_ldsm.sum`).
    A compiler keeps loaded and stored values in registers, merges adjacent loads into wide
    ones, and predicates loads or branches around them.
    """
    return tally.masks.one


@counter(
    "wavefronts",
    CODE,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    _access("load", "shared"),
)
def shared_load_wavefronts(tally: Tally) -> Array:
    """Wavefronts of loads from shared memory.

    A compiler removes and merges loads; the wavefronts of the remaining ones follow from their
    addresses.
    """
    return tally.served.passes[0]


@counter(
    "conflicts", CODE, "derived__memory_l1_wavefronts_shared_excessive", _access("load", "shared")
)
def shared_load_bank_conflicts(tally: Tally) -> Array:
    """Wavefronts of shared-memory loads above the least number needed: replays.

    A compiler removes and merges loads; only the remaining ones have conflicts.
    """
    return tally.served.conflicts


@counter(
    "instructions", CODE, "smsp__inst_executed_op_shared_st.sum", _by_registers("store", "shared")
)
def shared_store_instructions(tally: Tally) -> Array:
    """Stores to shared memory, also where no lane takes part.

    A predicated store is issued even if no lane takes part; a branch skips it.
    """
    return tally.masks.one


@counter(
    "wavefronts",
    SOURCE,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    _by_registers("store", "shared"),
)
def shared_store_wavefronts(tally: Tally) -> Array:
    """Wavefronts of stores to shared memory.

    Values visible to other threads have to be stored; wavefronts follow from addresses and masks.
    """
    return tally.served.passes[0]


@counter(
    "conflicts",
    SOURCE,
    "derived__memory_l1_wavefronts_shared_excessive",
    _access("store", "shared"),
)
def shared_store_bank_conflicts(tally: Tally) -> Array:
    """Wavefronts of shared-memory stores above the least number needed: replays.

    They follow from addresses and masks, as wavefronts do.
    """
    return tally.served.conflicts


@counter(
    "instructions", CODE, "smsp__inst_executed_op_global_ld.sum", _by_registers("load", "global")
)
def global_load_instructions(tally: Tally) -> Array:
    """Loads from global memory, also where no lane takes part.

    As with shared memory, a compiler chooses between predication and a branch.
    """
    return tally.masks.one


@counter(
    "requests", SOURCE, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", _access("load", "global")
)
def global_load_requests(tally: Tally) -> Array:
    """Loads from global memory with at least one lane taking part.

    A compiler keeps repeated loads if other threads may store between them, and removes
    repeated loads of unchanged data.
    """
    return tally.masks.any_on


@counter(
    "sectors", SOURCE, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", _access("load", "global")
)
def global_load_sectors(tally: Tally) -> Array:
    """32-byte sectors that loads from global memory touch.

    They follow from the addresses and masks of the loads.
    """
    return tally.served.sectors


@counter("instructions", CODE, "smsp__inst_executed_op_global_st.sum", _access("store", "global"))
def global_store_instructions(tally: Tally) -> Array:
    """Stores to global memory, also where no lane takes part.

    A predicated store is issued even if no lane takes part; a branch skips it.
    """
    return tally.masks.one


@counter(
    "requests",
    SOURCE,
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    _access("store", "global"),
)
def global_store_requests(tally: Tally) -> Array:
    """Stores to global memory with at least one lane taking part.

    Values visible to other threads have to be stored, by the same lanes as in the source.
    """
    return tally.masks.any_on


@counter(
    "sectors", SOURCE, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", _access("store", "global")
)
def global_store_sectors(tally: Tally) -> Array:
    """32-byte sectors that stores to global memory touch.

    They follow from the addresses and masks of the stores.
    """
    return tally.served.sectors


def _bulk(*ops: str, accessed: str = "") -> Applies:
    """Select bulk copies by their ops, and what they do with the memory there."""
    return lambda op, what: op in ops and (not accessed or what == accessed)


@counter("instructions", CODE, "smsp__inst_executed_op_tma_ld.sum", _bulk(BULK_LOAD))
def bulk_load_instructions(tally: Tally) -> Array:
    """Bulk copies from global to shared memory, those by tensor maps among them."""
    return tally.masks.one


@counter("instructions", CODE, "smsp__inst_executed_op_tma_st.sum", _bulk(BULK_STORE, PEER_COPY))
def bulk_store_instructions(tally: Tally) -> Array:
    """Bulk copies and reductions from shared to global memory, or to another block of the cluster.

    Those by tensor maps are among them.
    """
    return tally.masks.one


@counter(
    "sectors", SOURCE, "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum", _bulk(BULK_LOAD)
)
def bulk_load_sectors(tally: Tally) -> Array:
    """32-byte sectors that bulk copies bring to shared memory, in each block of a multicast.

    Each 128-byte line of shared memory has a request of its own. Boxes of tensor maps count with
    their rows outside of the array.
    """
    return tally.bulk_sectors


@counter(
    "sectors",
    SOURCE,
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",
    _bulk(BULK_STORE, accessed="global"),
)
def bulk_store_sectors(tally: Tally) -> Array:
    """32-byte sectors that bulk copies store to global memory.

    Each 128-byte line of shared memory has a request of its own; of boxes what lies inside of the
    array counts.
    """
    return tally.bulk_sectors


@counter(
    "sectors",
    SOURCE,
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red.sum",
    _bulk(BULK_STORE, accessed="reduction"),
)
def bulk_reduction_sectors(tally: Tally) -> Array:
    """32-byte sectors that reductions in bulk send to global memory."""
    return tally.bulk_sectors


@counter(
    "sectors",
    SOURCE,
    "l1tex__m_l1tex2xbar_write_sectors_mem_dshared_op_tma_st.sum",
    _bulk(PEER_COPY, accessed="global"),
)
def peer_copy_sectors(tally: Tally) -> Array:
    """32-byte sectors that bulk copies send to the shared memory of another block."""
    return tally.bulk_sectors


@counter("barriers", SOURCE, "", _is_barrier)
def barriers(tally: Tally) -> Array:
    """Barriers of the block that a warp reached.

    No compiler may merge, move or remove a barrier.
    """
    return tally.masks.one


@counter("shuffles", SOURCE, "", _is_shuffle)
def shuffles(tally: Tally) -> Array:
    """Shuffle instructions, counted once per warp.

    They synchronise lanes: no compiler may merge or split them.
    """
    return tally.masks.one


@counter(
    "instructions", CODE, "smsp__inst_executed_op_shared_atom.sum", _access("atomic", "shared")
)
def shared_atomics(tally: Tally) -> Array:
    """Atomic instructions on shared memory, counted once per warp.

    A compiler may add up a warp's lanes first, and chooses between predication and a branch.
    """
    return tally.masks.one


@counter("replays", HARDWARE, "", _access("atomic", "shared"))
def shared_atomic_replays(tally: Tally) -> Array:
    """Wavefronts of shared-memory atomics beyond the first: a bank serves its lanes one by one.

    How the hardware serves them is inferred from times.
    """
    return tally.served.replays


@counter("instructions", CODE, "", _access("atomic", "global"))
def global_atomics(tally: Tally) -> Array:
    """Atomic instructions on global memory, counted once per warp.

    A compiler may add up a warp's lanes first, and chooses between predication and a branch.
    """
    return tally.masks.one


@counter("replays", HARDWARE, "", _access("atomic", "global"))
def global_atomic_replays(tally: Tally) -> Array:
    """Replays of global atomics: lanes with one address are served one by one.

    How the hardware serves them is inferred from times.
    """
    return tally.served.replays
