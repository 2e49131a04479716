"""The observer of a check: updates clocks and shadow memory, and applies the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count, pairwise

import numpy as np

from gpusim.checking.accessed_elements import Uninitialised
from gpusim.checking.barriers import Barriers, SourceText
from gpusim.checking.batch import Batch
from gpusim.checking.bulk_copies import BulkCopies
from gpusim.checking.bulk_flights import Begun, Flight, touched
from gpusim.checking.compiled_check import CompiledCheck
from gpusim.checking.copy_steps import CopySteps
from gpusim.checking.coverage import Coverage
from gpusim.checking.element_access import MOST_BLOCKS
from gpusim.checking.findings import Finding
from gpusim.checking.index_products import index_products, overflow
from gpusim.checking.meetings import Meetings
from gpusim.checking.memory_accesses import MemoryAccesses
from gpusim.checking.single_access import lost, order_of_sums
from gpusim.checking.sink import Sink
from gpusim.checking.state import CheckState
from gpusim.errors import InputError
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.isa.warpgroups import UNIT
from gpusim.launch.arguments import MAX_ELEMENTS
from gpusim.launch.events import BarrierArrived, BarrierOpened, Observer, Placement, Step
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.launch.languages import CUDA_CPP
from gpusim.machine.storage import Allocation
from gpusim.program.flow import all_successors, leaders
from gpusim.typing import Array


class Checker(Observer):
    """Listens to a launch and gathers findings in `sink`. `allocations` are its arrays.

    Arrays in `uninitialised` start without values. `lenient` acquires need no fence. `source`
    distinguishes early returns from conditions around a barrier. `steps` counts the steps examined,
    `coverage` the accesses compared.
    """

    def __init__(
        self,
        sink: Sink,
        cc: ComputeCapability,
        allocations: Mapping[str, Allocation],
        uninitialised: Uninitialised | None = None,
        *,
        lenient: bool = False,
        source: SourceText = ("", CUDA_CPP),
    ) -> None:
        self.lenient = lenient
        self._source = source
        self.sink = sink
        self._cc = cc
        self._allocations = allocations
        self._uninitialised = uninitialised or {}
        self._batches: dict[int, Batch] = {}
        self._overflows: dict[int, Finding] = {}
        self.steps = 0
        self.coverage = Coverage()

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch: classify each row of the program by the rules."""
        if launch.blocks > MOST_BLOCKS:
            raise InputError(
                f"a grid of {launch.blocks:,} blocks cannot be checked, at most {MOST_BLOCKS:,}; "
                "blocks of more threads need a smaller grid"
            )
        known = self._cc, self._allocations, self._uninitialised, self._source[0]
        state = self._state = CheckState(
            program, launch, self.sink, self.coverage, *known, lenient=self.lenient
        )
        rows = program.instructions
        self._products = index_products(program)
        self._barriers = Barriers(self.sink, program, self._source, is_lockstep=state.is_lockstep)
        self._accessing = {access.line for access in state.accesses.values()}
        self.coverage.lines_not_run = {row.line for row in rows if OPS[row.op].issued} - {0}
        copies = CopySteps(state)
        bulk = BulkCopies(state, copies.of_global)
        memory, meetings = MemoryAccesses(state, copies), Meetings(state, self._barriers, bulk)
        products = WarpgroupProducts(state, memory, bulk, meetings)
        without = program.joining | _repeated_fences(program) | _invalidations(program)
        rooms = memory, copies, bulk, products, meetings
        self._actions = [
            None if pc in without else self._action(pc, row, *rooms) for pc, row in enumerate(rows)
        ]
        self.compiled = CompiledCheck(state, self._actions)

    def _action(
        self,
        pc: int,
        row: Instruction,
        memory: MemoryAccesses,
        copies: CopySteps,
        bulk: BulkCopies,
        products: WarpgroupProducts,
        meetings: Meetings,
    ) -> Callable[[Step, Batch], None] | None:
        """Return the check of a row's steps; None for rows without a rule."""
        program, op = self._state.program, OPS[row.op]
        if row.memory is not None:
            if not self._state.layout.may_race(row):
                return None
            return memory.by_space[row.memory.space]
        if row.op == ".CHECK":
            return memory.ask
        if row.looks_up_constants:
            return memory.look_up
        if op.copies:
            return {"commits": copies.commit, "awaits": copies.await_groups}[op.copies]
        if pc in program.masks or pc in program.mask_registers:
            return meetings.meet_masked
        ordering = meetings.sync_warp if op.orders_lanes else None
        return {
            "warpsync": ordering if op.checks_mask else meetings.gather,
            "collect": meetings.gather,
            "shuffle": ordering if op.checks_mask else meetings.exchange,
            "barrier": meetings.arrive,
            "cluster_arrive": meetings.arrive_in_cluster,
            "bulk_copy": bulk.begin_bulk,
            "land_bulk": bulk.land_bulk,
            "await_bulk": bulk.await_bulk,
            "warpgroup_product": products.begin,
            "warpgroup_commit": products.commit,
            "warpgroup_wait": products.wait,
            "fence": meetings.fence,
            "exit": meetings.leave,
            "trap": meetings.leave,
        }.get(op.kind, ordering)

    def step(self, step: Step) -> None:
        """Check one step."""
        self.steps += 1
        if self.coverage.lines_not_run:
            self._note(step)
        has_values = self._state.has_values
        if has_values and step.pc in self._products and step.pc not in self._overflows:
            self._multiply(step)
        action = self._actions[step.pc]
        batch = self._batch(step.placement)
        if step.pc in self._state.program.joined and OPS[step.instruction.op].orders_lanes:
            batch.join(step, self._state.program.joined[step.pc])
        for found in batch.origins.follow(step):
            self._state.tell(found)
        if action is not None:
            action(step, batch)

    def _multiply(self, step: Step) -> None:
        """Keep the first index of an instruction that exceeds 32 bits."""
        threads = self._batch(step.placement).threads
        found = overflow(step, threads, signed=self._products[step.pc])
        if found is not None:
            self._overflows[step.pc] = found

    def tell_overflows(self) -> None:
        """Report indices beyond 32 bits, if accesses or arrays show that they are not hashes."""
        is_large = any(one.elements > MAX_ELEMENTS for one in self._allocations.values())
        if is_large or self.sink.has("bounds"):
            for found in self._overflows.values():
                self.sink.add(found)

    def tell_sums(self) -> None:
        """Report lost additions of floating-point sums, at the end of the launch."""
        wrong = self._state.float_sums.wrong()
        for pc, (lowest, memory) in self._state.shared_sums.items():
            note = order_of_sums(self._state.accesses[pc], *self._state.layout.name(memory, lowest))
            if pc in wrong:
                found, element = wrong[pc]
                note = lost(note, *self._state.layout.name(memory, element), found)
            self._state.tell(note)

    def _note(self, step: Step) -> None:
        """Note a line that has run; if it accesses memory, an access has to have run."""
        line, left = step.instruction.line, self.coverage.lines_not_run
        counts = step.instruction.memory is not None or line not in self._accessing
        if line in left and counts and step.on.any():
            left.discard(line)

    def barrier_opened(self, opened: BarrierOpened) -> None:
        """Order all accesses before a barrier, and check its threads."""
        batch, time = self._batch(opened.placement), self._state.time(int(opened.pcs[0]))
        rows = self._state.program.instructions
        if OPS[rows[int(opened.pcs[0])].op].kind == "cluster_wait":
            assert batch.clocks.cluster is not None
            batch.clocks.cluster.pass_on(opened.rows)
        elif opened.numbers is None:
            self._barriers.open(opened, batch.clocks, batch.gone_at)
            batch.clocks.open(opened, time)
        else:
            self._state.tell(self._barriers.came_apart(opened, batch.clocks))
            batch.clocks.open_for_some(opened, time)
        batch.forget()

    def barrier_arrived(self, arrived: BarrierArrived) -> None:
        """Record the release of threads that arrive at barriers without waiting."""
        step = arrived.step
        batch = self._batch(step.placement)
        came = np.asarray(step.on.all(axis=0)).any(axis=1)
        self._state.tell(self._barriers.arrived_apart(step, batch.clocks))
        time = self._state.time(step.pc)
        batch.clocks.arrive(step.rows[came], arrived.numbers[came], time)

    def batch_end(self, blocks: Array) -> None:
        """Forget blocks that have finished."""
        batch = self._batches.pop(int(blocks[0]), None)
        if batch is not None and batch.bulk is not None:
            for found in batch.bulk.left():
                self._state.tell(found)
        if self._state.flags is not None:
            self._state.flags.forget(blocks)

    def _batch(self, placement: Placement) -> Batch:
        start = int(placement.blocks[0])
        batch = self._batches.get(start)
        if batch is None:
            batch = self._batches[start] = Batch.of(
                placement, self._state.launch, has_copies=self._state.has_copies
            )
        elif batch.clocks.placement is not placement:
            batch.unfold(placement)
        return batch


