"""Steps of a check, recorded as warps run them: lanes and operands.

Warps take turns (`turns.py`): an instruction of all splits of a group in one pass is one step.
Lanes with a faulting access skip it, and load zeros.
"""

from __future__ import annotations

from gpusim.isa.ops import LOCAL_HIGH, RANK_SHIFT, SHARED_HIGH
from gpusim.machine.warps.accesses import ARRAY_BYTES, ARRAY_COUNT, ARRAYS, Array
from gpusim.machine.warps.state import (
    AT_BARRIER,
    AT_CLUSTER,
    AT_WARP,
    IN,
    LAUNCH,
    NOW,
    OPERAND_BYTES,
    OUT,
    SHARED_LIMIT,
    Long,
    Split,
    Warp,
    Word,
)
from gpusim.machine.warps.steps import take_steps
from gpusim.wasm.integers import trailing_zeros
from gpusim.wasm.memory import Record, copy, i64, u32

STEP_BYTES, WORD = 28, 4
# In place of a pc: a split at a block's barrier that opens, at one with a number, at one of a
# cluster, at a warp barrier that lacks lanes, or at one of several. The block of code is below it.
OPENED, OPENED_NAMED, OPENED_CLUSTER, PASSED, MET = 4 << 28, 5 << 28, 6 << 28, 7 << 28, 8 << 28
_LOCAL, _SHARED, _RANK = LOCAL_HIGH, SHARED_HIGH, RANK_SHIFT


class CheckedStep(Record):
    """An instruction of a split in a pass of its group: the active lanes, and those that are on.

    Lanes that are on but not `able` are at fault. The values of its first operands lie at
    `operands`.
    """

    turn: u32
    pc: u32
    row: u32
    active: u32
    on: u32
    able: u32
    operands: u32


def check(warp: Warp, pc: u32, active: u32, on: u32, able: u32, operands: u32) -> None:
    """Write a step down, with that many operands."""
    if (NOW.runs >= NOW.runs_full) | (NOW.details >= NOW.details_full):
        take_steps()
    step = CheckedStep(NOW.runs)
    step.turn = NOW.passes
    step.pc = pc
    step.row = warp.row
    step.active = active
    step.on = on
    step.able = able
    step.operands = NOW.details
    copy(NOW.details, IN, OPERAND_BYTES * operands)
    NOW.runs += STEP_BYTES
    NOW.details += OPERAND_BYTES * operands


def keep_results(results: u32) -> None:
    """Replace the last operands of the last step by results."""
    copy(NOW.details - OPERAND_BYTES * results, OUT, OPERAND_BYTES * results)


def opens(warp: Warp) -> None:
    """Record the splits of a block as its barrier opens, with the block of code of each."""
    other = warp
    for _ in range(LAUNCH.warps):
        for number in range(other.splits):
            if other.split(number).state != AT_BARRIER:
                return
        other = Warp(other.address + LAUNCH.warp_bytes)
    for _ in range(LAUNCH.warps):
        for number in range(warp.splits):
            split = warp.split(number)
            check(warp, OPENED | split.block, split.lanes, split.lanes, split.lanes, 0)
        warp = Warp(warp.address + LAUNCH.warp_bytes)


def lets_pass(warp: Warp, split: Split) -> None:
    """Record a split as a named barrier opens, with the barrier in place of able lanes.

    Or as that of its cluster opens, or a warp barrier releases others without all lanes.
    """
    kind = OPENED_CLUSTER if split.state == AT_CLUSTER else OPENED_NAMED
    if split.state == AT_WARP:
        kind = PASSED
    check(warp, kind | split.block, split.lanes, split.lanes, split.waits_for, 0)


def met(warp: Warp, split: Split, here: u32) -> None:
    """Record a split that passes a warp barrier, its mask in place of lanes that are on.

    Lanes `here` have met at several barriers: they are in place of able lanes.
    """
    check(warp, MET | split.block, split.lanes, split.waits_for, here, 0)


