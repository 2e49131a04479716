"""Files that are written for numba, at the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import Run

from gpusim.cli.python_files import dialects

PROGRAM = """
import numpy as np
import numba as nb
from numba import cuda, float32, njit, types

SIZE = 64


@njit(parallel=True)
def on_the_host(x):
    return sum(x[i] for i in nb.prange(len(x)))


@cuda.jit("void(float32[:], float32[:])")
def sums(x, y):
    shared = cuda.shared.array(shape=SIZE, dtype=float32)
    tid = cuda.threadIdx.x
    shared[tid] = x[cuda.grid(1)] * types.float32(2)
    cuda.syncthreads()
    step = SIZE // 2
    while step:
        if tid < step:
            shared[tid] += shared[tid + step]
        cuda.syncthreads()
        step //= 2
    if tid == 0:
        y[cuda.blockIdx.x] = shared[0]


@nb.cuda.jit
def ones(y):
    y[cuda.grid(1)] = 1


assert on_the_host(np.arange(4)) == 6
if __name__ == "__main__":
    sums[2, SIZE](cuda.to_device(np.ones(128)), cuda.device_array(2))
"""
SUMS = ("--grid", "2", "--block", "64", "--arg", "float32[128]=ones", "--arg", "float32[2]")


def test_a_numba_program_is_taken_as_it_is(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    before = {name for name in sys.modules if name.partition(".")[0] == "numba"}
    for command in ("trace", "check", "predict"):
        code, out, error = run(command, f"{file}:sums", *SUMS)
        assert code == 0
        assert "sums" in out
        assert "program.py is run as the dialect" in error
    assert (
        run("check", f"{file}:ones", "--grid", "1", "--block", "32", "--arg", "int32[32]")[0] == 0
    )
    assert {name for name in sys.modules if name.partition(".")[0] == "numba"} == before


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("from numba.cuda.random import xoroshiro128p_type", "No module named 'numba.cuda.random'"),
        ("from numba import guvectorize", "cannot import name 'guvectorize'"),
        ("from numba import cuda; cuda.to_device(1)", "pass NumPy arrays to the kernel"),
    ],
)
def test_what_the_dialect_lacks_is_refused(run: Run, tmp_path: Path, line: str, says: str) -> None:
    file = tmp_path / "program.py"
    file.write_text(f"from numba import cuda\n{line}\n")
    code, _, error = run("trace", f"{file}:k", "--grid", "1", "--block", "1")
    assert (code, says in error, "Traceback" in error) == (2, True, False)


def test_a_file_that_imports_this_package_finds_numba_itself() -> None:
    assert dialects("import numba\nfrom numba import cuda\n") == {"numba"}
    assert dialects("from gpusim import cuda\nfrom numba import njit\n") == {"gpusim", "numba"}
    assert dialects("# from numba import cuda\nnumbers = 1\n") == set()


SEVERAL = """
from gpusim import cuda


@cuda.jit(device=True)
def told(x):
    print(x)
    return x


@cuda.jit
def tells(y):
    y[cuda.grid(1)] = told(1)


@cuda.jit("void(int32[:])")
def asserts(y):
    assert y[0] == 0


@cuda.jit
def ones(y):
    y[cuda.grid(1)] = 1
"""


@pytest.mark.parametrize(
    ("kernel", "says"),
    [("ones", ""), ("asserts", ":18: kernels do not have assert"), ("tells", ":7: ")],
)
def test_a_kernel_is_refused_for_itself_alone(
    run: Run, tmp_path: Path, kernel: str, says: str
) -> None:
    file = tmp_path / "several.py"
    file.write_text(SEVERAL)
    launch = ("--grid", "1", "--block", "32", "--arg", "int32[32]")
    code, _, error = run("trace", f"{file}:{kernel}", *launch)
    assert code == (2 if says else 0)
    assert says in error
    assert "Traceback" not in error
