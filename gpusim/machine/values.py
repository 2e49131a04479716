"""Instructions that produce a value: computed from registers, or known from the launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.errors import KernelFault, OutOfBoundsError
from gpusim.gpu.memory import WORD_BYTES
from gpusim.isa.ops import CONSTANT_BANK, OPS, SHARED_HIGH, Instruction, NamedArray
from gpusim.launch.grid import Dim3, places_of
from gpusim.machine import generic_addressing
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.typing import Array

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
    "cluster_ctarank": lambda group, _: _rank(group),
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


def _rank(group: Group) -> Array:
    """Return the rank of each row's block in its cluster."""
    batch = group.batch
    return np.asarray(group.of_rows(batch.rank_of_row.astype(np.int32)))


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

    It runs faster while lanes only repeat the reading, to wait for a time.
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
    if instruction.src:
        offsets = _bank_offsets(group, instruction)
        on = _within_bank(context, group, instruction, offsets, on)
        words = bank_values(context, group, instruction) if np.count_nonzero(on) else []
    else:
        offsets = None
        if group.pc not in context.constants:
            context.constants[group.pc] = bank_values(context, group, instruction)
        words = context.constants[group.pc]
    for register, value in zip(instruction.dst, words, strict=False):
        group.write(register, value, on)
    context.report(group, instruction, on, constants=offsets)


def _within_bank(
    context: Context, group: Group, instruction: Instruction, offsets: Array, on: Array
) -> Array:
    """Return the lanes that load constants of their array; the others are faults.

    The first byte has to be there: loads of vectors may overhang.
    """
    number, _, size, _ = instruction.detail[1]
    array = instruction.array_of_constants
    begin, end = indexable(context, number) if array is None else (array.first, array.end)
    beyond = ((offsets < begin) | (offsets >= end)) & on
    if not beyond.any():
        return on
    if array is None:
        at = int(np.broadcast_to(offsets, beyond.shape)[beyond][0])
        array = _nearest(context, number, at, NamedArray("constant memory", begin, end - begin))
    width = size if size < WORD_BYTES else WORD_BYTES * len(instruction.dst)
    index = (offsets - array.first) // width
    block, thread, place = generic_addressing.lanes_of(group).first(
        beyond, index, array.name, instruction.line
    )
    context.fault(
        OutOfBoundsError(
            f"line {instruction.line}: {array.name}[{place.index}] is out of bounds: {array.name} "
            f"has {(array.size or 0) // width} elements (block {block}, thread {thread})",
            place,
        )
    )
    return on & ~beyond


def _nearest(context: Context, bank: int, offset: int, whole: NamedArray) -> NamedArray:
    """Return the variable in constant memory that begins last before an offset, or the `whole`."""
    named = context.batch.program.constant_arrays if bank == CONSTANT_BANK else ()
    before = [one for one in named if one.first <= offset] or named
    return max(before, key=lambda one: one.first, default=whole)


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


def bank_values(context: Context, group: Group, instruction: Instruction) -> list[Array]:
    """Return the words that an instruction loads from a constant bank, a register each.

    Offsets in registers that lie outside the bank stand for the nearest ones.
    """
    number, offset, size, signed = instruction.detail[1]
    held = context.banks.get(number, _NO_BANK)
    kind = np.dtype(_PARTS.get((size, signed), np.uint32))
    flat = held[: len(held) // kind.itemsize * kind.itemsize].view(kind)
    if not len(flat) or (not instruction.src and offset + kind.itemsize > len(held)):
        raise KernelFault(
            f"line {instruction.line}: constant memory is read out of bounds: bank {number} has "
            f"{len(held)} bytes"
        )
    first = _bank_offsets(group, instruction) // kind.itemsize
    places = range(len(instruction.dst))
    return [flat.take(first + place, mode="clip").astype(np.uint32) for place in places]
