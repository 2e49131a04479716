"""What is passed to a kernel of nvcc's is a value of the parameter's type, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import Run

import gpusim
from gpusim.cuda_cpp import scalars
from gpusim.errors import LaunchError
from gpusim.sass import compiler, wheels
from gpusim.sass.kernels import CodeKernel, CubinFile
from gpusim.sass.symbols import parameter_types

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

TEXT = """
enum Mode { OFF, ON };
struct Pair { int key; float value; };
template <bool> struct Choice { typedef float type; };
using Real = Choice<true>::type;
__device__ int x = 5;
__device__ __noinline__ int global_x() { return x; }
__global__ void copied(int *y, const int *x) { y[threadIdx.x] = x[threadIdx.x] + 1; }
__global__ void shadowed(int *y, int *x) { y[0] = x[0]; y[1] = global_x(); }
__global__ void numbers(double *y, unsigned char b, int i, unsigned u, long long l,
                        unsigned long long m, float f, double d, bool t) {
  y[0] = b, y[1] = i, y[2] = u, y[3] = l, y[4] = m, y[5] = f, y[6] = d, y[7] = t;
}
__global__ void wide(unsigned long long *y, __int128 s, unsigned __int128 u) {
  y[0] = s, y[1] = s >> 64, y[2] = u, y[3] = u >> 64;
}
__global__ void named(float *y, Real r, Mode m) { y[0] = r, y[1] = m; }
__global__ void pairs(float *y, const Pair *p, Pair q) {
  y[0] = p[1].key, y[1] = p[1].value, y[2] = q.key, y[3] = q.value;
}
__global__ void complexes(float *y, const float2 *z) { y[0] = z[1].x, y[1] = z[1].y; }
__global__ void bytes(int *y, const void *x) { y[0] = ((const int *)x)[0]; }
"""
PLAIN = {"b": 1, "i": 2, "u": 3, "l": 4, "m": 5, "f": 6.0, "d": 7.0, "t": True}


@pytest.fixture(scope="module")
def kernel() -> Callable[[str], CodeKernel]:
    return gpusim.cuda_source(TEXT).__getitem__


def test_an_array_in_another_byte_order_is_read_and_written(
    kernel: Callable[[str], CodeKernel],
) -> None:
    x, y = np.arange(4, dtype=">i4"), np.zeros(4, ">i4")
    kernel("copied")[1, 4](y, x)
    assert (y.tolist(), y.dtype.str) == ([1, 2, 3, 4], ">i4")
    gpusim.trace(kernel("copied")[1, 4], y, y)  # twice the same
    assert y.tolist() == [2, 3, 4, 5]
    gpusim.predict(kernel("copied")[1, 4], y, y)
    assert y.tolist() == [2, 3, 4, 5]
    x.flags.writeable = False
    kernel("copied")[1, 4](y, x)
    assert (y.tolist(), x.tolist()) == ([1, 2, 3, 4], [0, 1, 2, 3])
    spec = gpusim.array_spec(4, ">i4")
    assert gpusim.predict(kernel("copied")[1, 4], spec, spec).time_us > 0
    with pytest.raises(LaunchError, match="share memory, and 'y' is of >i4, in another byte order"):
        kernel("copied")[1, 2](y[:2], y[1:])


def test_views_of_subclasses_and_arrays_of_no_dimensions_are_arrays(
    kernel: Callable[[str], CodeKernel],
) -> None:
    y = np.zeros((1, 4), np.int32).view(np.matrix)
    kernel("copied")[1, 4](y, np.arange(4, dtype=np.int32).view(np.recarray))
    assert np.asarray(y).tolist() == [[1, 2, 3, 4]]
    one = np.zeros((), np.int32)
    kernel("copied")[1, 1](one, np.array(7, np.int32))
    assert one == 8


READ_ONLY = np.arange(4, dtype=np.int32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.array(["a", "b"]), r"is of <U1, which are text; pass its characters"),
        (np.array([b"abcd"]), r"is of \|S4, which are text; pass its bytes"),
        (np.array([1, 2], object), r"is of object, which are Python objects; give it a type"),
        (np.array(["2024"], "M8[s]"), r"is of datetime64\[s\], which are times; .*numpy.int64"),
        (np.array([1], "m8[s]"), r"is of timedelta64\[s\], which are times"),
        (np.ma.array([1, 2], np.int32, mask=[0, 1]), "is masked, and a kernel does not"),
        (np.zeros(2, np.longdouble), "which no GPU has; pass float64"),
        (np.zeros(2, np.complex64), "points to int32; the array is of complex64"),
        (np.zeros(2, np.float64), "points to int32; the array is of float64"),
        (np.zeros(2, "V4"), "points to int32; the array is of"),
        (np.zeros(2, [("a", "i4")]), "points to int32; the array is of"),
        (np.zeros(8, np.int32)[::2], r"is not contiguous; pass numpy.ascontiguousarray\(x\)"),
        (np.zeros((2, 2), np.int32).T[:1], "is not contiguous"),
        ([1, 2], "pass a NumPy array or None"),
        ("text", "pass a NumPy array or None"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(getattr(value, "dtype", value)),
)  # fmt: skip
def test_an_array_of_anything_but_numbers_is_refused(
    kernel: Callable[[str], CodeKernel], array: Any, why: str
) -> None:
    with pytest.raises(LaunchError, match=why):
        kernel("copied")[1, 2](np.zeros(4, np.int32), array)


def test_an_array_that_is_read_only_is_read(kernel: Callable[[str], CodeKernel]) -> None:
    kernel("copied")[1, 4](y := np.zeros(4, np.int32), READ_ONLY)
    assert y.tolist() == [1, 2, 3, 4]
    with pytest.raises(gpusim.GpusimError, match="read-only"):
        kernel("copied")[1, 4](READ_ONLY, y)


def test_a_variable_and_a_parameter_of_one_name_are_two(
    kernel: Callable[[str], CodeKernel],
) -> None:
    kernel("shadowed")[1, 1](y := np.zeros(2, np.int32), np.full(1, 9, np.int32))
    assert y.tolist() == [9, 5]


def values(kernel: Callable[[str], CodeKernel], **changed: Any) -> list[float]:
    kernel("numbers")[1, 1](y := np.zeros(8), *(PLAIN | changed).values())
    return y.tolist()


@pytest.mark.parametrize(
    ("name", "value", "held"),
    [
        ("b", 255, 255), ("i", -(2**31), -(2**31)), ("u", 2**32 - 1, 2**32 - 1), ("i", 4.0, 4),
        ("l", -(2**63), -(2.0**63)), ("m", 2**64 - 1, 2.0**64), ("i", True, 1), ("t", 1, 1),
        ("b", np.int64(7), 7), ("i", np.float64(4.0), 4), ("u", np.uint8(9), 9),
        ("f", 0.1, np.float32(0.1)), ("f", math.inf, math.inf), ("f", 2**24 + 1, 2**24),
        ("d", np.float32(0.5), 0.5), ("d", 2**60, 2**60), ("f", np.array(0.5), 0.5),
        ("i", np.array(3, ">i8"), 3), ("t", np.False_, 0), ("f", np.longdouble(0.5), 0.5),
    ],
)  # fmt: skip
def test_a_number_becomes_a_value_of_its_parameters_type(
    kernel: Callable[[str], CodeKernel], name: str, value: Any, held: float
) -> None:
    assert values(kernel, **{name: value})[list(PLAIN).index(name)] == held


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("b", 300, "300"), ("b", -1, "-1"), ("u", -1, "-1"), ("i", 2**31, "2147483648"),
        ("i", np.uint32(2**31), "2147483648"), ("u", np.int32(-1), "-1"), ("l", 2**63, ""),
        ("m", 2**64, ""), ("m", -1, ""), ("i", 1.5, "1.5"), ("i", math.nan, "nan"),
        ("i", math.inf, "inf"), ("m", -math.inf, "-inf"),
        ("i", 10**400, "a whole number of 1329 bits"),
        ("d", 10**400, "a whole number of 1329 bits"), ("f", 1e300, "1e.300"), ("f", 10**39, ""),
        ("t", 2, "2"), ("t", 0.5, "0.5"), ("d", -(10**5000), "a whole number of 16610 bits"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_a_number_that_the_type_does_not_have_is_refused(
    kernel: Callable[[str], CodeKernel], name: str, value: Any, said: str
) -> None:
    with pytest.raises(LaunchError, match=rf"^argument '{name}' is a .*, which .*{said}.* is not$"):
        values(kernel, **{name: value})


@pytest.mark.parametrize(
    "value",
    [1j, np.complex64(1), "1", b"1", np.str_("1"), np.timedelta64(1), np.datetime64(1, "s"),
     Fraction(1), [1], (1,), np.array("1")],
)  # fmt: skip
def test_what_is_no_number_is_refused(kernel: Callable[[str], CodeKernel], value: Any) -> None:
    with pytest.raises(LaunchError, match="argument 'i'"):
        values(kernel, i=value)


def test_numbers_of_128_bits(kernel: Callable[[str], CodeKernel]) -> None:
    y = np.zeros(4, np.uint64)
    kernel("wide")[1, 1](y, -(2**100) - 1, 2**127 + 3)
    assert y.tolist() == [2**64 - 1, 2**64 - 2**36 - 1, 3, 2**63]
    for wrong in ((2**127, 0), (0, -1), (0, 2**128), (0.5, 0)):
        with pytest.raises(LaunchError, match=r"is a (unsigned )?__int128, which"):
            kernel("wide")[1, 1](y, *wrong)


def test_types_are_those_of_the_compiler(kernel: Callable[[str], CodeKernel]) -> None:
    """Where the source's names for them say nothing: an integer to a float is that float."""
    kernel("named")[1, 1](y := np.zeros(2, np.float32), 3, 1)
    assert y.tolist() == [3, 1]


