"""A kernel compiles of a file and headers with any host code around what it uses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.cuda_cpp.reachable import device_texts
from gpusim.sass import wheels
from gpusim.sass.compiler import CompileError
from gpusim.sass.kernels import cuda_file

needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

HEADER = """
#pragma once
#include <string>
#include <cufft.h>
static void report(const std::string& text) { puts(text.c_str()); }
class Timer { std::string name; public: Timer(std::string n) : name(n) {} void stop(); };
struct Scale {
  float by;
  Scale(float given) : by(check(given)) {}
  std::string shown() const { return std::to_string(by); }
  __device__ float of(float x) const { return by * x; }
};
__device__ inline float third(float x) { return x / 3; }
"""
SOURCE = """
#include "own.h"
Timer timer("all");
float *buffer, *result;
std::vector<Scale> scales;
enum Kind { SUM, PRODUCT };
constexpr int plus_one(int k) { return k + 1; }
const int WIDTH = plus_one(31);
__global__ void scaled(float* out, Scale scale) {
  out[threadIdx.x] = scale.of(third(6.0f)) + WIDTH + PRODUCT;
}
__global__ void launches(float* out) { launched<<<1, 1>>>(out, cudaStreamDefault); }
int main() { report("ready"); scaled<<<1, 32>>>(buffer, Scale(2)); }
"""


def ran(path: Path, kernel: str, *arguments: object) -> str:
    """Run one warp of a kernel; return the generator of its code."""
    made = cuda_file(path)[kernel][1, 32]
    return gpusim.trace(made, *arguments).generator


@needs_compiler
def test_a_kernel_is_compiled_without_the_host_code_around_it(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text(HEADER)
    (tmp_path / "own.cu").write_text(SOURCE)
    out = np.zeros(32, np.float32)
    ran(tmp_path / "own.cu", "scaled", out, np.float32(5))
    assert (out == 43).all()  # 5 * 2 + 32 + 1


def test_what_a_kernel_does_not_reach_goes_with_lines_kept() -> None:
    made = device_texts({"own.h": HEADER, "": SOURCE}, "scaled")
    text = made[""] + made["own.h"]
    assert made[""].count("\n") == SOURCE.count("\n")
    for word in ("Timer", "report", "buffer", "scales", "launches", "main", "shown", "check"):
        assert word not in text
    for word in ("Scale", "third", "WIDTH", "plus_one", "PRODUCT", "#pragma once"):
        assert word in text


@needs_compiler
def test_a_header_that_is_not_there_is_left_out_and_named(tmp_path: Path) -> None:
    file = tmp_path / "one.cu"
    kernel = "__global__ void one(float* out) { out[threadIdx.x] = 1; }\n"
    file.write_text(f'#include "report.h"\n{kernel}int main() {{ report(); }}')
    out = np.zeros(32, np.float32)
    assert ran(file, "one", out).endswith(", without report.h")
    assert out.all()
    file.write_text(f'#include "report.h"\n#ifdef TWICE\n#endif\n{kernel}')
    with pytest.raises(CompileError, match=r"report\.h"):  # it might define TWICE
        ran(file, "one", out)


@needs_compiler
def test_headers_in_folders_above_are_found(tmp_path: Path) -> None:
    for folder in ("include", "src/kernels"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "include" / "width.h").write_text("#define WIDTH 7\nvoid report();\n")
    file = tmp_path / "src" / "kernels" / "wide.cu"
    file.write_text('#include "width.h"\n__global__ void wide(int* out) { *out = WIDTH; }')
    out = np.zeros(1, np.int32)
    ran(file, "wide", out)
    assert out == 7


@needs_compiler
def test_stand_ins_have_the_types_of_frameworks_and_samples(tmp_path: Path) -> None:
    file = tmp_path / "extension.cu"
    file.write_text("""
#include <torch/extension.h>
#include <ATen/AccumulateType.h>
#include <helper_math.h>
template <typename T> using Rows = torch::PackedTensorAccessor32<T, 2, torch::RestrictPtrTraits>;
struct Given { float* data; int sizes[2], strides[2]; };
template <typename T> __device__ T sum(Rows<T> rows) {
  at::acc_type<T, true> total = 0;
  for (int i = 0; i < rows.size(0); i++)
    for (int j = 0; j < rows.size(1); j++) total += rows[i][j];
  return total;
}
__global__ void sums(float* data, float* out) {
  Rows<float> rows;
  rows.data_ = data;
  rows.sizes_[0] = 2, rows.sizes_[1] = 3, rows.strides_[0] = 4, rows.strides_[1] = 1;
  float3 v = make_float3(1, 2, 3) * 2.0f - make_float3(1.0f);
  out[threadIdx.x] = sum(rows) + dot(v, v);
}
torch::Tensor all(torch::Tensor x) { TORCH_CHECK(x.is_cuda(), "no"); return x; }
""")
    out = np.zeros(32, np.float32)
    ran(file, "sums", np.arange(8, dtype=np.float32), out)
    assert (out == 0 + 1 + 2 + 4 + 5 + 6 + 1 + 9 + 25).all()


@needs_compiler
def test_what_does_not_compile_is_said_again_from_the_cache(tmp_path: Path) -> None:
    file = tmp_path / "wrong.cu"
    file.write_text("__global__ void wrong(float* out) { out[0] = nowhere; }")
    for _ in range(2):
        with pytest.raises(CompileError, match="nowhere"):
            ran(file, "wrong", np.zeros(1, np.float32))
