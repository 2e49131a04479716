"""A running module: its memory, and the machine's handlers that it calls for single warps."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpusim.errors import KernelFault, NoProgressError
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.isa.ops import OPS
from gpusim.launch.events import Observer, Placement, Step
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
from gpusim.machine.compiled.progress import EndlessError, Progress
from gpusim.machine.compiled.recorded_steps import Records
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.compiled.vectors import is_wide
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.machine.handlers import HANDLERS
from gpusim.machine.state import Batch, Splits
from gpusim.machine.storage import Allocation
from gpusim.machine.turns import Order, Turns
from gpusim.machine.warps import state
from gpusim.machine.warps import turns as order
from gpusim.machine.warps.accesses import DISORDER, NOTE_BYTES
from gpusim.program.liveness import Liveness
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
        self._warp: _OneWarp | None = None
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
        self._looks = looks
        self._tell(place, min(step_limit, 2**31 - 1))
        self.is_new = False
        self._recorded_blocks = 0
        self._begin_records()
        self._disorder[0] = 0
        try:
            ended = self._linked.call("run")
        except NoProgressError:
            raise
        except (TrapError, KernelFault, LeftError) as error:
            raise LeftError(str(error)) from error
        if ended:
            raise StandsStillError("no warp makes progress")
        if most_notes or added is not None:
            self._drain()
        self._take_steps()

    @property
    def is_disordered(self) -> bool:
        """Whether warps of the last run came to an order-dependent atomic out of NumPy's order."""
        return bool(self._disorder[0])

    @property
    def _disorder(self) -> Array:
        return self.memory[DISORDER : DISORDER + 4].view(np.int32)

    def _tell(self, place: BatchMemory, turns: int) -> None:
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
            most_steps=min(place.most_steps, place.first_look),
            keys_at=self.made.keys_at,
            flags_at=self.made.flags_at,
            code_blocks=len(self.made.starts),
            awaits=self.made.awaits,
            most_idle=order.MOST_IDLE,
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

    def _called(self, pc: int, warp: int, split: int, on: int) -> None:
        """Run the machine's handler of an instruction for the lanes of a split."""
        assert self._place is not None
        if self._warp is None:
            assert self._context is not None
            make = _OneWarp if self._place.checked is None else _WarpOfCheck
            self._warp = make(self._context, self.made, self._place, self.memory, self.shift)
        row = (warp - self._place.warps_at) // self.made.warp_bytes
        words = self.memory[warp : warp + state.TOKENS].view(np.int32)
        if isinstance(self._warp, _WarpOfCheck):
            self._warp.set_time(self.value("steps"), self.value("passes"))
        self._warp.run(self.memory, words, pc, row, split, on)
        if isinstance(self._warp, _WarpOfCheck) and self._warp.has_changed:
            self.set({"idle": 0})
            mark_stored(self.memory)


class _OneWarp:
    """The lanes of a warp as a batch of the machine: registers are an instruction's operands."""

    def __init__(self, context: Context, made: Translation, place: BatchMemory, *_: Any) -> None:
        program, launch = context.batch.program, context.batch.launch
        blocks = context.batch.placement.blocks[:1]
        batch = Batch(program, launch, blocks, Liveness(program))
        batch.placement = Placement(blocks, launch.warps_per_block, folded=False)
        self._use(context, batch, made, context.allocations, ())
        self._rows = place.warps

    def _use(
        self,
        context: Context,
        batch: Batch,
        made: Translation,
        allocations: Mapping[str, Allocation],
        observers: Sequence[Observer],
    ) -> None:
        self._batch, self._made = batch, made
        self._context = Context(
            batch, context.arguments, allocations, observers, on_fault=context.on_fault
        )
        self._fixed = list(batch.registers)

    def run(self, memory: Array, warp: Array, pc: int, row: int, split: int, on: int) -> None:
        """Read the operands, run the handler, and set the results."""
        batch, instruction = self._batch, self._context.instructions[pc]
        row, count = row % self._rows, int(warp[0])
        places = state.SPLITS // 4 + 4 * np.arange(count)
        batch.splits = Splits(
            row=np.full(count, row),
            pc=np.full(count, pc),
            mask=_lanes(warp[places + 1])[None],
            state=np.zeros(count, np.int64),
            last_run=np.zeros(count, np.int64),
        )
        given, made = self._made.many.get(pc, (layout.operand(0), layout.result(0)))
        for number, (register, dtype) in enumerate(
            zip(instruction.src, self._made.operands[pc], strict=False)  # a check keeps more
        ):
            if register not in batch.program.immediates:
                at = given + state.OPERAND_BYTES * number
                batch.registers[register] = _read(memory, at, dtype)
        group = Group(batch, np.array([split]))
        group.pc = pc
        lanes = _lanes(np.array([on & state.ALL_LANES], np.uint32))[None]
        lanes = group.mask if np.array_equal(lanes, group.mask) else lanes
        if HANDLERS[OPS[instruction.op].kind](self._context, group, instruction, lanes):
            raise LeftError("lanes wait for others")
        for number, register in enumerate(instruction.dst):
            _write(memory, made + state.OPERAND_BYTES * number, group.read(register))
            batch.registers[register] = self._fixed[register]


