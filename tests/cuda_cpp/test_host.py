"""Host code is cut out of a file, and every line of device code stays where it was."""

from __future__ import annotations

import pytest

from gpusim.cuda_cpp.host import device_code
from gpusim.errors import InputError

pytest.importorskip("tree_sitter_cuda")
TEXT = """#include <cstdio>
#include <vector>
struct Both { int n; __device__ int twice() const { return 2 * n; } };
__device__ int helper(int x) { return x + 1; }
__global__ void kernel(int *x, Both b) {
  x[threadIdx.x] = helper(b.twice());
}
static void launch(int *x) {
  kernel<<<1, 32>>>(x, Both{1});
}
int main() {
  std::vector<int> numbers(32);
  launch(nullptr);
  printf("%d", numbers[0]);
}
__global__ void after(float *y) { y[0] = 1; }
"""


def test_lines_stay_where_they_were() -> None:
    cut = device_code(TEXT, "x.cu")
    before, after = TEXT.splitlines(), cut.splitlines()
    assert len(before) == len(after)
    assert [number for number, line in enumerate(after, 1) if not line.strip()] == list(
        range(8, 16)
    )
    assert all(b == a for b, a in zip(before, after, strict=True) if a.strip())


def test_device_code_alone_is_left_as_it_is() -> None:
    text = "__global__ void f(int *x) { x[0] = 1; }\n"
    assert device_code(text, "x.cu") == text


def test_what_a_lambda_is_declared_for_is_cut_out() -> None:
    text = "auto f = [=] __host__ __device__ (int i) { return i; };\nint a[2];\n"
    cut = device_code(text, "x.cu")
    assert cut == text.replace("__host__ __device__", " " * 19)
    assert len(cut) == len(text)


def test_without_the_grammar_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tree_sitter_cuda", None)
    with pytest.raises(InputError, match="the extra nvcc: pip install"):
        device_code(TEXT, "x.cu")


@pytest.mark.parametrize(
    "line",
    [
        "struct __align__(16) Vec { float x; };",
        "typedef struct __builtin_align__(8) { int a, b; } Pair;",
        "template <typename T> struct __align__(16) Four { T x[4]; };",
        "__managed__ int count;",
        "struct Held { cuda::std::array<int, 3> x; };",
        "template <typename T> using Pair = cuda::std::pair<T, T>;",
        "using cuda::std::span;",
        'struct Says { __device__ void hello() { printf("hello"); } };',
        "KERNEL(one, 1)",
    ],
)
def test_what_device_code_needs_stays(line: str) -> None:
    made = "#define KERNEL(name, v) \\\n  __global__ void name(int *x) { x[0] = v; }\n"
    text = f"{made}{line}\nint main() {{ return 0; }}\n"
    assert device_code(text, "x.cu").splitlines()[:3] == [*made.splitlines(), line]


def test_an_external_function_of_the_host_goes_whole() -> None:
    text = 'extern "C" int host() { return 1; }\nextern "C" __global__ void k(int *x) { *x = 1; }\n'
    cut = device_code(f"{text}int main() {{}}\n", "x.cu").splitlines()
    assert cut[0].strip() == ""
    assert cut[1] == text.splitlines()[1]
