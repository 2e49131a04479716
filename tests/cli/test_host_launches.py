"""Host code of a file says how its kernels are launched: sizes, grids, blocks, arguments."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run

from gpusim.cuda_cpp.host_code import KernelName, launches
from gpusim.cuda_cpp.host_numbers import Number, operation
from gpusim.cuda_cpp.host_values import Pointer
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_file

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


IN_THE_KERNEL = """
#define N 1024
constexpr int ROWS = 512 + 512;
__global__ void mul(const float *a, const float *b, float *c)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k < SIZE; k += 64) s += a[row * SIZE + k] * b[k * SIZE + col];
    c[row * SIZE + col] = s;
}
int main()
{
    float *a, *b, *c;
    size_t bytes = SIZE * SIZE * sizeof(float);
    cudaMalloc(&a, bytes); cudaMalloc(&b, bytes); cudaMalloc(&c, bytes);
    dim3 block(16, 16), grid(SIZE / 16, SIZE / 16);
    mul<<<grid, block>>>(a, b, c);
}
"""


@pytest.mark.parametrize("size", ["N", "ROWS"])
def test_a_kernel_with_its_size_as_a_constant_is_compiled_for_the_size_of_the_launch(
    run: Run, tmp_path: Path, size: str
) -> None:
    """1,024 rows are halved, and 96 given: rows of another length would leave the arrays."""
    file = tmp_path / "mul.cu"
    file.write_text(IN_THE_KERNEL.replace("SIZE", size))
    for given in ([], ["-n", "96"]):
        code, out, err = run("check", f"{file}:mul", "--json", *given)
        assert (code, json.loads(out)["findings"]) == (0, []), err
        assert int(json.loads(out)["launch"]["n"]["value"]) < 1024


NAMED = """
template <typename T, int BLOCK, int EACH> __global__ void copies(const T *from, T *to)
{
    int base = blockIdx.x * BLOCK * EACH + threadIdx.x;
    for (int k = 0; k < EACH; ++k) to[base + k * BLOCK] = from[base + k * BLOCK];
}
template <typename T, int BLOCK, int EACH> void copy(const T *from, T *to, int size)
{
    copies<T, BLOCK, EACH><<<size / (BLOCK * EACH), BLOCK>>>(from, to);
}
int main()
{
    using value = double;
    constexpr int block = 64, each = 4;
    void (*all[])(const value *, value *, int) = {copy<value, block, each>};
    all[0](nullptr, nullptr, 1 << 20);
}
"""
TYPED = """
#include <cuda_bf16.h>
struct Scale { float by; int n; };
__global__ void scaled(float *x, Scale s)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < s.n) x[i] *= s.by;
}
__global__ void letters(const char *text, int *counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[text[i] - 'a'], 1);
}
__global__ void twice(const __nv_bfloat16 *a, __nv_bfloat16 *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = __hadd(a[i], a[i]);
}
int main()
{
    const int n = 500;
    float *x; char *text; int *counts; __nv_bfloat16 *a, *b;
    cudaMalloc(&x, n * sizeof(float)); cudaMalloc(&text, n); cudaMalloc(&counts, 26 * sizeof(int));
    cudaMalloc(&a, n * 2); cudaMalloc(&b, n * 2);
    Scale s{2.0f, n};
    scaled<<<(n + 255) / 256, 256>>>(x, s);
    letters<<<(n + 255) / 256, 256>>>(text, counts, n);
    twice<<<(n + 255) / 256, 256>>>(a, b, n);
}
"""
MADE_BY_PROGRAMS = """
__global__ void invert(cudaTextureObject_t tex, uchar4 *out, int w)
{
    out[threadIdx.x] = tex2D<uchar4>(tex, threadIdx.x % w, threadIdx.x / w);
}
__global__ void rows(double **matrix) { matrix[blockIdx.x][threadIdx.x] = 0; }
int main()
{
    cudaTextureObject_t tex = 0; uchar4 *out; double **matrix;
    invert<<<1, 32>>>(tex, out, 8);
    rows<<<1, 32>>>(matrix);
}
"""


def test_a_template_that_is_named_without_a_call_is_followed(run: Run, tmp_path: Path) -> None:
    (one,) = described(run, tmp_path / "named.cu", NAMED)
    assert one["name"].endswith(":copies<double, 64, 4>")
    assert one["launch"]["arg"] == ["from=float64[4*n]", "to=float64[4*n]"]
    code, out, _ = run("check", *shlex.split(one["command"])[2:], "--json")
    assert (code, json.loads(out)["findings"]) == (0, [])


def test_texts_small_floats_and_structures_run_without_a_finding(run: Run, tmp_path: Path) -> None:
    found = {one["name"].partition(":")[2]: one for one in described(run, tmp_path / "t.cu", TYPED)}
    assert found["scaled"]["launch"]["arg"] == ["x=float32[n]", "s.by=1.0", "s.n=64"]
    assert found["twice"]["launch"]["arg"] == ["a=uint16[n]", "b=uint16[n]", "n=n"]
    for one in found.values():
        code, out, err = run("check", *shlex.split(one["command"])[2:], "--json")
        assert code == 0, err
        assert [one for one in json.loads(out)["findings"] if one["severity"] == "error"] == []
    data = json.loads(run("check", f"{tmp_path / 't.cu'}:letters", "--json")[1])["launch"]["data"]
    assert data["text"] == "random:0:97:122"


@pytest.mark.parametrize(("kernel", "parameter"), [("invert", "tex"), ("rows", "matrix")])
def test_handles_and_addresses_are_left_to_programs(
    run: Run, tmp_path: Path, kernel: str, parameter: str
) -> None:
    file = tmp_path / "made.cu"
    file.write_text(MADE_BY_PROGRAMS)
    code, _, err = run("check", f"{file}:{kernel}")
    assert code == 2
    assert f"{kernel}: {parameter} is a texture, a surface, or an array of addresses" in err


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


SIZES = """
__global__ void shade(const double *x, double *y, uchar4 *z, int n) {
    extern __shared__ float s[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { s[threadIdx.x] = x[i]; y[i] = s[threadIdx.x]; z[i].w = 1; }
}
void made(uchar4 *z, int n) {
    double *x, *y, *a;
    a = (double *)malloc(n * sizeof(*a));
    int images = 0;
    while (images < 2) images++;
    cudaMalloc(&x, n * sizeof(*a));
    cudaMalloc(&y, images * n * sizeof(a[0]));
    shade<<<dim3(n / 64, images), 64, n * 2>>>(x, y, z, n);
}
"""


def test_sizes_of_elements_that_counts_and_vectors_have_are_known(run: Run, tmp_path: Path) -> None:
    """An open size leaves room for the shared memory, and is small where it is run."""
    (one,) = described(run, tmp_path / "s.cu", SIZES)
    assert one["launch"] == {
        "grid": "(n-n%block)/block", "block": "64", "n": "16384", "shared_bytes": "n*2",
        "arg": ["x=float64[n]", "y=float64[1*n]", "z=uint8[4*4*n]", "n=n"],
    }  # fmt: skip
    document = json.loads(run("trace", f"{tmp_path}/s.cu:shade", "--json")[1])
    assert document["launch"]["n"]["value"] == "4096"


TYPES = """
#define REAL double
typedef short small;
using byte = unsigned char;
__global__ void convert(const double *x, short *y, unsigned char *z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = z[i] = x[i];
}
int main() {
    int n = 100;
    REAL *x;
    small *y;
    byte *z;
    cudaMalloc(&x, n * sizeof(REAL));
    cudaMalloc(&y, n * sizeof(small));
    cudaMalloc(&z, n * sizeof(byte));
    convert<<<4, 32>>>(x, y, z, n);
    cudaFree(x);
    cudaMalloc(&x, 10 * sizeof(REAL));
}
"""


def test_other_names_of_types_have_their_size_and_a_launch_the_memory_of_its_time(
    run: Run, tmp_path: Path
) -> None:
    (one,) = described(run, tmp_path / "t.cu", TYPES)
    assert one["launch"]["arg"] == ["x=float64[n]", "y=int16[n]", "z=uint8[n]", "n=n"]


CLASSES = """
__constant__ float means[32];
__global__ void nearest(const float *x, int *y, int classes, float min_x, float max_x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = means[classes - 1] < x[(int)(n * (x[i] - min_x) / max_x)];
}
int main(int count, char **words) {  // caf\xe9
    int n = atoi(words[1]), classes = atoi(words[2]);
    float *x, least, most;
    int *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(int));
    switch (mode_of(words)) {
        case SIMPLE: {
            nearest<<<(n + 63) / 64, 64>>>(x, y, classes, least, most, n);
            return 0;
        }
    }
}
"""


def test_a_number_that_no_array_depends_on_is_small_and_a_least_number_is_zero(
    run: Run, tmp_path: Path
) -> None:
    """In a source that is no UTF-8, too: elements are between 0 and 1."""
    file = tmp_path / "c.cu"
    file.write_bytes(CLASSES.encode("latin-1"))
    code, out, err = run("list", str(file), "--json")
    assert code == 0, err
    (one,) = json.loads(out)["kernels"]
    assert one["launch"]["arg"] == [
        "x=float32[n]", "y=int32[n]", "classes=2", "min_x=0.0", "max_x=1.0", "n=n",
    ]  # fmt: skip
    assert run("check", *shlex.split(one["command"])[2:], "-n", "500", "--block", "32")[0] == 0


def test_overloads_are_listed_with_their_types(run: Run, tmp_path: Path) -> None:
    text = "__global__ void k(int *x) { x[0] = 1; }\n__global__ void k(float *x) { x[0] = 1; }\n"
    names = [one["name"].rpartition(":")[2] for one in described(run, tmp_path / "o.cu", text)]
    assert names == ["k(int*)", "k(float*)"]


OVERLOADS = """
template <class T> __global__ void fill(T *x) { x[threadIdx.x] = 1; }
template <class T> __global__ void fill(T *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 2; }
namespace one { __global__ void set(float *x) { x[threadIdx.x] = 3; } }
namespace two { __global__ void set(float *x) { x[threadIdx.x] = 4; } }
#ifdef NEVER
__global__ void copy(double *x) { x[threadIdx.x] = 5; }
#else
__global__ void copy(unsigned int *x, size_t n) { x[threadIdx.x] = n; }
__global__ void copy(unsigned *x, float n) { x[threadIdx.x] = n; }
#endif
"""


def test_each_listed_overload_has_a_command_line_that_runs_it(run: Run, tmp_path: Path) -> None:
    """Templates, namespaces, aliases of types, and those that the preprocessor leaves out."""
    found = {
        one["name"].rpartition(".cu:")[2]: one["command"]
        for one in described(run, tmp_path / "o.cu", OVERLOADS)
    }
    assert sorted(found) == [
        "copy(unsigned int*, float)",
        "copy(unsigned int*, unsigned long)",
        "fill<float>(float*)",
        "fill<float>(float*, int)",
        "one::set(float*)",
        "two::set(float*)",
    ]
    for name, command in found.items():
        status, out, _ = run(*shlex.split(command)[1:])
        assert (status, out.startswith(f"{name}  grid")) == (0, True)


OF_CONST = """
template <class T> __global__ void k(const T *x, T *y) { y[threadIdx.x] = x[threadIdx.x] + 1; }
template <class T> __global__ void k(T *x, T *y) { y[threadIdx.x] = x[threadIdx.x] + 2; }
__global__ void m(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x] + 3; }
__global__ void m(float *x, float *y) { y[threadIdx.x] = x[threadIdx.x] + 4; }
template <class T> __global__ void one(const T *x, T *y) { y[threadIdx.x] = x[threadIdx.x] + 5; }
template <class T> __global__ void one(const T *x, T *y, int n) { y[n] = x[threadIdx.x] + 6; }
"""


def test_overloads_that_differ_only_in_const_have_names_that_tell_them_apart(
    run: Run, tmp_path: Path
) -> None:
    """A name without `const` means the only overload that has its types otherwise."""
    file = tmp_path / "o.cu"
    names = [one["name"].rpartition(".cu:")[2] for one in described(run, file, OF_CONST)]
    assert names == [
        "k<float>(const float*, float*)",
        "k<float>(float*, float*)",
        "m(const float*, float*)",
        "m(float*, float*)",
        "one<float>(float*, float*)",
        "one<float>(float*, float*, int)",
    ]
    words = ("--arg", "x=float32[32]=10", "--arg", "y=float32[32]")
    for number, name in enumerate(names[:5], 1):
        kernel = cuda_file(str(file))[name]
        y = np.zeros(32, np.float32)
        kernel[1, 32](np.full(32, 10, np.float32), y)
        assert (name, set(y.tolist())) == (name, {10.0 + number})
    status, _, err = run("trace", f"{file}:m", "--grid", "1", "--block", "32", *words)
    assert (status, "'m(const float*, float*)' or 'm(float*, float*)'" in err) == (2, True)


def test_a_declaration_and_its_definition_are_one_kernel(run: Run, tmp_path: Path) -> None:
    """Also where its type has two meanings, as the preprocessor decides."""
    text = """
    #ifdef TWICE
    typedef double real;
    #else
    typedef float real;
    #endif
    __global__ void add(const real *x, real *y, const int N);
    __global__ void add(const real *x, real *y, int n) { if (threadIdx.x < n) y[0] += x[0]; }
    """
    (one,) = described(run, tmp_path / "a.cu", text)
    assert one["name"].endswith("a.cu:add")
    assert run(*shlex.split(one["command"])[1:])[0] == 0


def test_a_template_with_overloads_needs_its_types(run: Run, tmp_path: Path) -> None:
    (tmp_path / "o.cu").write_text(OVERLOADS)
    status, _, err = run("trace", f"{tmp_path}/o.cu:fill<float>", "--arg", "x=float32[64]")
    assert status == 2
    assert "2 templates 'fill': write their types out, as in 'fill<float>(float*)' or" in err


@pytest.mark.parametrize("width", ["40", "80", "100"])
def test_listed_command_lines_are_pasted_as_they_stand(
    width: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    name = "weights_of_all_the_elements_of_a_row_in_single_precision"
    file = tmp_path / "long.cu"
    file.write_text(
        f"__global__ void k(float *{name}, float *y, int number) {{ y[0] = number; }}\n"
    )
    (one,) = described(run, file, file.read_text())
    _, out, _ = run("list", str(file))
    pasted = out[out.index("gpusim trace") :]
    assert shlex.split(pasted.replace("\\\n", "")) == shlex.split(one["command"])
    assert all(line.endswith("\\") for line in pasted.splitlines()[:-1])


SUM_OF_A_BLOCK = """
{constant}
__global__ void sum(const float *x, float *y, int n) {{
    __shared__ float s[SIZE];
    int t = threadIdx.x, i = blockIdx.x * SIZE + t;
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int k = SIZE / 2; k; k /= 2) {{ if (t < k) s[t] += s[t + k]; __syncthreads(); }}
    if (!t) y[blockIdx.x] = s[0];
}}
int main() {{
    int n = 1000, blocks = (n + SIZE - 1) / SIZE;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, blocks * sizeof(float));
    sum<<<blocks, SIZE>>>(x, y, n);
}}
"""


@pytest.mark.parametrize("constant", ["#define SIZE 128", "constexpr int SIZE = 128;"])
@pytest.mark.parametrize(
    ("words", "grid"), [((), "8"), (("--block=256",), "4"), (("--block=64",), "16")]
)
def test_a_block_replaces_the_constant_that_the_kernel_shares_with_its_launch(
    constant: str, words: tuple[str, ...], grid: str, run: Run, tmp_path: Path
) -> None:
    """With 128 in the kernel, 256 threads leave the shared array and 64 fill half of it."""
    (tmp_path / "sum.cu").write_text(SUM_OF_A_BLOCK.format(constant=constant))
    status, out, _ = run("check", f"{tmp_path}/sum.cu:sum", *words)
    assert (status, out.splitlines()[0].split(",")[0]) == (0, f"sum  grid {grid}")


LITERALS = """
template <int SIZE> __global__ void halves(const float *x, float *y, int n) {
    __shared__ float s[SIZE];
    int i = blockIdx.x * SIZE + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    if (i < n) y[i] = s[threadIdx.x] / 2;
}
__global__ void strided(const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = x[i];
}
int main() {
    int n = 1000;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    halves<128><<<(n + 127) / 128, 128>>>(x, y, n);
    strided<<<128, 128>>>(x, y, n);
}
"""


def test_a_block_replaces_the_equal_literals_that_mean_it_in_its_launch(
    run: Run, tmp_path: Path
) -> None:
    """A template's argument and a divisor of the grid do, the number of blocks does not."""
    file = tmp_path / "f.cu"
    halves, strided = described(run, file, LITERALS)
    assert (halves["launch"]["grid"], strided["launch"]["grid"]) == ("ceil(n/block)", "128")
    for name, kernel, grid in (("halves", "halves<256>", 4), ("strided", "strided", 128)):
        document = json.loads(run("trace", f"{file}:{name}", "--block", "256", "--json")[1])
        assert (document["kernel"], document["grid"][0]) == (kernel, grid)
    sides = f"{file}:halves", f"{file}:halves --block 256"
    document = json.loads(run("compare", *sides, "--json")[1])
    assert [one["launch"]["kernel"] for one in document["sides"]] == [
        f"{file}:halves<128>", f"{file}:halves<256>",
    ]  # fmt: skip
    assert document["agree"] is True


