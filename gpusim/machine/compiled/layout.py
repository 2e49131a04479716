"""Addresses in the linear memory of a module: operands, results, arrays, warps.

Operands and results of an instruction that is not vector code lie at fixed places, by lane:
32-bit words, or 64-bit ones for wide types; predicates are one word of bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

from gpusim.machine.warps import state
from gpusim.machine.warps import text as warps
from gpusim.machine.warps.accesses import (
    ARRAY_BYTES,
    BROUGHT,
    MOST_ARRAYS,
    TABLE,
    TABLE_BYTES,
)
from gpusim.machine.warps.state import SCRATCH, WORDS, Warp
from gpusim.wasm.memory import offset

IN, OUT = state.IN, state.OUT
OPERAND_BYTES, OPERANDS = state.OPERAND_BYTES, state.OPERANDS
SHARED_LIMIT, DYNAMIC_LIMIT = state.SHARED_LIMIT, 520
CHUNKED = 1020  # the number of arrays copied in chunks
LAST = TABLE + TABLE_BYTES  # the word of each bank
WIDE_SLOT_BYTES, SLOT_BYTES = 400, 160  # of an access: distances of its addresses
BANK_BYTES = 16  # of an entry: its place, where an index may begin and end
CHUNKS_THERE, MOST_CHUNKS = BROUGHT + ARRAY_BYTES * MOST_ARRAYS, 264 << 10  # of all arrays
CELLS = CHUNKS_THERE + MOST_CHUNKS  # constants of the launch, 8 bytes each

# Of a warp.
LIVE, SUMS, LOCAL, BLOCK, SHARED, TURNS, WATCHED, ROW, LANES = (
    offset(Warp, name)
    for name in ("live", "sums", "local", "x", "shared", "turns", "is_watched", "row", "lanes")
)
NOTES = 4096  # steps that are written down before they are read


_WITHOUT_ORDER = """
(func $appended (param $W i32) (param $i i32))
(func $removed (param $W i32) (param $i i32) (param $last i32))
(func $united (param $W i32) (param $S i32) (param $O i32))"""
_PLACES: Mapping[str, int] = {
    "IN": IN,
    "SCRATCH": SCRATCH,
    "WORDS": WORDS,
    "IN16": IN + 16,
    "IN124": IN + 31 * 4,
    "LAST": LAST,
}


def vector_code() -> str:
    """Return the functions that compute for all lanes at once, and integer division."""
    text = resources.files(__package__).joinpath("runtime.wat").read_text(encoding="utf-8")
    for name, place in _PLACES.items():
        text = text.replace(f"@{name}@", str(place))
    return text


def runtime(
    *, recording: bool, detecting: bool, checking: bool, in_order: bool, by_clock: bool
) -> str:
    """Return the functions that the modules of all programs share.

    `recording` adds the recording of steps, `detecting` race detection, `checking` the steps of a
    check (one of the three), `in_order` NumPy's scheduling order, `by_clock` that of warps' clocks.
    """
    text = vector_code() + warps.text(
        recording=recording,
        detecting=detecting,
        checking=checking,
        in_order=in_order,
        by_clock=by_clock,
    )
    if not recording and not detecting and not checking:
        text += "\n(func $opened (param $W i32))"
    if not detecting and not checking:
        text += "\n(func $begins (param $W i32))"
    if not checking:
        text += "\n(func $lets_pass (param $W i32) (param $split i32))"
        text += "\n(func $met (param $W i32) (param $split i32) (param $here i32))"
    if not in_order:
        text += _WITHOUT_ORDER
    return text


def operand(number: int) -> int:
    """Return the address of an operand of an instruction."""
    return IN + OPERAND_BYTES * number


def result(number: int) -> int:
    """Return the address of a result of an instruction."""
    return OUT + OPERAND_BYTES * number
