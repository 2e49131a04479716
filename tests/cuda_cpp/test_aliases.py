"""Other names of types: what a number is passed as, where its type has one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.cuda_cpp.aliases import aliases, of_template, resolved
from gpusim.cuda_cpp.signature import Declared, templates
from gpusim.sass import wheels

TEXT = """
typedef float real;
using scalar = const real;
#define NUMBER unsigned long long
#define TILE 16
#ifdef TWICE
typedef double chosen;
#else
typedef float chosen;
#endif
typedef struct Node Node;
struct Line { real a, b; __device__ real operator()(real x) const { return a * x + b; } };
template <typename T> __global__ void scaled(T a, T *x) { x[threadIdx.x] *= a; }
template <class F, int N = 4, typename T = float>
__global__ void mapped(T *x, F f) { x[threadIdx.x] = f(x[threadIdx.x]); }
__global__ void added(scalar a, NUMBER b, chosen c, real *x) { x[threadIdx.x] += a + b + c; }
"""
needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)


@pytest.mark.parametrize(
    ("ctype", "size", "meant"),
    [
        ("real", None, "float"),
        ("scalar", None, "float"),
        ("real *", None, "float*"),
        ("NUMBER", None, "unsigned long long"),
        ("chosen", 4, "float"),
        ("chosen", 8, "double"),
        ("chosen", None, "chosen"),
        ("Node*", 8, "Node*"),
        ("int", 4, "int"),
    ],
)
def test_a_name_stands_for_its_type(ctype: str, size: int | None, meant: str) -> None:
    assert resolved(Declared("x", ctype), aliases(TEXT), size).ctype == meant


MADE = templates(TEXT)


def test_a_template_is_made_with_types() -> None:
    assert of_template(MADE.get("scaled", []), "scaled<double>") == {"T": ["double"]}
    assert of_template(MADE.get("mapped", []), "mapped<Line>") == {"F": ["Line"], "T": ["float"]}
    assert of_template(MADE.get("mapped", []), "mapped<Line, 8, int>") == {
        "F": ["Line"],
        "T": ["int"],
    }
    assert of_template(MADE.get("added", []), "added") == {}


def test_a_macro_beside_the_text_goes_before() -> None:
    assert resolved(Declared("x", "real"), aliases(TEXT, ["real=double"])).ctype == "double"


@needs_compiler
@pytest.mark.parametrize(
    ("name", "before", "expected"),
    [
        ("scaled<float>", (3,), 6),  # as an int, 3 is 4.2e-45 to it
        ("scaled<double>", (3,), 6),
        ("added", (1, 2, 3), 8),
    ],
)
def test_whole_numbers_become_what_the_type_stands_for(
    name: str, before: tuple[int, ...], expected: float
) -> None:
    x = np.full(2, 2, np.float64 if "double" in name else np.float32)
    gpusim.cuda_source(TEXT)[name][1, 2](*before, x)
    assert x.tolist() == [expected, expected]


@needs_compiler
@pytest.mark.parametrize("line", [(2, 1), {"a": 2, "b": 1}])
def test_a_structure_that_a_template_is_made_with_has_members(line: Any) -> None:
    mapped = gpusim.cuda_source(TEXT)["mapped<Line>"]
    mapped[1, 2](x := np.arange(2, dtype=np.float32), line)
    assert x.tolist() == [1, 3]
    assert mapped.source.parameters == ("x", "f.a", "f.b")
