"""Addresses in the linear memory of a module: operands, results, arrays, warps.

Operands and results of an instruction that is not vector code lie at fixed places, by lane:
32-bit words, or 64-bit ones for wide types; predicates are one word of bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

from gpusim.machine.cas_loops import MOST_TOGETHER
from gpusim.machine.interpreter import FAIR_TURNS
from gpusim.machine.warps import text as warps
from gpusim.machine.warps.accesses import (
    ARRAY_BYTES,
    BROUGHT,
    MOST_ARRAYS,
    SCRATCH,
    TABLE,
    TABLE_BYTES,
)
from gpusim.machine.warps.state import IN as _IN
from gpusim.machine.warps.state import LAUNCHED, Warp
from gpusim.wasm.memory import offset

IN = _IN
OPERAND_BYTES = 256
OPERANDS = 20
SHARED_LIMIT, DYNAMIC_LIMIT = 516, 520
CHUNKED = 1020  # the number of arrays that are brought in chunks
OUT = IN + OPERANDS * OPERAND_BYTES
WORDS = 16384  # of banks, while wavefronts are counted
LAST = TABLE + TABLE_BYTES  # the word of each bank
WIDE_SLOT_BYTES, SLOT_BYTES = 400, 160  # of an access: distances of its addresses
BANK_BYTES = 16  # of an entry: its place, where an index may begin and end
CHUNKS_THERE, MOST_CHUNKS = BROUGHT + ARRAY_BYTES * MOST_ARRAYS, 72 << 10  # of all arrays
CELLS = CHUNKS_THERE + MOST_CHUNKS  # constants of the launch, 8 bytes each

# Of a warp.
LIVE, SUMS, LOCAL, BLOCK, SHARED, TURNS, WATCHED, ROW, LANES = (
    offset(Warp, name)
    for name in ("live", "sums", "local", "x", "shared", "turns", "is_watched", "row", "lanes")
)
NOTES = 4096  # steps that are written down before they are read


# Of the turns of a batch: the least key of each basic block's ready splits, and a list of splits.
KEY_BYTES, LISTED_BYTES = 8, 8
KEYS_BYTES = 32 * KEY_BYTES  # of the splits of a warp
MOST_IDLE = 1 << 22  # warps that run one after the other while none writes memory

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


class Order(NamedTuple):
    """A module's knowledge of its program for turns in the order of NumPy's machine.

    `keys_at` is where a warp keeps the keys of its splits, `flags_at` where there is a byte for
    each of the basic `blocks`; where warps wait for others (`waiting`), another one goes first.
    """

    keys_at: int
    flags_at: int
    blocks: int
    waiting: bool

    @property
    def places(self) -> Mapping[str, int | str]:
        """What stands for its names in the text."""
        return {
            "ORDER": self.keys_at,
            "FLAGS": self.flags_at,
            "BLOCKS": self.blocks,
            "KEY_BYTES": KEY_BYTES * self.blocks,
            "CHOOSE": "$choose_waiting" if self.waiting else "$choose_behind",
            "FAIR_TURNS": FAIR_TURNS,
            "TOGETHER": MOST_TOGETHER,
            "MOST_IDLE": MOST_IDLE,
        }


def runtime(*, recording: bool, detecting: bool = False, order: Order | None = None) -> str:
    """Return the text that every module has.

    With `recording` it has that of modules that tell steps too, with `detecting` that of race
    detection, not both; with an `order` that of turns.
    """
    names = ["runtime.wat"]
    names += ["in_order.wat"] * (order is not None)
    here = resources.files(__package__)
    text = "\n".join(here.joinpath(name).read_text(encoding="utf-8") for name in names)
    text += warps.text(recording=recording, detecting=detecting)
    if not recording and not detecting:
        text += "\n(func $opened (param $W i32))"
    if not detecting:
        text += "\n(func $begins (param $W i32))"
    if order is None:
        text += _WITHOUT_ORDER
        text += '\n(export "run" (func $run_in_turn))'
    else:
        text += f"""
(func (export "run") (result i32)
  (call $prepare) (call $run_in_order (i32.const {LAUNCHED})))"""
    named = {**_PLACES, **({} if order is None else order.places)}
    for name, place in named.items():
        text = text.replace(f"@{name}@", str(place))
    return text


def operand(number: int) -> int:
    """Return where an operand of an instruction lies."""
    return IN + OPERAND_BYTES * number


def result(number: int) -> int:
    """Return where a result of an instruction lies."""
    return OUT + OPERAND_BYTES * number
