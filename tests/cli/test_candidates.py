"""Candidates whose times are compared leave the same results, or are listed apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from gpusim.cli.magics import answer
from gpusim.sass import wheels

needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

HOST = """
constexpr int BLOCK = 256;
extern __shared__ float held[];
template <int BS> __global__ void dot(const float *x, float *out, int n)
{
    __shared__ float s[BS];
    int t = threadIdx.x, i = blockIdx.x * BS + t;
    s[t] = i < n ? x[i] : 0;
    for (int d = BS / 2; d; d /= 2) {
        __syncthreads();
        if (t < d) s[t] += s[t + d];
    }
    if (t == 0) atomicAdd(out, s[0]);
}
namespace lib {
template <typename T> __global__ void copy(const T *x, T *y, size_t n)
{
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
}
__global__ void turned(const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    held[threadIdx.x] = x[i];
    __syncthreads();
    y[i] = held[blockDim.x - 1 - threadIdx.x];
}
__global__ void halved(float *x, int n, int stride)
{
    int i = 2 * stride * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + stride < n) x[i] += x[i + stride];
}
template <int TILE> __global__ void tile(const float *x, float *y, int n)
{
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    y[row * n + column] = x[row * n + column];
}
// gpusim: grid=n/block n=96
template <int B> __global__ void kept(float *x) { x[blockIdx.x * B + threadIdx.x] = 1; }

template <typename T> void copied(const T *from, T *to, size_t n)
{
    lib::copy<<<(n + 63) / 64, 64>>>(from, to, n);
}
int main()
{
    const int n = 1024;
    float *x, *y;
    double *from, *to;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    const int many = 2 * n;
    cudaMalloc(&from, many * sizeof(double));
    cudaMalloc(&to, many * sizeof(double));
    dot<BLOCK><<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(x, y, n);
    copied(from, to, many);
    int threads = 32;
    turned<<<n / threads, threads, threads * sizeof(float)>>>(x, y);
    int half = 512;
    float *z;
    cudaMalloc(&z, half * sizeof(float));
    for (int stride = 1; stride < half; stride *= 2)
        halved<<<half / 64, 64>>>(z, half, stride);
    int rows = 64;
    const int T = 8;
    float *a;
    cudaMalloc(&a, rows * rows * sizeof(float));
    tile<T><<<dim3(rows / T, rows / T), dim3(T, T)>>>(a, a, rows);
    float *k;
    cudaMalloc(&k, 96 * sizeof(float));
    kept<32><<<3, 32>>>(k);
}
"""
KERNELS = """
import numpy as np
from gpusim import cuda

# gpusim: grid=ceil(n/8) block=8 n=512 args=float32[n],float32[n]
@cuda.jit
def turned(x, y):  # for 8 threads alone
    tile = cuda.shared.array(8, np.float32)
    i = cuda.blockIdx.x * 8 + cuda.threadIdx.x
    tile[cuda.threadIdx.x % 8] = x[i]
    cuda.syncthreads()
    y[i] = tile[7 - cuda.threadIdx.x % 8]


# gpusim: grid=ceil(n/block) block=64 n=1024 args=float32[n],float32[ceil(n/block)]
@cuda.jit
def sums(x, y):
    s = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    d = cuda.blockDim.x // 2
    while d > 0:
        cuda.syncthreads()
        if t < d:
            s[t] += s[t + d]
        d //= 2
    if t == 0:
        y[cuda.blockIdx.x] = s[0]


# gpusim: grid=ceil(n/block) block=64 n=1024 args=float32[n],float32[ceil(n/block)]
@cuda.jit
def racing(x, y):
    s = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    d = cuda.blockDim.x // 2
    while d > 0:
        if t < d:
            s[t] += s[t + d]
        d //= 2
    if t == 0:
        y[cuda.blockIdx.x] = s[0]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "mine.py"
    made.write_text(KERNELS)
    return made


def document(run: Run, *words: object) -> dict[str, Any]:
    is_python = not any(".cu:" in str(word) for word in words)
    options = ("--code", "lowering") if is_python else ()
    code, out, err = run(*words, *options, "--json")
    assert code == 0 or words[0] == "compare", err
    found: dict[str, Any] = json.loads(out)
    return found


