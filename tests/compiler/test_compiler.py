"""What the dialect means and refuses: types, constants, messages with carets."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import cuda
from gpusim.codegen.programs import bind, parameter_types
from gpusim.compiler import ir
from gpusim.compiler.build import build
from gpusim.compiler.types import common, unify, weak_common
from gpusim.cuda import Kernel
from gpusim.errors import GpusimError, KernelSourceError, LaunchError

INTS = np.zeros(8, dtype=np.int32)
FLOATS = np.zeros(8, dtype=np.float32)
BLOCK = 128


def built(kernel: Kernel, *args: object) -> ir.Function:
    return build(kernel.source, parameter_types(bind(kernel, args)))


def ops(function: ir.Function) -> list[str]:
    return [v.op for v in function.values() if v.op not in ("const", "source_branch")]


def stored_type(kernel: Kernel, *args: object) -> str:
    """Return the type that the first stored value had before it was converted."""
    store = next(v for v in built(kernel, *args).values() if v.op == "store")
    value = store.args[1]
    return str(value.args[0].dtype if value.op == "cast" else value.dtype)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (ir.INT32, ir.INT32, ir.INT32),
        (ir.INT32, ir.UINT32, ir.UINT32),
        (ir.UINT32, ir.INT64, ir.INT64),
        (ir.INT64, ir.UINT64, ir.UINT64),
        (ir.INT32, ir.FLOAT32, ir.FLOAT32),
        (ir.INT64, ir.FLOAT32, ir.FLOAT32),
        (ir.FLOAT32, ir.FLOAT64, ir.FLOAT64),
        (ir.BOOL, ir.BOOL, ir.INT32),
        (ir.INT8, ir.UINT8, ir.INT32),
    ],
)
def test_operands_meet_in_the_type_that_c_gives_them(
    a: ir.DType, b: ir.DType, expected: ir.DType
) -> None:
    assert common(a, b) == expected
    assert common(b, a) == expected


def test_a_bare_number_takes_the_type_of_what_it_meets() -> None:
    assert weak_common(2, ir.UINT32) == ir.UINT32
    assert weak_common(0.5, ir.FLOAT32) == ir.FLOAT32
    assert weak_common(0.5, ir.INT32) == ir.FLOAT64
    assert weak_common(2**40, ir.INT32) == ir.INT64


def test_a_variable_has_the_one_type_in_which_its_assignments_meet() -> None:
    assert unify(ir.BOOL, ir.BOOL) == ir.BOOL
    assert unify(ir.INT32, ir.FLOAT32) == ir.FLOAT32


def test_an_accumulator_that_starts_at_zero_takes_the_elements_type() -> None:
    @cuda.jit
    def kernel(a, out):
        total = 0
        for i in range(4):
            total += a[i]
        out[0] = total

    assert stored_type(kernel, FLOATS, FLOATS.astype(np.float64)) == "float32"
    assert stored_type(kernel, INTS, FLOATS) == "int32"


def test_narrow_elements_are_computed_with_as_int32() -> None:
    @cuda.jit
    def kernel(a, out):
        out[0] = a[0] + a[1]

    assert stored_type(kernel, INTS.astype(np.uint8), FLOATS) == "int32"


def test_a_condition_of_compile_time_constants_leaves_no_branch() -> None:
    @cuda.jit
    def kernel(out):
        if BLOCK >= 512:
            out[1] = 7
        if BLOCK >= 64 and BLOCK < 256:
            out[0] = 1

    function = built(kernel, INTS)
    assert len(function.blocks) == 1
    assert ops(function) == ["store"]


def test_closures_are_compile_time_constants() -> None:
    def make(factor: int, dtype: type) -> Kernel:
        @cuda.jit
        def kernel(out):
            shared = cuda.shared.array(factor * 2, dtype)
            shared[0] = factor
            out[0] = shared[0]

        return kernel

    function = built(make(16, np.float64), INTS)
    assert function.shared == [ir.Array("shared", "shared", ir.FLOAT64, (32,))]


def test_and_evaluates_its_right_side_only_where_that_is_needed() -> None:
    @cuda.jit
    def kernel(a, out, n):
        i = cuda.grid(1)
        if i < n and a[i] > 0:
            out[0] = 1

    function = built(kernel, INTS, INTS, 4)
    entry_loads = [v for v in function.entry.body if v.op == "load"]
    assert entry_loads == []
    assert ops(function).count("load") == 1


def test_device_functions_are_inlined() -> None:
    @cuda.jit(device=True)
    def twice(x):
        if x > 10:
            return x
        return x * 2

    @cuda.jit
    def kernel(out):
        out[0] = twice(twice(cuda.threadIdx.x))

    assert ops(built(kernel, INTS)).count("mul") == 2


def test_static_shared_arrays_follow_one_another_and_dynamic_memory_comes_last() -> None:
    @cuda.jit
    def kernel(out):
        rest = cuda.shared.array(0, np.int32)
        first = cuda.shared.array(3, np.float64)
        second = cuda.shared.array((2, 2), np.int32)
        first[0] = 1
        second[0, 1] = 2
        rest[0] = 3
        out[0] = rest[0]

    places = {a.name: a.offset for a in built(kernel, INTS).shared}
    assert places == {"rest": 48, "first": 0, "second": 32}


def unsupported_with() -> Kernel:
    @cuda.jit
    def kernel(a):
        with a as f:
            a[0] = f

    return kernel


def unsupported_list() -> Kernel:
    @cuda.jit
    def kernel(a):
        b = [1, 2]
        a[0] = b[0]

    return kernel


def unsupported_slice() -> Kernel:
    @cuda.jit
    def kernel(a):
        a[1:3] = 0

    return kernel


def unsupported_default() -> Kernel:
    @cuda.jit
    def kernel(a, n=3):
        a[0] = n

    return kernel


def unsupported_else() -> Kernel:
    @cuda.jit
    def kernel(a):
        while a[0] > 1:
            a[0] -= 1
        else:
            a[1] = 0

    return kernel


@pytest.mark.parametrize(
    ("make", "message", "marked"),
    [
        (unsupported_with, "kernels do not have with", "with a"),
        (unsupported_list, "kernels do not have a list", "[1, 2]"),
        (unsupported_slice, "kernels do not have a slice", "1:3"),
        (unsupported_default, "plain positional parameters", "def kernel"),
        (unsupported_else, "else after a loop", "a[1] = 0"),
    ],
)
def test_what_the_dialect_lacks_is_refused_when_the_kernel_is_decorated(
    make: object, message: str, marked: str
) -> None:
    with pytest.raises(KernelSourceError) as caught:
        make()  # type: ignore[operator]
    text = str(caught.value)
    assert message in text
    _, line, carets = text.splitlines()
    assert line[carets.index("^") :].startswith(marked)


def name_missing() -> Kernel:
    @cuda.jit
    def kernel(a):
        a[0] = nowhere  # noqa: F821

    return kernel


def float_index() -> Kernel:
    @cuda.jit
    def kernel(a):
        a[1.5] = 0

    return kernel


def shift_of_float() -> Kernel:
    @cuda.jit
    def kernel(a):
        x = 1.5
        a[0] = x << 2

    return kernel


def negative_shift() -> Kernel:
    @cuda.jit
    def kernel(a):
        a[0] = 1 << (2 - 3)

    return kernel


def bits_of_constant_float() -> Kernel:
    @cuda.jit
    def kernel(a):
        a[0] = ~1.5

    return kernel


def root_of_negative_constant() -> Kernel:
    @cuda.jit
    def kernel(a):
        a[0] = (-8.0) ** 0.5

    return kernel


def ordinary_call() -> Kernel:
    @cuda.jit
    def kernel(a):
        a[0] = unsupported_list()

    return kernel


def array_as_number() -> Kernel:
    @cuda.jit
    def kernel(a):
        a[0] = a + 1

    return kernel


def loop_over_array() -> Kernel:
    @cuda.jit
    def kernel(a):
        for x in a:
            a[0] = x

    return kernel


def kernel_returns() -> Kernel:
    @cuda.jit
    def kernel(a):
        return a[0]

    return kernel


def wrong_rank() -> Kernel:
    @cuda.jit
    def kernel(a):
        a[0, 1] = 0

    return kernel


def recursion() -> Kernel:
    @cuda.jit(device=True)
    def again(x):
        return again(x - 1)

    @cuda.jit
    def kernel(a):
        a[0] = again(3)

    return kernel


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (name_missing, "'nowhere' is not defined"),
        (float_index, "an index is an integer"),
        (shift_of_float, "bits and shifts need integers"),
        (negative_shift, "negative shift count"),
        (bits_of_constant_float, "~ needs an integer"),
        (root_of_negative_constant, "is not a real number"),
        (ordinary_call, "cuda.jit(device=True)"),
        (array_as_number, "a is an array; give an index"),
        (loop_over_array, "kernels loop over range(...)"),
        (kernel_returns, "a kernel returns nothing"),
        (wrong_rank, "a has 1 dimension(s), not 2"),
        (recursion, "again calls itself"),
    ],
)
def test_what_has_no_meaning_is_marked_in_the_users_line(make: object, message: str) -> None:
    with pytest.raises(KernelSourceError) as caught:
        built(make(), INTS)  # type: ignore[operator]
    assert message in str(caught.value)
    assert "^" in str(caught.value).splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((INTS,), "takes 2 arguments (a, n), not 1: n missing"),
        (([1, 2], 3), "'a' is a list"),
        ((np.zeros(4, dtype=np.complex64), 3), "complex64"),
        ((np.zeros(4, dtype="i4,i2")["f0"], 3), "strides of (6,) bytes"),
    ],
)
def test_arguments_that_no_kernel_takes_are_refused(
    arguments: tuple[object, ...], message: str
) -> None:
    @cuda.jit
    def kernel(a, n):
        a[0] = n

    with pytest.raises(LaunchError, match=re.escape(message)):
        bind(kernel, arguments)


@pytest.mark.parametrize(
    "configuration", [(0, 32), (1, 0), (1, 1025), (1, (32, 64)), ((1, 1, 70000), 1), (1.5, 32)]
)
def test_launches_that_no_gpu_accepts_are_refused(configuration: tuple[object, object]) -> None:
    @cuda.jit
    def kernel(a):
        a[0] = 1

    with pytest.raises(LaunchError):
        kernel[configuration]


def test_intrinsics_and_device_functions_cannot_be_called_outside_a_kernel() -> None:
    with pytest.raises(GpusimError, match="only be used inside a kernel"):
        cuda.syncthreads()


def test_math_functions_stay_in_float32() -> None:
    @cuda.jit
    def kernel(a, out):
        out[0] = math.sqrt(a[0])

    assert stored_type(kernel, FLOATS, FLOATS.astype(np.float64)) == "float32"
    assert stored_type(kernel, INTS, FLOATS) == "float64"


@pytest.mark.parametrize("a", [7, -7, 0, 10**18 + 1, -(10**18) - 1, 2**63 - 1, 3 * 10**40])
@pytest.mark.parametrize("b", [1, 2, -2, 10, -(10**9), 10**17])
def test_constants_divide_toward_zero_as_in_c_whatever_their_size(a: int, b: int) -> None:
    """The quotient's digits are those without signs; what is left has the sign of `a`."""

    @cuda.jit
    def kernel(out):
        out[0] = 1 if a // b == quotient else 0
        out[1] = 1 if a % b == remainder else 0

    sign = -1 if (a < 0) != (b < 0) else 1
    quotient = sign * (abs(a) // abs(b))
    remainder = (abs(a) % abs(b)) * (-1 if a < 0 else 1)
    stores = [v for v in built(kernel, INTS).values() if v.op == "store"]
    assert [int(store.args[1].constant) for store in stores] == [1, 1]


def test_a_tuple_within_a_tuple_keeps_its_name() -> None:
    @cuda.jit
    def kernel(out):
        pair = (1, (2, 3))
        first, second = pair
        out[0] = first + second[0] * second[1]

    assert ops(built(kernel, INTS)) == ["mul", "add", "store"]


def test_named_arguments_may_come_in_any_order() -> None:
    @cuda.jit
    def kernel(out):
        shared = cuda.shared.array(dtype=np.int32, shape=(4, 2))
        shared[0, 0] = 1
        out[0] = shared[0, 0]

    assert built(kernel, INTS).shared[0].shape == (4, 2)


def kernel_of(path: Path, text: str) -> Kernel:
    """Return the kernel that a file defines: formatters would not leave its text as it is."""
    path.write_text(text, encoding="utf-8")
    scope: dict[str, Any] = {"cuda": cuda}
    exec(compile(text, str(path), "exec"), scope)
    made: Kernel = scope["made"]
    return made


def test_a_comment_may_stand_left_of_its_kernel(tmp_path: Path) -> None:
    text = "if True:\n    @cuda.jit\n    def made(out):\n# left\n        out[0] = 1\n"
    assert ops(built(kernel_of(tmp_path / "left.py", text), INTS)) == ["store"]


def test_what_stands_too_deep_in_one_another_is_refused(tmp_path: Path) -> None:
    choices = "".join(f"{i} if x == {i} else " for i in range(600))
    text = f"@cuda.jit\ndef made(out, x):\n    out[0] = {choices}x\n"
    with pytest.raises(KernelSourceError, match="are nested too deeply"):
        built(kernel_of(tmp_path / "deep.py", text), INTS, 3)