def test_a_cubins_parameters_have_types() -> None:
    text = "__global__ void k(float *y, float a, unsigned char b) { y[0] = a + b; }"
    file = CubinFile(compiler.compiled(text, "k.cu", [], "sm_90").cubin, "k.cubin")
    kernel = file[file.names[0]]
    kernel[1, 1](y := np.zeros(1, np.float32), 2, 1)
    assert y[0] == 3
    with pytest.raises(LaunchError, match="'arg2' is a unsigned char, which 256 is not"):
        kernel[1, 1](y, 2, 256)
    with pytest.raises(LaunchError, match="points to float32; the array is of float64"):
        kernel[1, 1](np.zeros(1), 2, 1)


PAIR = np.dtype([("key", "i4"), ("value", "f4")])


def test_structures_of_numpy_lie_as_those_of_the_source(
    kernel: Callable[[str], CodeKernel],
) -> None:
    pairs, y = np.array([(1, 1.5), (2, 2.5)], PAIR), np.zeros(4, np.float32)
    kernel("pairs")[1, 1](y, pairs, pairs[0])
    assert y.tolist() == [2, 2.5, 1, 1.5]
    for other in ([("key", "f4"), ("value", "i4")], [("key", "i4"), ("value", "f8")],
                  [("key", ">i4"), ("value", ">f4")], [("key", "i4")]):  # fmt: skip
        wrong = np.zeros(2, other)
        with pytest.raises(LaunchError, match="with members at other offsets than in Pair"):
            kernel("pairs")[1, 1](y, wrong, pairs[0])
        with pytest.raises(LaunchError, match=r"is a Pair, in which members do not lie as in"):
            kernel("pairs")[1, 1](y, pairs, wrong[0])


