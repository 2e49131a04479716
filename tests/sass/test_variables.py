"""A file's variables are set by their C++ names, to values that fit, or a sentence says why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.errors import LaunchError
from gpusim.sass import compiler, symbols, wheels
from gpusim.sass.kernels import CodeFile, CubinFile
from gpusim.sass.variables import declared_types

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

TEXT = """
__constant__ float coefficients[4] = {1, 1, 1, 1};
__device__ int counter = 1, other[3];
static __device__ int kept = 2;
__managed__ double managed = 3;
namespace space {
__constant__ int scale = 4;
__device__ int twice;
namespace inner { __device__ unsigned char small; }
}
namespace more { __device__ int twice; }
namespace { __device__ int hidden = 5; }
template <class T> __device__ T of_type = T(6);
typedef float Real;
__device__ const volatile Real real = 0;
__device__ int idle;
struct Pair { int a; float b; };
__device__ Pair pair;
__global__ void k(double *y) {
  y[0] = coefficients[0], y[1] = coefficients[3], y[2] = counter, y[3] = other[2], y[4] = kept;
  y[5] = managed, y[6] = space::scale, y[7] = space::twice, y[8] = space::inner::small;
  y[9] = more::twice, y[10] = hidden, y[11] = of_type<int>, y[12] = real, y[13] = pair.b;
  counter++;
}
"""


@pytest.fixture
def file() -> CodeFile:
    return gpusim.cuda_source(TEXT)


@pytest.fixture(scope="module")
def unset() -> CodeFile:
    """A file of which nothing is set: its kernel is translated once."""
    return gpusim.cuda_source(TEXT)


def seen(file: CodeFile) -> list[float]:
    kernel = next(name for name in file.names if "k" in name)
    file[kernel][1, 1](y := np.zeros(14))
    return y.tolist()


@pytest.mark.parametrize(
    ("name", "value", "place", "held"),
    [
        ("coefficients", [1, 2, 3, 4], 1, 4), ("coefficients", np.arange(4, dtype="f4"), 1, 3),
        ("counter", 7, 2, 7), ("counter", np.int32(7), 2, 7), ("counter", np.array(7), 2, 7),
        ("other", (1, 2, 3), 3, 3), ("other", np.arange(3, dtype=">i4"), 3, 2),
        ("other", np.arange(6, dtype=np.int32)[::2], 3, 4), ("kept", 9, 4, 9),
        ("managed", 1, 5, 1), ("space::scale", 9, 6, 9), ("::space::scale", 9, 6, 9),
        ("scale", 9, 6, 9), ("space::twice", 9, 7, 9), ("space::inner::small", 255, 8, 255),
        ("inner::small", 255, 8, 255), ("more::twice", 9, 9, 9), ("hidden", 9, 10, 9),
        ("of_type<int>", np.int32(9), 11, 9), ("_Z7of_typeIiE", np.int32(9), 11, 9),
        ("real", 2, 12, 2), ("coefficients", bytes(16), 1, 0), ("idle", 3, 4, 2),
        ("coefficients", np.full(2, 9, np.float32), 0, 9),
        ("coefficients", np.full(2, 9, np.float32), 1, 1),
        ("pair", np.void(bytes(4) + np.float32(2).tobytes()), 13, 2),
    ],
)  # fmt: skip
def test_a_variable_holds_what_it_is_set_to(
    file: CodeFile, name: str, value: Any, place: int, held: float
) -> None:
    file.set(name, value)
    assert seen(file)[place] == held


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("conter", 1, r"has no variable 'conter'; did you mean counter or"),
        ("space::scal", 1, r"has no variable 'space::scal'; did you mean space::scale\?"),
        ("other::scale", 1, r"has no variable 'other::scale'; did you mean .*space::scale"),
        ("k", 1, "has no variable 'k'.*its variables: coefficients, counter, hidden"),
        ("", 1, "has no variable ''"),
        ("twice", 1, "has 2 variables 'twice': name one, "),
        ("counter", 2**31, "counter is a int, which 2147483648 is not"),
        ("counter", 1.5, "counter is a int, which 1.5 is not"),
        ("space::inner::small", 256, "is a unsigned char, which 256 is not"),
        ("other", [1, 2, 3, 4], r"other has 12 bytes \(int\), not 16"),
        ("other", np.zeros(4, np.int32), r"other has 12 bytes \(int\), not 16"),
        ("coefficients", np.zeros(4), "coefficients is of float32; the array is of float64"),
        ("coefficients", 1, r"coefficients has 16 bytes \(float\), not 4"),
        ("coefficients", ["a"], "coefficients is a float; a str does not fit"),
        ("coefficients", [], "coefficients is set to a list"),
        ("coefficients", [[1, 2], [3]], "coefficients is"),
        ("coefficients", np.array(["a"]), "which are text"),
        ("coefficients", np.ma.array([1, 2, 3, 4], np.float32), "is masked"),
        ("coefficients", b"1234", "has 16 bytes"),
        ("pair", np.zeros(1, np.float32), "pair has 8 bytes"),
        ("pair", {"a": 1}, "pair is set to a dict; give an array or numbers"),
        ("counter", None, "counter is set to a NoneType"),
        ("_Z7of_typeIfE", 1, "has no variable"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_at_once(
    unset: CodeFile, name: str, value: Any, why: str
) -> None:
    with pytest.raises(LaunchError, match=why):
        unset.set(name, value)
    assert seen(unset)[:3] == [1, 1, 1]


def test_an_array_that_is_all_of_a_variable_holds_its_results(file: CodeFile) -> None:
    counter = np.full(1, 10, np.int32)
    file.set("counter", counter)
    seen(file)
    assert counter[0] == 11
    counter.flags.writeable = False
    assert seen(file)[2] == 11
    assert counter[0] == 11


def test_what_is_set_holds_for_kernels_that_are_there_already(file: CodeFile) -> None:
    kernel = file["k"]
    for value in (7, 8):
        file.set("space::scale", value)
        kernel[1, 1](y := np.zeros(14))
        assert y[6] == value


def test_a_cubins_variables_are_known_by_name_and_size() -> None:
    file = CubinFile(compiler.compiled(TEXT, "v.cu", [], "sm_90").cubin, "v.cubin")
    file.set("space::scale", 9)
    assert seen(file)[6] == 9
    with pytest.raises(LaunchError, match="did you mean counter"):
        file.set("conter", 1)
    with pytest.raises(LaunchError, match="coefficients has 16 bytes, not 8"):
        file.set("coefficients", np.zeros(2, np.float32))


def test_a_source_that_does_not_compile_says_so_at_the_launch() -> None:
    file = gpusim.cuda_source("__device__ int a;\n__global__ void k() { no; }")
    file.set("a", 1)
    with pytest.raises(compiler.CompileError):
        file["k"][1, 1]()


def test_declarations_say_the_types_of_variables() -> None:
    types = {name: one.ctype for name, one in declared_types(TEXT).items()}
    assert types["coefficients"] == "float"
    assert (types["counter"], types["other"], types["managed"]) == ("int", "int", "double")
    assert (types["small"], types["real"], types["pair"]) == ("unsigned char", "Real", "Pair")
    assert "k" not in types
    assert types["of_type"] == "T"
    odd = "__device__ __align__(16) float2 v[2] = {{1, 2}}, w; extern __constant__ char *p[4];"
    assert {n: o.ctype for n, o in declared_types(odd).items()} == {
        "v": "float2", "w": "float2", "p": "char*",
    }  # fmt: skip
    assert declared_types("__device__ int a; namespace n { __device__ float a; }") == {}


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("used", "used"), ("_Z2tvIiE", "tv<int>"), ("_ZZ1kPiE12local_static", "k::local_static"),
        ("_ZN2ns2in1dE", "ns::in::d"), ("_ZL3abc", "abc"), ("_ZN", "_ZN"), ("_Z5ab", "_Z5ab"),
        ("_ZN29_INTERNAL_00000000_4_v_cu_man1q31_GLOBAL__N__00000000_4_v_cu_man5anon2E",
         "q::anon2"),
        ("_ZN8__main__6reduceB2v3B4c3_dE5ArrayIfLi1EE", "__main__::reduce"),
    ],
)  # fmt: skip
def test_symbols_have_names_of_cpp(symbol: str, name: str) -> None:
    assert symbols.cpp_name(symbol) == name
