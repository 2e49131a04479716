"""Pairs on copies, numbered barriers, scopes and fences: bugs at their lines, clean twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checking.families import PAIRS, Pair, source

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
SAMPLE = PAIRS[::12]


def lines_that_end_in(mark: str, lines: list[str], pair: Pair) -> frozenset[int]:
    first = next(at for at, line in enumerate(lines) if f" {pair.name}(" in line)
    last = lines.index("}", first)
    return frozenset(at + 1 for at in range(first, last) if lines[at].endswith(mark))


def errors(file: Any, pair: Pair) -> list[tuple[str, frozenset[int]]]:
    arrays = np.arange(1024, dtype=np.int32), np.zeros(1024, np.int32)
    found = gpusim.check(file[pair.name][pair.blocks, pair.threads], *arrays, step_limit=100_000)
    return [(one.rule, frozenset(one.lines)) for one in found.errors]


def held(pairs: list[Pair]) -> None:
    """Assert that bugs are found where they lie, and nothing else is, nor in the twins."""
    text = source(pairs)
    lines = text.splitlines()
    bugs, twins = gpusim.cuda_source(text), gpusim.cuda_source("#define FIXED\n" + text)
    for pair in pairs:
        places = lines_that_end_in("// <-", lines, pair)
        flags = lines_that_end_in("// <+", lines, pair)
        found = errors(bugs, pair)
        assert (pair.rule, places) in found, pair.name
        for rule, where in found:
            assert rule == pair.rule, pair.name
            assert where <= places or where == flags, pair.name
        assert errors(twins, pair) == [], pair.name


def test_a_sample_of_the_families_is_judged_as_it_is_labelled() -> None:
    held(SAMPLE)


@pytest.mark.slow
def test_all_families_are_judged_as_they_are_labelled() -> None:
    held(PAIRS)


def test_the_families_have_more_than_a_hundred_pairs_by_different_names() -> None:
    assert len({pair.name for pair in PAIRS}) == len(PAIRS) > 100
