"""Memory that all blocks touch alike gives and takes what an index for each lane does."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.machine.group import chosen
from gpusim.machine.lane_elements import UniformLaneElements

LANES = np.arange(64).reshape(1, 2, 32)
EVERYONE = np.ones((1, 2, 32), dtype=bool)
INDICES = {
    "neighbours": LANES,
    "every second": 2 * LANES,
    "one for all": np.full((1, 1, 1), 5),
    "downwards": 127 - LANES,
    "rows of 33": LANES % 32 + 33 * (LANES // 32),
    "the same in pairs": LANES // 2,
    "a lane for each row": np.array([[[3], [9]]]),
}
MASKS = {
    "everyone": EVERYONE,
    "the first half": LANES < 32,
    "every fourth": LANES % 4 == 0,
    "some": LANES % 7 < 3,
    "one": LANES == 40,
    "nobody": LANES < 0,
}


def parts() -> np.ndarray:
    return np.arange(3 * 130, dtype=np.int32).reshape(3, 130)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("index", INDICES)
def test_a_slice_serves_as_an_index_for_each_lane_does(index: str, mask: str) -> None:
    alike = UniformLaneElements(parts(), INDICES[index], MASKS[mask])
    for position in (0, 1):
        loaded, expected = alike.loaded(position), alike.apart().loaded(position)
        assert expected is not None
        on = np.broadcast_to(MASKS[mask], (3, 2, 32))
        shape = on.shape
        assert (np.broadcast_to(loaded, shape)[on] == np.broadcast_to(expected, shape)[on]).all()
    stored = -np.arange(3 * 64, dtype=np.int32).reshape(3, 2, 32)
    for value in (stored, stored[:1], stored[:1, :1, :1]):
        once, each = (UniformLaneElements(parts(), alike.index, alike.mine) for _ in range(2))
        once.set(1, value)
        each.apart().set(1, value)
        assert once.parts.tolist() == each.parts.tolist()


def test_what_was_loaded_does_not_change_with_memory() -> None:
    memory = parts()
    loaded = UniformLaneElements(memory, LANES, EVERYONE).loaded(0)
    memory[:] = 0
    assert loaded[2, 0, 0] == 2 * 130


@pytest.mark.parametrize(
    ("value", "old"),
    [
        (np.array([1, -2], np.int32), np.array([7, 8], np.int32)),
        (np.array([np.nan, -0.0]), np.array([1.5, np.inf])),
        (np.array([True, False]), np.array([False, True])),
        (np.array([1.5, 2], np.float32), np.array([7, 8], np.int32)),
    ],
)
def test_lanes_that_are_on_get_the_value_bit_for_bit(value: np.ndarray, old: np.ndarray) -> None:
    for on in ([True, False], [False, True], [True, True], [False, False]):
        mask = np.array(on)
        assert chosen(mask, value, old).tobytes() == np.where(mask, value, old).tobytes()
