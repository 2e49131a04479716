"""Addresses in the linear memory of a module: operands, results, arrays, warps.

Operands and results of an instruction that is not vector code lie at fixed places, by lane:
32-bit words, or 64-bit ones for wide types; predicates are one word of bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

from gpusim.gpu.memory import LINE_BYTES, MIDDLE_BYTES, NEAR_BYTES
from gpusim.machine.cas_loops import MOST_TOGETHER
from gpusim.machine.interpreter import FAIR_TURNS
from gpusim.machine.warps import text as warps
from gpusim.machine.warps.state import LAUNCHED, Warp
from gpusim.wasm.memory import offset

OPERAND_BYTES = 256
OPERANDS = 20
ARRAY_COUNT = 512
SHARED_LIMIT, DYNAMIC_LIMIT = 516, 520
CHUNKED = 1020  # the number of arrays that are brought in chunks
DISORDER = 524  # whether warps have come to an atomic in an order of their own
IN = 1024
OUT = IN + OPERANDS * OPERAND_BYTES
SCRATCH = 12288
SORTED = 14336  # places of lanes in order
WORDS = 16384  # of banks, while wavefronts are counted
TABLE = 24576  # of a set of numbers
LAST = TABLE + 2048  # the word of each bank
# Entries of arrays: address, bytes, writable bytes, whether stored to; and, in a second table,
# bytes, writable bytes, the place of a byte for each chunk (1 once it is there), and the bits of an
# address within one.
ARRAYS, ARRAY_BYTES = 32768, 32
MOST_ARRAYS = 2048
BROUGHT = ARRAYS + ARRAY_BYTES * MOST_ARRAYS
WIDE_SLOT_BYTES, SLOT_BYTES = 400, 160  # of an access: distances of its addresses
BANK_BYTES = 16  # of an entry: its place, where an index may begin and end
CHUNKS_THERE, MOST_CHUNKS = BROUGHT + ARRAY_BYTES * MOST_ARRAYS, 72 << 10  # of all arrays
CELLS = CHUNKS_THERE + MOST_CHUNKS  # constants of the launch, 8 bytes each

# Of a warp.
LIVE, SUMS, LOCAL, BLOCK, SHARED, TURNS, WATCHED, ROW, LANES = (
    offset(Warp, name)
    for name in ("live", "sums", "local", "x", "shared", "turns", "is_watched", "row", "lanes")
)
NOTE_BYTES = 288
NOTES = 4096  # steps that are written down before they are read
# Steps for observers: records of basic blocks, of single instructions, and of touched bytes.
BLOCK_RECORD_BYTES, DETAIL_BYTES, RUN_BYTES = 16, 32, 12
BLOCK_RECORDS = 1 << 14  # that are written down before they are taken


# Of the turns of a batch: the least key of each basic block's ready splits, and a list of splits.
KEY_BYTES, LISTED_BYTES = 8, 8
KEYS_BYTES = 32 * KEY_BYTES  # of the splits of a warp
MOST_IDLE = 1 << 22  # warps that run one after the other while none writes memory

_WITHOUT_ORDER = """
(func $appended (param $W i32) (param $i i32))
(func $removed (param $W i32) (param $i i32) (param $last i32))
(func $united (param $W i32) (param $S i32) (param $O i32))"""
_PLACES: Mapping[str, int] = {
    "LAUNCHED": LAUNCHED,
    "IN": IN,
    "IN_LAST": IN + 31 * 8,
    "SCRATCH": SCRATCH,
    "SORTED": SORTED,
    "BEFORE_SORTED": SORTED - 4,
    "NEAR_LINES": NEAR_BYTES // LINE_BYTES,
    "MIDDLE_LINES": MIDDLE_BYTES // LINE_BYTES,
    "WORDS": WORDS,
    "ARRAYS": ARRAYS,
    "FROM_ARRAYS": BROUGHT - ARRAYS,
    "FROM_ARRAYS16": BROUGHT - ARRAYS + 16,
    "FROM_ARRAYS24": BROUGHT - ARRAYS + 24,
    "IN16": IN + 16,
    "IN124": IN + 31 * 4,
    "TABLE": TABLE,
    "TABLE8": TABLE + 8,
    "TABLE12": TABLE + 12,
    "LAST": LAST,
    "ARRAY_COUNT": ARRAY_COUNT,
    "DISORDER": DISORDER,
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
    names = ["runtime.wat"] + ["steps.wat"] * recording + ["races.wat"] * detecting
    names += ["in_order.wat"] * (order is not None)
    here = resources.files(__package__)
    text = "\n".join(here.joinpath(name).read_text(encoding="utf-8") for name in names)
    text += warps.text()
    if not recording and not detecting:
        text += "\n(func $opened (param $W i32))"
    if not detecting:
        text += "\n(func $begins (param $W i32))"
    if order is None:
        text += _WITHOUT_ORDER
    run = "" if order is None else "(return (call $run_in_order (local.get $at)))"
    named = {**_PLACES, "IN_ORDER": run, **({} if order is None else order.places)}
    for name, place in named.items():
        text = text.replace(f"@{name}@", str(place))
    return text


def operand(number: int) -> int:
    """Return where an operand of an instruction lies."""
    return IN + OPERAND_BYTES * number


def result(number: int) -> int:
    """Return where a result of an instruction lies."""
    return OUT + OPERAND_BYTES * number
