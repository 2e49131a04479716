"""A barrier under a condition that some threads fail is an error; one after an early return is not.

Machine code has one form for both at a kernel's end: the source tells them apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_file import kernels

import gpusim
from gpusim import cuda
from gpusim.cuda_cpp.control_statements import Statements
from gpusim.sass import wheels

compiles = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

HEAD = """
#define INSIDE(i, n) if (i >= n) return
#define FOR_EACH(i, n) for (int i = threadIdx.x; i < n; i += blockDim.x)
__device__ bool fits(int i, int n) {
    return i < n && i >= 0;
}
__device__ void meet(int *s, int *y, int i) {
    __syncthreads();
    y[i] = s[63 - i];
}
__device__ void body(int *s, int *y, int i, int n) {
    if (i >= n)
        return;
    __syncthreads();
    y[i] = s[63 - i];
}
"""
KERNEL = """
__global__ void k(const int *x, int *y, int n) {
    __shared__ int s[64];
    int i = threadIdx.x;
    s[i] = x[i];
{BODY}
}
"""
GUARDED = {
    "a block": "if (i < n) {\n    __syncthreads();\n    y[i] = s[63 - i];\n}",
    "one line": "if (i < n) { __syncthreads(); y[i] = s[63 - i]; }",
    "no braces": "if (i < n)\n    __syncthreads();",
    "the other branch": "if (i >= n)\n    y[i] = 3;\nelse {\n    __syncthreads();\n}",
    "a variable":
        "bool good = i < n && x[i] > -1;\nif (good) {\n    __syncthreads();\n    y[i] = s[0];\n}",
    "a function in the condition":
        "if (fits(i, n)) {\n    __syncthreads();\n    y[i] = s[0];\n}",
    "a function around the barrier": "if (i < n)\n    meet(s, y, i);",
    "a loop of a macro": "FOR_EACH(j, n) {\n    __syncthreads();\n    y[j] = s[63 - j];\n}",
    "a break": "while (true) {\n    if (i >= n) break;\n    __syncthreads();\n    i += 64;\n}",
    "a uniform return before":
        "if (n > 99) return;\nif (i < n) {\n    __syncthreads();\n    y[i] = s[0];\n}",
    "work behind it":
        "if (i < n) {\n    __syncthreads();\n    y[i] = s[0];\n}\natomicAdd(y, s[i]);",
    "a nested condition":
        "if (i < n) {\n    if (n > 3) {\n        __syncthreads();\n        y[i] = s[0];\n    }\n}",
}  # fmt: skip
EARLY = {
    "a return": "if (i >= n) return;\n__syncthreads();\ny[i] = s[63 - i];",
    "one line": "if (i >= n) return; __syncthreads(); y[i] = s[63 - i];",
    "a macro": "INSIDE(i, n);\n__syncthreads();\ny[i] = s[63 - i];",
    "a block": "if (i >= n) {\n    y[i] = 5;\n    return;\n}\n__syncthreads();\ny[i] = s[63 - i];",
    "a uniform condition behind it":
        "if (i >= n) return;\nif (n > 3) {\n    __syncthreads();\n    y[i] = s[63 - i];\n}",
    "a device function's": "body(s, y, i, n);",
    "in a loop":
        "for (int k = 0; k < 2; k++) {\n    if (i + k >= n) return;\n    __syncthreads();\n"
        "    y[i] += s[63 - i];\n    __syncthreads();\n}",
    "behind comments":
        "if (i >= n) /* if (i < n) { */ return; // {\n__syncthreads();\ny[i] = s[0];",
}  # fmt: skip
BODIES = (*GUARDED.values(), *EARLY.values())


def findings(body: str, n: int = 48) -> list[tuple[str, str]]:
    kernel = kernels(KERNEL, BODIES, HEAD)[body]
    found = gpusim.check(kernel[1, 64], np.zeros(64, np.int32), np.zeros(64, np.int32), np.int32(n))
    return [(one.severity, one.rule) for one in found if one.rule.startswith("barrier")]


@compiles
@pytest.mark.parametrize("form", GUARDED)
def test_a_barrier_under_a_condition_that_threads_fail_is_one_error(form: str) -> None:
    assert findings(GUARDED[form]) == [("error", "barrier-missed")]
    assert findings(GUARDED[form], n=64) == []


@compiles
@pytest.mark.parametrize("form", EARLY)
def test_a_barrier_after_an_early_return_is_a_warning(form: str) -> None:
    assert set(findings(EARLY[form])) == {("warning", "barrier-after-return")}


@compiles
def test_the_block_with_missing_threads_is_named() -> None:
    """Of four blocks of 64 threads the last has 8 of 200 elements."""
    text = KERNEL.replace("i = threadIdx.x", "i = threadIdx.x + 64 * blockIdx.x").replace(
        "[i]", "[i % 64]"
    )
    body = GUARDED["work behind it"]
    kernel = kernels(text, (body,))[body]
    data = np.zeros(64, np.int32)
    found = gpusim.check(kernel[4, 64], data, data.copy(), np.int32(200))
    (missed,) = [one for one in found if one.rule == "barrier-missed"]
    assert missed.message.startswith("thread 8 (block 3, warp 0, lane 8) does not reach")
    assert missed.count == 56


@cuda.jit
def guarded(y: Any, n: Any) -> None:
    i = cuda.threadIdx.x
    if i < n:
        cuda.syncthreads()
        y[i] = 1


@cuda.jit
def returns(y: Any, n: Any) -> None:
    i = cuda.threadIdx.x
    if i >= n:
        return
    cuda.syncthreads()
    y[i] = 1


@cuda.jit
def returns_in_a_loop(y: Any, n: Any) -> None:
    i = cuda.threadIdx.x
    for k in range(2):
        if i + k >= n:
            return
        cuda.syncthreads()
        y[i] = k


@cuda.jit
def leaves_a_loop(y: Any, n: Any) -> None:
    i = cuda.threadIdx.x
    while i < n:
        cuda.syncthreads()
        y[i] = 1
        i += 64


PYTHON = {
    guarded: "error",
    returns: "warning",
    returns_in_a_loop: "warning",
    leaves_a_loop: "error",
}


@pytest.mark.parametrize("kernel", PYTHON, ids=lambda kernel: kernel.__name__)
def test_python_kernels_are_judged_alike(kernel: Any) -> None:
    found = gpusim.check(kernel[1, 64], np.zeros(64, np.int32), np.int32(48))
    assert {one.severity for one in found if one.rule.startswith("barrier")} == {PYTHON[kernel]}


def test_alternatives_of_the_preprocessor_are_read_as_the_first() -> None:
    text = (
        "__global__ void k(int n) {\n#if A\n  if (n) {\n#else\n  {\n#endif\n  __syncthreads();\n} }"
    )
    assert Statements(text).left_early([(7, "")], [3]) is None  # a uniform condition
    text = text.replace("if (n)", "if (threadIdx.x < n)")
    assert Statements(text).left_early([(7, "")], [3]) is False
    text = text.replace("#if A", "#if 0").replace("  {\n", "  if (threadIdx.x) return; {\n")
    assert Statements(text).left_early([(7, "")], [5]) is True


def test_a_macro_without_a_semicolon_ends_before_the_next_keyword() -> None:
    text = "__global__ void k(int n) {\n F(int i;)\n if (threadIdx.x < n)\n __syncthreads();\n}"
    assert Statements(text).left_early([(4, "")], [3]) is False


def test_text_that_cannot_be_read_tells_nothing() -> None:
    text = "__global__ void k(int n) {\n  if (threadIdx.x < n) {\n  __syncthreads();\n}"
    assert Statements(text).left_early([(3, "")], [2]) is None
    assert Statements("").left_early([(1, "")], [1]) is None
    jump = "__global__ void k(int n) {\n  if (n) goto end;\n  __syncthreads();\nend:;\n}"
    assert Statements(jump).left_early([(3, "")], [2]) is None
