"""Branches to the compiler's slow paths are no conditions of the line that divides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.advice.decisions import decisions_of, passing_lanes
from gpusim.errors import InputError
from gpusim.program.fast_paths import operation_lines
from gpusim.reports.line_counts import lanes_on
from gpusim.reports.plots.divergence import decisions
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_file

NEEDS_NVCC = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
HALF = np.where(np.arange(64) % 2, 1e38, 1.5)  # every second lane leaves the fast path

SOURCE = """#define AT int i = threadIdx.x + blockIdx.x * blockDim.x;
__device__ __noinline__ float odd(float x) { return x * x + sqrtf(x) * 3; }
extern "C" {
__global__ void quotient(const float *x, const float *y, float *z) { AT
    z[i] = x[i] / y[i];
}
__global__ void root(const float *x, const float *y, float *z) { AT
    z[i] = sqrtf(x[i] * y[i]);
}
__global__ void sine(const float *x, const float *y, float *z) { AT
    z[i] = sinf(x[i]);
}
__global__ void wide(const long long *x, const long long *y, long long *z) { AT
    z[i] = x[i] % y[i];
}
__global__ void narrow(const int *x, const int *y, int *z) { AT
    z[i] = x[i] % y[i];
}
__global__ void chosen(const float *x, const float *y, float *z) { AT
    z[i] = x[i] < 2 ? x[i] / y[i] : 0;
}
__global__ void called(const float *x, const float *y, float *z) { AT
    float value = x[i];
    if (value < 2) value = odd(value);
    z[i] = value;
}
}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> CodeFile:
    path: Path = tmp_path_factory.mktemp("slow") / "slow.cu"
    path.write_text(SOURCE, encoding="utf-8")
    return cuda_file(str(path))


def traced(file: CodeFile, name: str) -> gpusim.Trace:
    """The trace of two warps; x and y are half ordinary, half beyond the fast paths."""
    if name in ("wide", "narrow"):
        dtype = np.dtype(np.int64 if name == "wide" else np.int32)
        x = np.where(np.arange(64) % 2, np.iinfo(dtype).max - 6, 1000).astype(dtype)
        arrays = [x, (x // 3 + 1).astype(dtype), np.zeros_like(x)]
    else:
        arrays = [HALF.astype(np.float32), HALF.astype(np.float32), np.zeros(64, np.float32)]
    return gpusim.trace(file[name][1, 64], *arrays)


@NEEDS_NVCC
@pytest.mark.parametrize("name", ["quotient", "root", "sine", "wide", "narrow"])
def test_an_operation_with_a_slow_path_is_no_condition(file: CodeFile, name: str) -> None:
    """Half of the lanes take the slow path: *on* is the mean of the line's predicated-on lanes."""
    made = traced(file, name)
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if f" {name}(" in text) + 1
    assert passing_lanes(made) == {}
    assert decisions_of(made) == {}
    assert "divergence" not in {finding.kind for finding in made.findings}
    counted = next(one for one in made.lines if one.line == line)
    issued, on = (
        counted.counters[name] for name in ("instructions", "thread_instructions_guard_on")
    )
    assert 16 < lanes_on(counted) == on / issued <= 32


@NEEDS_NVCC
def test_divergence_draws_conditions_of_the_source_alone(file: CodeFile) -> None:
    with pytest.raises(InputError, match="no conditions"):
        gpusim.trace(
            file["quotient"][1, 64], *[HALF.astype(np.float32) for _ in range(3)]
        ).plot_divergence()


@NEEDS_NVCC
@pytest.mark.parametrize("name", ["chosen", "called"])
def test_a_condition_around_a_slow_path_is_still_one(file: CodeFile, name: str) -> None:
    made = traced(file, name)
    assert list(passing_lanes(made).values()) == [16]
    assert len(decisions(made).divergent) == 2


@NEEDS_NVCC
def test_a_function_of_the_compilers_belongs_to_the_line_that_calls_it(file: CodeFile) -> None:
    """The line tables list it under the line of the closing brace."""
    program = traced(file, "wide").prepared
    assert program is not None
    given = operation_lines(program.program)
    listed = [row.line for row in program.program.instructions]
    line = given[0] + 1
    assert {(a, b) for a, b in zip(listed, given, strict=True) if a != b} == {(line + 1, line)}


@cuda.jit
def quotient(x, y, z):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    z[i] = x[i] / y[i]


@pytest.mark.parametrize("code", ["lowering", pytest.param("nvcc", marks=NEEDS_NVCC)])
def test_a_quotient_in_python_is_no_condition_in_either_code(code: str) -> None:
    arrays = [HALF.astype(np.float32) for _ in range(3)]
    assert passing_lanes(gpusim.trace(quotient[1, 64], *arrays, code=code)) == {}
