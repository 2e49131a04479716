"""Quotients, roots, powers and the like of nvcc's code, predicted from shapes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim.errors import InputError
from gpusim.launch.arguments import array_spec
from gpusim.prediction.predict import predict
from gpusim.prediction.records import Prediction
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

N = 2048
# Results from x and y: each has a check of its operands, and a function behind it.
RESULTS = {
    "float": (
        "x / y",
        "1.0f / x",
        "sqrtf(x)",
        "hypotf(x, y)",
        "powf(x, y)",
        "powf(x, 2.2f)",
        "powf(2.0f, x)",
        "sinf(x) + cosf(x)",
        "tanf(x)",
        "log1pf(x)",
    ),
    "double": ("x / y", "1.0 / x", "sqrt(x)", "rsqrt(x)", "exp(x)", "log(x)"),
    "long long": ("x / y", "x % y"),
    "unsigned long long": ("x / y", "x % y"),
}
TYPES = {"float": "float32", "double": "float64", "long long": "int64"}
KERNEL = """
__global__ void kernel{number}(const {kind} *a, const {kind} *b, {kind} *out)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {kind} x = a[i], y = b[i];
    out[i] = {result};
}}
"""
CASES = [(kind, result) for kind, results in RESULTS.items() for result in results]
EACH = "".join(
    KERNEL.format(number=number, kind=kind, result=result)
    for number, (kind, result) in enumerate(CASES)
)
WHOLE = """
__device__ float sum(float v)
{
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(~0u, v, o);
    return v;
}

__global__ void softmax(const float *x, float *y, int n)
{
    const float *row = x + blockIdx.x * n;
    float most = -INFINITY, total = 0;
    for (int k = threadIdx.x; k < n; k += 32)
        most = fmaxf(most, row[k]);
    for (int o = 16; o; o >>= 1)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    for (int k = threadIdx.x; k < n; k += 32)
        total += expf(row[k] - most);
    total = sum(total);
    for (int k = threadIdx.x; k < n; k += 32)
        y[blockIdx.x * n + k] = expf(row[k] - most) / total;
}

__global__ void layer_norm(const float *x, float *y, int n)
{
    const float *row = x + blockIdx.x * n;
    float total = 0, squares = 0;
    for (int k = threadIdx.x; k < n; k += 32) {
        total += row[k];
        squares += row[k] * row[k];
    }
    float mean = sum(total) / n, scale = rsqrtf(sum(squares) / n - mean * mean + 1e-5f);
    for (int k = threadIdx.x; k < n; k += 32)
        y[blockIdx.x * n + k] = (row[k] - mean) * scale;
}

__global__ void adam(const float *g, float *w, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float m = 0.1f * g[i], v = 0.001f * g[i] * g[i];
        w[i] -= 0.01f * (m / 0.1f) / (sqrtf(v / 0.001f) + 1e-8f);
    }
}

__global__ void quantise(const float *x, float *scale, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    signed char *q = (signed char *)scale + 4 * n;
    if (i < n)
        q[i] = (signed char)fminf(fmaxf(rintf(x[i] / scale[0]), -128.0f), 127.0f);
}
"""
OWN = """
__global__ void positive(const float *a, const float *b, float *out)
{
    int i = threadIdx.x;
    float x = a[i], y = b[i];
    if (x > 5)
        y = x / y;
    out[i] = y;
}

__global__ void large(const unsigned long long *a, const unsigned long long *b,
                      unsigned long long *out)
{
    int i = threadIdx.x;
    unsigned long long x = a[i], y = b[i];
    if (x > 5)
        y = x / (y | 0xf000000000ull);
    out[i] = y;
}

__global__ void power(const double *a, const double *b, double *out)
{
    int i = threadIdx.x;
    double x = a[i], y = b[i];
    if (x > 5)
        y = pow(x, y);
    out[i] = y;
}

__global__ void sparse(const float *a, const float *b, float *out)
{
    int i = threadIdx.x;
    if (a[i] != 0)
        out[i] = b[i];
}

__global__ void root(const float *a, const float *b, float *out)
{
    int i = threadIdx.x;
    float x = a[i], y = b[i];
    if (x >= 0)
        y = sqrtf(x) / y;
    out[i] = y;
}

