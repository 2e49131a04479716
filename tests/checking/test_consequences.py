"""One mistake is one finding, with a fix that can be done where it stands."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda


@cuda.jit
def reversed_without_a_barrier(x, out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    out[t] = s[63 - t]


@cuda.jit
def counted_in_any_order(x, out):
    s = cuda.shared.array(1, np.int32)
    t = cuda.threadIdx.x
    if t == 0:
        s[0] = 0
    cuda.syncthreads()
    s[0] = s[0] + x[t]
    out[0] = s[0]


@cuda.jit
def summed_in_place(x, out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    if t >= 32:
        s[t] = s[t] + s[t - 32]
    cuda.syncthreads()
    if t >= 1:
        s[t] += s[t - 1]
    cuda.syncthreads()
    out[t] = s[t]


@cuda.jit
def summed_in_place_by_blocks(x, out):
    i = cuda.grid(1)
    x[i] = x[i] + x[(i + 64) % 128]


def found(kernel: Any, blocks: int = 1) -> list[gpusim.Finding]:
    arrays = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    return list(gpusim.check(kernel[blocks, 64], *arrays))


def test_a_word_that_a_race_leaves_uninitialised_belongs_to_the_race() -> None:
    assert [one.rule for one in found(reversed_without_a_barrier)] == ["shared-race"]


def test_races_of_one_place_are_one_finding_of_the_widest_scope() -> None:
    """Lanes and warps race in line 6 and between lines 6 and 7: one finding each."""
    races = [one for one in found(counted_in_any_order) if one.rule.endswith("-race")]
    assert [one.rule for one in races] == ["shared-race"] * 2
    assert len({one.lines for one in races}) == 2


@pytest.mark.parametrize(
    ("kernel", "blocks", "words"),
    [
        (summed_in_place, 1, "cuda.syncthreads(), write, cuda.syncthreads(); or read from one"),
        (summed_in_place_by_blocks, 2, "read from one array and write to another one"),
    ],
    ids=["shared", "global"],
)
def test_a_race_within_a_line_has_a_fix_that_fits_there(
    kernel: Any, blocks: int, words: str
) -> None:
    (race,) = found(kernel, blocks)
    assert len(race.lines) == 1
    assert words in race.fix
    assert "between the two accesses" not in race.fix


@cuda.jit
def gathered_by_a_racing_index(x, out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = 0
    cuda.syncthreads()
    s[t] = 100 + t
    out[t] = x[s[63 - t]]


@cuda.jit
def repeated_a_racing_number_of_times(x, out):
    n = cuda.shared.array(1, np.int32)
    t = cuda.threadIdx.x
    if t == 0:
        n[0] = 2
    cuda.syncthreads()
    if t == 63:
        n[0] = 129
    total = 0
    for i in range(n[0]):
        total += x[i]
    out[t] = total


@cuda.jit
def raced_beside_a_wrong_index(x, out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    out[t] = s[63 - t] + x[t + 65]


@pytest.mark.parametrize("kernel", [gathered_by_a_racing_index, repeated_a_racing_number_of_times])
def test_accesses_that_a_racing_word_leads_astray_belong_to_the_race(kernel: Any) -> None:
    (race,) = found(kernel)
    assert race.rule == "shared-race"
    assert re.search(r"; its value makes line \d+ out of bounds$", race.message)


@cuda.jit
def left_by_a_racing_word(x, out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = 0
    cuda.syncthreads()
    s[t] = x[t]
    total = 0
    for i in range(t + 1):
        total += x[i + 127]
        if s[63 - t] > 200:
            break
    out[t] = total


def test_a_loop_that_a_racing_word_ends_early_has_errors_of_its_own() -> None:
    assert {one.rule for one in found(left_by_a_racing_word)} == {"bounds", "shared-race"}


def test_a_wrong_index_beside_a_race_is_an_error_of_its_own() -> None:
    rules = [one.rule for one in found(raced_beside_a_wrong_index)]
    assert sorted(rules) == ["bounds", "shared-race"]