TURNED = """
constexpr int TILE = 32;
#define ROWS 8
__global__ void turn(const float *in, float *out, int n) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
"""


def test_an_example_has_the_block_of_the_constants_that_the_kernel_uses(
    run: Run, tmp_path: Path
) -> None:
    (one,) = described(run, tmp_path / "t.cu", TURNED)
    words = shlex.split(one["command"])
    assert words[words.index("--block") + 1] == "32x8"
    assert run("check", *words[2:])[0] == 0


@pytest.mark.parametrize(("block", "status"), [("32x8", 0), ("32x16", 0), ("16x8", 0)])
def test_a_block_replaces_constants_of_a_file_without_host_code(
    block: str, status: int, run: Run, tmp_path: Path
) -> None:
    launch = "// gpusim: grid=2x2 block=32x8 n=64 args=float32[n,n],float32[n,n],n\n"
    (tmp_path / "t.cu").write_text(TURNED.replace("__global__", f"{launch}__global__"))
    code, out, _ = run("check", f"{tmp_path}/t.cu", "--block", block)
    assert (code, f"block {block.replace('x', ' x ')}" in out) == (status, True)


def test_a_block_of_two_sizes_leaves_the_constant_of_a_square_as_it_is(
    run: Run, tmp_path: Path
) -> None:
    text = """#define SIDE 16
    __global__ void k(float *x) { x[threadIdx.y * SIDE + threadIdx.x] = 1; }
    int main() {
        float *x;
        cudaMalloc(&x, SIDE * SIDE * sizeof(float));
        k<<<1, dim3(SIDE, SIDE)>>>(x);
    }
    """
    (tmp_path / "square.cu").write_text(text)
    for block, status in (("8x8", 0), ("16x8", 0), ("16x32", 1)):
        found, out, _ = run("check", f"{tmp_path}/square.cu:k", f"--block={block}")
        assert (found, "[bounds]" in out) == (status, bool(status))


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


SIZED = """
#include <curand_kernel.h>
struct Body { float x, y, z, mass; double charge; };
__global__ void moved(Body *bodies, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) bodies[i].charge = bodies[i].mass;
}
__global__ void begin(curandState *states)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curand_init(7, i, 0, &states[i]);
}
int main()
{
    int side = 64;
    size_t count = static_cast<size_t>(side) * static_cast<size_t>(side);
    Body *bodies;
    curandState *states;
    cudaMalloc(reinterpret_cast<void **>(&bodies), count * sizeof(Body));
    cudaMalloc(&states, size_t(count) * sizeof(curandState));
    moved<<<count / 128, 128>>>(bodies, int(count));
    begin<<<2, 64>>>(states);
}
"""


def test_arrays_have_the_bytes_of_structures_and_casts_keep_sizes(run: Run, tmp_path: Path) -> None:
    """A Body takes 24 bytes, six floats; a curandState 48."""
    file = tmp_path / "sized.cu"
    file.write_text(SIZED)
    _, out, _ = run("list", str(file))
    assert "n=64 args=bodies=float32[n*n*6],n=n*n" in " ".join(out.split())
    assert "args=states=float32[n*n*12]" in out
    assert run("check", f"{file}:moved", "-n", "32")[0] == 0
