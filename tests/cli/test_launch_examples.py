"""What a launch lacks is said with a command line that runs as it is."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from conftest import Run

from gpusim.cli.references import Reference
from gpusim.cuda_cpp.embedded import cuda_of
from gpusim.errors import InputError
from gpusim.sass import wheels

needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

CUDA = """
struct View { float *data; int size; };
__global__ void view(View v) { if (threadIdx.x < v.size) v.data[threadIdx.x] = 1; }
template <typename T, int N> __global__ void scale(T *y, const T *x, T a, bool on) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (on) y[i] = a * x[i] + N;
}
__global__ void product(const double *a, const double *b, double *c, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  double sum = 0;
  for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
__global__ void dynamic(float4 *x) { extern __shared__ float s[]; s[threadIdx.x] = x[0].x; }
"""
PYTHON = """
from gpusim import cuda
@cuda.jit
def product(a, b, c, n):
    i, j = cuda.grid(2)
    s = 0.0
    for k in range(n):
        s += a[i, k] * b[k, j]
    c[i, j] = s
@cuda.jit
def count(x, total):
    cuda.atomic.add(total, 0, x[cuda.grid(1)])
"""
EMBEDDED = '''"""A program with __global__ in its documentation."""
import a_package_that_is_not_there
code = r"""
extern "C" __global__
void axpy(float a, const float* x, float* y) {
    y[threadIdx.x] += a * x[threadIdx.x];
}
"""
axpy = a_package_that_is_not_there.RawKernel(code, "axpy")
'''


@needs_compiler
@pytest.mark.parametrize(("name", "text"), [("mine.cu", CUDA), ("mine.py", PYTHON)])
def test_each_kernel_of_a_file_runs_with_the_command_line_that_the_list_shows(
    run: Run, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    _, out, _ = run("list", str(tmp_path / name), "--json")
    described = json.loads(out)["kernels"]
    assert len(described) == text.count("__global__") + text.count("@cuda.jit")
    for one in described:
        command = shlex.split(one["command"])
        assert (command[0], run(*command[1:])[0]) == ("gpusim", 0), one


@needs_compiler
def test_all_that_is_missing_is_one_message_with_a_command_line_that_runs(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "mine.cu"
    file.write_text(CUDA)
    code, _, err = run("trace", f"{file}:product", "--block", "8x8", "--arg", "n=4")
    first, command, _, comment = err.splitlines()
    assert code == 2
    assert "give --grid and --arg for a: double*, b: double*, c: double*, for example" in first
    assert "--block 8x8" in command
    assert run(*shlex.split(command)[1:])[0] == 0
    file.write_text(CUDA.replace("__global__ void product", f"{comment}\n__global__ void product"))
    kept = Reference.of(f"{file}:product").launch
    assert kept is not None
    options = kept.options
    assert (options["grid"], options["block"], len(options["arg"])) == ("4x4", "16x16", 4)


def test_types_are_shown_and_templates_are_given_arguments(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.cu"
    file.write_text(CUDA)
    _, out, _ = run("list", str(file))
    assert f"{file}:scale<float, 4>\n  y: float*, x: float*, a: float, on: bool" in out
    assert f"{file}:view\n  v.data: float*, v.size: int" in out


@needs_compiler
def test_kernels_in_the_strings_of_a_python_file_are_taken_without_running_it(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "app.py"
    file.write_text(EMBEDDED)
    launch = ["--grid", "1", "--block", "32", "--arg", "2.0", "--arg", "float32[32]"]
    code, out, err = run("trace", f"{file}:axpy", *launch, "--arg", "float32[32]", "--json")
    assert (code, err) == (0, "")
    lines = {line["line"]: line["text"].strip() for line in json.loads(out)["lines"]}
    assert lines[6] == "y[threadIdx.x] += a * x[threadIdx.x];"


def test_strings_keep_their_lines_and_assembled_ones_are_named() -> None:
    text = 'a = 1\nb = """__global__ void k() {\n}"""\nc = "// __global__ of another"\n'
    assert cuda_of(text, "f.py").split("\n") == [
        "", "__global__ void k() {", "}", "// __global__ of another",
    ]  # fmt: skip
    assert cuda_of('"""__global__ in a docstring"""', "f.py") == ""
    with pytest.raises(InputError, match=r"f\.py, line 1: a kernel's text is assembled"):
        cuda_of('k = f"__global__ void k{1}() {{}}"', "f.py")


@needs_compiler
def test_a_block_has_the_threads_of_a_shared_array_and_tiles_are_blocks(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "row.cu"
    file.write_text("""
__global__ void row(const float *x, float *y, int tile) {
  __shared__ float sums[96];
  int t = threadIdx.x;
  sums[t] = x[blockIdx.x * tile + t];
  __syncthreads();
  if (t == 0) y[blockIdx.x] = sums[95];
}
__global__ void turned(const float *x, float *y, int n) {
  __shared__ float s[8][9];
  int i = threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  s[threadIdx.y][i] = x[row * n + blockIdx.x * 8 + i];
  __syncthreads();
  y[(blockIdx.x * 8 + threadIdx.y) * n + blockIdx.y * 8 + i] = s[i][threadIdx.y];
}
#define tW 12
__global__ void summed(const float *x, float *y) {
  __shared__ float s[tW][tW];
  int ty = threadIdx.y, tx = threadIdx.x;
  s[ty][tx] = x[ty * tW + tx];
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < tW; i++) sum += s[i][tx];
  if (blockIdx.x == 0 && ty == 0) y[tx] = sum;
}
template <typename scalar_t> __global__ void doubled(scalar_t *x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}
void of_tensors(float *x) { DISPATCH([&] { doubled<scalar_t><<<1, 64>>>(x); }); }
""")
    commands = [
        one["command"] for one in json.loads(run("list", str(file), "--json")[1])["kernels"]
    ]
    assert "--block 96 " in commands[0]
    assert "--arg tile=96" in commands[0]
    assert "--block 8x8 " in commands[1]
    assert "--block 12x12 " in commands[2]
    assert "doubled<float>" in commands[3]
    for one in commands:
        assert run("check", *shlex.split(one)[2:])[0] == 0