def test_complex_numbers_are_two_floats(kernel: Callable[[str], CodeKernel]) -> None:
    y = np.zeros(2, np.float32)
    for kind in ("<c8", ">c8"):
        kernel("complexes")[1, 1](y, np.array([1, 2 + 3j], kind))
        assert y.tolist() == [2, 3]


def test_a_pointer_to_anything_takes_any_numbers(kernel: Callable[[str], CodeKernel]) -> None:
    kernel("bytes")[1, 1](y := np.zeros(1, np.int32), np.array([7, 0, 0, 0], np.uint8))
    assert y[0] == 7
    with pytest.raises(LaunchError, match="which are text"):
        kernel("bytes")[1, 1](y, np.array(["a"]))


@pytest.mark.parametrize(
    ("number", "bits"),
    [(1.0, 0x3F80), (1.00390625, 0x3F80), (1.01171875, 0x3F82), (-0.0, 0x8000), (1e-45, 0),
     (math.inf, 0x7F80), (-2.0**-133, 0x8001), (3.3895313892515355e38, 0x7F7F), (3, 0x4040)],
)  # fmt: skip
def test_a_number_of_bfloat16_is_the_nearest(number: float, bits: int) -> None:
    assert scalars.scalar("x", "__nv_bfloat16", number) == bits


