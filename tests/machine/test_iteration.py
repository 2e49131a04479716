"""How often an iteration of a loop repeats, from how its registers move."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.machine import iteration


@pytest.mark.parametrize("step", [0, 1, -4, 1000])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int16])
def test_lanes_that_move_alike_wrap_as_they_do_among_others(step: int, dtype: type) -> None:
    """Where all move by one step they are divided by one number; one other lane prevents that."""
    info, places = np.iinfo(dtype), np.linspace(0.1, 0.9, 64).reshape(1, 2, 32)
    now = (int(info.min) + places * (int(info.max) - int(info.min))).astype(dtype)
    alike = iteration._pair(now, now + np.asarray(step).astype(dtype))
    later = alike.later.copy()
    later[0, 0, 0] += np.asarray(3).astype(dtype)
    others = iteration._pair(now, later)
    counts = iteration._until_it_wraps(alike), iteration._until_it_wraps(others)
    assert (counts[0].reshape(-1)[1:] == counts[1].reshape(-1)[1:]).all()
    assert counts[0].shape == now.shape
    room = int(info.max) - now.astype(object) if step > 0 else now.astype(object) - int(info.min)
    expected = room // abs(step) + 1 if step else np.full(now.shape, iteration.ENDLESS)
    assert (counts[0] == np.minimum(expected, iteration.ENDLESS)).all()
