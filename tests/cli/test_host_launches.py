"""Host code of a file says how its kernels are launched: sizes, grids, blocks, arguments."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from gpusim.cuda_cpp.host_code import KernelName, Pointer, launches
from gpusim.cuda_cpp.host_numbers import Number, operation
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

ADD = """
#include <vector>
#define N (1 << 14)
constexpr int THREADS = 128;
#define CHECK(call) { if ((call) != cudaSuccess) exit(1); }
static int div_up(int a, int b) { return (a + b - 1) / b; }

__global__ void add(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}

void run(float *x, float *y, int count)
{
    add<<<div_up(count, THREADS), THREADS>>>(x, y, count);
}

int main(int argc, char **argv)
{
    int n = N;
    if (argc > 1) n = atoi(argv[1]);
    float *x, *y;
    size_t bytes = n * sizeof(float);
    CHECK(cudaMalloc((void **)&x, bytes));
    CHECK(cudaMalloc((void **)&y, sizeof(float) * n));
    run(x, y, n);
}
"""
TEMPLATES = """
template <unsigned TPB> __global__ void sums(const float *x, float *y, int n)
{
    extern __shared__ float s[];
    int t = threadIdx.x, i = blockIdx.x * TPB + t;
    s[t] = i < n ? x[i] : 0.0f;
    for (int d = TPB / 2; d > 0; d /= 2) {
        __syncthreads();
        if (t < d) s[t] += s[t + d];
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
template <int ROWS, int COLS> __global__ void tile_copy(const float *x, float *y)
{
    __shared__ float s[ROWS][COLS];
    int i = (blockIdx.x * ROWS + threadIdx.y) * COLS + threadIdx.x;
    s[threadIdx.y][threadIdx.x] = x[i];
    __syncthreads();
    y[i] = s[threadIdx.y][threadIdx.x];
}
#ifdef LAUNCH
int main()
{
    constexpr unsigned int TPB = 64;
    float *x, *y;
    cudaMalloc(&x, 4 * 4096); cudaMalloc(&y, 4 * 64);
    auto f = sums<TPB>;
    f<<<4096 / TPB, TPB, TPB * sizeof(float)>>>(x, y, 4096);
}
#endif
"""
SOLVE = """
__global__ void turn(const float *in, float *out, int rows, int cols)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < cols && y < rows) out[x * rows + y] = in[y * cols + x];
}
extern "C" void solve(const float *input, float *output, int rows, int cols)
{
    dim3 block(16, 16);
    dim3 grid((cols + block.x - 1) / block.x, (rows + 15) / 16);
    turn<<<grid, block>>>(input, output, rows, cols);
    cudaDeviceSynchronize();
}
"""


def described(run: Run, path: Path, text: str) -> list[dict[str, Any]]:
    path.write_text(text)
    code, out, err = run("list", str(path), "--json")
    assert code == 0, err
    kernels: list[dict[str, Any]] = json.loads(out)["kernels"]
    return kernels


def test_a_launch_is_followed_through_functions_and_macros(run: Run, tmp_path: Path) -> None:
    (one,) = described(run, tmp_path / "add.cu", ADD)
    assert one["launch"] == {
        "grid": "ceil(n/block)", "block": "128", "n": "16384",
        "arg": ["x=float32[n]", "y=float32[n]", "n=n"],
    }  # fmt: skip
    assert one["source"] == "host code, line 16"


def test_every_command_takes_the_launch_of_host_code(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "add.cu"
    file.write_text(ADD)
    for command in ("trace", "check", "predict"):
        code, out, err = run(command, f"{file}:add", "--json")
        assert code == 0, err
        launch = json.loads(out)["launch"]
        assert launch["n"] == {"value": "16384", "origin": "host code", "line": 16}
        assert launch["data"] == {"x": "random:0", "y": "random:1"}
    _, out, _ = run("trace", f"{file}:add", "-n", "1000", "--block", "64", "--json")
    made = json.loads(out)
    assert (made["grid"][0], made["block"][0]) == (16, 64)
    assert made["launch"]["grid"]["origin"] == "host code"


def test_a_size_of_host_code_is_halved_until_it_is_quickly_traced(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "add.cu"
    file.write_text(ADD.replace("1 << 14", "1 << 26"))
    sizes = [
        json.loads(run(command, f"{file}:add", "--json")[1])["launch"]["n"]["value"]
        for command in ("trace", "predict")
    ]
    assert sizes == [str(2**18), str(2**26)]


def test_a_template_is_made_as_its_launch_makes_it(run: Run, tmp_path: Path) -> None:
    sums, copy = described(run, tmp_path / "t.cu", TEMPLATES)
    assert sums["name"].endswith(":sums<64>")
    assert (sums["launch"]["block"], sums["launch"]["shared_bytes"]) == ("64", "block*4")
    assert copy["name"].endswith(":tile_copy<16, 16>")
    for one in (sums, copy):
        words = shlex.split(one["command"])
        code, out, _ = run("check", *words[2:], "--json")
        assert (code, json.loads(out)["findings"]) == (0, [])


def test_a_function_that_nothing_calls_has_sizes_of_its_own(run: Run, tmp_path: Path) -> None:
    (one,) = described(run, tmp_path / "turn.cu", SOLVE)
    assert one["launch"] == {
        "grid": "ceil(n/16)xceil(n/16)", "block": "16x16", "n": "256",
        "arg": ["in=float32[n*n]", "out=float32[n*n]", "rows=n", "cols=n"],
    }  # fmt: skip
    assert run(*shlex.split(one["command"])[1:])[0] == 0


def test_a_block_that_nothing_gives_is_a_usual_one(run: Run, tmp_path: Path) -> None:
    """The constant of the block is that of the grid as well; lambdas are followed."""
    text = """
    __global__ void fill(float *x, int n)
    {
        int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
        if (i < n && j < n) x[j * n + i] = 1;
    }
    int main()
    {
        int threads, n = 64;
        scanf("%d", &threads);
        float *x;
        cudaMalloc(&x, n * n * sizeof(float));
        dim3 grid(n / threads, cuda::ceil_div(n, threads));
        timed([&]() { fill<<<grid, dim3(threads, threads)>>>(x, n); });
    }
    """
    (one,) = described(run, tmp_path / "fill.cu", text)
    launch = one["launch"]
    assert (launch["grid"], launch["block"]) == ("(n-n%16)/16xceil(n/16)", "16x16")
    assert run(*shlex.split(one["command"])[1:])[0] == 0


def test_overloads_are_listed_with_their_types(run: Run, tmp_path: Path) -> None:
    text = "__global__ void k(int *x) { x[0] = 1; }\n__global__ void k(float *x) { x[0] = 1; }\n"
    names = [one["name"].rpartition(":")[2] for one in described(run, tmp_path / "o.cu", text)]
    assert names == ["k(int*)", "k(float*)"]


def test_arguments_of_the_runtimes_launch_function_are_found() -> None:
    text = """
    __global__ void k(float *x, int n) {}
    int main() {
        float *x = 0; int n = 8;
        cudaMallocManaged(&x, n * sizeof(float));
        void *args[] = {&x, (void *)&n};
        cudaLaunchCooperativeKernel((void *)k, dim3(2), 4, args, 0, 0);
    }
    """
    (found,) = launches(text, "k.cu", ["k"])
    assert found.kernel == KernelName("k")
    assert [one.whole for one in (found.grid.x, found.block.x)] == [2, 4]
    pointer, n = found.arguments
    assert isinstance(pointer, Pointer)
    assert pointer.bytes is not None
    assert (pointer.bytes.whole, n.whole) == (32, 8)


@pytest.mark.parametrize(
    ("operator", "right", "expected"),
    [("+", 255, "(n+255)"), ("*", 4, "n*4"), ("/", 2, "(n-n%2)/2"), (">>", 3, "(n-n%8)/8")],
)
def test_numbers_keep_the_expression_that_they_come_from(
    operator: str, right: int, expected: str
) -> None:
    made = operation(operator, Number.of(1024, text="n"), Number.of(right), is_whole=True)
    assert made is not None
    assert made.written == expected


def test_a_quotient_rounded_up_is_recognised() -> None:
    n, block = Number.of(1000, text="n"), Number.of(256)
    for more in (block.whole - 1,):
        total = operation("+", n, Number.of(more), is_whole=True)
        assert total is not None
        made = operation("/", total, block, is_whole=True)
        assert made is not None
        assert (made.written, made.whole) == ("ceil(n/256)", 4)


PYTHON = """
import math
import numpy as np
from gpusim import cuda

