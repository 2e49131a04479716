"""Pairs on copies, numbered barriers, scopes and fences: bugs at their lines, clean twins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checking.families import PAIRS, Pair, source

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
SAMPLE = PAIRS[::20]
MEASURED = json.loads(Path(__file__).with_name("families_h200.json").read_text())["verdicts"]


def lines_that_end_in(mark: str, lines: list[str], pair: Pair) -> frozenset[int]:
    first = next(at for at, line in enumerate(lines) if f" {pair.name}(" in line)
    last = lines.index("}", first)
    return frozenset(at + 1 for at in range(first, last) if lines[at].endswith(mark))


def errors(file: Any, pair: Pair) -> list[tuple[str, frozenset[int]]]:
    arrays = np.arange(1024, dtype=np.int32), np.zeros(1024, np.int32)
    found = gpusim.check(file[pair.name][pair.blocks, pair.threads], *arrays, step_limit=100_000)
    return [(one.rule, frozenset(one.lines)) for one in found.errors]


def checksum(file: Any, pair: Pair) -> int:
    """Return the sum that `sanitize_families.py` makes of a run's results."""
    x, out = np.arange(1024, dtype=np.int32), np.zeros(1024, np.int32)
    file[pair.name][pair.blocks, pair.threads](x, out)
    return int((np.arange(1, 1025, dtype=np.uint32) * out.view(np.uint32)).sum(dtype=np.uint32))


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
        assert checksum(twins, pair) == MEASURED[pair.name]["twin"]["checksum"], pair.name


def test_a_sample_of_the_families_is_judged_as_it_is_labelled() -> None:
    held(SAMPLE)


@pytest.mark.slow
def test_all_families_are_judged_as_they_are_labelled() -> None:
    held(PAIRS)


def test_copies_that_nobody_waits_for_have_not_landed() -> None:
    early = [one for one in PAIRS if "without_a_wait_by" in one.name]
    bugs = gpusim.cuda_source(source(early))
    assert len(early) == 12
    for pair in early:
        assert checksum(bugs, pair) == MEASURED[pair.name]["bug"]["checksum"] == 0


def test_all_families_were_measured() -> None:
    assert list(MEASURED) == [pair.name for pair in PAIRS]


def test_the_families_have_more_than_a_hundred_pairs_by_different_names() -> None:
    assert len({pair.name for pair in PAIRS}) == len(PAIRS) > 100
