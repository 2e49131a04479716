"""Instructions that produce a value: computed from registers, or known from the launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.errors import KernelFault
from gpusim.isa.ops import OPS, SHARED_HIGH, Instruction
from gpusim.launch.grid import Dim3, places_of
from gpusim.machine.context import Context
from gpusim.machine.group import Group

Array = np.ndarray[Any, Any]
AXES = "xyz"
WIDEST = 16  # bytes of an access
SHARED_UNIT = 128  # bytes; 256 before compute capability 8.0
LANES = np.arange(32, dtype=np.int32)


def compute(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set the destination to the op's result from its sources."""
    evaluate = OPS[instruction.op].evaluate
    is_run = instruction.guard is None or np.count_nonzero(on)
    if evaluate is not None and instruction.dst and is_run:
        value = evaluate(instruction, *group.sources(instruction))
        results = value if isinstance(value, tuple) else (value,)
        for register, result in zip(instruction.dst, results, strict=True):
            group.write(register, result, on)
    context.report(group, instruction, on)


def _coordinate(linear: Array, size: Dim3, axis: str) -> Array:
    along: Array = places_of(linear, size)["xyz".index(axis)]
    return along.astype(np.int32)


def _thread(group: Group, axis: str) -> Array:
    batch = group.batch
    return group.of_rows(_coordinate(batch.thread_number(), batch.launch.block, axis))


def _block(group: Group, axis: str) -> Array:
    batch = group.batch
    return group.of_rows(_coordinate(batch.block_number, batch.launch.grid, axis))


# The value of a special register in the rows of a group; its name may end in an axis.
SPECIAL: Mapping[str, Callable[[Group, str], Array]] = {
    "tid": _thread,
    "ctaid": _block,
    "laneid": lambda *_: LANES.reshape(1, 1, 32),
    "cga": lambda *_: np.zeros((1, 1, 1), dtype=np.int32),
    "shared_window": lambda *_: np.full((1, 1, 1), SHARED_HIGH, dtype=np.int32),
    "shared_bytes": lambda group, _: _shared_bytes(group),
    "warp_place": lambda group, _: _warp(group) << 8,
    "zero": lambda *_: np.zeros((1, 1, 1), dtype=np.int32),
    "lanes_lt": lambda *_: _lane_masks(np.less),
    "lanes_le": lambda *_: _lane_masks(np.less_equal),
    "lanes_gt": lambda *_: _lane_masks(np.greater),
    "lanes_ge": lambda *_: _lane_masks(np.greater_equal),
    "lanes_eq": lambda *_: _lane_masks(np.equal),
}


