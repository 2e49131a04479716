"""A running module: its memory, and the machine's handlers that it calls for single warps."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping
from functools import partial

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.machine.compiled import layout
from gpusim.machine.compiled.arrays import (
    Arrays,
    arrays_begin,
    bring_arrays,
    first_address,
    mark_stored,
)
from gpusim.machine.compiled.checked_steps import CheckedSteps
from gpusim.machine.compiled.linking import pages
from gpusim.machine.compiled.memory import (
    BatchMemory,
    bring_batch,
    bring_constants,
    clear_marks,
)
from gpusim.machine.compiled.one_warp import Effects, OneWarp, WarpOfCheck
from gpusim.machine.compiled.progress import EndlessError, Progress, first_turns
from gpusim.machine.compiled.recorded_steps import Records
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.context import Context
from gpusim.machine.turns import Order, Turns
from gpusim.machine.warps import state
from gpusim.machine.warps import turns as order
from gpusim.machine.warps.accesses import DISORDER, NOTE_BYTES
from gpusim.typing import Array
from gpusim.wasm import memory
from gpusim.wasm.linked import PAGE, Host, Link
from gpusim.wasm.memory import TrapError

# Of each addition to a sum: its instruction, block (of shared memory) or 0, and address; the bits
# of the sum before, and of the addend.
ADDITIONS = np.dtype([
    ("pc", "<u4"), ("block", "<u4"), ("address", "<i8"), ("before", "<u8"), ("value", "<u8"),
])  # fmt: skip
TakesAdditions = Callable[[Array], None]
MOST_RECORDED = 3 << 20  # runs of basic blocks: 50 MB, and their instructions some 200 MB
_LANES = np.arange(32, dtype=np.uint32)


# Those that exist: wasmtime must free them before its own modules go.
OPEN: weakref.WeakSet[Instance] = weakref.WeakSet()


def close_all() -> None:
    """Free the memory of all modules that run in this process."""
    for one in list(OPEN):
        one.close()


class LeftError(Exception):
    """A run that NumPy has to repeat: a fault, or an instruction without compiled form."""


class TrappedError(LeftError):
    """A run that has trapped."""


class OthersJoinError(LeftError):
    """Blocks that wait while others have not begun."""


class StandsStillError(LeftError):
    """A run in which no warp makes progress."""


class Instance:
    """A program's module linked to the shared one, with its memory.

    `run` runs warps that lie there; `stop` ends that with a trap.
    """

    def __init__(self, link: Link, made: Translation) -> None:
        self.made = made
        # The package keeps functions until their store goes: they must not keep the store.
        own = weakref.proxy(self)
        hosts = {
            name: Host(given, returned, partial(function, own))
            for name, given, returned, function in (
                ("host", 4, 0, Instance._called),
                ("drain", 0, 0, Instance._drain),
                ("take_steps", 0, 0, Instance._take_steps),
                ("bring", 2, 0, Instance._bring_chunk),
                ("progress", 1, 1, Instance._look),
                ("draw", 2, 1, Instance._draw),
            )
        }
        self._linked = link(hosts, pages(made.end))
        self.stop = self._linked.stop
        self.arrays: Arrays | None = None  # of the launch
        self.is_new = True  # its memory is zero
        self.notes: list[Array] = []
        self._most_notes = 0
        self._added: TakesAdditions | None = None
        self.shift = 0
        self.turns: Turns | None = None  # another order of warps than the usual one
        self._context: Context | None = None
        self._warp: OneWarp | None = None
        self._place: BatchMemory | None = None
        self._progress: Progress | None = None
        self._looks: Callable[[int], int] | None = None
        OPEN.add(self)

    def close(self) -> None:
        """Free the module's memory; it does not run afterwards."""
        self._linked.close()

    def bring(
        self,
        place: BatchMemory,
        context: Context,
        watched: Collection[int] = (),
        *,
        in_chunks: bool = False,
        has_arrays: bool = False,
    ) -> None:
        """Copy a batch into the memory, with the arrays unless they are there.

        Arrays may be copied `in_chunks` later.
        """
        missing = place.end - self.memory.nbytes
        if missing > 0:
            self._linked.grow(missing // PAGE + 1)
        self.shift = first_address(context.allocations) - arrays_begin(self.made)
        if not has_arrays:
            if not self.is_new:
                clear_marks(self.memory, place)
            given = context.allocations
            self.arrays = bring_arrays(self.memory, self.made, given, in_chunks=in_chunks)
            bring_constants(self.memory, place, context)
        bring_batch(self.memory, place, context.batch, watched)

    def set(self, values: Mapping[str, int]) -> None:
        """Set fields of the module's state."""
        for name, value in values.items():
            self._field(name)[0] = value

    def value(self, name: str) -> int:
        """Return a field of the module's state."""
        return int(self._field(name)[0])

    def _field(self, name: str) -> Array:
        kind = memory.fields_of(state.State)[name][1]
        at = state.place(name)
        return self.memory[at : at + kind.bytes].view(f"{'ui'[kind.signed]}{kind.bytes}")

    @property
    def memory(self) -> Array:
        """The module's memory, as bytes."""
        return self._linked.memory

    def run(
        self,
        place: BatchMemory,
        context: Context,
        most_notes: int,
        step_limit: int,
        file: str = "",
        added: TakesAdditions | None = None,
        looks: Callable[[int], int] | None = None,
    ) -> None:
        """Run a batch to its end; LeftError otherwise.

        At least `most_notes` steps of watched blocks are noted, if there are that many; or `added`
        takes the additions to sums, as they are made. By clock, `looks` is called in place of
        `Progress`.
        NoProgressError names the loop, in a `file`, of a warp with many times more iterations than
        `step_limit`.
        """
        self._place, self._context, self._warp = place, context, None
        self.notes, self._most_notes, self._added = [], most_notes, added
        self._progress = Progress(context.batch.program, file, place, step_limit)
        before = Effects(context)
        self._looks = looks
        self._tell(place, first_turns(step_limit), self._progress.most_idle)
        self.is_new = False
        self._recorded_blocks = 0
        self._begin_records()
        self._disorder[0] = 0
        self.set({"told_warp": 0})
        try:
            ended = self._linked.call("run")
        except (TrapError, LeftError) as error:
            before.undo()
            kind = TrappedError if isinstance(error, TrapError) else type(error)
            raise kind(str(error)) from error
        if most_notes or added is not None:
            self._drain()
        self._take_steps()
        if ended:
            raise StandsStillError("no warp makes progress")

    @property
    def is_disordered(self) -> bool:
        """Whether warps of the last run came to an order-dependent atomic out of NumPy's order."""
        return bool(self._disorder[0])

    @property
    def _disorder(self) -> Array:
        return self.memory[DISORDER : DISORDER + 4].view(np.int32)

    def _tell(self, place: BatchMemory, turns: int, most_idle: int) -> None:
        """Write the settings of a batch into the module's memory."""
        launched = memory.packed(
            state.Launched,
            shift=self.shift,
            marks=place.marks_at - arrays_begin(self.made) // SECTOR_BYTES,
            mark_bytes=place.mark_bytes,
            notes=place.notes_at,
            notes_end=place.notes_at + layout.NOTES * NOTE_BYTES,
            sum_bytes=place.sum_bytes,
            warps_at=place.warps_at,
            warp_bytes=self.made.warp_bytes,
            warps=place.warps,
            blocks=place.blocks,
            entries=place.blocks_at,
            local_bytes=32 * place.local_bytes,
            shared_bytes=place.shared_step,
            turns=turns,
            copies=place.copies_at,
            copies_end=place.copies_end,
            group=place.group_at,
            most_steps=first_turns(min(place.most_steps, place.first_look)),
            keys_at=self.made.keys_at,
            flags_at=self.made.flags_at,
            code_blocks=len(self.made.starts),
            awaits=self.made.awaits,
            most_idle=most_idle,
            reductions=self.made.reductions_at,
            arrivals=self.made.arrivals_at,
            queue_at=self.made.queue_at,
            held=place.held,
            cluster=place.cluster,
            cluster_at=self.made.cluster_at,
            bulk=self.made.bulk_at,
            groups_at=self.made.groups_at,
            order=Order.USUAL if self.turns is None else self.turns.order,
        )
        held = self.memory[state.LAUNCHED : state.LAUNCHED + len(launched)]
        held[:] = np.frombuffer(launched, np.uint8)

    @property
    def _written(self) -> Records | CheckedSteps | None:
        assert self._place is not None
        return self._place.records or self._place.checked

    def _begin_records(self) -> None:
        if self._written is not None:
            self.set(self._written.begins)

    def _take_steps(self) -> None:
        """Take the records of steps; LeftError for more than observers accept."""
        if self._written is None:
            return
        ends = {name: self.value(name) for name in ("runs", "details", "touched", "steps")}
        self._recorded_blocks += self._written.take(self.memory, ends)
        if self._recorded_blocks > MOST_RECORDED:
            raise LeftError("too many steps to be kept")
        self._begin_records()

    def _drain(self) -> None:
        """Take the recorded notes; stop recording when there are enough."""
        place = self._place
        assert place is not None
        held = self.memory[place.notes_at : self.value("notes")]
        self.set({"notes": place.notes_at})
        if self._added is not None:
            self._added(held.view(ADDITIONS))
            return
        self.notes.append(held.view(np.int32).reshape(-1, NOTE_BYTES // 4).copy())
        if len(self.notes) * layout.NOTES > self._most_notes:
            words = self.memory[place.warps_at :][: place.held * self.made.warp_bytes]
            words.view(np.int32).reshape(place.held, -1)[:, layout.WATCHED // 4] = 0
            place.entries(self.memory)[:, 3] = 0

    def _bring_chunk(self, entry: int, chunk: int) -> None:
        """Copy a chunk of an array on its first access."""
        assert self.arrays is not None
        self.arrays.bring(self.memory, entry, chunk)

    def _look(self, warp: int) -> int:
        """Sample a warp that iterates for long, or all (0); return the count until the next."""
        assert self._progress is not None
        assert self._place is not None
        if self._looks is not None:
            return self._looks(warp)
        if self._place.records is not None:
            raise LeftError("warps iterate for long")
        try:
            if warp:
                return self._progress.of_warp(self.memory, warp)
            return self._progress.of_all(self.memory)
        except EndlessError as error:
            if not self._place.is_last:
                raise OthersJoinError(str(error)) from error
            if self._place.checked is not None:
                return -1
            raise LeftError(str(error)) from error

    def _draw(self, count: int, arranges: int) -> int:
        """Put a list of splits in random order, or return the index of a random one."""
        assert self.turns is not None
        at = self.value("list")
        held = self.memory[at : at + order.LISTED_BYTES * count].view(np.uint64)
        by_position = np.argsort(held >> np.uint64(32))
        if not arranges:
            return int(by_position[self.turns.drawn(count)])
        held[:] = held[by_position[self.turns.arranged(held)]]
        return 0

    def raise_deadlock(self) -> None:
        """Raise the fault of a run in which no warp makes progress."""
        assert self._progress is not None
        found = None if self.made.shared.in_order else self._progress.deadlock(self.memory)
        if found is not None:
            raise found

    def raise_fault(self) -> None:
        """Raise the fault of the instruction at which a module that tells them has trapped."""
        pc, address, split, on = (
            self.value(f"told_{name}") for name in ("pc", "warp", "split", "on")
        )
        if address:
            self._one_warp().run(pc, address, split, on)

    def _called(self, pc: int, warp: int, split: int, on: int) -> None:
        """Run the machine's handler of an instruction for the lanes of a split."""
        assert self._place is not None
        if self._warp is None:
            assert self._context is not None
            self._warp = self._one_warp()
        if isinstance(self._warp, WarpOfCheck):
            self._warp.set_time(self.value("steps"), self.value("passes"))
        if self._warp.run(pc, warp & state.ALL_LANES, split, on):
            raise LeftError("lanes wait for others")
        if self._warp.has_changed:
            self.set({"idle": 0})
            mark_stored(self.memory)

    def _one_warp(self) -> OneWarp:
        assert self._place is not None
        assert self._context is not None
        assert self.arrays is not None
        make = OneWarp if self._place.checked is None else WarpOfCheck
        return make(self.memory, self.shift, self._place, self._context, self.arrays)
