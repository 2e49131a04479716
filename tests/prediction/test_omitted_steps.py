"""Iterations in the midst of a long loop of one warp are told by count: nothing of them is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import cuda, machine
from gpusim.codegen.programs import prepare
from gpusim.launch.events import Observer, Steps
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams import Recorder, TouchRecorder, classify, without_results
from gpusim.prediction.streams.folding import UnsteadyError, unfolded
from gpusim.prediction.streams.stretches import COLUMNS

N = 20_000


@cuda.jit
def sums(a, b, out, n):
    total = 0
    for i in range(n):
        total += a[i]
    out[0] = total


@cuda.jit
def sums_twice(a, b, out, n):
    """The second loop finds all lines that the first one fetched."""
    total = 0
    for i in range(n):
        total += a[i]
    for i in range(n):
        total ^= a[i]
    out[0] = total


@cuda.jit
def copies(a, b, out, n):
    for i in range(n):
        b[i] = a[2 * i] + 1


@cuda.jit
def computes(a, b, out, n):
    value = np.int32(1)
    for _ in range(n):
        value = value * np.int32(1664525) + np.int32(1013904223)
    out[0] = value


@cuda.jit
def one_of_many(a, b, out, n):
    """All warps but the first have ended long before its loop has."""
    if cuda.threadIdx.x == 0:
        for i in range(n):
            b[i] = a[i]
    out[cuda.threadIdx.x] = 1


@cuda.jit
def between_barriers(a, b, out, n):
    for part in range(2):
        if cuda.threadIdx.x == 0:
            for i in range(n):
                out[0] += a[part * n + i]
        cuda.syncthreads()
        b[cuda.threadIdx.x] = part


@cuda.jit
def meets_what_it_touched(a, b, out, n):
    """Lines from the middle on were fetched before the loop comes to them."""
    total = 0
    for i in range(n // 2, n):
        total ^= a[i]
    for i in range(n):
        total += a[i]
    out[0] = total


@cuda.jit
def all_warps(a, b, out, n):
    total = 0
    for i in range(n):
        total += a[i * 64 + cuda.threadIdx.x]
    out[cuda.threadIdx.x] = total


class Told(Observer):
    """Counts the steps that are told, and those of omitted iterations."""

    def __init__(self, *, omitted_steps: bool = False) -> None:
        self.omitted_steps = omitted_steps
        self.steps = self.omitted = 0

    def compiled_steps(self, steps: Steps) -> None:
        self.steps += len(steps.pc)
        if steps.omitted is not None:
            self.omitted += steps.omitted.period * steps.omitted.times


def launch(kernel: cuda.Kernel, block: int = 1, n: int = N) -> Prepared:
    size = n * 64 if kernel is all_warps else 2 * n
    arrays = [np.zeros(size, np.int32), np.zeros(2 * n, np.int32), np.zeros(256, np.int32)]
    return prepare(kernel[1, block], (*arrays, n), ComputeCapability(9, 0), code="lowering")


def recorded(prepared: Prepared, *, whole: bool) -> tuple[Recorder, TouchRecorder, Told]:
    streams, touches = Recorder(prepared, folds=True, whole=whole), TouchRecorder(prepared)
    touches.omitted_steps = not whole
    told = Told(omitted_steps=not whole)
    machine.run(without_results(prepared), observers=(streams, touches, told), blocks=[0])
    return streams, touches, told


@pytest.mark.parametrize(
    ("kernel", "block"),
    [
        (sums, 1), (sums, 32), (sums_twice, 1), (copies, 1), (computes, 32), (one_of_many, 128),
        (between_barriers, 64),
    ],
)  # fmt: skip
def test_streams_and_stretches_are_those_of_all_steps(kernel: cuda.Kernel, block: int) -> None:
    prepared = launch(kernel, block)
    streams, touches, told = recorded(prepared, whole=False)
    all_streams, all_touches, all_told = recorded(prepared, whole=True)
    assert told.omitted > all_told.steps / 2
    assert told.steps + told.omitted == all_told.steps
    ours, theirs = streams.streams[0], all_streams.streams[0]
    assert [warp.loops for warp in ours.warps] == [warp.loops for warp in theirs.warps]
    assert unfolded(ours).key == unfolded(theirs).key
    for name in COLUMNS:
        columns = [getattr(one.stretches[0], name) for one in (touches, all_touches)]
        assert np.array_equal(*columns), name


def test_an_observer_that_does_not_ask_for_less_is_told_all_steps() -> None:
    told = Told()
    machine.run(launch(sums), observers=(told,))
    assert told.omitted == 0
    assert told.steps > N


def test_warps_that_go_on_together_are_told_of_whole() -> None:
    """What a warp waits for depends on what the other touches at that time."""
    _, _, told = recorded(launch(all_warps, 64), whole=False)
    assert told.omitted == 0


def test_a_loop_that_comes_to_lines_fetched_before_is_recorded_again_and_whole() -> None:
    prepared = launch(meets_what_it_touched)
    with pytest.raises(UnsteadyError):
        recorded(prepared, whole=False)
    (found,) = classify(prepared).classes
    streams, *_ = recorded(prepared, whole=True)
    assert found.stream.key == streams.streams[0].key


def test_touches_of_very_many_iterations_are_kept_as_one_that_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 20,000 loads of four bytes each of the lines is touched, and all times add up."""
    from gpusim.prediction.streams import compiled_touches

    monkeypatch.setattr(compiled_touches, "MOST_WRITTEN_OUT", 0)
    prepared = launch(sums)
    _, touches, _ = recorded(prepared, whole=False)
    _, all_touches, _ = recorded(prepared, whole=True)
    found, whole = touches.stretches[0], all_touches.stretches[0]
    assert len(found) < len(whole) / 2
    assert found.steps == whole.steps
    begin, time = written_out(found)
    order = np.lexsort((begin, time))
    assert np.array_equal(begin[order], whole.begin)
    assert np.array_equal(time[order], whole.time)


def written_out(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the addresses and times of all touches of stretches."""
    row = np.repeat(np.arange(len(rows)), 1 + rows.times)
    number = np.concatenate([np.arange(1 + one) for one in rows.times.tolist()])
    return (
        rows.begin[row] + number * rows.stride[row],
        rows.time[row] + number * rows.period[row],
    )
