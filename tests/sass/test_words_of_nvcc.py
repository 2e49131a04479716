"""Source that nvcc takes as it is: words from the host's headers, and host code of frameworks."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.errors import GpusimError
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

EXTENSION = """
#include <bits/stdc++.h>
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
using namespace std;
using torch::Tensor;
__global__ void largest(float *out, const float *x, uint n, int64_t place) {
  float best = -__FLT_MAX__;
  for (uint i = 0; i < n; i++) best = max(best, x[i]);
  out[place] = best;
}
torch::Tensor forward(torch::Tensor x) {
  largest<<<1, 1>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4, 0);
  return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "largest"); }
"""


def test_an_extension_of_a_framework_is_taken_with_words_that_nvcc_has() -> None:
    out, x = np.zeros(2, np.float32), np.array([1, 7, 3, 9], np.float32)
    gpusim.cuda_source(EXTENSION)["largest"][1, 1](out, x, 3, 1)
    assert out.tolist() == [0, 7]


def test_a_type_of_ones_own_with_such_a_name_stays() -> None:
    text = "typedef float uint; __global__ void k(uint *x) { x[0] = 1.5f; }"
    x = np.zeros(1, np.float32)
    gpusim.cuda_source(text)["k"][1, 1](x)
    assert x[0] == 1.5


def test_other_words_that_are_missing_are_the_compilers_error() -> None:
    with pytest.raises(GpusimError, match='identifier "mystery" is undefined'):
        gpusim.cuda_source("__global__ void k(uint *x) { x[0] = mystery; }")["k"][1, 1](
            np.zeros(1, np.uint32)
        )
