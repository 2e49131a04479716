"""Accesses kept by segment against an array with a number an element."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpusim
from gpusim.checking import state
from gpusim.checking.element_access import THREAD_SHIFT
from gpusim.checking.findings import Finding
from gpusim.checking.shadow import SEGMENT, Segments

ELEMENTS = 5 * SEGMENT + 7
FIRST = st.integers(0, ELEMENTS - 1)
runs = st.builds(
    lambda first, count, step: np.arange(first, min(first + step * count, ELEMENTS), step),
    FIRST,
    st.integers(1, ELEMENTS),
    st.sampled_from([1, 1, 1, 2, 4]),
)
pieces = st.lists(runs, min_size=1, max_size=3).map(np.concatenate)
scattered = st.lists(FIRST, min_size=1, max_size=40).map(np.array)
places = st.one_of(runs, pieces, scattered)
threads = st.one_of(
    st.tuples(st.integers(0, 1000), st.integers(0, 4)),  # a first thread, and a shift of places
    st.none(),
)


@given(st.lists(st.tuples(places, threads, st.integers(1, 9)), min_size=1, max_size=6))
def test_segments_hold_what_an_array_of_numbers_holds(
    written: list[tuple[np.ndarray, tuple[int, int] | None, int]],
) -> None:
    segments, array = Segments(ELEMENTS), np.zeros(ELEMENTS, dtype=np.int64)
    for elements, by, time in written:
        # An element that is named twice is given one number, as either may be kept.
        thread = elements * 7 % 31 if by is None else by[0] + (elements >> by[1])
        numbers = (thread << THREAD_SHIFT) + time
        segments[elements] = numbers
        array[elements] = numbers
        assert (segments[elements] == array[elements]).all()
        assert (segments[np.arange(ELEMENTS)] == array).all()
        assert (segments[np.arange(ELEMENTS)[::-1]] == array[::-1]).all()


def test_an_element_named_twice_keeps_one_of_its_numbers() -> None:
    segments = Segments(SEGMENT)
    segments[np.array([3, 3])] = np.array([5, 6])
    assert segments[np.array([3])][0] in (5, 6)
    segments[np.array([3])] |= 8
    assert segments[np.array([3])][0] in (13, 14)


BYTES = """
extern "C" __global__ void once(unsigned char *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += 1;
}
extern "C" __global__ void again(unsigned char *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 1;
    __syncthreads();
    y[n - 1 - i] = 2;
}
extern "C" __global__ void neighbours(unsigned char *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = i + 1 < n ? y[i + 1] : 0;
}
extern "C" __global__ void halves(unsigned char *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i / 2] = i;
}
"""


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("once", set()),
        ("again", {"block-race"}),
        ("neighbours", {"global-race"}),
        ("halves", {"one-instruction"}),
    ],
)
def test_findings_on_bytes_are_those_of_a_number_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, rules: set[str]
) -> None:
    path = tmp_path / "bytes.cu"
    path.write_text(BYTES)
    kernel = gpusim.cuda_file(path)[name]

    def found() -> list[Finding]:
        launch = kernel[16, 128]
        return list(gpusim.check(launch, np.zeros(2048, np.uint8), 2048).errors)

    each = found()
    monkeypatch.setattr(state, "MANY_NARROW", 0)
    assert found() == each
    assert {finding.rule for finding in each} == rules
