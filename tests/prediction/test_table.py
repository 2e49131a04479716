"""Tables of several blocks' stretches: instructions, shapes and columns; groups of equal rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusim.prediction.arithmetic.grouping import distinct, groups, numbers
from gpusim.prediction.locality.table import Table, joined
from gpusim.prediction.memory.miss_ratios import _quantiles
from gpusim.prediction.streams.stretches import COLUMNS, Stretches


def stretches(*rows: tuple[int, int, int]) -> Stretches:
    """Return stretches from pc, begin and end."""
    pc, begin, end = np.array(rows).T
    columns = dict.fromkeys(COLUMNS, np.zeros(len(pc), dtype=np.int64))
    return Stretches(**columns | {"pc": pc, "begin": begin, "end": end}, steps=len(pc))


BLOCKS = {
    9: stretches((3, 0, 8), (1, 64, 96), (3, 32, 40)),
    2: stretches((1, 0, 32), (3, 96, 104), (3, 64, 72)),
    5: stretches((3, 0, 8), (3, 32, 36)),
}


def test_a_table_gives_each_instruction_the_blocks_in_order() -> None:
    """Instruction 1 has a stretch in blocks 2 and 9 and none in block 5."""
    (first, once), (second, twice) = Table.of(BLOCKS).by_pc()
    assert (first, second) == (1, 3)
    assert once.numbers.tolist() == [2, 5, 9]
    assert once.ends.tolist() == [0, 1, 1, 2]
    assert twice.column("begin", np.array([0, 2])).tolist() == [[96, 64], [0, 32]]
    assert twice.of_block(1).end.tolist() == [8, 36]


def test_blocks_of_one_shape_differ_in_their_addresses_alone() -> None:
    """Of blocks with two stretches by instruction 3, the one in the middle has a shorter one."""
    once, twice = (table for _, table in Table.of(BLOCKS).by_pc())
    assert once.shapes.tolist() == [0, 1, 0]
    assert twice.shapes.tolist() == [0, 1, 0]


def test_rows_are_grouped_alike_in_any_order() -> None:
    """Groups are numbered in the order of their rows, whether these are in order or not."""
    first, second = np.array([1, 1, 1, 2, 2]), np.array([0, 4, 4, 0, 1])
    other = np.array([3, 1, 0, 4, 2])
    assert [one.tolist() for one in groups(first, second)] == [[0, 1, 3, 4], [0, 1, 1, 2, 3]]
    which, number = groups(first[other], second[other])
    assert other[which].tolist() in ([0, 1, 3, 4], [0, 2, 3, 4])
    assert number.tolist() == [2, 1, 0, 3, 1]


def test_distinct_values_are_in_order() -> None:
    """Of a table all values are taken; numbers are listed."""
    assert distinct(np.array([[3, 1], [1, -2]])).tolist() == [-2, 1, 3]
    assert distinct(np.zeros(0)).tolist() == []
    assert numbers(np.array([4, 0, 4])) == [0, 4]


def test_quantiles_are_those_of_numpy() -> None:
    """To the last bit, for few values and for many, with equal ones among them."""
    random = np.random.default_rng(0)
    for count in (1, 2, 7, 511, 512, 2000):
        values = np.round(random.random(count), 2)
        assert (_quantiles(values, 512) == np.quantile(values, np.linspace(0, 1, 512))).all()


def test_a_column_of_one_value_stays_one_value() -> None:
    """As of loops where there are none: eight bytes, in some of the rows and in a table of all."""
    one = stretches((1, 0, 32), (3, 96, 104), (3, 64, 72))
    none = np.broadcast_to(np.int64(0), 3)
    one = replace(one, times=none, stride=none, period=none)
    picked = one.at(np.array([2, 0, 0, 1])), one.at(one.pc == 3), one.at(slice(1, 2))
    for some, begins in zip(picked, ([64, 0, 0, 96], [96, 64], [96]), strict=True):
        assert some.begin.tolist() == begins
        assert some.times.tolist() == [0] * len(begins)
        assert some.times.strides == (0,)
    together = joined([one, picked[0]])
    assert (together.times.tolist(), together.times.strides) == ([0] * 7, (0,))
    other = joined([one, replace(one, times=np.array([0, 2, 0]))])
    assert other.times.tolist() == [0, 0, 0, 0, 2, 0]
