"""Random kernels run as the thread-per-lane runner says, with numbers computed one at a time.

GPUSIM_FUZZ_SEED sets the first seed and GPUSIM_FUZZ_COUNT the number of kernels of the long run; a
kernel that fails names its seed.
"""

from __future__ import annotations

import os
import random
from typing import Any

import lane_runner
import numpy as np
import pytest
from c_numbers import C
from random_kernels import RandomKernel, random_kernel

import gpusim
from gpusim.launch import ComputeCapability
from gpusim.machine import run
from gpusim.programs import prepare

GENERATIONS = ("3.5", "6.0", "7.5", "8.6", "9.0")
SEED = int(os.environ.get("GPUSIM_FUZZ_SEED", "0"))
COUNT = int(os.environ.get("GPUSIM_FUZZ_COUNT", "2000"))


def reference(made: RandomKernel) -> list[Any]:
    """Return the arguments as the thread-per-lane runner leaves them."""
    arguments = made.arguments()
    lane_runner.run(made.kernel, made.grid, made.block, 0, *arguments, arithmetic=C)
    return arguments


def simulated(made: RandomKernel, level: str, cc: str, *, traced: bool) -> list[Any]:
    """Return the arguments as the machine leaves them, counting or with nobody listening."""
    arguments = made.arguments()
    launch = made.kernel[made.grid, made.block]
    if traced:
        gpusim.trace(launch, *arguments, level=level, cc=cc)
    else:
        run(prepare(launch, arguments, ComputeCapability.parse(cc), level))
    return arguments


def differences(seed: int) -> list[str]:
    """Return which arrays of a seed's kernel come out differently, and how it was run."""
    made = random_kernel(seed)
    expected = reference(made)
    choose = random.Random(seed)
    found = []
    for level in ("O0", "O3"):
        cc, traced = choose.choice(GENERATIONS), choose.random() < 0.5
        for name, wanted, given in zip(
            made.kernel.source.parameters,
            expected,
            simulated(made, level, cc, traced=traced),
            strict=True,
        ):
            if not np.array_equal(wanted, given, equal_nan=wanted.dtype.kind == "f"):
                found.append(f"seed {seed}: {name} at {level}, {cc}, traced: {traced}")
    return found


@pytest.mark.parametrize("seed", range(SEED, SEED + 16))
def test_a_random_kernel_gives_what_the_lanes_give_one_by_one(seed: int) -> None:
    assert differences(seed) == []


@pytest.mark.slow
def test_thousands_of_random_kernels_give_what_the_lanes_give_one_by_one() -> None:
    first = SEED or random.SystemRandom().randrange(2**31)
    print(f"GPUSIM_FUZZ_SEED={first} GPUSIM_FUZZ_COUNT={COUNT}")
    found = [line for seed in range(first, first + COUNT) for line in differences(seed)]
    assert found == []