def test_tune_never_recommends_a_block_that_leaves_something_else(run: Run, file: Path) -> None:
    words = ("tune", f"{file}:turned", "--block", "8,4,16", "--workers", 1)
    (found,) = document(run, *words)["launches"]
    assert (found["best"]["block"], [row["block"] for row in found["candidates"]]) == (8, [8])
    reasons = {row["block"]: row["wrong"] for row in found["rejected"]}
    assert reasons[4].startswith("other results; y: 512 of 512 elements differ, first [0]")
    assert [row["choices"] for row in found["cannot_run"]] == ["block=16"]  # out of bounds
    told = run(*words, "--code", "lowering")[1]
    assert "best: block 8" in told
    assert "! not the same work: block=4: other results" in told


def test_a_sweep_marks_rows_that_leave_something_else(run: Run, file: Path) -> None:
    words = ("sweep", f"{file}:turned", "--block", "4,8", "--workers", 1)
    rows = document(run, *words)["rows"]
    assert [row["wrong"] is None for row in rows] == [False, True]
    assert all(row["time_us"] for row in rows)
    told = run(*words, "--code", "lowering")[1]
    assert "4 !" in told
    assert "! not the same work: block 4: other results" in told


def test_a_value_for_each_block_is_compared_in_total(run: Run, file: Path) -> None:
    words = ("tune", f"{file}:sums", "--block", "32..256", "--workers", 1)
    (found,) = document(run, *words)["launches"]
    assert (len(found["candidates"]), found["rejected"]) == (4, [])


def test_a_race_is_listed_apart(run: Run, file: Path) -> None:
    found = document(run, "rank", f"{file}:sums", f"{file}:racing")
    assert [one["kernel"] for one in found["kernels"]] == [f"{file}:sums"]
    (wrong,) = found["wrong"]
    assert wrong["kernel"] == f"{file}:racing"
    assert "race" in wrong["reason"]


def test_a_kernel_with_a_known_defect_has_no_rank(run: Run) -> None:
    found = document(run, "rank", "reduce5", "reduce5_fixed", "reduce1", "-n", "2^16")
    ranks = {one["kernel"]: one["rank"] for one in found["kernels"]}
    assert ranks == {"reduce1": 2, "reduce5_fixed": 1}
    assert [one["kernel"] for one in found["wrong"]] == ["reduce5"]
    assert found["wrong"][0]["time_us"] > 0
    code, _, err = run("rank", "reduce5", "-n", "2^16", "--code", "lowering")
    assert (code, "none of the kernels does its work (reduce5: known defect" in err) == (2, True)


def launches(run: Run, kernel: str) -> dict[str, dict[str, Any]]:
    """Return the description of a kernel's launch by command."""
    made = {
        command: document(run, command, kernel, *words)["launch"]
        for command, words in {"trace": ("--device", "h200"), "predict": ()}.items()
    }
    made["check"] = json.loads(run("check", kernel, "--json")[1])["launch"]
    for number, side in enumerate(document(run, "compare", kernel, kernel)["sides"]):
        made[f"compare {number}"] = side["launch"]
    made["rank"] = document(run, "rank", kernel)["kernels"][0]["launch"]
    made["sweep"] = document(run, "sweep", kernel, "--workers", 1)["launches"][0]
    made["notebook trace"] = answer(["trace", kernel, "--device", "h200"]).description.to_dict()
    made["notebook check"] = answer(["check", kernel]).description.to_dict()
    words = ("tune", kernel, "--block", made["trace"]["block"]["value"], "--workers", 1)
    made["tune"] = document(run, *words)["launches"][0]["launch"]
    return made


