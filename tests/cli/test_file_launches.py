"""A launch in a comment before its kernel is that of every command; options take precedence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run

from gpusim.cli.references import Reference
from gpusim.errors import InputError
from gpusim.sass import wheels

PYTHON = """
from gpusim import cuda

# gpusim: grid=ceil(n/block) block=64 n=256 args=y=float32[n],x=float32[n]=arange,n
@cuda.jit
def scale(y, x, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = 2 * x[i]

@cuda.jit
def other(y):
    y[cuda.grid(1)] = 1
"""
CUDA = """
// gpusim: grid=4 block=128 args=float32[512]
template <typename T> __global__ void __launch_bounds__(128) first(T *x) { x[0] = 1; }
// gpusim: kernel=first grid=9 block=9
__global__ void second(int n) {}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "mine.py"
    made.write_text(PYTHON)
    return made


def test_a_kept_launch_needs_no_options(run: Run, file: Path) -> None:
    code, out, err = run("trace", f"{file}:scale", "--json")
    assert (code, err) == (0, "")
    launch = json.loads(out)
    assert (launch["grid"][0], launch["block"][0]) == (4, 64)


def test_an_option_takes_precedence(run: Run, file: Path) -> None:
    code, out, _ = run("trace", f"{file}:scale", "--block", "32", "--json")
    launch = json.loads(out)
    assert (code, launch["grid"][0], launch["block"][0]) == (0, 8, 32)


def test_everything_missing_is_said_at_once(run: Run, file: Path) -> None:
    code, _, err = run("trace", f"{file}:other")
    assert code == 2
    assert "give --grid, --block and --arg for y" in err


def test_the_comment_belongs_to_the_kernel_behind_it_or_to_the_one_it_names(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mine.cu"
    file.write_text(CUDA)
    first = Reference.of(f"{file}:first<float>").launch
    assert first is not None
    assert (first.line, first.options) == (2, {
        "grid": "4", "block": "128", "arg": ["float32[512]"],
    })  # fmt: skip
    assert Reference.of(f"{file}:second").launch is None


def test_a_word_that_is_no_key_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.cu"
    file.write_text("\n// gpusim: gird=4\n__global__ void k() {}\n")
    with pytest.raises(InputError, match=r"line 2: 'gird=4' .*did you mean grid"):
        _ = Reference.of(f"{file}:k").launch


CLUSTERS = """
__global__ void ranks(int *out) {
    unsigned rank, size;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    if (size == 4) __syncthreads();
    out[blockIdx.x] = rank;
}
"""


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
@pytest.mark.parametrize(("written", "options"), [("", ("--cluster", "2x2")), ("cluster=4", ())])
def test_a_launch_has_the_clusters_of_its_option_or_its_comment(
    run: Run, tmp_path: Path, written: str, options: tuple[str, ...]
) -> None:
    """In clusters of four blocks each of 16 warps meets its barrier."""
    file = tmp_path / "ranks.cu"
    file.write_text(f"// gpusim: grid=8x2 block=32 args=int32[8] {written}\n{CLUSTERS}")
    code, out, err = run("trace", str(file), "--json", *options)
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["launch"]["cluster"]["value"] == (options[1] if options else "4")
    assert found["counters"]["barriers"]["value"] == 16
    assert run("trace", str(file), "--cluster", "3", "--json")[0] == 2


def test_a_kernel_of_the_catalogue_takes_no_cluster(run: Run) -> None:
    """Its launch is its own rule's: one sentence, exit code 2."""
    code, _, err = run("trace", "reduce3", "--cluster", "2")
    assert (code, err.count("\n")) == (2, 1)
    assert "reduce3 has no clusters" in err
