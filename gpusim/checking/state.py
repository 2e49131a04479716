"""The state of a check of one launch that all of its rules share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from gpusim.checking import history
from gpusim.checking.access import Access, Timeline
from gpusim.checking.accessed_elements import Layout, Uninitialised, element_access_of
from gpusim.checking.batch import Batch
from gpusim.checking.bulk_flights import access_of
from gpusim.checking.coverage import MASKS, Coverage
from gpusim.checking.element_access import LATEST_TIME, ElementAccess
from gpusim.checking.findings import Finding
from gpusim.checking.flags import Flags
from gpusim.checking.float_sums import FloatSums
from gpusim.checking.history import History
from gpusim.checking.races import Name, Races, may_race_strongly
from gpusim.checking.releases import Releases
from gpusim.checking.sink import Sink
from gpusim.checking.swapped_sums import swapped_sums
from gpusim.errors import InputError
from gpusim.isa.ops import CONSTANT_BANK, OPS, Memory, Program
from gpusim.launch.events import Step
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.machine.storage import Allocation
from gpusim.program.array_bounds import has_unknown_array
from gpusim.program.polling import (
    optimistic_loads,
    partial_swaps,
    signals,
    tested_loads,
    unmet_polls,
    waits,
)
from gpusim.program.rounded_loads import rounded_loads
from gpusim.typing import Array

INDEPENDENT_THREADS = 7  # the first compute capability with independent thread scheduling
WORD = 4
# Elements narrower than a word, from which on NumPy examines all of a launch: compiled code holds
# copies of the arrays beside their shadow, two bytes or more a byte.
MANY_NARROW = 1 << 24


class CheckState:
    """The accesses of a program, the order of its threads, and what has been found so far.

    Steps have values of registers where a run `has_values`, and it `adds_up` floating-point sums
    by steps unless compiled code reports these.
    `shared_sums` are the lowest elements to which several threads add, by pc, `never_written` loads
    of such elements by steps without registers. Accesses `of_unknown_arrays` may leave their array.
    """

    def __init__(
        self,
        program: Program,
        launch: Launch,
        sink: Sink,
        coverage: Coverage,
        cc: ComputeCapability,
        allocations: Mapping[str, Allocation],
        uninitialised: Uninitialised,
        text: str,
        *,
        lenient: bool,
    ) -> None:
        self.program, self.launch, self.cc = program, launch, cc
        self.sink, self.coverage, self.timeline = sink, coverage, Timeline()
        self.uninitialised = uninitialised
        self.follows = bool(program.compiler)  # a compiler may load unused elements
        rows = program.instructions
        self.swaps = swapped_sums(program)
        self.partial = partial_swaps(program)
        self.guesses = frozenset[int]().union(*self.partial.values())
        self.bytes_loaded = rounded_loads(program)
        made = (access_of(pc, row) for pc, row in enumerate(rows))
        bulk = {access.pc: access for access in made if access is not None}
        if any(row.memory is not None and row.memory.is_word_of_cluster for row in rows):
            sink.muted.add("cluster-race")  # the order by arrivals at other blocks' mbarriers
        self.copying = [pc for pc in bulk if OPS[rows[pc].op].kind != "await_bulk"]
        self.accesses = _accesses(program, self.swaps) | bulk
        self.has_copies = any(OPS[row.op].copies == "begins" for row in rows)
        self.shared_sums: dict[int, tuple[int, Memory]] = {}
        self.float_sums = FloatSums()
        self.never_written: list[tuple[Access, Array]] = []
        self.has_values = self.adds_up = True
        self.of_unknown_arrays = {pc for pc in range(len(rows)) if has_unknown_array(program, pc)}
        self.constants = _constants(program, allocations)
        self.layout = Layout(program, launch, allocations, uninitialised)
        coverage.not_compared[MASKS] = len(program.lost_masks)
        self.recorded = frozenset(
            space for space in ("global", "shared") if history.is_needed(program, self._of(space))
        )
        releases = self._releases(lenient=lenient) if self.recorded else None
        has_fences = any(OPS[row.op].kind == "fence" for row in rows)
        self.flags = (
            None if releases is None else Flags(releases, self.accesses, has_fences=has_fences)
        )
        self.is_lockstep = cc.major < INDEPENDENT_THREADS
        self.races = Races(
            sink,
            self.timeline,
            self.accesses,
            [row.line for row in rows],
            releases,
            None if self.flags is None else self.flags.log,
            self.is_lockstep,
            coverage,
            self.layout.name_at,
            text,
        )

    def _releases(self, *, lenient: bool) -> Releases:
        """Return the order by fences and flags, as the program's accesses need it."""
        every = self.accesses.values()
        fences = [row.detail for row in self.program.instructions if OPS[row.op].kind == "fence"]
        return Releases(
            lenient=lenient,
            has_strong_pairs=any(may_race_strongly(a, b) for a in every for b in every),
            has_narrow="block" in fences or any(access.is_narrow for access in every),
        )

    @property
    def has_many_narrow(self) -> bool:
        """Whether the elements of global memory are many, and narrower than words."""
        layout = self.layout
        return layout.element_bytes["global"] < WORD and layout.sizes["global"] >= MANY_NARROW

    def _of(self, space: str) -> list[Access]:
        """Return the accesses to a memory that may race."""
        every = self.accesses.values()
        return [
            access
            for access in every
            if access.space in (space, "generic") and self.layout.may_race(access.instruction)
        ]

    def history(self, space: str) -> History | None:
        """Return the history of a memory's accesses; None where the shadow suffices."""
        return History(self.timeline, self.accesses) if space in self.recorded else None

    def access(self, step: Step) -> Access:
        """Return the access that a step makes, to the memory that it touches there."""
        access = self.accesses[step.pc]
        if access.space == "generic":
            return replace(access, instruction=step.instruction)
        return access

    def touch(
        self, step: Step, batch: Batch, element: Array, copies: int, time: int | None = None
    ) -> ElementAccess:
        """Return the elements that a step touches: `element` is each lane's first."""
        memory = step.instruction.memory
        assert memory is not None
        each = max(memory.width_bytes // self.layout.element_bytes[memory.space], 1)
        time = self.time(step.pc) if time is None else time
        stored = _bits_of_all(step)
        if stored is not None:
            self.timeline.stored[time] = stored
        shape = (copies, len(step.rows), 32)
        return element_access_of(step, time, batch.clocks, batch.threads, element, each, shape)

    def time(self, pc: int) -> int:
        """Return a new time for the execution of a pc."""
        time = self.timeline.next(pc)
        if time > LATEST_TIME:
            raise InputError(
                f"more than {LATEST_TIME:,} accesses and barriers are too many to keep; "
                "check a smaller launch"
            )
        return time

    def name(self, access: Access, element: Array) -> Name:
        """Return a function from an entry to its array's name and index."""
        return lambda entry: self.layout.name(memory_of(access), int(element[entry]))

    def visit(
        self, step: Step, batch: Batch, touch: ElementAccess, access: Access, element: Array
    ) -> None:
        """Record an access to a possible flag, a warp-aggregated atomic's by all its lanes."""
        if self.flags is not None and access.space in self.recorded:
            if step.pc in self.program.joined:
                every, element = batch.of_all(step, self.program.joined[step.pc], element)
                touch = self.touch(every, batch, element, step.placement.copies, touch.time)
            self.flags.touch(touch, access)

    def tell(self, found: Finding | None) -> None:
        """Add a finding, if there is one."""
        if found is not None:
            self.sink.add(found)


def _accesses(program: Program, swaps: Collection[int]) -> dict[int, Access]:
    """Return the accesses to memory of a program, by pc."""
    rows = program.instructions
    waiting, guessing = waits(program), optimistic_loads(program)
    volatile = _polls_of_shared(program, unmet_polls(program)) if program.compiler else frozenset()
    tested, signalling = tested_loads(program), signals(program)
    return {
        pc: Access(
            pc,
            row,
            pc in waiting,
            pc in guessing,
            pc in volatile,
            swaps_sum=pc in swaps,
            is_tested=pc in tested,
            is_signal=pc in signalling,
        )
        for pc, row in enumerate(rows)
        if row.memory is not None
    }


def _polls_of_shared(program: Program, polls: Collection[int]) -> frozenset[int]:
    """Return the loads of shared memory that spin loops repeat, in a compiler's code.

    The compiler drops the volatile qualifier, but a plain load would not stay in such a loop. The
    first load may precede the loop, with the same line.
    """
    rows = program.instructions
    loads = [
        pc
        for pc, row in enumerate(rows)
        if OPS[row.op].kind == "load" and row.memory is not None and row.memory.space == "shared"
    ]
    lines = {rows[pc].line for pc in loads if pc in polls}
    return frozenset(pc for pc in loads if rows[pc].line in lines)


def memory_of(access: Access) -> Memory:
    """Return the memory that an access touches."""
    assert access.instruction.memory is not None
    return access.instruction.memory


def _bits_of_all(step: Step) -> int | None:
    """Return the bits that all lanes store to all their elements, None where they differ."""
    stored = []
    for value in step.values:
        shape = np.broadcast_shapes(value.shape, step.on.shape)
        stored.append(np.broadcast_to(value, shape)[np.broadcast_to(step.on, shape)])
    if stored and all((one == stored[0][:1]).all() for one in stored):
        return int(stored[0][:1].view(f"u{stored[0].dtype.itemsize}")[0])
    return None


def _constants(program: Program, allocations: Mapping[str, Allocation]) -> list[range]:
    """Return the extents of arrays in constant memory, if there are several."""
    if program.layout is None or len(program.constant_arrays) < 2:
        return []
    names = (name for name, (bank, _) in program.layout.images.items() if bank == CONSTANT_BANK)
    return [allocations[name].extent for name in names if name in allocations]
