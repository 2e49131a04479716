"""Random kernels give what the thread-per-lane runner does, and predictions that do not vary.

GPUSIM_FUZZ_SEED sets the first seed and GPUSIM_FUZZ_COUNT the number of kernels of the long run; a
kernel that fails names its seed.
"""

from __future__ import annotations

import os
import random

import pytest
from fuzzing.kernels import differences

SEED = int(os.environ.get("GPUSIM_FUZZ_SEED", "0"))
COUNT = int(os.environ.get("GPUSIM_FUZZ_COUNT", "2000"))


@pytest.mark.parametrize("seed", range(SEED, SEED + 16))
def test_a_random_kernel_gives_what_the_lanes_give_one_by_one(seed: int) -> None:
    assert differences(seed) == []


@pytest.mark.slow
def test_thousands_of_random_kernels_give_what_the_lanes_give_one_by_one() -> None:
    first = SEED or random.SystemRandom().randrange(2**31)
    print(f"GPUSIM_FUZZ_SEED={first} GPUSIM_FUZZ_COUNT={COUNT}")
    found = [line for seed in range(first, first + COUNT) for line in differences(seed)]
    assert found == []
