"""Counters: what a launch did to the machine, per launch, line, block and warp.

A counter is one decorated function from a `Tally` of a step to a number per warp; its
docstring is its documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gpusim import memory
from gpusim.events import Observer, Placement, Step
from gpusim.isa import COUNT_UP, OPS, Instruction, Program
from gpusim.launch import ComputeCapability, Launch

Array = np.ndarray[Any, Any]
Applies = Callable[[Instruction], bool]


class Tally:
    """One step, counted: numbers shaped (copies or 1, warps), worked out when first asked for."""

    def __init__(self, step: Step, cc_major: int) -> None:
        self.step = step
        self.cc_major = cc_major

    @cached_property
    def one(self) -> Array:
        """One for each warp."""
        return np.ones((1, len(self.step.rows)), dtype=np.int64)

    @cached_property
    def active_lanes(self) -> Array:
        """Lanes that run the instruction."""
        return memory.lanes_in(self.step.active)

    @cached_property
    def lanes_on(self) -> Array:
        """Lanes that run the instruction with their guard true."""
        if self.step.on is self.step.active:
            return self.active_lanes
        return memory.lanes_in(self.step.on)

    @cached_property
    def any_on(self) -> Array:
        """Whether a lane takes part."""
        return self.lanes_on > 0

    @cached_property
    def divergent(self) -> Array:
        """Whether lanes that decide disagree."""
        step = self.step
        assert step.taken is not None
        deciding = step.active if step.instruction.op == "BRA" else step.on
        both = step.taken.any(axis=2) & (deciding & ~step.taken).any(axis=2)
        return np.asarray(both)

    @cached_property
    def shared_passes(self) -> tuple[Array, Array]:
        """Wavefronts of a shared-memory access, and the least it could take."""
        step = self.step
        assert step.addresses is not None
        instruction = step.instruction
        assert instruction.memory is not None
        width = instruction.memory.width_bytes
        return memory.wavefronts(
            step.addresses, step.on, width, self.cc_major, is_load=instruction.is_load
        )

    @cached_property
    def sectors(self) -> Array:
        """Sectors of a global access."""
        assert self.step.addresses is not None
        return memory.sectors(self.step.addresses, self.step.on)

    @cached_property
    def atomic_wavefronts(self) -> Array:
        """Lanes with the same address, at most; for shared memory with the same bank."""
        step = self.step
        assert step.addresses is not None
        if step.instruction.memory is not None and step.instruction.memory.space == "shared":
            counts_up = step.instruction.op == COUNT_UP
            return memory.shared_atomic_wavefronts(step.addresses, step.on, counts_up=counts_up)
        return memory.same_address_lanes(step.addresses, step.on)


@dataclass(frozen=True)
class CounterSpec:
    """A counter: unit, what its numbers follow, Nsight Compute's name ("" where it has none)."""

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
        """Return the kind in the own code of a compiler, which is exact as the source is."""
        return KINDS[SOURCE] if compiler and self.follows == CODE else self.kind

    @property
    def is_general(self) -> bool:
        """Whether every issued instruction counts, by its masks alone."""
        return self.applies is _issued