def _invalidations(program: Program) -> frozenset[int]:
    """Return the ends of acquires: they drop the L1 cache's lines, and release nothing."""
    rows = program.instructions
    return frozenset(pc for pc, row in enumerate(rows) if "CCTL.IVALL" in row.text)


def _repeated_fences(program: Program) -> frozenset[int]:
    """Return the fences directly after another one of their scope, as compilers write them."""
    rows, begins = program.instructions, leaders(all_successors(program))
    return frozenset(
        pc
        for pc, (before, row) in enumerate(pairwise(rows), 1)
        if OPS[row.op].kind == OPS[before.op].kind == "fence"
        and (row.detail, row.guard, row.negated) == (before.detail, before.guard, before.negated)
        and pc not in begins
        and "FENCE." not in row.text  # of asynchronous copies
    )


# A product reads its factors by the async proxy, at any time until its group is awaited: stores
# before it need a barrier and a proxy fence, stores after it the wait and a barrier (PTX ISA,
# Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions).


class WarpgroupProducts:
    """Follows the factors of products in shared memory, by warp and group of products."""

    def __init__(
        self, state: CheckState, memory: MemoryAccesses, bulk: BulkCopies, meetings: Meetings
    ) -> None:
        self._state, self._memory, self._bulk, self._meetings = state, memory, bulk, meetings
        self._numbers = count(1)
        # By first block of a batch and warp: groups of products not yet awaited, the last one open.
        self._groups: dict[tuple[int, int], list[list[int]]] = {}

    def begin(self, step: Step, batch: Batch) -> None:
        """Compare the factors of products with earlier stores, and keep them in flight."""
        flights, shadow = self._bulk.flights(batch)
        access, time = self._state.accesses[step.pc], self._state.time(step.pc)
        memory, warps = int(step.placement.blocks[0]) + 1, step.placement.warps_per_block
        each = self._state.layout.element_bytes["shared"]
        within = np.arange(0, UNIT, each)
        running = np.flatnonzero(step.on[0].any(axis=1))
        for row, units in zip(step.rows[running].tolist(), step.values[0][running], strict=True):
            block = row // warps
            elements = np.unique((units[:, None] + within) // each)
            elements = elements + block * self._state.layout.sizes["shared"]
            number = -next(self._numbers)
            flight = Flight(
                Begun(number, row, 0, 0, 0, -1, 0, block),
                access, elements, int(batch.threads[0, row, 0]), time,
            )  # fmt: skip
            touch = touched(flight, elements, time, batch.clocks, memory)
            name = self._state.name(access, elements)
            self._state.tell(flights.meanwhile(touch, access, name))
            self._state.tell(flights.unfenced(flight, shadow, name, warps, self._state.timeline))
            self._memory.judge(touch, access, shadow, batch.on_their_way)
            flights.begin(flight)
            self._groups.setdefault((memory, row), [[]])[-1].append(number)

    def commit(self, step: Step, batch: Batch) -> None:
        """End the open group of each warp."""
        memory = int(step.placement.blocks[0]) + 1
        for row in step.rows[np.flatnonzero(step.on[0].any(axis=1))].tolist():
            self._groups.setdefault((memory, row), [[]]).append([])

    def wait(self, step: Step, batch: Batch) -> None:
        """Enter the factors of awaited groups as read; the warp's lanes know of it."""
        flights, shadow = self._bulk.flights(batch)
        memory = int(step.placement.blocks[0]) + 1
        for row in step.rows[np.flatnonzero(step.on[0].any(axis=1))].tolist():
            groups = self._groups.get((memory, row), [[]])
            ended = max(0, len(groups) - 1 - step.instruction.detail)
            numbers = [number for group in groups[:ended] for number in group]
            del groups[:ended]
            for flight in flights.end(numbers):
                self._state.timeline.waits[flight.time] = step.instruction.line
                shadow.read(touched(flight, flight.elements, flight.time, batch.clocks, memory))
        self._meetings.sync_warp(step, batch)