__global__ void quotient(const int *a, const float *x, float *out)
{
    int i = threadIdx.x;
    out[a[i]] = x[i] / x[i + 32];
}
"""


file = cache(cuda_source)


def predicted(text: str, name: str, grid: int, block: int, *arguments: Any) -> Prediction:
    return predict(file(text)[name][grid, block], *arguments)


def numbers(kind: str, size: int = N) -> np.ndarray[Any, Any]:
    """Return ordinary numbers: fractions, or what fits in 32 bits."""
    drawn = np.random.default_rng(1).random(size)
    return (drawn if kind in ("float", "double") else 100 * drawn + 1).astype(_dtype(kind))


def _dtype(kind: str) -> str:
    return TYPES.get(kind, "uint64")


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{k} {r}" for k, r in CASES])
def test_shapes_are_predicted_as_ordinary_numbers_are(number: int) -> None:
    kind, name = CASES[number][0], f"kernel{number}"
    shapes = [array_spec(N, _dtype(kind)) for _ in range(3)]
    given = [numbers(kind) for _ in range(3)]
    found = predicted(EACH, name, N // 256, 256, *shapes)
    wanted = predicted(EACH, name, N // 256, 256, *given)
    assert (found.time_us, found.instructions) == (wanted.time_us, wanted.instructions)
    assert found.assumes_ordinary_operands
    assert not wanted.assumes_ordinary_operands


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "adam", "quantise"])
def test_rows_weights_and_steps_need_no_elements(name: str) -> None:
    launch, count = ((16, 32), 128) if name in ("softmax", "layer_norm") else ((8, 256), N)
    shapes = array_spec(2 * N, "float32"), array_spec(2 * N, "float32")
    found = predicted(WHOLE, name, *launch, *shapes, count)
    given = numbers("float", 2 * N), numbers("float", 2 * N)
    wanted = predicted(WHOLE, name, *launch, *given, count)
    assert found.instructions == wanted.instructions
    assert found.time_us == pytest.approx(wanted.time_us, rel=0.01)


@pytest.mark.parametrize(
    ("name", "kind", "needed"),
    [
        ("positive", "float32", "a"),
        ("large", "uint64", "a"),
        ("power", "float64", "a, b"),
        ("sparse", "float32", "a"),
        ("root", "float32", "a"),
    ],
)
def test_branches_of_the_kernels_own_want_elements(name: str, kind: str, needed: str) -> None:
    """In `large` a function divides without any check: the branch before it is the kernel's.

    What a test for zero decides in `sparse` is an access to memory.
    """
    with pytest.raises(InputError, match=f"elements: give the elements of {needed}, with"):
        predicted(OWN, name, 1, 32, *[array_spec(32, kind) for _ in range(3)])


def test_addresses_beside_a_division_want_elements() -> None:
    shapes = array_spec(32, "int32"), array_spec(64, "float32"), array_spec(64, "float32")
    with pytest.raises(InputError, match="give the elements of a, with"):
        predicted(OWN, "quotient", 1, 32, *shapes)


def test_elements_that_are_given_take_the_slow_path_where_they_say_so() -> None:
    """Zeros are divided by zeros: 64 warps call the function, beside numbers that do not."""
    zeros = np.zeros(N, np.float32)
    slow = predicted(EACH, "kernel0", N // 256, 256, zeros, zeros, array_spec(N, "float32"))
    given = numbers("float")
    fast = predicted(EACH, "kernel0", N // 256, 256, given, given, array_spec(N, "float32"))
    assert slow.instructions > fast.instructions


def test_a_report_says_what_is_supposed(run: Any, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(EACH)
    launch = ("--grid", "8", "--block", "256", *["--arg", "float32[2048]"] * 2)
    sentence = "assumed to be ordinary operands"
    for filling, is_said in (("", True), ("=random", False)):
        args = (*launch, "--arg", f"float32[2048]{filling}")
        inputs = [arg + filling if arg == "float32[2048]" else arg for arg in args]
        code, out, _ = run("predict", f"{tmp_path}/k.cu:kernel0", *inputs)
        assert (code, sentence in out) == (0, is_said)