# What a counter's numbers follow, and what that makes of them.
SOURCE, CODE, HARDWARE = "source", "code", "hardware"
KINDS = {
    SOURCE: "exact",  # addresses, masks and barriers: the same, whatever compiles the kernel
    CODE: "model",  # the instructions that are emitted: here those of a lowering that imitates nvcc
    HARDWARE: "model",  # what no manual says of it
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


def _issued(instruction: Instruction) -> bool:
    return OPS[instruction.op].issued


def _op(*names: str) -> Applies:
    return lambda instruction: instruction.op in names


def _access(kind: str, space: str) -> Applies:
    def applies(instruction: Instruction) -> bool:
        found = instruction.memory
        return OPS[instruction.op].kind == kind and found is not None and found.space == space

    return applies


@counter("instructions", CODE, "smsp__inst_executed.sum", _issued)
def instructions(tally: Tally) -> Array:
    """Instructions issued, counted once per warp."""
    return tally.one


@counter("thread instructions", CODE, "smsp__thread_inst_executed.sum", _issued)
def thread_instructions(tally: Tally) -> Array:
    """Instructions issued, counted once per active lane."""
    return tally.active_lanes


@counter("thread instructions", CODE, "smsp__thread_inst_executed_pred_on.sum", _issued)
def thread_instructions_guard_on(tally: Tally) -> Array:
    """Instructions issued, counted once per lane whose guard is true."""
    return tally.lanes_on


@counter(
    "branches",
    CODE,
    "smsp__sass_branch_targets.sum",
    _op("BRA", "BRA.DIV", "BRA.APART", "CALL.REL", "RET.REL"),
)
def branches(tally: Tally) -> Array:
    """Branch instructions of the machine, counted once per warp.

    Unrolling, guards and loops turned round take branches away.
    """
    return tally.one


@counter("branches", CODE, "smsp__sass_branch_targets_threads_divergent.sum", _op("BRA"))
def divergent_branches(tally: Tally) -> Array:
    """Branch instructions at which lanes of a warp went both ways.

    Short bodies are guarded instead, which is no branch.
    """
    return tally.divergent


@counter("branches", SOURCE, "", _op(".IF"))
def source_branches(tally: Tally) -> Array:
    """Conditions in the source that a warp decided: if, while, for, and conditional expressions.

    Whatever becomes of the branch, the source decides as often.
    """
    return tally.any_on


@counter("branches", SOURCE, "", _op(".IF"))
def source_divergent_branches(tally: Tally) -> Array:
    """Conditions in the source about which lanes of a warp disagreed.

    Lanes disagree by their values, whatever becomes of the branch.
    """
    return tally.divergent


@counter("instructions", CODE, "smsp__inst_executed_op_shared_ld.sum", _access("load", "shared"))
def shared_load_instructions(tally: Tally) -> Array:
    """Loads from shared memory, also where no lane takes part.

    A compiler keeps in registers what it has loaded or stored, joins neighbours to wide loads,
    and guards or branches around what no lane wants.
    """
    return tally.one


@counter(
    "wavefronts",
    CODE,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    _access("load", "shared"),
)
def shared_load_wavefronts(tally: Tally) -> Array:
    """Wavefronts of loads from shared memory.

    Loads that a compiler leaves out or joins have none of their own; those of a load that is
    left follow from addresses.
    """
    return tally.shared_passes[0]


@counter(
    "conflicts",
    CODE,
    "derived__memory_l1_wavefronts_shared_excessive",
    _access("load", "shared"),
)
def shared_load_bank_conflicts(tally: Tally) -> Array:
    """Wavefronts of shared-memory loads above the least number needed: replays.

    As many as the loads have that a compiler leaves.
    """
    return tally.shared_passes[0] - tally.shared_passes[1]


@counter("instructions", CODE, "smsp__inst_executed_op_shared_st.sum", _access("store", "shared"))
def shared_store_instructions(tally: Tally) -> Array:
    """Stores to shared memory, also where no lane takes part.

    A guarded store is issued although no lane takes part, one that is branched around is not.
    """
    return tally.one


@counter(
    "wavefronts",
    SOURCE,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    _access("store", "shared"),
)
def shared_store_wavefronts(tally: Tally) -> Array:
    """Wavefronts of stores to shared memory.

    What others may read has to be stored; addresses and masks say in how many wavefronts.
    """
    return tally.shared_passes[0]


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
    return tally.shared_passes[0] - tally.shared_passes[1]


@counter("instructions", CODE, "smsp__inst_executed_op_global_ld.sum", _access("load", "global"))
def global_load_instructions(tally: Tally) -> Array:
    """Loads from global memory, also where no lane takes part.

    As with shared memory, a compiler decides between guard and branch.
    """
    return tally.one


@counter(
    "requests",
    SOURCE,
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    _access("load", "global"),
)
def global_load_requests(tally: Tally) -> Array:
    """Loads from global memory in which a lane takes part.

    Another thread's stores may come between, so that a compiler leaves loads apart as the
    source has them; where one loads twice what cannot have changed, the second is none.
    """
    return tally.any_on


@counter(
    "sectors", SOURCE, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", _access("load", "global")
)
def global_load_sectors(tally: Tally) -> Array:
    """32-byte sectors that loads from global memory touch.

    They follow from the addresses and masks of the loads that exist.
    """
    return tally.sectors


@counter("instructions", CODE, "smsp__inst_executed_op_global_st.sum", _access("store", "global"))
def global_store_instructions(tally: Tally) -> Array:
    """Stores to global memory, also where no lane takes part.

    A guarded store is issued although no lane takes part, one that is branched around is not.
    """
    return tally.one


@counter(
    "requests",
    SOURCE,
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    _access("store", "global"),
)
def global_store_requests(tally: Tally) -> Array:
    """Stores to global memory in which a lane takes part.

    What others may read has to be stored, by the lanes that the source says.
    """
    return tally.any_on


@counter(
    "sectors", SOURCE, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", _access("store", "global")
)
def global_store_sectors(tally: Tally) -> Array:
    """32-byte sectors that stores to global memory touch.

    They follow from the addresses and masks of the stores.
    """
    return tally.sectors


@counter("barriers", SOURCE, "", _op("BAR"))
def barriers(tally: Tally) -> Array:
    """Barriers of the block that a warp came to.

    No compiler may merge, move or leave out a barrier.
    """
    return tally.one


@counter("shuffles", SOURCE, "", _op("SHFL", "SHFL.LANES"))
def shuffles(tally: Tally) -> Array:
    """Shuffle instructions, counted once per warp.

    They tie lanes together: no compiler may merge or part them.
    """
    return tally.one


@counter(
    "instructions", CODE, "smsp__inst_executed_op_shared_atom.sum", _access("atomic", "shared")
)
def shared_atomics(tally: Tally) -> Array:
    """Atomic instructions on shared memory, counted once per warp.

    A compiler may add up a warp's lanes first, and decides between guard and branch.
    """
    return tally.one


@counter("replays", HARDWARE, "", _access("atomic", "shared"))
def shared_atomic_replays(tally: Tally) -> Array:
    """Wavefronts of shared-memory atomics beyond the first: a bank serves its lanes one by one.

    How the hardware serves them is inferred from times.
    """
    return np.asarray(np.maximum(tally.atomic_wavefronts - 1, 0))


@counter("instructions", CODE, "", _access("atomic", "global"))
def global_atomics(tally: Tally) -> Array:
    """Atomic instructions on global memory, counted once per warp.

    A compiler may add up a warp's lanes first, and decides between guard and branch.
    """
    return tally.one


@counter("replays", HARDWARE, "", _access("atomic", "global"))
def global_atomic_replays(tally: Tally) -> Array:
    """Replays of global atomics: lanes with one address are served one by one.

    How the hardware serves them is inferred from times.
    """
    return np.asarray(np.maximum(tally.atomic_wavefronts - 1, 0))


@dataclass
class _BatchCounts:
    """Sums of one batch, per pc and group of counters: (copies or 1, rows, counters)."""

    placement: Placement
    sums: dict[tuple[int, bool], Array] = field(default_factory=dict)

    def add(self, key: tuple[int, bool], rows: Array, value: Array) -> None:
        count = self.placement.rows
        known = self.sums.get(key)
        everywhere = len(rows) == count and (count == 1 or bool((rows[1:] > rows[:-1]).all()))
        if known is None and everywhere:
            self.sums[key] = value.copy()
            return
        if known is None:
            known = np.zeros((len(value), count, value.shape[2]), dtype=np.int64)
        elif len(known) < len(value):
            known = np.repeat(known, len(value), axis=0)
        self.sums[key] = known
        if everywhere:
            known += value
        else:
            for copy in range(len(known)):
                np.add.at(known[copy], rows, value[copy if len(value) > 1 else 0])

    def unfold(self, placement: Placement) -> None:
        copies, warps = len(placement.blocks), placement.warps_per_block
        self.placement = placement
        for key, known in self.sums.items():
            full = np.broadcast_to(known, (copies, warps, known.shape[2]))
            self.sums[key] = full.reshape(1, copies * warps, -1).copy()


class Counters(Observer):
    """Counts every step. Blocks with the same table of warps and counters share one table."""

    def __init__(self, cc: ComputeCapability) -> None:
        self._cc_major = cc.major
        self.specs = list(COUNTERS.values())
        self._general: list[int] = []
        self._special: list[list[int]] = []
        self._issued: list[bool] = []
        self._masks: tuple[Array, Array] | None = None
        self._mask_counts: Array | None = None
        self._batches: dict[int, _BatchCounts] = {}
        self._tables: dict[bytes, int] = {}
        self.tables: list[Array] = []

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch."""
        self._general = [k for k, spec in enumerate(self.specs) if spec.is_general]
        self._special = [
            [
                k
                for k, spec in enumerate(self.specs)
                if not spec.is_general and spec.applies(instruction)
            ]
            for instruction in program.instructions
        ]
        self._issued = [OPS[instruction.op].issued for instruction in program.instructions]
        self.by_pc = np.zeros((len(program.instructions), len(self.specs)), dtype=np.int64)
        self.warps = launch.warps_per_block
        self.table_of_block = np.zeros(launch.blocks, dtype=np.int32)

    def step(self, step: Step) -> None:
        """Count one step."""
        start = int(step.placement.blocks[0])
        batch = self._batches.get(start)
        if batch is None:
            batch = self._batches[start] = _BatchCounts(step.placement)
        elif batch.placement is not step.placement:
            batch.unfold(step.placement)
        if self._issued[step.pc]:
            batch.add((step.pc, True), step.rows, self._general_counts(step))
        special = self._special[step.pc]
        if special:
            tally = Tally(step, self._cc_major)
            counts = self._stacked([self.specs[k].count(tally) for k in special])
            batch.add((step.pc, False), step.rows, counts)

    def _general_counts(self, step: Step) -> Array:
        """Return what depends on masks alone; a straight run of instructions shares them."""
        masks = self._masks
        if masks is None or masks[0] is not step.active or masks[1] is not step.on:
            tally = Tally(step, self._cc_major)
            self._masks = (step.active, step.on)
            self._mask_counts = self._stacked([self.specs[k].count(tally) for k in self._general])
        assert self._mask_counts is not None
        return self._mask_counts

    @staticmethod
    def _stacked(counts: list[Array]) -> Array:
        """Return counts as one array shaped (copies, rows, counters), one copy if all agree."""
        copies = max(map(len, counts))
        if copies > 1:
            counts = [c[:1] if (c == c[:1]).all() else c for c in counts]
            copies = max(map(len, counts))
            counts = [np.broadcast_to(c, (copies, c.shape[1])) for c in counts]
        return np.stack(counts, axis=2).astype(np.int64, copy=False)

    def batch_end(self, blocks: Array) -> None:
        """Add a batch to the launch."""
        batch = self._batches.pop(int(blocks[0]), None)
        if batch is None:
            return
        copies = len(blocks)
        same = all(len(known) == 1 for known in batch.sums.values()) and batch.placement.folded
        shape = (1 if same else copies, self.warps, len(self.specs))
        tables = np.zeros(shape, dtype=np.int64)
        for (pc, is_general), known in batch.sums.items():
            group = self._general if is_general else self._special[pc]
            weight = copies if batch.placement.folded and len(known) == 1 else 1
            if not batch.placement.folded:
                known = known.reshape(copies, self.warps, -1)
            tables[:, :, group] += known
            self.by_pc[pc, group] += known.sum(axis=(0, 1)) * weight
        if same:
            self.table_of_block[blocks] = self._table(tables[0])
            return
        unique, inverse = np.unique(tables.reshape(copies, -1), axis=0, return_inverse=True)
        numbers = [self._table(row.reshape(self.warps, -1)) for row in unique]
        self.table_of_block[blocks] = np.asarray(numbers, dtype=np.int32)[inverse.reshape(-1)]

    def _table(self, table: Array) -> int:
        key = table.tobytes()
        if key not in self._tables:
            self._tables[key] = len(self.tables)
            self.tables.append(table.copy())
        return self._tables[key]

    def named(self, row: Array) -> dict[str, int]:
        """Return a row of numbers under their counters' names, as plain ints."""
        return {spec.name: int(n) for spec, n in zip(self.specs, row, strict=True)}
