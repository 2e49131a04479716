"""Races name two threads, and stores of one value are told from stores of several."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import cuda


@cuda.jit
def eight_read_what_one_stores(x, out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    v = s[t & ~7] + s[(t & 7) * 8]
    if v < 2 * s[t]:
        s[t] = v
    cuda.syncthreads()
    out[t] = s[t]


@cuda.jit
def all_read_what_lane_0_stores(x, out):
    s = cuda.shared.array(32, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    v = s[0]
    if t == 0:
        s[0] = v + s[0]
    out[t] = v


@pytest.mark.parametrize(
    ("kernel", "threads", "line"),
    [(eight_read_what_one_stores, 64, 6), (all_read_what_lane_0_stores, 32, 6)],
    ids=["shared", "warp"],
)
def test_a_race_names_the_other_threads_read(kernel: object, threads: int, line: int) -> None:
    """The writer has read the element itself, after the others."""
    x = np.arange(threads, dtype=np.int32)
    found = gpusim.check(kernel[1, threads], x, np.zeros(threads, np.int32)).errors  # type: ignore[index]
    assert found
    for race in found:
        first, second = race.places
        assert first.thread != second.thread
        assert first.line - kernel.source.first_line == line  # type: ignore[attr-defined]


@cuda.jit
def marks(keys, out):
    t = cuda.grid(1)
    if keys[t] >= 0:
        out[keys[t]] = 1


@cuda.jit
def marks_with_the_key(keys, out):
    t = cuda.grid(1)
    out[keys[t]] = keys[t] + 7


@cuda.jit
def marks_twice_each(keys, out):
    t = cuda.grid(1)
    for k in range(3):
        out[keys[(t + k) % 128]] = keys[(t + k) % 128]


@pytest.mark.parametrize("kernel", [marks, marks_with_the_key, marks_twice_each])
def test_stores_of_the_same_value_are_one_note(kernel: object) -> None:
    keys = np.arange(128, dtype=np.int32) * 7 % 16
    found = gpusim.check(kernel[2, 64], keys, np.zeros(16, np.int32))  # type: ignore[index]
    assert [one.rule for one in found] == ["same-value"]


@cuda.jit
def marks_with_the_thread(keys, out):
    t = cuda.grid(1)
    out[keys[t]] = t // 64


def test_stores_of_different_values_are_an_error_beside_equal_ones() -> None:
    """Both warps of a block store its number: threads of one block agree, two blocks do not."""
    keys = np.arange(128, dtype=np.int32) % 32
    found = gpusim.check(marks_with_the_thread[2, 64], keys, np.zeros(32, np.int32))
    assert [(one.rule, one.count) for one in found] == [("block-race", 32)]


DOUBLES = """
__global__ void shared(double *y, const double *x) {
    __shared__ double s[64];
    __shared__ short h[64];
    int t = threadIdx.x;
    s[t] = x[t];
    h[t] = t;
    y[t] = s[63 - t] + h[63 - t];
}
__global__ void fixed(double *y, const double *x) {
    __shared__ double s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    y[t] = t < 32 ? s[40] : 0;
}
__global__ void dynamic(double *y, const double *x) {
    extern __shared__ double s[];
    int t = threadIdx.x;
    s[t] = x[t];
    y[t] = s[63 - t];
}
__global__ void global(double *y, const double *x) {
    int t = threadIdx.x;
    y[t] = x[t];
    y[64 + t] = y[63 - t];
}
__global__ void behind(double *y, const double *x) {
    __shared__ double s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    y[t] = s[t + 1];
}
"""


@pytest.mark.parametrize(
    ("name", "rule", "elements"),
    [
        ("shared", "shared-race", {"s[63]", "h[63]"}),
        ("fixed", "shared-race", {"s[40]"}),
        ("dynamic", "shared-race", {"s[63]"}),
        ("global", "global-race", {"y[63]"}),
        ("behind", "bounds", {"s[64]"}),
    ],
)
def test_elements_are_counted_as_the_array_is_declared(
    name: str, rule: str, elements: set[str]
) -> None:
    """Machine code moves a double as two words of 32 bits."""
    kernel = gpusim.cuda_source(DOUBLES)[name]
    shared_bytes = 512 if name == "dynamic" else 0
    found = gpusim.check(kernel[1, 64, 0, shared_bytes], np.zeros(128), np.ones(64))
    assert {one.rule for one in found.errors} == {rule}
    assert {one.element for one in found.errors} == elements
    assert all(f"{one.element} " in one.message for one in found.errors)


VECTORS = """
__global__ void vectors(double *y, const double *x) {
    __shared__ float4 s[32];
    int t = threadIdx.x;
    s[t] = reinterpret_cast<const float4 *>(x)[t];
    __syncthreads();
    reinterpret_cast<float4 *>(y)[t] = s[t + 1];
}
__global__ void scalars(double *y, const double *x) {
    __shared__ __align__(16) float s[128];
    int t = threadIdx.x;
    for (int k = 0; k < 4; ++k) s[32 * k + t] = x[t];
    __syncthreads();
    reinterpret_cast<float4 *>(y)[t] = reinterpret_cast<const float4 *>(s)[t + 1];
}
__global__ void moved_by_vectors(double *y, const double *x) {
    __shared__ __align__(16) float m[128];
    int t = threadIdx.x;
    reinterpret_cast<float4 *>(m)[t] = reinterpret_cast<const float4 *>(x)[t];
    __syncthreads();
    reinterpret_cast<float4 *>(y)[t] = reinterpret_cast<const float4 *>(m)[t + 1];
}
template <class T>
__global__ void of_any_type(double *y, const double *x) {
    __shared__ alignas(16) T u[512 / sizeof(T)];
    int t = threadIdx.x;
    reinterpret_cast<float4 *>(u)[t] = reinterpret_cast<const float4 *>(x)[t];
    __syncthreads();
    reinterpret_cast<float4 *>(y)[t] = reinterpret_cast<const float4 *>(u)[t + 1];
}
struct Body { float x, y, z, mass; };
__global__ void structures(double *y, const double *x) {
    __shared__ Body bodies[32];
    int t = threadIdx.x;
    bodies[t].x = x[t];
    __syncthreads();
    y[t] = bodies[t + 1].x;
}
"""


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("vectors", "s[32]"),
        ("scalars", "s[128]"),
        ("moved_by_vectors", "m[128]"),
        ("of_any_type<double>", "u[64]"),
        ("of_any_type<short>", "u[256]"),
        ("structures", "bodies[32]"),
    ],
)
def test_elements_are_those_of_the_declaration_not_of_its_accesses(name: str, element: str) -> None:
    """The last of 32 threads reads 16 bytes behind the array's 512."""
    kernel = gpusim.cuda_source(VECTORS)[name]
    (found,) = gpusim.check(kernel[1, 32], np.zeros(64), np.ones(64)).errors
    assert (found.rule, found.element) == ("bounds", element)
