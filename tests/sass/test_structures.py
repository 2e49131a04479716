"""Structures by value: members at the places that a compiler gives them."""

from __future__ import annotations

from gpusim.sass.signature import Declared, kernels
from gpusim.sass.structures import members, structures

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