class _WarpOfCheck(_OneWarp, Observer):
    """The same in a check: with the memory of all blocks, as handlers of rare instructions need it.

    What these tell is kept for the steps of their groups.
    """

    def __init__(
        self, context: Context, made: Translation, place: BatchMemory, memory: Array, shift: int
    ) -> None:
        assert place.checked is not None
        program, launch, blocks = (
            context.batch.program,
            context.batch.launch,
            place.placement.blocks,
        )
        batch = Batch(program, launch, blocks, Liveness(program))
        batch.unfold()
        shared = memory[place.shared_at :][: place.shared_step * place.blocks]
        batch.shared = shared.reshape(place.blocks, -1)[:, : place.shared_bytes]
        allocations = {
            name: one.placed_in(memory, shift) for name, one in context.allocations.items()
        }
        self._use(context, batch, made, allocations, (self,))
        self._rows, self._turn, self._checked = place.rows, 0, place.checked
        self._changes = 0

    def set_time(self, steps: int, turn: int) -> None:
        """Take note of the number of steps before an instruction, and of its turn."""
        self._context.executed, self._turn = steps, turn
        self._changes = self._context.changes.count

    @property
    def has_changed(self) -> bool:
        """Whether the last instruction has changed memory."""
        return self._context.changes.count != self._changes

    def run(self, memory: Array, warp: Array, pc: int, row: int, split: int, on: int) -> None:
        """Run the handler. Faults of masks are told from the steps of all warps."""
        is_masked = OPS[self._context.instructions[pc].op].checks_mask
        self._context.on_fault = _ignored if is_masked else self._checked.on_fault
        super().run(memory, warp, pc, row, split, on)

    def step(self, step: Step) -> None:
        """Keep what a handler tells of its warp."""
        self._checked.tell(self._turn, int(step.rows[0]), step)


def _ignored(_: KernelFault) -> None:
    """Let the other lanes go on."""


def _lanes(bits: Array) -> Array:
    """Return bits as lanes, the lowest first."""
    return np.unpackbits(bits[:, None].view(np.uint8), axis=1, bitorder="little").view(bool)


def _read(memory: Array, address: int, dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return _lanes(memory[address : address + 4].view(np.int32))[None]
    size = 256 if is_wide(dtype) else 128
    held = memory[address : address + size]
    if dtype.itemsize < 4:
        words = held.view(np.uint32)
        narrow = words.astype(np.dtype(f"u{dtype.itemsize}"))
        return narrow.view(dtype).reshape(1, 1, 32)
    return held.view(dtype).reshape(1, 1, 32).copy()


def _write(memory: Array, address: int, value: Array) -> None:
    full = np.broadcast_to(value[0, 0], (32,))
    if value.dtype.kind == "b":
        memory[address : address + 4] = np.packbits(full, bitorder="little")
        return
    if value.dtype == np.float16:
        full = full.view(np.uint16).astype(np.uint32)
    elif value.dtype.itemsize < 4:
        full = full.astype(np.int32)
    held = np.ascontiguousarray(full).view(np.uint8)
    memory[address : address + held.nbytes] = held