def test_a_number_beyond_bfloat16_is_refused() -> None:
    with pytest.raises(LaunchError, match="is a __nv_bfloat16, which"):
        scalars.scalar("x", "__nv_bfloat16", 3.4e38)


@pytest.mark.parametrize(
    ("symbol", "types"),
    [
        ("_Z1av", []),
        ("_Z1bfPKfPfS0_h1SPS2_6__half7__half2nbcamPViPVKiPKPKi",
         ["float", "float*", "float*", "float*", "unsigned char", "S", "S*", "__half", "__half2",
          "__int128", "bool", "char", "signed char", "unsigned long", "int*", "int*", "int**"]),
        ("_ZN2ns2n2INS_1QELin3ELb0EEEvT_PS2_PKS2_NS_1VIS2_EEy",
         ["ns::Q", "ns::Q*", "ns::Q*", "ns::V<ns::Q>", "unsigned long long"]),
        ("_Z1cI1SPdEvT_PT0_PKS2_S3_", ["S", "double**", "S*", "double*"]),
        ("_Z1dIJifEEvDpT_", None),
        ("kernel", None),
        ("_Z9999999x", None),
        ("_Z1k" + "P" * 5000 + "i", None),
    ],
)  # fmt: skip
def test_a_kernels_name_says_its_parameters_types(symbol: str, types: list[str] | None) -> None:
    assert parameter_types(symbol) == types


def test_the_command_line_refuses_them_as_well(run: Run, tmp_path: Any) -> None:
    file = tmp_path / "k.cu"
    file.write_text("__global__ void k(int *y, unsigned char b) { y[0] = b; }")
    for value, said in (("300", "300"), ("-1", "-1"), ("nan", "nan"), ("0.5", "0.5")):
        code, _, err = run(
            "trace",
            f"{file}:k",
            "--grid",
            1,
            "--block",
            32,
            "--arg",
            "int32[32]",
            f"--arg=b={value}",
        )
        assert (code, f"'b' is a unsigned char, which {said} is not" in err) == (2, True)


PAIRS = """struct pair { int a; int b; };
__global__ void by_value(int* out, pair p) { out[0] = p.a; }
__global__ void by_pointer(int* out, const pair* p) { out[0] = p->a; }
"""


def _of_itself() -> tuple[list[Any], dict[str, Any]]:
    listed: list[Any] = [1]
    listed.append(listed)
    named: dict[str, Any] = {"a": 1}
    named["b"] = named
    return listed, named


@pytest.mark.parametrize("value", _of_itself(), ids=["list", "dictionary"])
def test_a_structure_that_contains_itself_is_refused(value: object) -> None:
    kernel = gpusim.cuda_source(PAIRS)["by_value"]
    with pytest.raises(LaunchError, match=r"'p' is nested too deeply, or contains itself"):
        kernel[1, 1](np.zeros(1, np.int32), value)


def test_text_in_a_structured_array_is_refused() -> None:
    kernel = gpusim.cuda_source(PAIRS)["by_pointer"]
    text = np.zeros(1, [("a", "S4"), ("b", "<i4")])
    with pytest.raises(LaunchError, match=r"with members at other offsets than in pair;"):
        kernel[1, 1](np.zeros(1, np.int32), text)