# -- lanes without a fault -------------------------------------------------------------------


def able_in_array(on: u32, array: Array, is_any: u32, width: u32, stores: u32) -> u32:
    """Return the lanes that may access an array, or any array."""
    able = 0
    left = on
    while left:
        lane = trailing_zeros(left)
        if _is_in_arrays(Long(IN + 8 * lane).value, array, is_any, width, stores):
            able = able | 1 << lane
        left = left & left - 1
    return able


def able_in_own(on: u32, first: u32, size: u32, width: u32) -> u32:
    """Return the lanes that may access memory of their own, of a size from an address on."""
    able = 0
    left = on
    while left:
        lane = trailing_zeros(left)
        if _is_inside(Word(IN + 4 * lane).value, first, size, width):
            able = able | 1 << lane
        left = left & left - 1
    return able


def able_anywhere(on: u32, shared: u32, local_bytes: u32, width: u32, stores: u32) -> u32:
    """Return the lanes that may access a generic address; `shared` memory begins at one."""
    able = 0
    left = on
    while left:
        lane = trailing_zeros(left)
        address = Long(IN + 8 * lane).value
        window, place = address >> 32, address & 0xFFFFFFFF
        if window == _LOCAL:
            is_able = _is_inside(place, 0, local_bytes, width)
        elif window == _SHARED and LAUNCH.cluster_at:
            inside = _is_inside(place & (1 << _RANK) - 1, shared, Word(SHARED_LIMIT).value, width)
            is_able = inside & (place >> _RANK < LAUNCH.cluster)
        elif window == _SHARED:
            is_able = _is_inside(place, shared, Word(SHARED_LIMIT).value, width)
        else:
            is_able = _is_in_arrays(address, Array(ARRAYS), 1, width, stores)
        if is_able:
            able = able | 1 << lane
        left = left & left - 1
    return able


def _is_inside(place: int, first: int, size: int, width: int) -> bool:
    above = place - first
    return (above >= 0) & (above + width <= size) & (place & width - 1 == 0)


def _is_in_arrays(address: i64, array: Array, is_any: int, width: int, stores: int) -> bool:
    """Whether an access is in an array, or in any."""
    if _is_in(address, array, width, stores):
        return True
    if is_any:
        other = Array(ARRAYS)
        for _ in range(Word(ARRAY_COUNT).value):
            if _is_in(address, other, width, stores):
                return True
            other = Array(other.address + ARRAY_BYTES)
    return False


def _is_in(address: i64, array: Array, width: int, stores: int) -> bool:
    size = array.brought().writable if stores else array.brought().bytes
    is_inside = (address >= array.begin) & (address + width <= array.begin + size)
    return is_inside & (address & width - 1 == 0)


def clear(lost: u32, results: u32, is_wide: u32) -> None:
    """Set the loaded values of lanes with a faulting access to zero."""
    left = lost
    while left:
        lane = trailing_zeros(left)
        for number in range(results):
            at = OUT + OPERAND_BYTES * number
            if is_wide:
                Long(at + 8 * lane).value = 0
            else:
                Word(at + 4 * lane).value = 0
        left = left & left - 1


def as_expected(lost: u32, results: u32, item: u32) -> None:
    """Let lanes with a faulting compare-and-swap of some bytes find the value that they expect."""
    left, wide = lost, 2 * WORD
    while left:
        lane = trailing_zeros(left)
        for number in range(results):
            at, given = OUT + OPERAND_BYTES * number, IN + OPERAND_BYTES
            if item != wide:
                given += OPERAND_BYTES * number
                Word(at + WORD * lane).value = Word(given + WORD * lane).value
            elif results == 1:
                Long(at + wide * lane).value = Long(given + wide * lane).value
            else:
                Word(at + WORD * lane).value = Word(given + wide * lane + WORD * number).value
        left = left & left - 1
