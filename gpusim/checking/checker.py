"""The observer of a check: updates clocks and shadow memory, and applies the rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gpusim.checking import history
from gpusim.checking.access import Access, Timeline
from gpusim.checking.accessed_elements import (
    Layout,
    Spread,
    Uninitialised,
    by_memory,
    element_access_of,
    owners,
)
from gpusim.checking.async_copies import Copy, InFlight
from gpusim.checking.barriers import Barriers, SourceText
from gpusim.checking.batch import Batch
from gpusim.checking.bulk_copies import Begun, BulkFlights, Flight, access_of, touched
from gpusim.checking.cluster_clocks import ClusterClocks
from gpusim.checking.coverage import ARRAYS, LOCAL, MASKS, STRONG, Coverage
from gpusim.checking.element_access import BLOCK_SHIFT, LATEST_TIME, MOST_BLOCKS, ElementAccess
from gpusim.checking.findings import Finding
from gpusim.checking.flags import Flags
from gpusim.checking.float_sums import FloatSums, signed
from gpusim.checking.history import History
from gpusim.checking.index_products import index_products, overflow
from gpusim.checking.origins import Reading
from gpusim.checking.races import DOES, Name, Races, may_race_strongly
from gpusim.checking.releases import Releases
from gpusim.checking.shadow import Shadow
from gpusim.checking.single_access import (
    adds_floats,
    lost,
    never_written,
    order_of_sums,
    shared_sum,
    undefined,
)
from gpusim.checking.sink import Sink
from gpusim.checking.swapped_sums import swapped_sums, with_addends
from gpusim.errors import InputError
from gpusim.isa.ops import CONSTANT_BANK, OPS, RANK_SHIFT, Instruction, Memory, Program
from gpusim.launch.arguments import MAX_ELEMENTS
from gpusim.launch.events import BarrierArrived, BarrierOpened, Observer, Placement, Step
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.launch.languages import CUDA_CPP
from gpusim.machine.compiled.checked_steps import kept_operands
from gpusim.machine.compiled.detection import Cells, Detection, Examined
from gpusim.machine.storage import Allocation
from gpusim.program.array_bounds import has_unknown_array
from gpusim.program.flow import all_successors, leaders
from gpusim.program.polling import optimistic_loads, polls, signals, tested_loads
from gpusim.typing import Array

INDEPENDENT_THREADS = 7  # the first compute capability with independent thread scheduling
WORD = 4
EVERY_LANE = 0xFFFFFFFF
# Elements narrower than a word, from which on NumPy examines all of a launch: compiled code holds
# copies of the arrays beside their shadow, two bytes or more a byte.
MANY_NARROW = 1 << 24


def _of_lanes_on(masks: Array, on: Array) -> Array:
    """Return each lane's mask; a lane that is off holds an older one, and is given the first's."""
    held = np.broadcast_to(masks.astype(np.uint32, copy=False), on.shape)
    first = np.take_along_axis(held, np.argmax(on, axis=2, keepdims=True), axis=2)
    return np.where(on, held, first)


class Checker(Observer):
    """Listens to a launch and gathers findings in `sink`. `allocations` are its arrays.

    Arrays in `uninitialised` start without values. `lenient` acquires need no fence. `source`
    tells early returns from conditions around a barrier.
    `steps` counts the steps examined, `coverage` the accesses compared.
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
        self._lenient = lenient
        self._source = source
        self.sink = sink
        self._cc = cc
        self._allocations = allocations
        self._uninitialised = uninitialised or {}
        self._batches: dict[int, Batch] = {}
        self._timeline = Timeline()
        self._overflows: dict[int, Finding] = {}
        self.steps = 0
        self.coverage = Coverage()

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch: classify each row of the program by the rules."""
        if launch.blocks > MOST_BLOCKS:
            raise InputError(f"a grid of more than {MOST_BLOCKS:,} blocks cannot be checked")
        self._launch = launch
        self._follows = bool(program.compiler)  # a compiler may load unused elements
        rows = program.instructions
        waiting, guessing = polls(program), optimistic_loads(program)
        volatile = _polls_of_shared(program, waiting) if self._follows else frozenset()
        tested, signalling = tested_loads(program), signals(program)
        swaps = swapped_sums(program)
        accesses = {
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
        made = (access_of(pc, row) for pc, row in enumerate(rows))
        bulk = {access.pc: access for access in made if access is not None}
        self._copying = [pc for pc in bulk if OPS[rows[pc].op].kind == "bulk_copy"]
        accesses |= bulk
        self._accesses = accesses
        self._products, self._swaps = index_products(program), swaps
        self._shared_sums: dict[int, tuple[int, Memory]] = {}  # the lowest element, by pc
        self._float_sums = FloatSums()
        # Loads, without registers, of elements never written.
        self._never_written: list[tuple[Access, Array]] = []
        self._joined = program.joined
        self._of_unknown_arrays = {pc for pc in range(len(rows)) if has_unknown_array(program, pc)}
        images = {} if program.layout is None else program.layout.images
        several = len(program.constant_arrays) > 1
        self._constants = [
            self._allocations[name].extent
            for name, (bank, _) in images.items()
            if bank == CONSTANT_BANK and several and name in self._allocations
        ]
        self._layout = Layout(program, launch, self._allocations, self._uninitialised)
        self.coverage.not_compared[MASKS] = len(program.lost_masks)
        self._recorded = frozenset(
            space for space in ("global", "shared") if history.is_needed(program, self._of(space))
        )
        releases = self._releases() if self._recorded else None
        has_fences = any(OPS[row.op].kind == "fence" for row in rows)
        self._flags = None if releases is None else Flags(releases, accesses, has_fences=has_fences)
        lockstep = self._cc.major < INDEPENDENT_THREADS
        self._barriers = Barriers(self.sink, program, self._source, is_lockstep=lockstep)
        lines = [row.line for row in rows]
        self._accessing = {access.line for access in accesses.values()}
        self.coverage.lines_not_run = {row.line for row in rows if OPS[row.op].issued} - {0}
        self._races = Races(
            self.sink,
            self._timeline,
            accesses,
            lines,
            releases,
            None if self._flags is None else self._flags.log,
            lockstep,
            self.coverage,
            self._layout.name_at,
            self._source[0],
        )
        elements, history_of_global = self._layout.sizes["global"], self._history("global")
        self._global = Shadow(elements, history_of_global, by_segment=self._has_many_narrow)
        self._has_copies = any(OPS[row.op].copies == "begins" for row in rows)
        self._copied = InFlight(self._layout.sizes["global"]) if self._has_copies else None
        self._to_memory = {
            "global": self._access_global,
            "shared": self._access_shared,
            "local": self._access_local,
            "generic": self._access_generic,
        }
        without = program.joining | _repeated_fences(program)
        self._actions = [
            None if pc in without else self._action(pc, row) for pc, row in enumerate(rows)
        ]

    def _releases(self) -> Releases:
        """Return the order by fences and flags, as the program's accesses need it."""
        every = self._accesses.values()
        fences = [
            row.detail for row in self._layout.program.instructions if OPS[row.op].kind == "fence"
        ]
        return Releases(
            lenient=self._lenient,
            has_strong_pairs=any(may_race_strongly(a, b) for a in every for b in every),
            has_narrow="block" in fences or any(access.is_narrow for access in every),
        )

    @property
    def _has_many_narrow(self) -> bool:
        """Whether the elements of global memory are many, and narrower than words."""
        layout = self._layout
        return layout.element_bytes["global"] < WORD and layout.sizes["global"] >= MANY_NARROW

    def _of(self, space: str) -> list[Access]:
        """Return the accesses to a memory that may race."""
        every = self._accesses.values()
        return [
            access
            for access in every
            if access.space in (space, "generic") and self._layout.may_race(access.instruction)
        ]

    def _history(self, space: str) -> History | None:
        """Return the history of a memory's accesses; None where the shadow suffices."""
        return History(self._timeline, self._accesses) if space in self._recorded else None

    def _action(self, pc: int, row: Instruction) -> Callable[[Step, Batch], None] | None:
        """Return the check of a row's steps; None for rows without a rule."""
        if row.memory is not None:
            if not self._layout.may_race(row):
                return None
            return self._to_memory[row.memory.space]
        if row.op == ".CHECK":
            return self._ask
        if row.looks_up_constants:
            return self._look_up
        if OPS[row.op].copies:
            return {"commits": self._commit, "awaits": self._await}[OPS[row.op].copies]
        program = self._layout.program
        if pc in program.masks or pc in program.mask_registers:
            return self._meet_masked
        ordering = self._sync_warp if OPS[row.op].orders_lanes else None
        return {
            "warpsync": ordering if OPS[row.op].checks_mask else self._gather,
            "collect": self._gather,
            "shuffle": ordering if OPS[row.op].checks_mask else self._exchange,
            "barrier": self._arrive,
            "cluster_arrive": self._arrive_in_cluster,
            "bulk_copy": self._begin_bulk,
            "land_bulk": self._land_bulk,
            "await_bulk": self._await_bulk,
            "fence": self._fence,
            "exit": self._leave,
            "trap": self._leave,
        }.get(OPS[row.op].kind, ordering)

    def detection(self) -> tuple[Detection, Cells] | None:
        """Return the program's facts for compiled race detection; None where it cannot run."""
        layout = self._layout
        if self._uninitialised or self._has_copies or self._cc.major < INDEPENDENT_THREADS:
            return None
        if self._launch.blocks >= MOST_BLOCKS:
            return None
        if self._has_many_narrow:
            return None
        program = layout.program
        if program.mask_registers or set(program.masks.values()) - {EVERY_LANE}:
            return None
        asked: dict[str, list[int]] = {name: [] for name in _DETECTED.values()}
        for pc, action in enumerate(self._actions):
            name = "" if action is None else _DETECTED.get(action.__name__)
            if name is None or (name == "accesses" and self._accesses[pc].is_narrow):
                return None
            if name:
                asked[name].append(pc)
        shifts = {space: size.bit_length() - 1 for space, size in layout.element_bytes.items()}
        accesses = tuple((pc, shifts[self._accesses[pc].space]) for pc in asked["accesses"])
        memory = [self._accesses[pc] for pc in asked["accesses"]]
        polls = tuple(
            one.pc
            for one in memory
            if one.kind == "load" and (one.is_optimistic or one.is_volatile)
        )
        sums = tuple((one.pc, self._swaps.get(one.pc, -1)) for one in memory if adds_floats(one))
        gathers, exchanges = tuple(asked["gathers"]), tuple(asked["exchanges"])
        whole = tuple(asked["whole"])
        meetings = (*asked["meetings"], *gathers, *exchanges, *whole)
        conditions = tuple(asked["conditions"])
        rows = self._layout.program.instructions
        masked = tuple(pc for pc in gathers if rows[pc].detail != "all")
        sizes = layout.sizes
        own = layout.own_shared
        cells = Cells(layout.first_address, sizes["global"], sizes["shared"], own, sizes["local"])
        unknown = tuple(sorted(self._of_unknown_arrays))
        asked_of = accesses, polls, sums, meetings, masked, exchanges, whole, conditions, unknown
        return Detection(*asked_of), cells

    def asked_steps(self) -> Detection | None:
        """Return the steps that rules ask of compiled code; None where it cannot give them."""
        program, lockstep = self._layout.program, self._cc.major < INDEPENDENT_THREADS
        if self._uninitialised or self._has_copies or lockstep or program.mask_registers:
            return None
        if self._launch.blocks >= MOST_BLOCKS or self._has_many_narrow:
            return None
        rows, steps, conditions = program.instructions, {}, []
        for pc, action in enumerate(self._actions):
            name = "" if action is None else _WRITTEN.get(action.__name__)
            if name is None:
                return None
            if name == "conditions":
                conditions.append(pc)
            elif action is not None and name != "looked up":
                steps[pc] = kept_operands(rows[pc])
            elif pc in self._joined and OPS[rows[pc].op].orders_lanes:
                steps[pc] = 0
        sums = tuple(
            (pc, self._swaps.get(pc, -1))
            for pc, one in self._accesses.items()
            if pc in steps and adds_floats(one)
        )
        if any(self._accesses[pc].space == "generic" for pc, _ in sums):
            return None
        exchanges = tuple(
            pc for pc in steps if getattr(self._actions[pc], "__name__", "") == "_exchange"
        )
        looked_up = tuple(pc for pc in self._of_unknown_arrays if rows[pc].looks_up_constants)
        asked = (), (), sums, (), (), exchanges, (), tuple(conditions), looked_up
        return Detection(*asked, steps=tuple(steps.items()))

    def take_steps(self, found: Examined) -> bool:
        """Take over what a launch, of which steps were written down, has counted beside them.

        Return whether its findings are whole: values without an origin are not followed.
        """
        self.coverage.accesses += found.accesses
        if found.of_unknown_arrays:
            self.coverage.not_compared[ARRAYS] += found.of_unknown_arrays
        self._take_lines(found)
        raced = self.sink.raced()
        for access, elements in self._never_written:
            named = (
                self._layout.name(_memory(access), one) for one in np.unique(elements).tolist()
            )
            if any((array, access.line) not in raced for array, _ in named):
                return False
        return True

    def take(self, found: Examined) -> None:
        """Take over the counts of a launch that race detection has examined."""
        coverage = self.coverage
        coverage.accesses, coverage.ordered = found.accesses, found.ordered
        if found.free:
            coverage.not_compared[STRONG] = found.free
        for pc, lowest in found.shared_sums.items():
            self._shared_sums[pc] = lowest, _memory(self._accesses[pc])
        if self._follows and found.local_accesses:
            coverage.not_compared[LOCAL] = found.local_accesses
        if found.of_unknown_arrays:
            coverage.not_compared[ARRAYS] = found.of_unknown_arrays
        self._take_lines(found)

    def _take_lines(self, found: Examined) -> None:
        rows = self._layout.program.instructions
        counted = (
            row.line
            for row, ran in zip(rows, found.ran.tolist(), strict=True)
            if ran and (row.memory is not None or row.line not in self._accessing)
        )
        issued = {row.line for row in rows if OPS[row.op].issued}
        self.coverage.lines_not_run = issued - {0, *counted}

    def added(self, made: Array) -> None:
        """Follow additions to sums in compiled code, in their order."""
        for pc in np.unique(made["pc"]).tolist():
            some, access = made[made["pc"] == pc], self._accesses[pc]
            kind = np.dtype(f"f{_memory(access).dtype.itemsize}")
            bits = np.dtype(f"u{kind.itemsize}")
            before, value = (some[name].astype(bits).view(kind) for name in ("before", "value"))
            begin = self._layout.first_address if access.space == "global" else 0
            element = (some["address"] - begin) // self._layout.element_bytes[access.space]
            value = signed(access.instruction, value)
            self._float_sums.add_in_turn(pc, some["block"], element, before, value)

    def step(self, step: Step) -> None:
        """Check one step."""
        self.steps += 1
        if self.coverage.lines_not_run:
            self._note(step)
        has_registers = step.registers is not None
        if has_registers and step.pc in self._products and step.pc not in self._overflows:
            self._multiply(step)
        action = self._actions[step.pc]
        batch = self._batch(step.placement)
        if step.pc in self._joined and OPS[step.instruction.op].orders_lanes:
            batch.join(step, self._joined[step.pc])
        for found in batch.origins.follow(step):
            self._tell(found)
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
        wrong = self._float_sums.wrong()
        for pc, (lowest, memory) in self._shared_sums.items():
            note = order_of_sums(self._accesses[pc], *self._layout.name(memory, lowest))
            if pc in wrong:
                found, element = wrong[pc]
                note = lost(note, *self._layout.name(memory, element), found)
            self._tell(note)

    def _note(self, step: Step) -> None:
        """Note a line that has run: one with accesses to memory where one of these has."""
        line, left = step.instruction.line, self.coverage.lines_not_run
        counts = step.instruction.memory is not None or line not in self._accessing
        if line in left and counts and step.on.any():
            left.discard(line)

    def barrier_opened(self, opened: BarrierOpened) -> None:
        """Order all accesses before a barrier, and check its threads."""
        batch, time = self._batch(opened.placement), self._time(int(opened.pcs[0]))
        rows = self._layout.program.instructions
        if OPS[rows[int(opened.pcs[0])].op].kind == "cluster_wait":
            assert batch.clocks.cluster is not None
            batch.clocks.cluster.pass_on(opened.rows)
        elif opened.numbers is None:
            self._barriers.open(opened, batch.clocks, batch.gone_at)
            batch.clocks.open(opened, time)
        else:
            self._tell(self._barriers.came_apart(opened, batch.clocks))
            batch.clocks.open_for_some(opened, time)
        batch.forget()

    def barrier_arrived(self, arrived: BarrierArrived) -> None:
        """Record the release of threads that arrive at barriers without waiting."""
        step = arrived.step
        batch = self._batch(step.placement)
        came = np.asarray(step.on.all(axis=0)).any(axis=1)
        self._tell(self._barriers.arrived_apart(step, batch.clocks))
        time = self._time(step.pc)
        batch.clocks.arrive(step.rows[came], arrived.numbers[came], time)

    def batch_end(self, blocks: Array) -> None:
        """Forget blocks that have finished."""
        self._batches.pop(int(blocks[0]), None)
        if self._flags is not None:
            self._flags.forget(blocks)

    def _batch(self, placement: Placement) -> Batch:
        start = int(placement.blocks[0])
        batch = self._batches.get(start)
        if batch is None:
            batch = self._batches[start] = Batch.of(
                placement, self._launch, has_copies=self._has_copies
            )
        elif batch.clocks.placement is not placement:
            batch.unfold(placement)
        return batch

    def _time(self, pc: int) -> int:
        time = self._timeline.next(pc)
        if time > LATEST_TIME:
            raise InputError(
                f"more than {LATEST_TIME:,} accesses and barriers are too many to keep; "
                "check a smaller launch"
            )
        return time

    # -- accesses ----------------------------------------------------------------------

    def _access(self, step: Step) -> Access:
        """Return the access that a step makes, to the memory that it touches there."""
        access = self._accesses[step.pc]
        if access.space == "generic":
            return replace(access, instruction=step.instruction)
        return access

    def _access_generic(self, step: Step, batch: Batch) -> None:
        layout, cluster = self._layout.program.layout, batch.clocks.cluster
        start = 0 if layout is None else layout.shared_start
        for part in by_memory(step, start, in_clusters=cluster is not None):
            assert part.instruction.memory is not None
            space = part.instruction.memory.space
            if space == "shared" and cluster is not None:
                assert step.addresses is not None
                ranks = (step.addresses & 0xFFFFFFFF) >> RANK_SHIFT
                blocks = cluster.block_of(step.rows[None, :, None], ranks)
                self._visit_block(part, cluster, blocks)
                self._access_shared(part, batch, blocks)
            else:
                self._to_memory[space](part, batch)

    def _visit_block(self, step: Step, cluster: ClusterClocks, blocks: Array) -> None:
        """Report an access to the shared memory of a block that may not be there."""
        _, row, lane = np.nonzero(step.on)
        blocks = np.broadcast_to(blocks, step.on.shape)[step.on]
        does, line = DOES[OPS[step.instruction.op].kind], step.instruction.line
        time = self._time(step.pc)
        self._tell(cluster.touch(step.rows[row], lane, blocks, does, line, time))

    def _access_global(self, step: Step, batch: Batch) -> None:
        assert step.addresses is not None
        if step.on.any():
            first = self._layout.first_address
            element = (step.addresses - first) // self._layout.element_bytes["global"]
            touch = self._touch(step, batch, element, step.placement.copies)
            access = self._access(step)
            self._count_constants(touch)
            if access.kind == "store":
                for found in batch.origins.stored_outside(step):
                    self._tell(found)
            if self._uninitialised and access.kind != "store":
                never = self._layout.holds_nothing(touch.element)
                never &= self._global.writer[touch.element] == 0
                self._ask_written(step, batch, touch, access, never, 0)
            self._visit(step, batch, touch, access, element)
            self._judge(touch, access, self._global, self._copied)
            self._add_up(step, batch, element)
            if access.is_asynchronous:
                self._begin(step, batch, touch, access, self._copied)

    def _access_shared(self, step: Step, batch: Batch, blocks: Array | None = None) -> None:
        """Check an access to the shared memory of each thread's block, or of others of a batch."""
        assert step.addresses is not None
        if not step.on.any():
            return
        placement, elements = step.placement, self._layout.sizes["shared"]
        has_flags = self._flags is not None and self._flags.reach_shared
        shadow = batch.shared_for(step, elements, self._history("shared"), has_flags=has_flags)
        copies = batch.shared_copies if placement.folded else 1
        element = own = step.addresses // self._layout.element_bytes["shared"]
        if copies > 1 or not placement.folded:
            owner = owners(step, copies, by_lane=False)
            element = element + (owner if blocks is None else blocks) * elements
            own = element - owner * elements
        touch, access = self._touch(step, batch, element, copies), self._access(step)
        if step.pc in self._of_unknown_arrays:
            self.coverage.not_compared[ARRAYS] += len(touch.element) * touch.blocks
        if access.kind == "store":
            batch.origins.store(step, "shared", touch, len(shadow.writer))
        else:
            never = shadow.writer[touch.element] == 0
            if batch.on_their_way is not None:
                never &= batch.on_their_way.begun[touch.element] == 0
            if batch.bulk is not None:
                never &= ~batch.bulk.are_on_their_way(touch.element)
            if self._layout.own_shared < elements:
                never &= self._layout.may_hold_nothing(touch.element)
            self._ask_written(step, batch, touch, access, never, len(shadow.writer))
        self._visit(step, batch, touch, access, element)
        if batch.bulk is not None:
            name = self._name(access, touch.element)
            self._tell(batch.bulk.meanwhile(touch, access, name))
        self._judge(touch, access, shadow, batch.on_their_way)
        if batch.on_their_way is not None:
            self._land(touch, access, shadow, batch.on_their_way)
        self._add_up(step, batch, own)
        if access.is_asynchronous:
            self._begin(step, batch, touch, access, batch.on_their_way)

    def _add_up(self, step: Step, batch: Batch, element: Array) -> None:
        """Follow the floating-point sum that a step adds to."""
        if step.registers is None:
            return  # compiled code tells these by themselves
        if step.pc in self._swaps:
            step = with_addends(step, self._layout.program.instructions[self._swaps[step.pc]])
        memory, block = step.instruction.memory, np.zeros((1, 1, 1), np.int64)
        if memory is not None and memory.space == "shared":
            block = 1 + (batch.threads[:, step.rows] >> BLOCK_SHIFT)
        self._float_sums.add(step, block, element)

    def _access_local(self, step: Step, batch: Batch) -> None:
        """Compare accesses to local memory with the elements written before."""
        assert step.addresses is not None
        if not step.on.any():
            return
        placement, elements = step.placement, self._layout.sizes["local"]
        written = batch.local_for(step, elements)
        copies = batch.local_copies if placement.folded else 1
        element = step.addresses // self._layout.element_bytes["local"]
        element = element + owners(step, copies, by_lane=True) * elements
        touch, access = self._touch(step, batch, element, copies), self._access(step)
        if self._follows:
            self.coverage.not_compared[LOCAL] += len(touch.element) * touch.blocks
        if access.kind == "store":
            written[touch.element] = True
            batch.origins.store(step, "local", touch, len(written))
        else:
            never = ~written[touch.element]
            self._ask_written(step, batch, touch, access, never, len(written))

    def _count_constants(self, touch: ElementAccess) -> None:
        """Count the accesses to constants by generic addresses, which name no array."""
        for extent in self._constants:
            address = touch.element * self._layout.element_bytes["global"]
            address = address + self._layout.first_address
            inside = (address >= extent.start) & (address < extent.stop)
            self.coverage.not_compared[ARRAYS] += int(np.count_nonzero(inside)) * touch.blocks

    def _look_up(self, step: Step, batch: Batch) -> None:
        """Count a load of constants: nothing stores to them."""
        shape = (step.placement.copies, len(step.rows), 32)
        lanes = int(np.count_nonzero(np.broadcast_to(step.on, shape)))
        self.coverage.accesses += lanes
        if step.pc in self._of_unknown_arrays:
            self.coverage.not_compared[ARRAYS] += lanes

    def _ask_written(
        self,
        step: Step,
        batch: Batch,
        touch: ElementAccess,
        access: Access,
        never: Array,
        elements: int,
    ) -> None:
        """Track the value of an uninitialised load, or report another access's.

        Values copied within a memory of so many `elements` are tracked there.
        """
        carried = batch.origins.carried(access.space, touch, elements)
        if not (never.any() or carried.any()):
            return
        name = self._name(access, touch.element)
        if step.registers is None and access.kind == "load":
            self._never_written.append((access, touch.element[never]))
        elif access.kind == "load":
            batch.origins.read(step, Reading(touch, access, name, never), carried)
        else:
            for found in batch.origins.used(carried):
                self._tell(found)
            self._tell(never_written(never, touch.thread, access, name, touch.blocks))

    def _touch(
        self, step: Step, batch: Batch, element: Array, copies: int, time: int | None = None
    ) -> ElementAccess:
        memory = step.instruction.memory
        assert memory is not None
        each = max(memory.width_bytes // self._layout.element_bytes[memory.space], 1)
        time = self._time(step.pc) if time is None else time
        stored = _bits_of_all(step.values)
        if stored is not None:
            self._timeline.stored[time] = stored
        shape = (copies, len(step.rows), 32)
        return element_access_of(step, time, batch.clocks, batch.threads, element, each, shape)

    def _judge(
        self, touch: ElementAccess, access: Access, shadow: Shadow, copies: InFlight | None
    ) -> None:
        name = self._name(access, touch.element)
        if adds_floats(access):
            lowest = shared_sum(shadow, touch, self._layout.sizes[access.space])
            known = self._shared_sums.get(access.pc)
            if lowest is not None and (known is None or lowest < known[0]):
                self._shared_sums[access.pc] = lowest, _memory(access)
        if copies is not None:
            self._races.meanwhile(copies, touch, access, name)
        self._races.touch(shadow, touch, access, name)

    def _visit(
        self, step: Step, batch: Batch, touch: ElementAccess, access: Access, element: Array
    ) -> None:
        """Record an access to a possible flag: one atomic by all lanes that it is made for."""
        if self._flags is not None and access.space in self._recorded:
            if step.pc in self._joined:
                every, element = batch.of_all(step, self._joined[step.pc], element)
                touch = self._touch(every, batch, element, step.placement.copies, touch.time)
            self._flags.touch(touch, access)

    def _name(self, access: Access, element: Array) -> Name:
        """Return a function from an entry to its array's name and index."""
        return lambda entry: self._layout.name(_memory(access), int(element[entry]))

    def _tell(self, found: Finding | None) -> None:
        if found is not None:
            self.sink.add(found)

    def _ask(self, step: Step, batch: Batch) -> None:
        self._tell(undefined(step, batch.threads))

    # -- asynchronous copies -----------------------------------------------------------

    def _begin(
        self,
        step: Step,
        batch: Batch,
        touch: ElementAccess,
        access: Access,
        copies: InFlight | None,
    ) -> None:
        """Record copies that are pending from now on."""
        assert batch.groups is not None
        assert copies is not None
        places = _places(step)
        each = np.repeat(places, len(touch.element) // len(places))
        alike = copies.begin(Copy.begun(batch.groups, access, touch, each))
        if access.kind == "store" and alike.any():
            self._races.at_once(alike, touch, access, self._name(access, touch.element))

    def _commit(self, step: Step, batch: Batch) -> None:
        if batch.groups is not None:
            batch.groups.commit(_places(step))

    def _await(self, step: Step, batch: Batch) -> None:
        """Enter copies as accesses of the threads that waited for them."""
        if batch.groups is None or step.instruction.detail is None:
            return
        line = step.instruction.line
        ended = batch.groups.ended(_places(step), int(step.instruction.detail), line)
        for copies, shadow in ((self._copied, self._global), (batch.on_their_way, batch.shared)):
            for copy in () if copies is None else copies.end(batch.groups, ended):
                assert shadow is not None
                time = self._time(copy.access.pc)
                self._timeline.waits[time] = line
                touch = copy.touch(time, batch.clocks)
                if not step.instruction.text and batch.on_their_way is copies is not None:
                    copies.arrive(copy, touch)  # the wait is part of an arrival at a barrier
                else:
                    (shadow.read if copy.access.kind == "load" else shadow.write)(touch)

    def _land(self, touch: ElementAccess, access: Access, shadow: Shadow, copies: InFlight) -> None:
        """Record mbarriers; complete their copies when a thread tests a phase."""
        memory = access.instruction.memory
        if access.kind == "atomic" and memory is not None and memory.of_block:
            copies.barriers[touch.element] = True
        elif access.kind == "load" and copies.barriers[touch.element].any():
            size = self._layout.sizes["shared"]
            for block in np.unique(touch.element // size).tolist():
                for landed in copies.land(block * size, (block + 1) * size):
                    shadow.write(landed)

    # -- bulk copies -------------------------------------------------------------------

    def _bulk(self, batch: Batch) -> tuple[BulkFlights, Shadow]:
        """Return the bulk copies of a batch, and its shadow of shared memory."""
        elements = self._layout.sizes["shared"] * len(batch.clocks.placement.blocks)
        if batch.shared is None:
            batch.shared = Shadow(elements, self._history("shared"))
        if batch.bulk is None:
            batch.bulk = BulkFlights(elements, batch.clocks.placement.rows, self._copying)
        return batch.bulk, batch.shared

    def _elements(self, space: str, begin: int, size: int) -> Array:
        each = self._layout.element_bytes[space]
        return np.arange(begin // each, -(-(begin + size) // each))

    def _begin_bulk(self, step: Step, batch: Batch) -> None:
        """Compare new copies with earlier accesses, and keep them in flight."""
        flights, shadow = self._bulk(batch)
        access, warps = self._accesses[step.pc], step.placement.warps_per_block
        for told in step.values[0].tolist():
            one = Begun(*told)
            lane = int(step.on[0, int(np.flatnonzero(step.rows == one.row)[0])].argmax())
            elements = self._elements("shared", one.place, one.size)
            elements = elements + one.row // warps * self._layout.sizes["shared"]
            time, thread = self._time(step.pc), int(batch.threads[0, one.row, lane])
            flight = Flight(one, access, elements, thread, time)
            memory = int(step.placement.blocks[0]) + 1
            touch = touched(flight, elements, time, batch.clocks, memory)
            name = self._name(access, elements)
            self._tell(flights.meanwhile(touch, access, name))
            if access.kind == "load":
                self._tell(flights.unfenced(flight, shadow, name, warps, self._timeline))
            self._races.touch(shadow, touch, access, name)
            flights.begin(flight)

    def _land_bulk(self, step: Step, batch: Batch) -> None:
        """Enter copies of ended phases as stores known to the threads that test the phase."""
        flights, shadow = self._bulk(batch)
        arrivals = [one for one in self._accesses.values() if _is_arrival(one)]
        memory = int(step.placement.blocks[0]) + 1
        for flight in flights.end(int(told[0]) for told in step.values[0]):
            time = self._time(flight.access.pc)
            shadow.write(touched(flight, flight.elements, time, batch.clocks, memory))
            if self._flags is not None and arrivals:
                warps = step.placement.warps_per_block
                barrier = self._elements("shared", flight.begun.barrier, 8)
                barrier = barrier + flight.begun.row // warps * self._layout.sizes["shared"]
                fence = touched(flight, barrier, self._time(step.pc), batch.clocks, memory)
                self._flags.fence(fence, "block")
                late = self._time(arrivals[0].pc)
                self._flags.touch(touched(flight, barrier, late, batch.clocks, memory), arrivals[0])

    def _await_bulk(self, step: Step, batch: Batch) -> None:
        """Enter copies to global memory as loads and stores of the thread that waits for them."""
        flights, shadow = self._bulk(batch)
        memory = int(step.placement.blocks[0]) + 1
        access = self._accesses[step.pc]
        for flight in flights.end(int(told[0]) for told in step.values[0]):
            time = self._time(flight.access.pc)
            shadow.read(touched(flight, flight.elements, time, batch.clocks, memory))
            begin = flight.begun.address - self._layout.first_address
            elements = self._elements("global", begin, flight.begun.size)
            touch = touched(flight, elements, self._time(step.pc), batch.clocks, 0)
            self._races.touch(self._global, touch, access, self._name(access, elements))

    # -- threads together --------------------------------------------------------------

    def _sync_warp(self, step: Step, batch: Batch) -> None:
        batch.clocks.sync_warp(step, self._time(step.pc))

    def _gather(self, step: Step, batch: Batch) -> None:
        """Report a mask of machine code that names exited lanes."""
        batch.clocks.sync_warp(step, self._time(step.pc))
        if step.mask is not None and step.instruction.detail != "all":
            outside = self._barriers.outside(step, step.mask)
            self._tell(outside or self._barriers.named_in_vain(step, batch.clocks))

    def _exchange(self, step: Step, batch: Batch) -> None:
        """Report a shuffle of machine code from inactive source lanes."""
        batch.clocks.sync_warp(step, self._time(step.pc))
        self._tell(self._barriers.read_in_vain(step))

    def _meet_masked(self, step: Step, batch: Batch) -> None:
        """Report a mask that machine code has dropped, and order the lanes that it names."""
        program = self._layout.program
        if step.pc in program.masks:
            mask = np.full((1, 1, 1), program.masks[step.pc], np.uint32)
        else:
            assert step.registers is not None
            mask = _of_lanes_on(step.registers(program.mask_registers[step.pc]), step.on)
        batch.clocks.sync_warp(step._replace(mask=mask), self._time(step.pc))
        found = self._barriers.outside(step, mask)
        if (
            OPS[step.instruction.op].kind != "compute"
        ):  # lanes may wait at other warp barriers with this mask
            found = found or self._barriers.absent(step, mask, batch.clocks, batch.gone_at)
        self._tell(found or self._barriers.read_in_vain(step))

    def _arrive(self, step: Step, batch: Batch) -> None:
        """Note lanes that go past a barrier without waiting: it is checked when it opens."""
        past = step.active & ~step.on
        if past.any():
            self._barriers.skip(step, past)

    def _arrive_in_cluster(self, step: Step, batch: Batch) -> None:
        assert batch.clocks.cluster is not None
        batch.clocks.cluster.arrive(step.rows, step.on[0], self._time(step.pc))

    def _fence(self, step: Step, batch: Batch) -> None:
        shape = (step.placement.copies, len(step.rows), 32)
        time = self._time(step.pc)
        zero = np.zeros((1, 1, 1), dtype=np.int64)
        if step.pc in self._joined:
            step, zero = batch.of_all(step, self._joined[step.pc], zero)
        touch = element_access_of(step, time, batch.clocks, batch.threads, zero, 1, shape)
        assert self._flags is not None
        self._flags.fence(touch, str(step.instruction.detail))
        if self._copying and "FENCE.VIEW.ASYNC" in step.instruction.text:
            self._bulk(batch)[0].fenced[step.rows] = time

    def _leave(self, step: Step, batch: Batch) -> None:
        row, lane = np.nonzero(step.on.any(axis=0))
        batch.gone_at[step.rows[row], lane] = step.pc
        batch.clocks.leave(step)
        if batch.clocks.cluster is not None:
            self._tell(batch.clocks.cluster.leave(step.rows))


# The lists of `Detection` by the action of their steps; of others there is nothing to be asked.
_DETECTED = {
    "_access_global": "accesses",
    "_access_shared": "accesses",
    "_access_local": "accesses",
    "_look_up": "looked up",
    "_ask": "conditions",
    "_sync_warp": "meetings",
    "_gather": "gathers",
    "_exchange": "exchanges",
    "_meet_masked": "whole",
    "_arrive": "",
    "_fence": "",
    "_leave": "",
}
_WRITTEN = {**_DETECTED, "_access_generic": "accesses"}


def _is_arrival(access: Access) -> bool:
    """Return whether an access is an arrival at a barrier in shared memory."""
    memory = access.instruction.memory
    is_narrow = memory is not None and memory.space == "shared" and memory.of_block
    return is_narrow and access.kind == "atomic"


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


def _memory(access: Access) -> Memory:
    assert access.instruction.memory is not None
    return access.instruction.memory


def _bits_of_all(values: tuple[Array, ...]) -> int | None:
    """Return the bits that all lanes store to all their elements, None where they differ."""
    if not values:
        return None
    first = np.ascontiguousarray(values[0]).reshape(-1)[:1]
    if all((value == first).all() for value in values):
        return int(first.view(f"u{first.dtype.itemsize}")[0])
    return None


def _places(step: Step) -> Array:
    """Return the active lanes, numbered throughout the blocks of the batch."""
    spread = Spread(step, (step.placement.copies, len(step.rows), 32))
    return spread.flat(owners(step, step.placement.copies, by_lane=True))
