"""The observer that judges a launch: it keeps clocks and shadows, and asks the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gpusim.checking.barriers import STAYED, Barriers
from gpusim.checking.clocks import Clocks
from gpusim.checking.findings import Finding, Place
from gpusim.checking.flags import Flags
from gpusim.checking.polling import guesses, polls
from gpusim.checking.races import Access, Races, Timeline, thread_named
from gpusim.checking.releases import Releases
from gpusim.checking.rules import RULES
from gpusim.checking.shadow import (
    ATOMIC,
    LATEST_TIME,
    MOST_BLOCKS,
    Array,
    Shadow,
    Touch,
    thread_of,
)
from gpusim.checking.sink import Sink
from gpusim.checking.touching import Layout, Spread, owners, threads_of, touch_of
from gpusim.errors import InputError
from gpusim.events import BarrierOpened, Observer, Placement, Step
from gpusim.isa import OPS, Instruction, Program
from gpusim.launch import ComputeCapability, Launch
from gpusim.machine.storage import FIRST_ADDRESS, Allocation

INDEPENDENT_THREADS = 7  # compute capability from which lanes of a warp run independently


@dataclass
class _Batch:
    """What is kept of blocks that run together; arrays are by row and lane."""

    clocks: Clocks
    threads: Array  # block and thread, packed
    gone_at: Array  # pc at which lanes left
    shared: Shadow | None = None
    shared_copies: int = 1
    local: Array | None = None  # whether an element of a thread's memory was written
    local_copies: int = 1


class Checker(Observer):
    """Listens to a launch and gathers findings in `sink`. `allocations` are its arrays.

    `steps` counts what it was told.
    """

    def __init__(
        self, sink: Sink, cc: ComputeCapability, allocations: Mapping[str, Allocation]
    ) -> None:
        self._sink = sink
        self._cc = cc
        self._allocations = allocations
        self._batches: dict[int, _Batch] = {}
        self._timeline = Timeline()
        self._told_of_order: set[int] = set()
        self.steps = 0

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch: find what each row of the program is to the rules."""
        if launch.blocks > MOST_BLOCKS:
            raise InputError(f"a grid of more than {MOST_BLOCKS:,} blocks cannot be checked")
        self._launch = launch
        rows = program.instructions
        waiting, guessing = polls(program), guesses(program)
        accesses = {
            pc: Access(pc, row, pc in waiting, pc in guessing)
            for pc, row in enumerate(rows)
            if row.memory is not None
        }
        self._accesses = accesses
        self._layout = Layout(program, launch, self._allocations)
        has_fences = any(OPS[row.op].kind == "fence" for row in rows)
        releases = Releases() if has_fences else None
        self._flags = Flags(releases, accesses)
        self._barriers = Barriers(self._sink, program)
        lockstep = self._cc.major < INDEPENDENT_THREADS
        lines = [row.line for row in rows]
        self._races = Races(self._sink, self._timeline, accesses, lines, releases, lockstep)
        self._global = Shadow(self._layout.sizes["global"])
        self._actions = [self._action(pc, row) for pc, row in enumerate(rows)]

    def _action(self, pc: int, row: Instruction) -> Callable[[Step, _Batch], None] | None:
        """Return what is done at a row; None for those that matter to no rule."""
        if row.memory is not None:
            if not self._layout.may_race(row):
                return None
            return {
                "global": self._access_global,
                "shared": self._access_shared,
                "local": self._access_local,
            }[row.memory.space]
        if row.op == ".CHECK":
            return self._ask
        if row.op in ("NOP", "WARPSYNC.ALL"):  # what a whole warp's barrier becomes
            return self._meet
        return {
            "shuffle": self._meet,
            "vote": self._meet,
            "match": self._meet,
            "warpsync": self._meet,
            "barrier": self._arrive,
            "fence": self._fence,
            "exit": self._leave,
        }.get(OPS[row.op].kind)

    def step(self, step: Step) -> None:
        """Judge one step."""
        self.steps += 1
        action = self._actions[step.pc]
        if action is None:
            return
        batch = self._batch(step.placement)
        action(step, batch)

    def barrier_opened(self, opened: BarrierOpened) -> None:
        """Order all that blocks did before a barrier, and judge who came to it."""
        batch = self._batch(opened.placement)
        self._barriers.open(opened, batch.clocks, batch.gone_at)
        batch.clocks.open(opened, self._time(int(opened.pcs[0])))

    def batch_end(self, blocks: Array) -> None:
        """Forget blocks that have finished."""
        self._batches.pop(int(blocks[0]), None)

    def _batch(self, placement: Placement) -> _Batch:
        start = int(placement.blocks[0])
        batch = self._batches.get(start)
        if batch is None:
            clocks = Clocks(placement, self._launch.threads_per_block)
            gone_at = np.full(clocks.live.shape, STAYED)
            batch = _Batch(clocks, threads_of(placement), gone_at)
            self._batches[start] = batch
        elif batch.clocks.placement is not placement:
            self._unfold(batch, placement)
        return batch

    def _unfold(self, batch: _Batch, placement: Placement) -> None:
        copies = len(placement.blocks)
        batch.clocks.unfold(placement)
        batch.threads = threads_of(placement)
        batch.gone_at = np.tile(batch.gone_at, (copies, 1))
        self._copy_shared(batch, copies)
        if batch.local is not None and batch.local_copies == 1:
            batch.local = np.tile(batch.local, copies)
        batch.local_copies = copies

    def _copy_shared(self, batch: _Batch, copies: int) -> None:
        """Give every block a shadow of its own."""
        if batch.shared is not None and batch.shared_copies == 1:
            batch.shared = batch.shared.for_blocks(batch.clocks.placement.blocks)
        batch.shared_copies = copies

    def _time(self, pc: int) -> int:
        time = self._timeline.next(pc)
        if time > LATEST_TIME:
            raise InputError(
                f"more than {LATEST_TIME:,} accesses and barriers are too many to tell apart; "
                "check a smaller launch"
            )
        return time

    # -- accesses ----------------------------------------------------------------------

    def _access_global(self, step: Step, batch: _Batch) -> None:
        assert step.addresses is not None
        if not step.on.any():
            return
        element = (step.addresses - FIRST_ADDRESS) // self._layout.element_bytes["global"]
        touch = self._touch(step, batch, element, step.placement.copies)
        self._judge(step, touch, self._global, 0)

    def _access_shared(self, step: Step, batch: _Batch) -> None:
        assert step.addresses is not None
        if not step.on.any():
            return
        copies = max(len(step.addresses), len(step.on))
        placement = step.placement
        blocks = len(placement.blocks)
        if copies > batch.shared_copies and placement.folded:
            self._copy_shared(batch, copies)
        if batch.shared is None:
            each = batch.shared_copies if placement.folded else blocks
            batch.shared = Shadow(self._layout.sizes["shared"] * each)
        copies = batch.shared_copies if placement.folded else 1
        shape = (copies, len(step.rows), 32)
        element = step.addresses // self._layout.element_bytes["shared"]
        if (placement.folded and copies > 1) or not placement.folded:
            owner = owners(step, shape, by_lane=False)
            element = element + owner * self._layout.sizes["shared"]
        touch = self._touch(step, batch, element, copies)
        access = self._accesses[step.pc]
        if access.kind != "store":
            never = batch.shared.writer[touch.element] == 0
            self._uninitialised(never, touch.element, touch.thread, access, touch.blocks)
        self._judge(step, touch, batch.shared, int(placement.blocks[0]) + 1)

    def _access_local(self, step: Step, batch: _Batch) -> None:
        """Hold a thread's own memory against what it has written."""
        assert step.addresses is not None
        if not step.on.any():
            return
        placement, size = step.placement, self._layout.sizes["local"]
        copies = max(len(step.addresses), len(step.on))
        if placement.folded and copies > batch.local_copies:
            if batch.local is not None:
                batch.local = np.tile(batch.local, copies)
            batch.local_copies = copies
        copies = batch.local_copies if placement.folded else 1
        if batch.local is None:
            batch.local = np.zeros(copies * placement.rows * 32 * size, dtype=bool)
        shape = (copies, len(step.rows), 32)
        element = step.addresses // self._layout.element_bytes["local"]
        element = element + owners(step, shape, by_lane=True) * size
        spread = Spread(step, shape)
        where, access = spread.flat(element), self._accesses[step.pc]
        if access.kind == "store":
            batch.local[where] = True
        else:
            thread = spread.flat(batch.threads[:copies, step.rows])
            never = ~batch.local[where]
            self._uninitialised(never, where, thread, access, placement.copies // copies)

    def _touch(self, step: Step, batch: _Batch, element: Array, copies: int) -> Touch:
        memory = step.instruction.memory
        assert memory is not None
        each = max(memory.width_bytes // self._layout.element_bytes[memory.space], 1)
        time = self._time(step.pc)
        if step.values and all(value.size == 1 for value in step.values):
            stored = {value.reshape(-1)[0].item() for value in step.values}
            if len(stored) == 1:
                self._timeline.stored[time] = stored.pop()
        shape = (copies, len(step.rows), 32)
        return touch_of(step, time, batch.clocks, batch.threads, element, each, shape)

    def _judge(self, step: Step, touch: Touch, shadow: Shadow, memory: int) -> None:
        access = self._accesses[step.pc]
        found = access.instruction.memory
        assert found is not None

        def name(entry: int) -> tuple[str, int]:
            return self._layout.name(found, int(touch.element[entry]))

        if access.kind == "atomic":
            self._order_of_sums(shadow, touch, access, name)
        self._races.touch(shadow, touch, access, name)
        self._flags.touch(touch, access, memory)

    def _uninitialised(
        self, never: Array, element: Array, thread: Array, access: Access, blocks: int
    ) -> None:
        if not never.any():
            return
        memory = access.instruction.memory
        assert memory is not None
        at = int(np.argmax(never))
        array, index = self._layout.name(memory, int(element[at]))
        who = thread_named(thread[at])
        message = (
            f"{who} reads {array}[{index}] of {memory.space} memory in line {access.line}, "
            "to which nothing was stored before"
        )
        place = Place(access.line, "reads", who)
        count = int(np.count_nonzero(never)) * blocks
        self._sink.add(Finding("uninitialised", message, (place,), array, index, count=count))

    def _order_of_sums(
        self, shadow: Shadow, touch: Touch, access: Access, name: Callable[[int], tuple[str, int]]
    ) -> None:
        """Note once for each row that a floating-point sum depends on the order of atomics."""
        row = access.instruction
        assert row.memory is not None
        is_sum = row.memory.dtype.kind == "f" and row.detail in ("add", "sub")
        if not is_sum or access.pc in self._told_of_order:
            return
        known = shadow.writer[touch.element]
        others = ((known & ATOMIC) != 0) & (thread_of(known) != touch.thread)
        if not others.any() and len(np.unique(touch.element)) == len(touch.element):
            return
        self._told_of_order.add(access.pc)
        array, index = name(int(np.argmax(others)))
        message = (
            f"several threads add to {array}[{index}] in line {access.line} by floating-point "
            "atomics: the last bits of the sum follow the order in which they come"
        )
        place = Place(access.line, "updates")
        self._sink.add(Finding("float-order", message, (place,), array, index))

    def _ask(self, step: Step, batch: _Batch) -> None:
        """Report lanes that do what C leaves undefined."""
        assert step.taken is not None
        if not step.taken.any():
            return
        spread = Spread(step, (step.placement.copies, len(step.rows), 32))
        wrong = spread.flat(step.taken)
        who = thread_named(spread.flat(batch.threads[:, step.rows])[int(np.argmax(wrong))])
        row = step.instruction
        rule = str(row.detail)
        message = f"{who}, line {row.line}: {RULES[rule].title}"
        place = Place(row.line, "computes", who)
        count = int(np.count_nonzero(wrong))
        self._sink.add(Finding(rule, message, (place,), count=count))

    # -- threads together --------------------------------------------------------------

    def _meet(self, step: Step, batch: _Batch) -> None:
        batch.clocks.meet(step, self._time(step.pc))

    def _arrive(self, step: Step, batch: _Batch) -> None:
        """Report a barrier whose guard keeps some lanes from it."""
        past = np.asarray((step.active & ~step.on).any(axis=0))
        if past.any():
            self._barriers.passed_by(step, past)

    def _fence(self, step: Step, batch: _Batch) -> None:
        shape = (step.placement.copies, len(step.rows), 32)
        time = self._time(step.pc)
        zero = np.zeros((1, 1, 1), dtype=np.int64)
        touch = touch_of(step, time, batch.clocks, batch.threads, zero, 1, shape)
        self._flags.fence(touch, str(step.instruction.detail))

    def _leave(self, step: Step, batch: _Batch) -> None:
        row, lane = np.nonzero(step.on.any(axis=0))
        batch.gone_at[step.rows[row], lane] = step.pc
        batch.clocks.leave(step)
