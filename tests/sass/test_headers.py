"""Headers that people include; of those that NVRTC refuses it gets the part that it takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.cuda_cpp.host_headers import host_headers
from gpusim.sass import wheels
from gpusim.sass.compiler import CompileError
from gpusim.sass.kernels import cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

SUMS = """
#include <cstdint>
#include <cub/cub.cuh>
__global__ void sums(const int64_t *numbers, int64_t *sum) {
  using Reduce = cub::BlockReduce<int64_t, 64>;
  __shared__ typename Reduce::TempStorage storage;
  int64_t total = Reduce(storage).Sum(numbers[threadIdx.x]);
  if (threadIdx.x == 0) *sum = total;
}
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not any((folder / "cub/block/block_reduce.cuh").is_file() for folder in wheels.headers()),
    reason="nvidia-cuda-cccl carries CUB",
)
def test_all_of_cub_is_what_runs_within_a_kernel() -> None:
    """Beside <cstdint>, whose names CUB's own headers declare again."""
    numbers, total = np.arange(64, dtype=np.int64) << 40, np.zeros(1, np.int64)
    gpusim.trace(cuda_source(SUMS)["sums"][1, 64], numbers, total)
    assert total[0] == (64 * 63 // 2) << 40


NUMBERS = """
#include <limits>
#include <cassert>
__constant__ float infinite = INFINITY;
constexpr double turn = 2 * M_PI;
__global__ void numbers(float *x, double *y, long long *z) {
  x[0] = -infinite, x[1] = NAN, x[2] = std::numeric_limits<float>::lowest();
  x[3] = std::numeric_limits<float>::epsilon(), x[4] = std::numeric_limits<float>::infinity();
  y[0] = turn, y[1] = std::numeric_limits<double>::max();
  z[0] = std::numeric_limits<int>::min(), z[1] = std::numeric_limits<long long>::max();
}
"""


def test_numbers_that_nvcc_has_from_the_host_are_there() -> None:
    x, y, z = np.zeros(5, np.float32), np.zeros(2), np.zeros(2, np.int64)
    cuda_source(NUMBERS)["numbers"][1, 1](x, y, z)
    of_float = np.finfo(np.float32)
    assert x[[0, 2, 3, 4]].tolist() == [-np.inf, of_float.min, of_float.eps, np.inf]
    assert np.isnan(x[1])
    assert y.tolist() == [2 * np.pi, np.finfo(np.float64).max]
    assert z.tolist() == [-(2**31), 2**63 - 1]


HOST = """
#include <unordered_map>
#include <cublas_v2.h>
#include <cuda.h>
#include "helper_cuda.h"
__global__ void one(int *y) { *y = ONE; }
"""


def test_headers_that_only_the_host_needs_are_empty() -> None:
    gpusim.cuda_source(HOST, definitions=("ONE=1",))["one"][1, 1](y := np.zeros(1, np.int32))
    assert y[0] == 1


def test_a_header_of_the_users_own_goes_before(tmp_path: Path) -> None:
    (tmp_path / "helper_cuda.h").write_text("constexpr int ONE = 2;\n")
    (tmp_path / "mine.cu").write_text(HOST)
    gpusim.cuda_file(tmp_path / "mine.cu")["one"][1, 1](y := np.zeros(1, np.int32))
    assert y[0] == 2


def test_a_header_that_is_missing_is_answered_with_where_to_say_it() -> None:
    with pytest.raises(CompileError, match=r"the folder of mine.cuh with -I FOLDER \(includes=\)"):
        gpusim.cuda_source('#include "mine.cuh"\n__global__ void k() { mine(); }')["k"][1, 1]()


TYPES = """
#include <type_traits>
enum class Mode : unsigned char { A };
struct Base { int x; };
struct Derived : Base {};
struct Empty {};
template <typename T, std::enable_if_t<std::is_floating_point<T>::value, int> = 0>
__device__ T half_of(T v) { return v * T(0.5); }
template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
__device__ T half_of(T v) { return v >> 1; }
template <typename T> __global__ void halves(T *x) {
  x[threadIdx.x] = half_of(x[threadIdx.x]);
  static_assert(std::is_same_v<std::remove_cvref_t<const int &>, int>);
  static_assert(std::is_same_v<std::conditional_t<true, int, float>, int>);
  static_assert(std::is_same_v<std::make_unsigned_t<int>, unsigned>);
  static_assert(std::is_same_v<std::underlying_type_t<Mode>, unsigned char>);
  static_assert(std::is_base_of_v<Base, Derived> && !std::is_base_of_v<Derived, Base>);
  static_assert(std::is_pointer_v<int *const> && !std::is_pointer_v<int>);
  static_assert(std::is_signed_v<float> && std::is_unsigned_v<bool>);
  static_assert(std::is_convertible_v<int, double> && !std::is_convertible_v<Base, int>);
  static_assert(std::is_empty_v<Empty> && std::is_trivially_copyable_v<Base>);
  static_assert(std::integral_constant<int, 7>{} == 7 && !std::false_type::value);
}
"""


def test_types_answer_as_the_standard_says() -> None:
    halves = gpusim.cuda_source(TYPES)
    floats, whole = np.array([5, -3], np.float32), np.array([5, -3], np.int32)
    halves["halves<float>"][1, 2](floats)
    halves["halves<int>"][1, 2](whole)
    assert floats.tolist() == [2.5, -1.5]
    assert whole.tolist() == [2, -2]


def test_a_header_that_kernels_need_is_taken_from_cudas_where_it_is_there(tmp_path: Path) -> None:
    for name in ("curand.h", "cublas_v2.h"):
        (tmp_path / name).write_text("")
    assert {"curand.h", "cublas_v2.h"} <= set(host_headers([]))
    assert {"curand.h", "cublas_v2.h"} & set(host_headers([], [tmp_path])) == {"cublas_v2.h"}
    assert not {"curand.h", "cublas_v2.h"} & set(host_headers([str(tmp_path)]))


IMAGES = """#ifndef IMAGES
#define IMAGES
// a comment with
//    #include ...
#include <stdio.h>
#ifdef __cplusplus
extern "C" {
#endif
HIDDEN int images(FILE *file, int *width);
#ifdef __cplusplus
}
#endif
#ifdef WITH_BODIES
static int more(void *file) { return fread(file, 1, 1, (FILE *)file) + SEEK_CUR; }
static int (*all[])(void *) = { more };
#define EACH(x) if (x
int twice(int *x) { EACH(x[0])) return 1; else return 2; }
#endif
#endif
"""


def test_headers_without_anything_that_a_kernel_uses_are_left_out(tmp_path: Path) -> None:
    """Their directives stay, and a stream of the C library is a type."""
    (tmp_path / "images.h").write_text(IMAGES)
    text = '#define WITH_BODIES\n#define HIDDEN static\n#include "images.h"\n'
    (tmp_path / "k.cu").write_text(
        f"{text}#include <cstdio>\nint read(std::FILE *);\n"
        "__global__ void k(int *x) { x[0] = 1; }\n"
    )
    x = np.zeros(1, np.int32)
    gpusim.cuda_file(tmp_path / "k.cu")["k"][1, 1](x)
    assert x[0] == 1
