"""Kernels that launch kernels, and programs of several linked modules."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from driver.host import Host, needs_compilers
from driver.test_builds import has_nvcc

from gpusim.cli.app import main
from gpusim.driver import nvcc
from gpusim.sass import compiler, cubin, wheels

pytestmark = needs_compilers

FAMILY = """
extern "C" __global__ void child(int *x, int by, int deeper) {
    x[threadIdx.x] = 2 * x[threadIdx.x] + by;
    if (deeper && threadIdx.x == 0) child<<<1, blockDim.x>>>(x, by + 1, deeper - 1);
}
extern "C" __global__ void parent(int *x) {
    if (threadIdx.x) return;
    child<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(x, 100, 0);
    cudaMemsetAsync(x, 0, 4, 0);
    child<<<1, 2>>>(x, 1, 1);
    child<<<1, 2>>>(x, 10, 0);
}
extern "C" __global__ void too_many(int *x) {
    for (int i = 0; i < 100; i++) child<<<1, 1>>>(x, 1, 0);
}
"""


@pytest.fixture
def host(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, capfd)


def test_launches_of_kernels_run_in_an_order_that_cuda_allows_tail_launches_last(
    host: Host,
) -> None:
    text = nvcc.DEVICE_RUNTIME.read_text(encoding="utf-8").replace("1 << 14", "64")
    options = ["--gpu-architecture=sm_90", "--std=c++17", "--relocatable-device-code=true"]
    options += [f"--include-path={folder}" for folder in wheels.headers()]
    answer = compiler.answered(text + FAMILY, "family.cu", [], options, wheels.library())
    ran = host.run(
        """
x = take(16)
to(x, struct.pack("4i", 5, 6, 7, 8))
launch("parent", 1, 4, x)
print(*struct.unpack("4i", back(x, 16)))
launch("too_many", 1, 1, x)
call("cuCtxSynchronize")
""",
        made=base64.b64decode(answer["cubin"]),
    )
    # 0 6, 1 13 and 4 28 by the first child and its own, 18 66 by the second, the tail launch's.
    assert ran.out == ["136 232 114 116", "cuCtxSynchronize 719"]
    names = re.findall(r"gpusim: +\d+  (\w+) ", ran.err)
    assert names == ["parent", "gpusim_set", *["child"] * 4, "too_many"]


@pytest.mark.parametrize(
    ("given", "is_linked"),
    [
        ("-rdc=true a.cu -o a -lcudadevrt", True),
        ("-rdc true a.o b.o -o a", True),
        ("-rdc=true -c a.cu", False),
        ("a.cu -o a", False),
    ],
)
def test_a_build_that_links_modules_has_our_device_runtime(given: str, is_linked: bool) -> None:
    made = nvcc.with_device_runtime(given.split())
    assert (str(nvcc.DEVICE_RUNTIME) in made) == is_linked
    assert ("-lcudadevrt" in made) == ("-lcudadevrt" in given and not is_linked)


def test_local_symbols_of_one_name_are_told_apart_as_the_listing_does() -> None:
    symbols = [
        cubin.Symbol(name, 1, 8 * number, 8, kind)
        for number, (name, kind) in enumerate(
            [("$str", 1), ("$str$1", 1), ("f", 2), ("$str", 1), ("$str$1", 1), ("$str", 1)]
        )
    ]
    names = [one.name for one in cubin._told_apart(symbols)]
    assert names == ["$str", "$str$1", "f", "$str__0", "$str$1__1", "$str__2"]


FIRST = """
#include <cstdio>
#include <cooperative_groups.h>
#include <helper_math.h>
#include <nvToolsExt.h>
namespace cg = cooperative_groups;
__device__ void tell(int x);
static __device__ int counter = 3;
__global__ void votes(int *p) {
    int v = threadIdx.x;
    v += __shfl_xor(v, 1);
    v += __shfl_down(v, 2);
    p[threadIdx.x] = __any(v > 3) ? v + __popc(__ballot(v > 8)) : 0;
}
__global__ void turns(int *p) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    cg::this_cluster().sync();
    p[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void child(int depth) {
    char text[8] = {'a', 'b', 0};
    text[1] += depth;
    printf("first %s %d\\n", text, counter);
    counter += 6;
    if (depth < 2) child<<<1, 1>>>(depth + 1);
    else tell(counter);
}
int main() {
    nvtxRangePush("all");
    int *p;
    cudaMallocManaged(&p, 256);
    votes<<<1, 32>>>(p);
    cudaDeviceSynchronize();
    printf("%d\\n", p[7]);
    turns<<<1, 64>>>(p);
    child<<<1, 1>>>(0);
    cudaDeviceSynchronize();
    float3 a = make_float3(1, 2, 3) * 2.0f + make_float3(1);
    printf("%d %g\\n", p[3], dot(a, a));
    nvtxRangePop();
    return 0;
}
"""
SECOND = """
#include <cstdio>
static __device__ int counter = 5;
__device__ void tell(int x) { printf("second %d %d\\n", x, counter); }
"""


@pytest.mark.slow
@pytest.mark.skipif(not has_nvcc(), reason=f"needs nvcc: {nvcc.INSTALL}")
def test_a_program_of_an_older_cuda_in_two_files_launches_from_kernels(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "first.cu").write_text(FIRST)
    (tmp_path / "second.cu").write_text(SECOND)
    assert main(["run", str(tmp_path / "first.cu")]) == 0
    printed = capfd.readouterr()
    told = ["first ab 3", "first ac 9", "first ad 15", "second 21 5"]
    assert sorted(printed.out.splitlines()) == sorted([*told, "60", "60 83"])
    assert "5 launches of 3 kernels" in printed.err
