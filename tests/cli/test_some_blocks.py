"""Large launches on a small machine: arrays beyond 2^31 elements, some blocks of a grid alone."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.cli.app import main
from gpusim.errors import InputError, LaunchError
from gpusim.sass import wheels

needs_nvcc = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
KERNELS = """
__global__ void twice(char *y, int n)
{
    int at = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (at < n) y[at] = 1;
}
__global__ void wide(char *y, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1;
}
__global__ void gather(const float *x, float *y, int columns, int row)
{
    int at = row * columns + threadIdx.x;
    y[threadIdx.x] = x[at];
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "large.cu"
    path.write_text(KERNELS)
    return str(path)


@needs_nvcc
def test_the_last_blocks_show_an_index_that_overflows(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 2^23 blocks the last has 2 * (2^31 - 256 + t), which an int has as -512 + 2 t."""
    words = [f"{file}:twice", "-n", "2147483647", "--grid", "2^23", "--block", "256"]
    words += ["--arg", "int8[n]", "--arg", "n", "--blocks", "last:1"]
    assert main(["check", *words]) == 1
    out = capsys.readouterr().out
    assert "y[-512] is out of bounds: y has 2147483647 elements" in out
    assert "blocks 8,388,607 to 8,388,607 of 8,388,608" in " ".join(out.split())


@needs_nvcc
def test_an_array_of_2_to_32_elements_takes_no_memory_where_it_is_not_touched(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    words = [f"{file}:wide", "-n", "2^32", "--grid", "ceil(n/block)", "--block", "1024"]
    words += ["--arg", "int8[n]", "--arg", "n", "--blocks", "last:64", "--json"]
    assert main(["check", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["checked"]["accesses"] == 64 * 1024
    assert found["checked"]["blocks"] == [2**22 - 64, 2**22 - 1, 2**22]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # KB


@needs_nvcc
def test_a_gather_beyond_2_to_31_elements_is_checked(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """262,143 * 8,960 is 2,348,801,280, or -1,946,166,016 in 32 bits."""
    words = [f"{file}:gather", "--grid", "1", "--block", "32", "--arg", "float32[2348810240]"]
    words += ["--arg", "float32[32]", "--arg", "8960", "--arg", "262143"]
    assert main(["check", *words]) == 1
    assert "x[-1946166016] is out of bounds: x has 2348810240" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "count"), [("last:2", 2), ("first:3", 3), ("1:3", 2), ("last:64", 10), ("9:20", 1)]
)
def test_blocks_are_named_from_either_end_or_by_number(text: str, count: int) -> None:
    from gpusim.cli.inputs import some_blocks

    assert len(some_blocks(text, 10)) == count


@pytest.mark.parametrize("text", ["", "7", "last:", "last:0", "5:5", "10:20", "nan", "-1:3", "a:b"])
def test_other_texts_for_blocks_are_input_errors(text: str) -> None:
    from gpusim.cli.inputs import some_blocks

    with pytest.raises(InputError, match="last:64, first:64, or 100:200"):
        some_blocks(text, 10)


@cuda.jit
def beyond(out):
    out[cuda.grid(1)] = 1


def test_a_check_runs_the_blocks_that_are_asked_for() -> None:
    out = np.zeros(40, np.int32)
    found = gpusim.check(beyond[2, 32], out, blocks=[1])
    assert [(one.rule, one.count) for one in found] == [("bounds", 24)]
    assert out.tolist() == [0] * 32 + [1] * 8
    assert not gpusim.check(beyond[2, 32], out, blocks=range(1))


@pytest.mark.parametrize("blocks", [[], [2], [-1], [float("nan")]])
def test_blocks_that_the_grid_has_not_are_errors(blocks: list[int]) -> None:
    with pytest.raises((InputError, LaunchError), match=r"blocks (are numbers|takes whole)"):
        gpusim.check(beyond[2, 32], np.zeros(64, np.int32), blocks=blocks)


def test_arrays_of_other_numbers_than_zeros_have_an_end(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"{file}:gather", "--grid", "1", "--block", "32", "--arg", "float32[2^31]=random"]
    assert main(["check", *words]) == 2
    assert "at most 2,147,483,647 elements other than zeros" in capsys.readouterr().err
