"""Sources as nvcc and builds take them: definitions, overloads, headers, macros of host code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.cuda_cpp.nvcc_definitions import of_build, of_nvcc
from gpusim.errors import InputError
from gpusim.sass import wheels

needs_nvrtc = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)


def test_macros_around_every_kernel_are_a_builds() -> None:
    text = """
    #ifndef HERE_H  // a guard of a header
    #define HERE_H
    #ifdef USE_CUDA
    __global__ void one();
    #if defined(FAST) && defined MORE
    __global__ void two();
    #else
    __global__ void three();
    #endif
    #endif
    #endif
    """
    assert of_build(text) == ("USE_CUDA=1",)


@pytest.mark.parametrize(
    "text",
    [
        "#ifdef USE_CUDA\n#define USED\n#endif\n__global__ void one();",
        "#ifdef USE_CUDA\n__global__ void one();\n#endif\n__global__ void two();",
        "#if defined(A) || defined(B)\n__global__ void one();\n#endif",
        "#ifdef __CUDACC__\n__global__ void one();\n#endif",
        "#define HERE\n#ifdef HERE\n__global__ void one();\n#endif",
        "#ifdef HOST\n#else\n__global__ void one();\n#endif",
        "#ifdef HOST\nvoid one();\n#endif",
    ],
)
def test_no_macro_is_defined_that_some_kernel_does_without(text: str) -> None:
    assert of_build(text) == ()


def test_nvccs_own_macro_is_defined_where_it_is_asked_for() -> None:
    assert of_nvcc("#ifdef __NVCC__") == ("__NVCC__=1",)
    assert of_nvcc("register int i;") == ("register=",)
    assert of_nvcc("int registered;") == ()


BUILD = """
#ifdef USE_CUDA
#ifdef __NVCC__
using T = int;
#else
using T = double;
#endif
__global__ void ones(T *y) { register int one = 1; y[threadIdx.x] = one; }
#endif
"""


@needs_nvrtc
def test_a_kernel_that_only_a_build_defines_runs() -> None:
    gpusim.cuda_source(BUILD)["ones"][1, 4](y := np.zeros(4, np.int32))
    assert y.tolist() == [1, 1, 1, 1]


OVERLOADS = """
__global__ void twice(int *x) { x[threadIdx.x] *= 2; }
__global__ void twice(float *x, const int n) { if (threadIdx.x < n) x[threadIdx.x] += 0.5f; }
"""


@needs_nvrtc
def test_a_kernel_of_several_is_named_with_its_types() -> None:
    source = gpusim.cuda_source(OVERLOADS)
    source["twice(int*)"][1, 4](whole := np.arange(4, dtype=np.int32))
    source["twice(float *, int)"][1, 4](real := np.zeros(4, np.float32), 2)
    assert whole.tolist() == [0, 2, 4, 6]
    assert real.tolist() == [0.5, 0.5, 0, 0]
    with pytest.raises(InputError, match=r"'twice\(float\*, int\)' or 'twice\(int\*\)'"):
        source["twice"][1, 4](whole)


BINDING = """
#include <torch/extension.h>
__global__ void ones(int *y) { y[threadIdx.x] = 1; }
#define BIND(name, type)                     \\
  void bind_##name(torch::Tensor t) {        \\
    name<<<1, 32>>>((type *)t.data_ptr());   \\
  }
BIND(ones, int)
BIND(ones, float)
void more(torch::Tensor t) {}
"""


@needs_nvrtc
def test_calls_of_macros_that_make_host_code_are_cut_out() -> None:
    gpusim.cuda_source(BINDING)["ones"][1, 2](y := np.zeros(2, np.int32))
    assert y.tolist() == [1, 1]


@needs_nvrtc
def test_headers_are_found_anywhere_in_a_project(tmp_path: Path) -> None:
    """One leads to another that is neither beside it nor in a folder of a usual name."""
    (tmp_path / "LICENSE").touch()
    for place, text in {
        "common/first.cuh": '#include "second.cuh"\n',
        "common/gpu/second.cuh": "#define ONE 1\n",
        "ops/cuda/ones.cu": '#include "first.cuh"\n__global__ void f(int *y) { *y = ONE; }\n',
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    gpusim.cuda_file(tmp_path / "ops/cuda/ones.cu")["f"][1, 1](y := np.zeros(1, np.int32))
    assert y[0] == 1
    (tmp_path / "LICENSE").unlink()
    with pytest.raises(gpusim.GpusimError, match=r"-I FOLDER"):
        gpusim.cuda_file(tmp_path / "ops/cuda/ones.cu")["f"][1, 1](y)


HOST_CLASS = """
#include <map>
#include <string>
#include <vector>
struct Sizes {
  std::vector<int> all;
  std::map<std::string, std::pair<int, int>> named;
  int first;
  void read(const std::string &name) { first = all[0] + named[name].first; }
};
__device__ constexpr int of = sizeof(((Sizes *)0)->first);
__global__ void size(int *y) { *y = of; }
"""


@needs_nvrtc
def test_classes_with_members_of_the_hosts_library_compile_where_a_kernel_names_them() -> None:
    gpusim.cuda_source(HOST_CLASS)["size"][1, 1](y := np.zeros(1, np.int32))
    assert y[0] == 4


@needs_nvrtc
def test_headers_of_libraries_of_the_host_are_left_out_wherever_they_lie(tmp_path: Path) -> None:
    """The one beside the including file is not what <> means: it is nowhere."""
    for place, text in {
        "common/GL/glut.h": "void glutInit(int *, char **);\n",
        "common/helper.h": "#include <GL/glut.h>\n#include <cupti_target.h>\n",
        "src/mine.cu": '#include "../common/helper.h"\nvoid show() { glutInit(0, 0); }\n'
        "__global__ void one(int *y) { *y = 1; }\n",
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    gpusim.cuda_file(tmp_path / "src/mine.cu")["one"][1, 1](y := np.zeros(1, np.int32))
    assert y[0] == 1
