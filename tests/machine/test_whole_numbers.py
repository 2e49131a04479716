"""Numbers of a launch that are none: NaN, fractions, texts and arrays are launch errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import catalogue, cuda
from gpusim.errors import LaunchError


@cuda.jit
def write(out):
    out[cuda.grid(1)] = 7


NO_NUMBERS = [float("nan"), float("inf"), 1.5, "8", None, {32}, np.array([3, 4]), 3 + 0j]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_sizes_of_a_launch_that_are_no_whole_numbers_are_launch_errors(value: Any) -> None:
    for configuration in ((value, 32), (1, value), (1, 32, 0, value)):
        with pytest.raises(LaunchError, match="takes whole numbers"):
            write[configuration]
    with pytest.raises(LaunchError, match="n takes whole numbers"):
        catalogue.find("reduce1").setup(value if value is not None else float("nan"))


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0, -1], ids=repr)
def test_a_step_limit_that_is_no_positive_whole_number_is_a_launch_error(value: Any) -> None:
    for call in (gpusim.trace, gpusim.check, gpusim.predict):
        with pytest.raises(LaunchError, match="the step limit"):
            call(write[1, 32], np.zeros(32, np.int32), step_limit=value)


@pytest.mark.parametrize("seed", [float("nan"), -1, "8"])
def test_a_seed_that_is_no_natural_number_is_a_launch_error(seed: Any) -> None:
    with pytest.raises(LaunchError, match="the order's seed"):
        gpusim.check(write[1, 32], np.zeros(32, np.int32), order=seed)