def test_all_commands_have_the_same_launch_of_a_file(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So has `gpusim ci`, for a launch that the project's table names."""
    made = launches(run, f"{file}:sums")
    table = f'[[tool.gpusim.launch]]\nname = "sums"\nkernel = "{file}:sums"\n'
    (file.parent / "pyproject.toml").write_text(table)
    monkeypatch.chdir(file.parent)
    made["ci"] = json.loads(run("ci", "--json")[1])["launches"][0]["check"]["launch"]
    first = made.pop("predict")
    assert first["n"] == {"value": "1024", "origin": "comment in the file", "line": 15}
    assert first["data"] == {"x": "random:0", "y": "zeros"}
    for command, found in made.items():
        for member in ("kernel", "n", "grid", "block", "arguments", "data"):
            assert found[member] == first[member], command
        assert found["device"]["value"] == "h200", command


@needs_compiler
@pytest.mark.parametrize(
    ("name", "written", "members"),
    [
        ("dot", "dot<256>", ("1024", "ceil(n/block)", "256", None, "float32[n]")),
        ("dot<128>", "dot<128>", ("1024", "ceil(n/block)", "128", None, "float32[n]")),
        ("lib::copy", "lib::copy<double>", ("1024", "ceil(2*n/block)", "64", None, "float64[2*n]")),
        ("turned", "turned", ("1024", "(n-n%block)/block", "32", "block*4", "float32[n]")),
        ("halved", "halved", ("512", "(n-n%block)/block", "64", None, "float32[n]")),
        ("tile", "tile<8>", ("64", "(n-n%8)/8x(n-n%8)/8", "8x8", None, "float32[n*n]")),
        ("kept", "kept<32>", ("96", "n/block", "32", None, "float32[n]")),
    ],
)  # fmt: skip
def test_all_commands_have_the_same_launch_of_host_code(
    run: Run, tmp_path: Path, name: str, written: str, members: tuple[str | None, ...]
) -> None:
    """Of templates and overloads, with `constexpr` sizes, in namespaces and loops."""
    (tmp_path / "host.cu").write_text(HOST)
    kernel = f"{tmp_path / 'host.cu'}:{name}"
    for command, found in launches(run, kernel).items():
        assert found["kernel"] == f"{tmp_path / 'host.cu'}:{written}", command
        values = [
            None if found.get(member) is None else found[member]["value"]
            for member in ("n", "grid", "block", "shared_bytes")
        ]
        assert (*values, found["arguments"]["x"]["value"]) == members, command
    assert run("lower", kernel)[0] == 0


@needs_compiler
def test_a_block_of_a_template_is_its_argument_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "host.cu").write_text(HOST)
    kernel = f"{tmp_path / 'host.cu'}:dot"
    found = document(run, "trace", kernel, "--block", "64")
    assert (found["kernel"], found["grid"][0]) == ("dot<64>", 16)
    (tuned,) = document(run, "tune", kernel, "--block", "64,128,256", "--workers", 1)["launches"]
    assert (len(tuned["candidates"]), tuned["rejected"]) == (3, [])


@needs_compiler
def test_options_of_a_side_follow_template_arguments_with_blanks(run: Run, tmp_path: Path) -> None:
    text = "template <class T, int N> __global__ void fill(T *x) { x[threadIdx.x] = N; }\n"
    (tmp_path / "f.cu").write_text(text)
    options = ("--grid", "1", "--arg", "int32[64]")
    sides = [f"{tmp_path / 'f.cu'}:fill<int, 3> --block {block}" for block in (32, 64)]
    found = document(run, "compare", *sides, *options)
    assert [one["launch"]["block"]["value"] for one in found["sides"]] == ["32", "64"]


@pytest.mark.parametrize(
    "words",
    [
        ("rank", "{0}"),
        ("sweep", "{0}"),
        ("tune", "{0}", "--block", "64"),
        ("compare", "{0}", "{0}"),
    ],
)
def test_text_says_where_a_launch_is_from_and_what_data_is_assumed(
    run: Run, file: Path, words: tuple[str, ...]
) -> None:
    kernel = f"{file}:sums"
    given = [word.format(kernel) for word in words]
    code, out, err = run(*given, "--code", "lowering")
    assert code == 0, err
    text = " ".join(out.split())
    origin = "comment in the file, line 15; data, assumed: x random numbers; y zeros"
    assert f"n 1,024; n, block, grid, arguments: {origin}" in text


def test_the_page_says_the_size_and_the_data_of_a_launch(run: Run, file: Path) -> None:
    page = file.parent / "page.html"
    code, _, err = run("report", f"{file}:sums", "--code", "lowering", "--out", page)
    assert code == 0, err
    assert "; data, assumed: x random numbers; y zeros" in page.read_text()