THREADS = 128

@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]

@cuda.jit
def turned(x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[j, i] = x[i, j]

@cuda.jit
def counted(x, bins, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(bins, x[i] % 8, 1)

def turn():
    n = 48
    x = np.random.rand(n, n)
    y = cuda.device_array((n, n), np.float64)
    block = (16, 8)
    turned[(math.ceil(n / block[0]), math.ceil(n / block[1])), block](cuda.to_device(x), y)

def main(count=1000):
    n = 1 << 12
    x = np.arange(n).astype(np.float32)
    y = np.zeros_like(x)
    for factor in (2.5, 3.5):
        axpy[(n + THREADS - 1) // THREADS, THREADS](factor, cuda.to_device(x), y)
    turn()
    data = np.random.randint(0, 256, size=count, dtype=np.uint8)
    bins = np.zeros(8, dtype=np.int32)
    counted[(data.size + 63) // 64, 64](data, bins, data.size)

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("name", "launch"),
    [
        ("axpy", {"grid": "ceil(n/block)", "block": "128", "n": "4096",
                  "arg": ["a=2.5", "x=float32[n]", "y=float32[n]"]}),
        ("turned", {"grid": "ceil(n/16)xceil(n/8)", "block": "16x8", "n": "48",
                    "arg": ["x=float64[n,n]", "y=float64[n,n]"]}),
        ("counted", {"grid": "ceil(n/64)", "block": "64", "n": "1000",
                     "arg": ["x=uint8[n]", "bins=int32[8]", "n=n"]}),
    ],
)  # fmt: skip
def test_a_python_file_has_host_code_too(
    run: Run, tmp_path: Path, name: str, launch: dict[str, Any]
) -> None:
    """Followed from `__main__`, without running it: sizes of arrays, and the first iteration."""
    file = tmp_path / "mine.py"
    found = {one["name"]: one for one in described(run, file, PYTHON)}[f"{file}:{name}"]
    assert found["launch"] == launch
    code, out, err = run("trace", f"{file}:{name}", "--json")
    assert code == 0, err
    assert json.loads(out)["launch"]["grid"]["origin"] == "host code"


def test_a_function_of_python_that_nothing_calls_has_sizes_of_its_own(
    run: Run, tmp_path: Path
) -> None:
    text = PYTHON.partition("@cuda.jit\ndef turned")[0] + (
        "def solve(x, y, n):\n    axpy[(n + 255) // 256, 256](np.float32(2), x, y)\n"
    )
    found = described(run, tmp_path / "mine.py", text)[0]["launch"]
    assert (found["grid"], found["block"], found["n"]) == ("ceil(n/256)", "256", "65536")