def _warp(group: Group) -> Array:
    """Return the number of each warp within its block, as if that had the multiprocessor alone."""
    return np.asarray(group.of_rows(group.batch.thread_number() // 32).astype(np.int32))


def _shared_bytes(group: Group) -> Array:
    """Return the shared memory of a block with the system's, in units given to blocks (PTX ISA)."""
    batch = group.batch
    layout = batch.program.layout
    reserved = 0 if layout is None else layout.shared_start
    size = reserved + batch.program.shared_bytes + batch.launch.dynamic_shared_bytes
    return np.full((1, 1, 1), -(-size // SHARED_UNIT) * SHARED_UNIT, dtype=np.int32)


def _lane_masks(compare: Callable[[Array, Array], Array]) -> Array:
    """Return for each lane, as bits, the lanes that compare so with it."""
    bits = np.left_shift(np.uint32(1), LANES.astype(np.uint32))
    named = np.where(compare(LANES[None, :], LANES[:, None]), bits, np.uint32(0))
    return np.asarray(named.sum(axis=1, dtype=np.uint32)).reshape(1, 1, 32)


def special(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Read a special register."""
    for register in instruction.dst:
        group.write(register, special_value(group, instruction), on)
    context.report(group, instruction, on)


def clock(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Read a clock: the number of executed instructions, as no time is modelled here.

    It runs on faster where nothing but the same reading happens: lanes that only wait for a time.
    """
    context.wait.read(group.pc, context.changes.count)
    now = np.uint64(context.executed + context.wait.skipped)
    words = (now & np.uint64(0xFFFFFFFF), now >> np.uint64(32))
    words = words[::-1] if instruction.detail == "upper" else words
    for register, word in zip(instruction.dst, words, strict=False):
        group.write(register, np.asarray(word, np.uint32).reshape(1, 1, 1), on)
    context.report(group, instruction, on)


def special_value(group: Group, instruction: Instruction) -> Array:
    """Return the value of a special register in the rows of a group."""
    name, _, axis = str(instruction.detail).partition(".")
    return _typed(instruction, SPECIAL[name](group, axis))


def _typed(instruction: Instruction, value: Array) -> Array:
    return value if instruction.dtype is None else value.astype(instruction.dtype, copy=False)


def _parameter(context: Context, name: str) -> Any:
    return context.arguments[name]


def _pointer(context: Context, name: str) -> np.int64:
    return np.int64(context.allocations[name].address)


def _length(context: Context, what: tuple[str, int | None]) -> np.int32:
    """Return the elements of an array: of one that was passed, else of dynamic shared memory."""
    name, axis = what
    if not name:
        assert axis is not None
        return np.int32(context.batch.launch.dynamic_shared_bytes // axis)
    array = context.allocations[name].array
    return np.int32(array.size if axis is None else array.shape[axis])


def _stride(context: Context, what: tuple[str, int]) -> np.int32:
    """Return how many elements lie from one index to the next."""
    name, axis = what
    array = context.allocations[name].array
    assert isinstance(array, np.ndarray)
    return np.int32(array.strides[axis] // array.itemsize)


def _launched(context: Context, what: str) -> np.int32:
    name, _, axis = what.partition(".")
    launch = context.batch.launch
    size = {"ntid": launch.block, "nctaid": launch.grid}[name]
    return np.int32(size[AXES.index(axis)])


# Values in constant memory, by the first part of an instruction's detail.
CONSTANTS: Mapping[str, Callable[[Context, Any], Any]] = {
    "param": _parameter,
    "pointer": _pointer,
    "length": _length,
    "stride": _stride,
    "launch": _launched,
}


def constant(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Read a constant of the launch."""
    if instruction.dst:
        group.write(instruction.dst[0], constant_value(context, instruction), on)
    context.report(group, instruction, on)


def constant_value(context: Context, instruction: Instruction) -> Array:
    """Return a constant of the launch."""
    kind, what = instruction.detail
    return _typed(instruction, np.asarray(CONSTANTS[kind](context, what)).reshape(1, 1, 1))


_NO_BANK = np.zeros(0, np.uint8)
_PARTS = {(1, False): np.uint8, (1, True): np.int8, (2, False): np.uint16, (2, True): np.int16}


def bank(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Load words of a constant bank, or a part of one; a register may give the offset."""
    constants = _bank_offsets(group, instruction) if instruction.src else None
    words = context.constants.get(group.pc)
    if words is None and (not instruction.src or np.count_nonzero(on)):
        words = bank_values(context, group, instruction, on)
        if not instruction.src:
            context.constants[group.pc] = words
    for register, value in zip(instruction.dst, words or (), strict=words is not None):
        group.write(register, value, on)
    context.report(group, instruction, on, constants=constants)


def _bank_offsets(group: Group, instruction: Instruction) -> Array:
    """Return where in its bank each lane of a load of constants begins to read."""
    offsets = np.full((1, 1, 1), instruction.detail[1][1], dtype=np.int64)
    for register in instruction.src:
        offsets = offsets + group.read(register, np.uint32).view(np.int32)
    return offsets


def indexable(context: Context, number: int) -> tuple[int, int]:
    """Return the bytes of a bank that an index may choose: in bank 0, the parameters."""
    layout = context.batch.program.layout
    if number or layout is None:
        return 0, len(context.banks.get(number, _NO_BANK))
    begin = min((offset for _, offset, _ in layout.parameters), default=0)
    end = max((offset + size for _, offset, size in layout.parameters), default=0)
    return begin, -(-end // WIDEST) * WIDEST


def bank_values(
    context: Context, group: Group, instruction: Instruction, on: Array | None = None
) -> list[Array]:
    """Return the words that an instruction loads from a constant bank, a register each.

    Lanes that are not `on` may name any offset.
    """
    number, _, size, signed = instruction.detail[1]
    held = context.banks.get(number, _NO_BANK)
    kind = np.dtype(_PARTS.get((size, signed), np.uint32))
    index = _bank_offsets(group, instruction)
    begin, end = indexable(context, number) if instruction.src else (0, len(held))
    last = end - kind.itemsize * len(instruction.dst)
    beyond = ((index < begin) | (index > last)) & (group.mask if on is None else on)
    if beyond.any() or last < begin:
        raise KernelFault(
            f"line {instruction.line}: constant memory is read out of bounds: bank {number} has "
            f"bytes {begin} to {end}"
        )
    first = np.clip(index, begin, last) // kind.itemsize
    flat = held[: len(held) // kind.itemsize * kind.itemsize].view(kind)
    return [flat[first + place].astype(np.uint32) for place in range(len(instruction.dst))]
