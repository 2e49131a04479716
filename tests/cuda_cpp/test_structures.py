"""Structures by value: members at the places that a compiler gives them."""

from __future__ import annotations

import gc
import time

import pytest

from gpusim.cuda_cpp.aliases import aliases
from gpusim.cuda_cpp.signature import Declared, kernels, templates
from gpusim.cuda_cpp.structures import members, structures

TEXT = """
struct Inner { char tag; double value; };  // 16 bytes
typedef struct { int a, b; } Pair;
class Outer {
 public:
  const float *__restrict__ x, *y;
  short counts[3];
  unsigned long long total = 0;
  Inner inner;
  Pair pair;
  float3 shift;
  __device__ Outer(int n) : total(n) { int local; local = n; }
  __device__ float at(int i) const { return x[i]; }
  static const int K = 4;
};
struct Base {};
struct Derived : Base { int n; };
template <typename T> struct Of { T value; };
struct Matrix { float m[3][3]; };
struct Long { int many[64]; };
__global__ void one(Outer o, Matrix m, float4 v, uchar3 c, int n[4]) {}
"""


def places(ctype: str, size: int | None = None) -> list[tuple[str, int, int]] | None:
    found = members(Declared("p", ctype), structures(TEXT), size)
    return None if found is None else [(m.declared.name, m.offset, m.size) for m in found]


def test_members_lie_at_multiples_of_their_alignment() -> None:
    assert places("Inner") == [("p.tag", 0, 1), ("p.value", 8, 8)]
    assert places("Outer") == [
        ("p.x", 0, 8), ("p.y", 8, 8),
        ("p.counts.0", 16, 2), ("p.counts.1", 18, 2), ("p.counts.2", 20, 2),
        ("p.total", 24, 8),
        ("p.inner.tag", 32, 1), ("p.inner.value", 40, 8),
        ("p.pair.a", 48, 4), ("p.pair.b", 52, 4),
        ("p.shift.x", 56, 4), ("p.shift.y", 60, 4), ("p.shift.z", 64, 4),
    ]  # fmt: skip


def test_a_structure_is_as_long_as_a_multiple_of_its_alignment() -> None:
    assert places("Outer", 72) is not None
    assert places("Outer", 68) is None


def test_vectors_of_the_language_are_structures() -> None:
    assert places("uchar3", 3) == [("p.x", 0, 1), ("p.y", 1, 1), ("p.z", 2, 1)]
    assert places("double2", 16) == [("p.x", 0, 8), ("p.y", 8, 8)]
    assert places("float4", 16) is not None


def test_what_is_not_looked_into_has_no_members() -> None:
    for ctype in ("Derived", "Of", "Of<int>", "Matrix", "Long", "Elsewhere", "int", "float*"):
        assert places(ctype) is None, ctype


def test_parameters_that_are_arrays_are_pointers() -> None:
    [*_, last] = kernels(TEXT)["one"]
    assert (last.name, last.ctype, last.is_pointer) == ("n", "int[]", True)


TRAPS = """
struct Self { Self x; int y; };
struct One { Two two; }; struct Two { One one; };
struct Braces { long long a; int b; int c{3}; };
struct Call { long long a; int b; int c = int(3); };
struct Union { long long a; int b; union { int c; float d; }; };
struct Kind { long long a; int b; enum { RED, GREEN } c; };
struct Named { struct Part { int a; }; enum Colour { RED }; int b; struct Part c; };
struct Aligned { long long a; int b; alignas(4) int c; };
struct Function { float4 a; double b; void (*c)(int); };
struct Empty {};
struct WithEmpty { long long a; Empty b; int c; };
struct Made { int a, b; __device__ Made() : a{1}, b{2} {} __device__ Made(int n = 3); int c; };
"""


def test_no_member_is_left_out() -> None:
    known = structures(TRAPS)

    def found(ctype: str) -> list[tuple[str, int]] | None:
        made = members(Declared("p", ctype), known)
        return None if made is None else [(one.declared.name, one.offset) for one in made]

    for ctype in ("Self", "One", "Union", "Kind", "Aligned", "Function"):
        assert found(ctype) is None, ctype
    three = [("p.a", 0), ("p.b", 8), ("p.c", 12)]
    assert found("Braces") == found("Call") == three
    assert found("Named") == [("p.b", 0), ("p.c.a", 4)]
    assert found("WithEmpty") == [("p.a", 0), ("p.c", 12)]
    assert found("Made") == [("p.a", 0), ("p.b", 4), ("p.c", 8)]


@pytest.mark.parametrize(
    "text",
    [
        "/* " * 50_000,
        "struct S{" * 6_000 + "};" * 6_000,
        "struct S{" * 6_000,
        "template<" * 6_000,
        "template<class T> __global__ void " * 3_000,
        "__global__ " * 6_000,
        "__global__ void k(" * 6_000,
        "typedef int " * 6_000,
        "typedef int" + " " * 100_000,
        "#define X " + "a " * 50_000,
        "struct S { int f() : " + "a{}," * 6_000 + "{} };",
        "struct S0 { int a; };" + "".join(f"struct S{n + 1} {{ S{n} a; }};" for n in range(3000)),
        '"' * 50_000 + "'" * 50_000,
        "R\"(" * 6_000,
        "".join(f"__global__ void k{n}(int *x, S{n} s) {{}}" for n in range(5000)),
    ],
    ids=range(15),
)  # fmt: skip
def test_declarations_of_any_text_are_found_in_seconds(text: str) -> None:
    gc.freeze()  # other tests' objects are not searched for garbage here
    begin = time.process_time()
    held = structures(text)
    for name in ("S", "S3000"):
        assert members(Declared("p", name), held) is None
    kernels(text), templates(text), aliases(text)
    assert time.process_time() - begin < 1.5


def test_what_stands_in_comments_and_strings_declares_nothing() -> None:
    text = r"""
    // __global__ void a(int x) {} \
       __global__ void b(int x) {}
    /* __global__ void c(int x) {} */ const char *s = "__global__ void d(int x) {}\"/*";
    const char *r = R"x(__global__ void e(int x) {})" )x"; char q = '"', z = '\'';
    __global__ void f(int x, float *y) {}
    /* __global__ void g(int x) {}"""
    assert list(kernels(text)) == ["f"]
