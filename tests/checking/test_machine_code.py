"""The planted kernels in CUDA C++, as nvcc compiles them: found from machine code alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels

pytestmark = [
    pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL),
    pytest.mark.slow,
]
FOLDER = Path(__file__).parent
CASE = re.compile(r"^    CASE\((\w+), (.*)\),$", re.MULTILINE)
CASES = dict(CASE.findall((FOLDER / "planted_main.cu").read_text()))
# Arrays that hold nothing before the launch.
NOTHING_IN = {"global_memory_never_written": ("more",)}


def numbers(text: str) -> list[Any]:
    """Return grid, block and the sizes of a case as planted_main.cu has them."""
    parts = re.findall(r"dim3\([^)]*\)|\d+", text)
    return [tuple(map(int, re.findall(r"\b\d+", part.removeprefix("dim3")))) for part in parts]


def checked(name: str, *definitions: str) -> gpusim.Findings:
    kernels = gpusim.cuda_file(str(FOLDER / "planted.cu"), definitions=definitions)
    grid, block, *sizes = numbers(CASES[name])
    x, out, more, shared, n = [*(size for (size,) in sizes), 0, 0, 0][:5]
    arrays = np.arange(x, dtype=np.int32), np.zeros(out, np.int32), np.zeros(more or 1, np.int32)
    configured = kernels[name][grid, block, 0, shared]
    return gpusim.check(configured, *arrays, np.int32(n), uninitialised=NOTHING_IN.get(name, ()))


@pytest.mark.parametrize("name", CASES)
def test_bugs_are_found_in_machine_code_and_twins_have_no_error(name: str) -> None:
    assert checked(name)
    assert [(f.rule, f.lines, f.message) for f in checked(name, "FIXED").errors] == []


CUB = FOLDER.parent / "sass" / "corpus" / "cub.cu"
INTS = np.arange(512, dtype=np.int32)
PRIMITIVES: dict[str, tuple[Any, ...]] = {
    "block_reduce": (INTS, np.zeros(4, np.int32)),
    "block_scan": (INTS, np.zeros(512, np.int32)),
    "warp_reduce": (INTS.astype(np.float32), np.zeros(16, np.float32)),
    "radix_sort": (INTS[::-1].copy(),),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_blocks_and_warps_of_cub_have_no_finding(name: str) -> None:
    if not any((folder / "cub/block/block_reduce.cuh").exists() for folder in wheels.headers()):
        pytest.skip("nvidia-cuda-cccl")
    grid = 1 if name == "radix_sort" else 4
    found = gpusim.check(gpusim.cuda_file(str(CUB))[name][grid, 128], *PRIMITIVES[name])
    assert [(f.rule, f.lines, f.message) for f in found] == []


EIGHT_LANES = """
__global__ void sum_of_eight(const int *x, int *out) {
    int t = threadIdx.x, sum = x[t];
    if (t < 8) {
        for (int k = 4; k > 0; k >>= 1) sum += __shfl_down_sync(0xff, sum, k, WIDTH);
        if (t == 0) *out = sum;
    }
}
"""


def test_a_shuffle_of_eight_lanes_without_a_width_of_eight_reads_from_others() -> None:
    """Lanes 4 to 7 read from four lanes further on, then 6 and 7 from two and 7 from one."""

    def found(width: int) -> list[Any]:
        kernels = gpusim.cuda_source(EIGHT_LANES, definitions=(f"WIDTH={width}",))
        launch = np.arange(32, dtype=np.int32), np.zeros(1, np.int32)
        return list(gpusim.check(kernels["sum_of_eight"][1, 32], *launch))

    (one,) = found(32)
    assert (one.rule, one.severity, one.lines, one.count) == ("mask", "error", (5,), 4 + 2 + 1)
    assert "from lane 8, an inactive lane of the shuffle" in one.message
    assert found(8) == []


GENERIC = """
__device__ int pick(const int *p, int i) { return p[i]; }
__global__ void generic_pointer(int *x, int *out, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    BETWEEN
    out[t] = pick(n > 5 ? s : x, 63 - t);
}
"""


@pytest.mark.parametrize(("between", "rules"), [("", ["shared-race"]), ("__syncthreads();", [])])
def test_addresses_that_say_which_memory_they_mean_are_judged_there(
    between: str, rules: list[str]
) -> None:
    kernel = gpusim.cuda_source(GENERIC, definitions=(f"BETWEEN={between}",))["generic_pointer"]
    arrays = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    assert [f.rule for f in gpusim.check(kernel[1, 64], *arrays, np.int32(9))] == rules
    assert list(gpusim.check(kernel[1, 64], *arrays, np.int32(5)).errors) == []
