"""The machine's handlers for single warps in linear memory, where an instruction has no code."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from gpusim.errors import KernelFault
from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.events import Observer, Placement, Step
from gpusim.machine.compiled import layout
from gpusim.machine.compiled.arrays import Arrays
from gpusim.machine.compiled.kinds import HANDLED
from gpusim.machine.compiled.memory import BatchMemory
from gpusim.machine.compiled.vectors import is_wide
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.machine.handlers import HANDLERS
from gpusim.machine.state import Batch, Splits
from gpusim.machine.warps import state
from gpusim.program.liveness import Liveness
from gpusim.typing import Array


class OneWarp:
    """The lanes of a warp as a batch of the machine: registers are an instruction's operands.

    Arrays and shared memory are those of linear memory, local memory is a copy.
    """

    def __init__(
        self, memory: Array, shift: int, place: BatchMemory, context: Context, arrays: Arrays
    ) -> None:
        self._memory, self._place, self._arrays = memory, place, arrays
        allocations = {
            name: one.placed_in(memory, shift) for name, one in context.allocations.items()
        }
        program, launch, blocks = context.batch.program, context.batch.launch, self._blocks
        self._batch = batch = Batch(program, launch, blocks, Liveness(program))
        self._context = Context(
            batch, context.arguments, allocations, self._observers, on_fault=context.on_fault
        )
        self._context.printed = context.printed
        self._fixed = list(batch.registers)
        self._row = -1
        self.has_changed = False  # memory, by the last instruction

    @property
    def _blocks(self) -> Array:
        """The blocks of the batch."""
        return self._place.placement.blocks[:1]

    @property
    def _observers(self) -> Sequence[Observer]:
        """Who is told what handlers do."""
        return ()

    def run(self, pc: int, address: int, split: int, on: int) -> bool:
        """Run an instruction for some lanes of a split; return whether they wait for others."""
        instruction = self._context.instructions[pc]
        kind = OPS[instruction.op].kind
        if kind in HANDLED and self._arrays.chunked:
            self._arrays.bring(self._memory, 0, 0)
        self._find(address, instruction)
        group = self._group(pc, address, split)
        group.is_gathered = True  # code before it has waited for lanes
        given, made = self._place.made.many.get(pc, (layout.operand(0), layout.result(0)))
        self._read_operands(pc, instruction, given)
        lanes = _lanes(np.array([on & state.ALL_LANES], np.uint32))[None]
        lanes = group.mask if np.array_equal(lanes, group.mask) else lanes
        before = self._context.changes.count
        waits = HANDLERS[kind](self._context, group, instruction, lanes)
        self.has_changed = self._context.changes.count != before
        for number, register in enumerate(instruction.dst):
            _write(self._memory, made + state.OPERAND_BYTES * number, group.read(register))
            self._batch.registers[register] = self._fixed[register]
        return bool(waits)

    def _find(self, address: int, instruction: Instruction) -> None:
        """Let the batch be the block of a warp, with its memory."""
        batch, place = self._batch, self._place
        self._context.executed += 1
        words = self._memory[address : address + state.TOKENS].view(np.int32)
        row = int(words[layout.ROW // 4])
        if row != self._row:
            self._row = row
            self._context.changes.count += 1  # a clock does not skip the time of other warps
            block = place.placement.blocks[row // place.warps : row // place.warps + 1]
            batch.placement = Placement(block, place.warps, folded=False)
        shared = int(words[layout.SHARED // 4])
        batch.shared = self._memory[shared : shared + place.shared_bytes][None]
        self._bring_local(address, instruction, row % place.warps)

    def _bring_local(self, address: int, instruction: Instruction, row: int) -> None:
        """Copy the local memory of a warp to a row of the batch, for a call of the driver."""
        local, size = self._batch.local, self._place.local_bytes
        if local is None or OPS[instruction.op].kind != "call_driver":
            return
        words = self._memory[address : address + state.TOKENS].view(np.int32)
        at = int(words[layout.LOCAL // 4])
        # Words of the lanes lie side by side.
        held = self._memory[at : at + 32 * size].reshape(size // 4, 32, 4).transpose(1, 0, 2)
        local.reshape(-1, 32, local.shape[-1])[row, :, :size] = held.reshape(32, size)

    def _group(self, pc: int, address: int, split: int) -> Group:
        words = self._memory[address : address + state.TOKENS].view(np.int32)
        count = int(words[0])
        places = state.SPLITS // 4 + 4 * np.arange(count)
        self._batch.splits = Splits(
            row=np.full(count, self._row % self._batch.rows),
            pc=np.full(count, pc),
            mask=_lanes(words[places + 1])[None],
            state=np.zeros(count, np.int64),
            last_run=np.zeros(count, np.int64),
        )
        return Group(self._batch, np.array([split]))

    @staticmethod
    def _base(instruction: Instruction) -> int | None:
        if instruction.memory is not None:
            return instruction.memory.offset
        return int(instruction.detail[1][1]) if OPS[instruction.op].kind == "bank" else None

    def _read_operands(self, pc: int, instruction: Instruction, given: int) -> None:
        kinds = self._place.made.operands[pc]
        base = self._base(instruction)
        if base is not None:  # the first operand is an address, after what it is counted from
            if instruction.src and instruction.src[0] not in self._batch.program.immediates:
                address = _read(self._memory, given, kinds[0])
                self._batch.registers[instruction.src[0]] = address - address.dtype.type(base)
            return
        for number, (register, dtype) in enumerate(
            zip(instruction.src, kinds, strict=False)  # a check keeps more
        ):
            if register not in self._batch.program.immediates:
                at = given + state.OPERAND_BYTES * number
                self._batch.registers[register] = _read(self._memory, at, dtype)


class WarpOfCheck(OneWarp, Observer):
    """The same in a check: with the memory of all blocks, as handlers of rare instructions need it.

    What these tell is kept for the steps of their groups.
    """

    def __init__(
        self, memory: Array, shift: int, place: BatchMemory, context: Context, arrays: Arrays
    ) -> None:
        super().__init__(memory, shift, place, context, arrays)
        assert place.checked is not None
        self._checked, self._turn = place.checked, 0
        self._batch.unfold()
        shared = memory[place.shared_at :][: place.shared_step * place.blocks]
        self._batch.shared = shared.reshape(place.blocks, -1)[:, : place.shared_bytes]

    @property
    def _blocks(self) -> Array:
        return self._place.placement.blocks

    @property
    def _observers(self) -> Sequence[Observer]:
        return (self,)

    def set_time(self, steps: int, turn: int) -> None:
        """Take note of the number of steps before an instruction, and of its turn."""
        self._context.executed, self._turn = steps, turn

    def _find(self, address: int, instruction: Instruction) -> None:
        """Take note of a warp. Faults of masks are told from the steps of all warps."""
        self._row = (address - self._place.warps_at) // self._place.made.warp_bytes
        self._bring_local(address, instruction, self._row)
        is_masked = OPS[instruction.op].checks_mask
        self._context.on_fault = _ignored if is_masked else self._checked.on_fault

    def step(self, step: Step) -> None:
        """Keep what a handler tells of its warp."""
        self._checked.tell(self._turn, int(step.rows[0]), step)


def _ignored(_: KernelFault) -> None:
    """Let the other lanes go on."""


class Effects:
    """What calls of the driver change beside linear memory: undone where a run is repeated."""

    def __init__(self, context: Context) -> None:
        self._printed, self._count = context.printed, len(context.printed or ())
        heaps = (one.heap for one in context.allocations.values())
        self._heaps = [(heap, deepcopy(heap)) for heap in heaps if heap is not None]

    def undo(self) -> None:
        """Let the output and the heap be as they were."""
        if self._printed is not None:
            del self._printed[self._count :]
        for heap, before in self._heaps:
            vars(heap).update(vars(before))


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
