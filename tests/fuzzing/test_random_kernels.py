"""Random kernels give what the thread-per-lane runner does, and predictions that do not vary.

GPUSIM_FUZZ_SEED sets the first seed, GPUSIM_FUZZ_COUNT the number of kernels of the long run and
GPUSIM_FUZZ_COMPILED that of those in nvcc's code; a kernel that fails names its seed.
"""

from __future__ import annotations

import os
import random
from itertools import cycle

import pytest
from fuzzing import compiled
from fuzzing.kernels import differences

from gpusim.sass import wheels

SEED = int(os.environ.get("GPUSIM_FUZZ_SEED", "0"))
COUNT = int(os.environ.get("GPUSIM_FUZZ_COUNT", "2000"))
COMPILED = int(os.environ.get("GPUSIM_FUZZ_COMPILED", "3000"))
needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)


@pytest.mark.parametrize("seed", range(SEED, SEED + 8))
def test_a_random_kernel_gives_what_the_lanes_give_one_by_one(seed: int) -> None:
    assert differences(seed) == []


# A loop whose comparison is 2^63 from its other side; a register that held a value of another size.
@pytest.mark.parametrize("seed", [1718245474, 1514873910])
def test_a_kernel_that_failed_once_gives_what_the_lanes_give(seed: int) -> None:
    assert differences(seed) == []


@pytest.mark.slow
def test_thousands_of_random_kernels_give_what_the_lanes_give_one_by_one() -> None:
    first = SEED or random.SystemRandom().randrange(2**31)
    print(f"GPUSIM_FUZZ_SEED={first} GPUSIM_FUZZ_COUNT={COUNT}")
    found = [line for seed in range(first, first + COUNT) for line in differences(seed)]
    assert found == []


@needs_compiler
def test_random_kernels_give_in_nvccs_code_what_the_lanes_give_one_by_one() -> None:
    assert list(compiled.differences(range(SEED, SEED + 4), "9.0")) == []


@needs_compiler
def test_lanes_that_differ_by_block_give_back_the_token_that_all_blocks_have() -> None:
    assert list(compiled.differences([1903571260], "9.0")) == []


@needs_compiler
@pytest.mark.slow
def test_thousands_of_random_kernels_give_the_same_in_nvccs_code() -> None:
    first = SEED or random.SystemRandom().randrange(2**31)
    print(f"GPUSIM_FUZZ_SEED={first} GPUSIM_FUZZ_COMPILED={COMPILED}")
    generations = cycle(compiled.GENERATIONS)
    found = [
        line
        for seeds in compiled.batches(first, COMPILED)
        for line in compiled.differences(seeds, next(generations))
    ]
    assert found == []
