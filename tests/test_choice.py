"""Choosing by bits gives what `numpy.where` gives, for every type and shape."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.launch.choice import FEW_LANES, chosen

WARPS = FEW_LANES // 32 + 1  # more lanes than are chosen one by one
TYPES = ("bool", "int8", "uint16", "int32", "uint32", "float32", "int64", "uint64", "float64")


def lanes(seed: int, *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Return bytes of which each differs from the next."""
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("dtype", TYPES)
def test_lanes_that_are_on_have_the_bits_of_one_array_and_the_rest_those_of_the_other(
    dtype: str,
) -> None:
    size = np.dtype(dtype).itemsize
    value, other = (lanes(seed, 1, WARPS, 32 * size) for seed in (1, 2))
    value, other = (a.view(dtype) if dtype != "bool" else a > 99 for a in (value, other))
    on = lanes(3, 1, WARPS, 32) > 99
    found = chosen(on, value, other)
    assert found.dtype == value.dtype
    wanted = np.where(on, value, other)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("on", "value", "other"),
    [
        ((3, WARPS, 32), (1, 1, 1), (1, WARPS, 32)),
        ((1, WARPS, 32), (3, WARPS, 32), (1, 1, 32)),
        ((1, WARPS, 32), (1, 1, 1), ()),
        ((3, WARPS, 32), (1, WARPS, 1), (1, 1, 1)),
    ],
)
def test_arrays_are_broadcast(
    on: tuple[int, ...], value: tuple[int, ...], other: tuple[int, ...]
) -> None:
    mask = lanes(1, *on) > 99
    one, rest = lanes(2, *value).astype(np.int32), np.asarray(lanes(3, *other), dtype=np.int32)
    assert (chosen(mask, one, rest) == np.where(mask, one, rest)).all()


def test_what_is_chosen_may_be_changed_and_what_it_came_from_stays() -> None:
    on = np.ones((1, WARPS, 32), dtype=bool)
    value, other = np.full(on.shape, 5), np.full(on.shape, 6)
    found = chosen(on, value, other)
    found += 1
    assert (value == 5).all()
    assert (other == 6).all()
