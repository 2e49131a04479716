"""Numbers of instructions, equal for equal columns of a stream, and their table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpusim.prediction.arithmetic.grouping import small_numbers
from gpusim.prediction.streams.instruction_table import (
    OF_ACCESSES,
    InstructionTable,
    are_accesses,
    columns_of_plain,
    contents_of,
    hashed,
)
from gpusim.typing import Array

_WORD_BITS = 64
_MOST_OF_16_BITS = 1 << 16


def numbered(
    contents: Array, at: Array, values: Mapping[str, Array]
) -> tuple[InstructionTable, Array]:
    """Return the table of some instructions, and the number of each: equal for equal ones.

    `contents` are the numbers of the columns that all of them have, and are given up; `values` are
    the other columns of the accesses, `at` some places.
    """
    plain = contents[at]
    words = [plain, *_packed([values[name] for name in OF_ACCESSES])]
    contents[at] = hashed(plain, words[1:])
    numbers, firsts = small_numbers(contents)
    own = numbers[at]
    like = np.full(len(firsts), -1, dtype=np.int32)
    like[own] = np.arange(len(at), dtype=np.int32)
    other = like[own]
    if not all(np.array_equal(word, word[other]) for word in words):  # two share a hash
        firsts = np.arange(len(contents))
        numbers = firsts.astype(np.int32)
        like = np.full(len(firsts), -1, dtype=np.int32)
        like[at] = np.arange(len(at), dtype=np.int32)
        own = at
    rows = contents[firsts]
    rows[own] = plain
    columns = columns_of_plain(rows)
    held = np.flatnonzero(like >= 0)
    for name, usual in OF_ACCESSES.items():
        column = np.full(len(rows), usual, dtype=values[name].dtype)
        column[held] = values[name][like[held]]
        columns[name] = column
    is_small = len(rows) <= _MOST_OF_16_BITS
    return InstructionTable(columns), numbers.astype(np.uint16) if is_small else numbers


def numbered_columns(columns: Mapping[str, Array]) -> tuple[InstructionTable, Array]:
    """Return the same of instructions with all of their columns given."""
    at = np.flatnonzero(are_accesses(columns))
    return numbered(contents_of(columns), at, {name: columns[name][at] for name in OF_ACCESSES})


def _packed(columns: Sequence[Array]) -> list[Array]:
    """Return columns of integers in as few words as their values need."""
    words: list[Array] = []
    used = _WORD_BITS
    for column in columns:
        low = int(column.min(initial=0))
        bits = (int(column.max(initial=0)) - low).bit_length()
        if not bits:
            continue
        if used + bits > _WORD_BITS:
            words.append(np.zeros(len(column), dtype=np.uint64))
            used = 0
        words[-1] <<= np.uint64(bits)
        words[-1] |= (column.astype(np.int64) - low).astype(np.uint64)
        used += bits
    return words
