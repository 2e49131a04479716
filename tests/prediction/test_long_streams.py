"""A launch whose blocks record too many instructions is refused before memory runs out."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.errors import InputError
from gpusim.prediction.streams import recorder


@cuda.jit
def walk(o, n):
    s = 0
    for i in range(n + cuda.blockIdx.x * 37):
        s = s * 3 + o[(s + i) & 255]
    o[cuda.blockIdx.x & 255] = s


def test_too_many_instructions_that_no_loop_folds_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each iteration of a walk loads from other addresses: none is left out."""
    values = np.random.default_rng(0).integers(0, 8, 256).astype(np.int32)
    assert gpusim.predict(walk[8, 64], values, 150).time_us > 0
    monkeypatch.setattr(recorder, "MOST_STEPS", 5_000)
    with pytest.raises(InputError, match="more than 5,000 instructions that differ"):
        gpusim.predict(walk[8, 64], values + 1, 150)
