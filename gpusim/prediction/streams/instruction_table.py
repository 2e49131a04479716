"""The distinct instructions of streams, as a table: a stream has their numbers in its order.

Most instructions of a warp are like others of it or of other warps, with all their columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.prediction.arithmetic.grouping import hashed_with
from gpusim.typing import Array

MOST_BEHIND = 32  # loads: a higher limit would only make equal iterations differ

COLUMNS = (
    "pc", "is_on", "is_taken", "cost", "lines", "wavefronts", "fresh", "written", "joins", "behind",
    "lanes", "gaps", "earlier", "apart", "constant",
)  # fmt: skip
PLAIN = ("pc", "lanes", "is_on", "is_taken")
# The values of the other columns in instructions that are no accesses.
OF_ACCESSES = {name: 0 for name in COLUMNS if name not in PLAIN} | {
    "behind": MOST_BEHIND,
    "constant": -1,
}
_IS_ACCESS = np.uint64(1 << 63)


@dataclass(frozen=True, eq=False)
class InstructionTable:
    """Distinct instructions, by the columns of a stream."""

    columns: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.columns["pc"])

    @cached_property
    def read(self) -> Array:
        """Distinct sectors first touched, of accesses that are no first store to one."""
        return np.where(self.columns["written"], 0, self.columns["fresh"])

    @cached_property
    def contents(self) -> Array:
        """A number of each row, equal for equal ones of any table, and a hash of accesses."""
        content = contents_of(self.columns)
        at = np.flatnonzero(are_accesses(self.columns))
        content[at] = hashed(content[at], [self.columns[name][at] for name in OF_ACCESSES])
        return content


def are_accesses(columns: Mapping[str, Array]) -> Array:
    """Return which instructions are accesses, as a mask."""
    unlike = [columns[name] != usual for name, usual in OF_ACCESSES.items()]
    return np.asarray(np.logical_or.reduce(unlike))


def contents_of(columns: Mapping[str, Array]) -> Array:
    """Return the plain contents of instructions."""
    pc, lanes, is_on, is_taken = (columns[name] for name in PLAIN)
    return plain_contents(pc, lanes.astype(np.uint32), is_on, is_taken)


def plain_contents(
    pc: Array | int, lanes: Array, is_on: Array | bool, is_taken: Array | bool
) -> Array:
    """Return numbers for the columns that all instructions have, below 2**63."""
    parts = (pc, 34), (is_on, 33), (is_taken, 32)
    alike = sum(int(value) << bits for value, bits in parts if isinstance(value, int))
    contents = lanes | np.uint64(alike)
    for value, bits in parts:
        if not isinstance(value, int):
            contents = contents | value.astype(np.uint64) << np.uint64(bits)
    return contents


def columns_of_plain(contents: Array) -> dict[str, Array]:
    """Return the columns that all instructions have, of their numbers."""
    codes = (contents >> np.uint64(32)).astype(np.int32)
    lanes = contents.astype(np.uint32)
    return {"pc": codes >> 2, "lanes": lanes, "is_on": codes & 2 != 0, "is_taken": codes & 1 != 0}


def hashed(contents: Array, columns: list[Array]) -> Array:
    """Return the hashes of instructions with these further columns, unlike any plain number."""
    for column in columns:
        contents = hashed_with(contents, column)
    return contents | _IS_ACCESS
