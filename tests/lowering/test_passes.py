"""The machine-independent passes: what they leave of small kernels, and that nothing changes."""

# Kernels are in the dialect, whose types the compiler works out, and keep their ifs.

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ir_threads import run
from ssa_verifier import verify
from strategies import ENTRIES
from verified import Verifier

from gpusim import catalogue, cuda
from gpusim.compiler.build import build
from gpusim.compiler.dump import dump
from gpusim.compiler.ir import (
    BOOL,
    FLOAT32,
    INT32,
    UINT32,
    Array,
    Block,
    DType,
    Function,
    Value,
    constant,
)
from gpusim.lowering.analysis.alias import array_of
from gpusim.lowering.analysis.def_use import definitions
from gpusim.lowering.analysis.evaluate import evaluate
from gpusim.lowering.analysis.known_bits import zero_bits
from gpusim.lowering.analysis.loops import natural_loops
from gpusim.lowering.code import Code, Row
from gpusim.lowering.machine_code.list_scheduling import list_scheduling
from gpusim.lowering.passes.fold import fold
from gpusim.lowering.passes.loop_rotation import loop_rotation
from gpusim.lowering.passes.optimise import optimise, simplify
from gpusim.lowering.passes.simplify_cfg import simplify_cfg

NUMBERS = Array("numbers", "global", FLOAT32)
WHOLES = Array("wholes", "global", INT32)
OUT = Array("out", "global", FLOAT32)


def compiled(python: Callable[..., Any], **kinds: DType | Array) -> Function:
    return build(cuda.jit(python).source, kinds)


def optimised(python: Callable[..., Any], **kinds: DType | Array) -> Function:
    function = compiled(python, **kinds)
    optimise(function, Verifier().watch)
    return function


def counts(function: Function) -> Counter[str]:
    return Counter(v.op for v in function.values())


def of(function: Function, op: str) -> list[Value]:
    return [v for v in function.values() if v.op == op]


def loads_of_blocks(function: Function) -> list[int]:
    """Return how many loads each block has that has any."""
    loads = (sum(v.op == "load" for v in b.body) for b in function.blocks)
    return [n for n in loads if n]


def spaces(function: Function, op: str) -> list[str]:
    return [v.detail.space for v in of(function, op)]


def straight(*body: Value) -> Function:
    """A function of one block whose last value is kept by a store."""
    index = constant(0, INT32)
    keep = Value("store", None, [index, body[-1]], Array("kept", "global", body[-1].dtype or BOOL))
    return Function("straight", {}, [Block(0, body=[*body, keep])])


def kept(function: Function) -> Value:
    return of(function, "store")[0].args[1]


def parameter(dtype: DType = INT32) -> Value:
    return Value("param", dtype, detail="x")


def operation(op: str, dtype: DType, *args: Value, detail: Any = None) -> Value:
    return Value(op, dtype, list(args), detail)


@pytest.mark.parametrize(
    ("op", "operand", "dtype", "expected"),
    [
        ("mul", 8, INT32, ("shl", 3)),
        ("mul", 2, UINT32, ("shl", 1)),
        ("idiv", 4, UINT32, ("shr", 2)),
        ("rem", 16, UINT32, ("and", 15)),
        ("idiv", 4, INT32, ("idiv", 4)),
        ("rem", 16, INT32, ("rem", 16)),
        ("sub", 3, INT32, ("add", -3)),
        ("mul", -1, INT32, ("neg", None)),
        ("lt", 7, INT32, ("lt", 7)),
        ("ge", 7, INT32, ("gt", 6)),
        ("le", 7, UINT32, ("lt", 8)),
        ("gt", 0, UINT32, ("ne", 0)),
        ("div", 2.0, FLOAT32, ("mul", 0.5)),
        ("div", 3.0, FLOAT32, ("div", 3.0)),
    ],
)
def test_an_operation_with_a_constant_becomes_the_cheapest_equal_one(
    op: str, operand: float, dtype: DType, expected: tuple[str, float | None]
) -> None:
    x = parameter(dtype)
    result = BOOL if op in ("lt", "le", "gt", "ge") else dtype
    function = straight(x, operation(op, result, x, constant(operand, dtype)))
    simplify(function)
    found = kept(function)
    assert found.op == expected[0]
    assert found.args[0] is x
    if expected[1] is not None:
        assert found.args[1].constant == expected[1]


@pytest.mark.parametrize(
    ("op", "operand", "dtype"),
    [
        ("add", 0, INT32),
        ("mul", 1, UINT32),
        ("shl", 0, INT32),
        ("or", 0, INT32),
        ("and", -1, INT32),
        ("xor", 0, UINT32),
        ("mul", 1.0, FLOAT32),
        ("sub", 0.0, FLOAT32),
        ("add", -0.0, FLOAT32),
    ],
)
def test_an_operation_that_changes_nothing_goes(op: str, operand: float, dtype: DType) -> None:
    x = parameter(dtype)
    function = straight(x, operation(op, dtype, x, constant(operand, dtype)))
    simplify(function)
    assert kept(function) is x


def test_adding_a_positive_float_zero_stays_as_it_turns_minus_zero_into_zero() -> None:
    x = parameter(FLOAT32)
    function = straight(x, operation("add", FLOAT32, x, constant(0.0, FLOAT32)))
    simplify(function)
    assert kept(function).op == "add"


def test_constants_added_one_after_the_other_are_added_at_once() -> None:
    x = parameter()
    first = operation("add", INT32, x, constant(5, INT32))
    function = straight(x, first, operation("sub", INT32, first, constant(7, INT32)))
    simplify(function)
    assert [kept(function).op, int(kept(function).args[1].detail)] == ["add", -2]


def test_constants_wrap_and_shift_as_in_c() -> None:
    assert evaluate("add", INT32, None, [np.int32(2**31 - 1), np.int32(1)]) == -(2**31)
    assert evaluate("idiv", INT32, None, [np.int32(-7), np.int32(2)]) == -3
    assert evaluate("rem", INT32, None, [np.int32(-7), np.int32(2)]) == -1
    assert evaluate("shl", UINT32, None, [np.uint32(1), np.uint32(40)]) == 0
    assert evaluate("shr", INT32, None, [np.int32(-8), np.int32(40)]) == -1
    assert evaluate("cast", INT32, None, [np.float32(3e9)]) == 2**31 - 1


def test_a_compare_of_a_shifted_value_compares_the_value() -> None:
    x = parameter(UINT32)
    half = operation("shr", UINT32, x, constant(1, UINT32))
    function = straight(x, half, operation("gt", BOOL, half, constant(32, UINT32)))
    simplify(function)
    assert [kept(function).op, kept(function).args[0], int(kept(function).args[1].detail)] == [
        "gt",
        x,
        65,
    ]


def test_a_quotient_compared_with_zero_is_one_unsigned_compare() -> None:
    x = parameter()
    warp = operation("idiv", INT32, x, constant(32, INT32))
    function = straight(x, warp, operation("eq", BOOL, warp, constant(0, INT32)))
    simplify(function)
    assert [kept(function).op, int(kept(function).args[1].detail)] == ["lt", 63]
    assert "idiv" not in counts(function)


def test_casts_there_and_back_go() -> None:
    x = parameter()
    there = operation("cast", UINT32, x)
    function = straight(x, there, operation("cast", INT32, there))
    simplify(function)
    assert kept(function) is x


def test_a_branch_on_a_constant_is_a_jump_and_its_other_side_goes() -> None:
    def kernel(out):
        n = 3
        if n > 2:
            out[0] = 1
        else:
            out[0] = 2

    function = compiled(kernel, out=OUT)
    fold(function)
    simplify_cfg(function)
    assert len(function.blocks) == 1
    assert len(of(function, "store")) == 1


def test_equal_computations_are_made_once() -> None:
    def kernel(out, n):
        i = cuda.blockIdx.x * n + cuda.threadIdx.x
        j = n * cuda.blockIdx.x + cuda.threadIdx.x
        out[i] = np.float32(i + j)

    found = counts(optimised(kernel, out=OUT, n=INT32))
    assert (found["mul"], found["sreg"], found["shl"]) == (1, 2, 1)


def test_the_sources_conditional_stays_when_its_branch_is_gone() -> None:
    def kernel(out, n):
        if n > 3:
            x = 1
        else:
            x = 2
        out[0] = x

    function = optimised(kernel, out=WHOLES, n=INT32)
    assert len(function.blocks) == 1
    assert counts(function)["source_branch"] == 1
    assert counts(function)["select"] == 1


def test_a_while_loop_tests_at_its_end_behind_a_guard() -> None:
    def kernel(out, n, step):
        i = 0
        while i < n:
            out[i] = 1
            i += step

    function = compiled(kernel, out=OUT, n=INT32, step=INT32)
    assert loop_rotation(function)
    simplify(function)
    verify(function)
    (loop,) = natural_loops(function)
    assert loop.blocks == [loop.header]
    assert loop.header.targets[0] is loop.header
    guards = [b for b in function.blocks if b.condition is not None and b is not loop.header]
    assert len(guards) == 1


def test_a_loop_of_known_length_is_written_out_with_its_barriers() -> None:
    def kernel(out):
        shared = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        shared[tid] = out[tid]
        offset = 128
        while offset > 0:
            cuda.syncthreads()
            if tid < offset:
                shared[tid] += shared[tid + offset]
            offset >>= 1
        out[tid] = shared[tid]

    function = optimised(kernel, out=OUT)
    assert not natural_loops(function)
    assert counts(function)["barrier"] == 8
    limits = [int(v.args[1].detail) for v in of(function, "lt")]
    assert limits == [128, 64, 32, 16, 8, 4, 2, 1]


def test_a_loop_of_known_length_that_is_large_is_not_written_out_in_full() -> None:
    def kernel(out):
        for i in range(1000):
            cuda.syncthreads()
            out[i] = 1

    function = optimised(kernel, out=OUT)
    assert natural_loops(function)
    assert counts(function)["barrier"] <= 16 + 8 + 4 + 1


def test_what_is_constant_in_each_iteration_does_not_count_as_large() -> None:
    """Of 13 operations 8 follow from the iteration alone: 64 times 13 would be too many."""

    def kernel(out, mask):
        total = out[0]
        for i in range(64):
            low = (i * 5 & 6) << 2
            high = (i ^ 3) >> 1
            total = ((total ^ low) + mask ^ high) * mask ^ total
        out[0] = total

    out = Array("out", "global", INT32)
    assert not natural_loops(optimised(kernel, out=out, mask=INT32))


def test_sums_that_accesses_take_as_displacements_do_not_count_as_large() -> None:
    """Each index is a place in the first row or column, and a constant of the iteration more."""

    def kernel(numbers, out, row):
        tid = cuda.threadIdx.x
        best = numbers[0]
        at = 0
        for k in range(64):
            found = numbers[row + k] + out[k * 64 + tid]
            if found > best:
                best = found
                at = k
        out[at] = best

    assert not natural_loops(optimised(kernel, numbers=NUMBERS, out=OUT, row=INT32))


def test_what_a_loop_that_is_written_out_does_not_change_is_computed_once() -> None:
    def kernel(out, n):
        for i in range(4):
            if n > i:
                out[i * 8] = n * n + i

    assert counts(optimised(kernel, out=OUT, n=INT32))["mul"] == 1


def test_a_loop_that_steps_by_a_variable_stays_as_it_is() -> None:
    def kernel(numbers, out, n):
        total = np.float32(0)
        for i in range(cuda.threadIdx.x, n, cuda.gridDim.x * 256):
            total += numbers[i]
        out[0] = total

    function = optimised(kernel, numbers=NUMBERS, out=OUT, n=INT32)
    assert counts(function)["load"] == 1
    assert [v.op for v in natural_loops(function)[0].header.body] == [
        "load", "add", "add", "lt", "source_branch",
    ]  # fmt: skip


def test_a_small_loop_runs_in_rows_of_sixteen_eight_four_and_one() -> None:
    def kernel(numbers, out, n):
        total = np.float32(0)
        i = np.uint32(0)
        while i < np.uint32(n):
            total += numbers[i]
            i += 1
        out[0] = total

    function = optimised(kernel, numbers=NUMBERS, out=OUT, n=INT32)
    assert loads_of_blocks(function) == [16, 8, 4, 1]
    row = next(b for b in function.blocks if b.targets and b in b.targets)
    assert Counter(v.op for v in row.body) == {
        "load": 16, "add": 21, "or": 12, "source_branch": 16, "lt": 1, "gt": 1,
    }  # fmt: skip


def test_a_loop_that_begins_at_a_variable_takes_what_is_left_over_first() -> None:
    def kernel(numbers, out, first, n):
        total = np.float32(0)
        for i in range(first, n):
            total += numbers[i]
        out[0] = total

    function = optimised(kernel, numbers=NUMBERS, out=OUT, first=INT32, n=INT32)
    assert loads_of_blocks(function) == [1, 16, 8, 4]


def test_a_loop_in_which_threads_meet_runs_in_rows_too() -> None:
    def kernel(numbers, out, n):
        total = np.float32(0)
        for i in range(n):
            cuda.syncthreads()
            total += numbers[i]
        out[0] = total

    function = optimised(kernel, numbers=NUMBERS, out=OUT, n=INT32)
    barriers = [sum(v.op == "barrier" for v in b.body) for b in function.blocks]
    assert [n for n in barriers if n] == [16, 8, 4, 1]


def test_rows_of_atomics_are_not_put_in_rows_again() -> None:
    def kernel(wholes, n):
        for i in range(n):
            cuda.atomic.add(wholes, i, 1)

    function = optimised(kernel, wholes=WHOLES, n=INT32)
    atomics = [sum(v.op == "atomic" for v in b.body) for b in function.blocks]
    assert [n for n in atomics if n] == [4, 1]


def test_what_rows_leave_over_is_written_as_ifs_where_there_is_a_loop_around() -> None:
    def from_zero(numbers, out, n):
        for k in range(n):
            total = np.float32(0)
            for i in range(n):
                total += numbers[i]
            out[k] = total

    def from_variable(numbers, out, n):
        for k in range(n):
            total = np.float32(0)
            for i in range(k, n):
                total += numbers[i]
            out[k] = total

    function = optimised(from_zero, numbers=NUMBERS, out=OUT, n=INT32)
    assert loads_of_blocks(function) == [16, 8, 4, 1, 1, 1]
    function = optimised(from_variable, numbers=NUMBERS, out=OUT, n=INT32)
    assert loads_of_blocks(function) == [1, 1, 1, 16, 8, 4]


def test_turns_are_counted_of_a_loop_whose_steps_decide_how_often_another_runs() -> None:
    """As LLVM has it, the inner one runs (n - tid) - turns * step times, not n - i."""

    def kernel(numbers, out, n):
        total = np.float32(0)
        for i in range(cuda.threadIdx.x, n, cuda.gridDim.x * 256):
            for k in range(i, n):
                total += numbers[k]
        out[0] = total

    def by_one(numbers, out, n):
        total = np.float32(0)
        for i in range(n):
            for k in range(i, n):
                total += numbers[k]
        out[0] = total

    def turns(function: Function) -> list[Value]:
        outermost = natural_loops(function)[-1]
        integers = [phi for phi in outermost.header.phis if phi.dtype == INT32]
        return [v for v in of(function, "mul") if any(a in integers for a in v.args)]

    assert len(turns(optimised(kernel, numbers=NUMBERS, out=OUT, n=INT32))) == 1
    assert not turns(optimised(by_one, numbers=NUMBERS, out=OUT, n=INT32))


@pytest.mark.parametrize("n", [-3, 0, 1, 3, 4, 5, 11, 12, 16, 17, 29, 64])
@pytest.mark.parametrize("first", [0, 1, 5])
def test_an_unrolled_loop_takes_every_element_once(first: int, n: int) -> None:
    def from_zero(numbers, out, first, n):
        total = np.float32(0)
        last = -1
        for i in range(n):
            total += numbers[i]
            last = i
        out[0] = total
        out[1] = np.float32(last)

    def from_first(numbers, out, first, n):
        total = np.float32(0)
        i = n
        while i > first:
            total += numbers[i]
            i -= 2
        out[0] = total
        out[1] = np.float32(i)

    def unsigned(numbers, out, first, n):
        total = np.float32(0)
        i = np.uint32(first)
        while i < np.uint32(max(n, 0)):
            total += numbers[i]
            i += 1
        out[0] = total

    def until_equal(numbers, out, first, n):
        total = np.float32(0)
        i = first
        while i != max(first, n):
            total += numbers[i]
            i += 1
        out[0] = total

    def in_steps(numbers, out, first, n):
        total = np.float32(0)
        for i in range(first, n, 3 + first):
            for k in range(i, n):
                total += numbers[k] * np.float32(k)
            for k in range(i):
                total -= numbers[k] * np.float32(i)
        out[0] = total

    for kernel in (from_zero, from_first, unsigned, until_equal, in_steps):
        function = compiled(kernel, numbers=NUMBERS, out=OUT, first=INT32, n=INT32)
        same_results(
            function,
            1,
            1,
            {
                "numbers": np.arange(64, dtype=np.float32) ** 2,
                "out": np.zeros(2, np.float32),
                "first": first,
                "n": min(n, 63),
            },
        )


def test_what_only_one_way_needs_is_computed_there_but_in_no_loop() -> None:
    def kernel(numbers, out, n):
        step = n * 5
        tid = cuda.threadIdx.x
        total = np.float32(0)
        if tid < n:
            for i in range(tid, n, step):
                total += numbers[i]
        out[tid] = total

    function = optimised(kernel, numbers=NUMBERS, out=OUT, n=INT32)
    (loop,) = natural_loops(function)
    (step,) = of(function, "mul")
    home = definitions(function)[step]
    assert home is not function.entry
    assert home not in loop.blocks


def test_ways_that_meet_twice_in_a_row_meet_once() -> None:
    def kernel(numbers, out, n):
        found = np.float32(0)
        if n > 3:
            found = numbers[0]
            if n > 4:
                out[5] = found
                found = numbers[1]
                if n > 5:
                    out[6] = found
                    found = numbers[2]
        out[0] = found

    function = optimised(kernel, numbers=NUMBERS, out=OUT, n=INT32)
    (phi,) = of(function, "phi")
    assert len(phi.args) == 4


def test_what_a_loop_does_not_change_is_computed_before_it() -> None:
    def kernel(numbers, out, n, step):
        i = 0
        while i < n:
            out[i * step] = numbers[0] * 3 + n * step
            cuda.syncthreads()
            i += step

    function = optimised(kernel, numbers=NUMBERS, out=OUT, n=INT32, step=INT32)
    inside = [v.op for b in natural_loops(function)[0].blocks for v in b.body]
    assert inside.count("mul") == 2  # i * step, and what the loaded number is multiplied by
    assert inside.count("load") == 1


def test_a_load_after_a_store_to_the_same_element_takes_the_stored_value() -> None:
    def kernel(numbers, out):
        shared = cuda.shared.array(64, np.float32)
        tid = cuda.threadIdx.x
        shared[tid] = numbers[tid]
        out[tid] = shared[tid]

    assert spaces(optimised(kernel, numbers=NUMBERS, out=OUT), "load") == ["global"]


def test_a_barrier_between_store_and_load_keeps_the_load() -> None:
    def kernel(numbers, out):
        shared = cuda.shared.array(64, np.float32)
        tid = cuda.threadIdx.x
        shared[tid] = numbers[tid]
        cuda.syncthreads()
        out[tid] = shared[tid]

    assert spaces(optimised(kernel, numbers=NUMBERS, out=OUT), "load") == ["global", "shared"]


def test_a_store_to_one_parameter_may_change_another() -> None:
    def kernel(numbers, out):
        tid = cuda.threadIdx.x
        x = numbers[tid]
        out[tid] = 5
        out[tid + 1] = x + numbers[tid]

    assert counts(optimised(kernel, numbers=NUMBERS, out=OUT))["load"] == 2


def test_a_warp_tail_without_volatile_loads_all_and_stores_once() -> None:
    """As nvcc has it for reduce5, whose sums come out wrong for that."""

    def kernel(wholes):
        shared = cuda.shared.array(64, np.int32)
        tid = np.uint32(cuda.threadIdx.x)
        shared[tid] = wholes[tid]
        cuda.syncthreads()
        if tid < 16:
            shared[tid] += shared[tid + 16]
            shared[tid] += shared[tid + 8]
            shared[tid] += shared[tid + 4]
        cuda.syncthreads()
        wholes[tid] = shared[0]

    function = optimised(kernel, wholes=WHOLES)
    (tail,) = [b for b in function.blocks if sum(v.op == "load" for v in b.body) > 1]
    accesses = [v.op for v in tail.body if v.op in ("load", "store")]
    assert accesses == ["load"] * 4 + ["store"]


def test_a_volatile_array_is_accessed_as_written() -> None:
    def kernel(wholes):
        shared = cuda.shared.array(64, np.int32)
        tid = np.uint32(cuda.threadIdx.x)
        tail = cuda.volatile(shared)
        tail[tid] += tail[tid + 16]
        tail[tid] += tail[tid + 8]
        wholes[tid] = shared[0]

    function = optimised(kernel, wholes=WHOLES)
    shared = [v.op for v in function.values() if v.op in ("load", "store") and v.detail.volatile]
    assert shared == ["load", "load", "store"] * 2


def test_a_store_that_another_block_overwrites_stays() -> None:
    def kernel(numbers, out, n):
        shared = cuda.shared.array(64, np.float32)
        tid = cuda.threadIdx.x
        shared[tid] = numbers[tid]
        shared[tid] += numbers[tid + n] if tid < n else 0
        cuda.syncthreads()
        out[tid] = shared[0]

    function = optimised(kernel, numbers=NUMBERS, out=OUT, n=INT32)
    assert spaces(function, "store") == ["shared", "shared", "global"]
    assert spaces(function, "load") == ["global", "global", "shared"]


def test_a_sum_kept_in_shared_memory_by_a_loop_is_stored_once_after_it() -> None:
    def kernel(wholes, out, n):
        shared = cuda.shared.array(64, np.int32)
        tid = np.int32(cuda.threadIdx.x)
        shared[tid] = 0
        i = tid
        while i < n:
            shared[tid] += wholes[i]
            i += cuda.gridDim.x
        cuda.syncthreads()
        out[tid] = shared[0]

    function = optimised(kernel, wholes=WHOLES, out=OUT, n=INT32)
    (loop,) = natural_loops(function)
    inside = [v.detail.space for b in loop.blocks for v in b.body if v.op in ("load", "store")]
    assert inside == ["global"]
    assert spaces(function, "store") == ["shared", "shared", "global"]


def test_a_local_array_of_constant_indices_lives_in_registers() -> None:
    def kernel(numbers, out):
        own = cuda.local.array(4, np.float32)
        tid = cuda.threadIdx.x
        for k in range(4):
            own[k] = numbers[tid + k]
        total = np.float32(0)
        for k in range(4):
            total += own[3 - k]
        out[tid] = total

    function = optimised(kernel, numbers=NUMBERS, out=OUT)
    assert set(spaces(function, "load") + spaces(function, "store")) == {"global"}
    assert function.local == []


def test_what_both_sides_of_a_branch_do_is_done_once() -> None:
    """As nvcc has it for the double-buffered scan: one LDS before, one STS after."""

    def kernel(out, n):
        shared = cuda.shared.array(64, np.float32)
        tid = cuda.threadIdx.x
        cuda.syncthreads()
        if tid >= n:
            shared[tid + 32] = shared[tid] + shared[tid - n]
        else:
            shared[tid + 32] = shared[tid]
        cuda.syncthreads()
        out[tid] = shared[tid]

    function = optimised(kernel, out=OUT, n=INT32)
    assert spaces(function, "store") == ["shared", "global"]
    assert spaces(function, "load") == ["shared", "shared", "shared"]


def test_an_even_counter_is_known_to_be_even() -> None:
    phi = Value("phi", UINT32)
    phi.args = [constant(0, UINT32), operation("add", UINT32, phi, constant(16, UINT32))]
    assert zero_bits(phi) == 4


def same_results(function: Function, grid: int, block: int, arguments: dict[str, Any]) -> None:
    before, after = copy.deepcopy(arguments), copy.deepcopy(arguments)
    run(function, grid, block, before)
    optimise(function, Verifier().watch)
    run(function, grid, block, after)
    for name, value in before.items():
        assert np.array_equal(value, after[name]), dump(function)


def nested(numbers, out, n):
    total = np.float32(0)
    for i in range(3):
        for j in range(n):
            total += numbers[i + j]
        for j in range(4):
            total += numbers[i * j]
    out[0] = total


def with_break_and_continue(numbers, out, n):
    total = np.float32(0)
    last = 0
    for i in range(10):
        last = i
        if numbers[i] > np.float32(n):
            break
        if i == n:
            continue
        total += numbers[i] + 1
    out[0] = total
    out[1] = np.float32(last)


def without_a_test_at_the_top(numbers, out, n):
    total = np.float32(0)
    i = 0
    while True:
        i += 1
        if i > n:
            break
        if numbers[i] > 3:
            continue
        j = i
        while j > 0:
            total += numbers[j]
            j //= 2
    out[0] = total


def with_values_that_change_places(numbers, out, n):
    a, b = np.float32(1), np.float32(2)
    for i in range(n):
        a, b = b, a + numbers[i]
    out[0] = a
    out[1] = b


def with_a_local_array(numbers, out, n):
    own = cuda.local.array(8, np.float32)
    for i in range(8):
        own[i] = numbers[i]
    for i in range(n):
        if i % 3 == 0:
            out[i % 2] += own[i % 8]
        else:
            out[1] += numbers[i]


def up_to_and_including(numbers, out, n):
    i = np.uint32(0)
    while i <= np.uint32(n) // 2:
        out[i % 2] = numbers[i] + out[(i + 1) % 2]
        i += 1
    out[0] += np.float32(i)


LOOPS = [
    nested,
    with_break_and_continue,
    without_a_test_at_the_top,
    with_values_that_change_places,
    with_a_local_array,
    up_to_and_including,
]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8, 16, 21, 50])
@pytest.mark.parametrize("kernel", LOOPS, ids=lambda kernel: kernel.__name__)
def test_a_loop_gives_the_same_results_after_all_passes(kernel: Callable[..., Any], n: int) -> None:
    function = compiled(kernel, numbers=NUMBERS, out=OUT, n=INT32)
    numbers = (np.arange(64) % 7).astype(np.float32)
    same_results(function, 1, 1, {"numbers": numbers, "out": np.zeros(2, np.float32), "n": n})


READS_OUTSIDE = ("kogge_stone_scan",)


@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if e.name not in READS_OUTSIDE], ids=lambda e: e.name
)
def test_a_catalogue_kernel_gives_the_same_results_after_all_passes(
    entry: catalogue.Entry,
) -> None:
    n = 96 if entry.one_block else 200
    data = np.random.default_rng(3).integers(-9, 9, n).astype(entry.dtypes[0])
    block = n if entry.one_block else max(64, entry.block_rule.least)
    call = entry.call(data, block=block)
    source = call.kernel.source
    names = [argument.arg for argument in source.tree.args.args]
    arguments = dict(zip(names, call.arguments, strict=True))
    kinds: dict[str, DType | Array] = {
        name: Array(name, "global", value.dtype) if isinstance(value, np.ndarray) else value.dtype
        for name, value in arguments.items()
    }
    grid = min(call.setup.grid, 2)
    same_results(build(source, kinds), grid, call.setup.block, arguments)


def widths(function: Function) -> list[int]:
    """Return how many elements each load from shared memory brings, in order."""
    return [
        1 if v.op == "load" else v.detail[1]
        for v in function.values()
        if v.op in ("load", "load_vector") and array_of(v).space == "shared"
    ]


def test_loads_of_four_neighbours_in_shared_memory_are_one() -> None:
    def kernel(out):
        shared = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        shared[tid] = out[tid]
        cuda.syncthreads()
        total = np.float32(0)
        for k in range(8):
            total += shared[tid // 16 * 16 + k]
        out[tid] = total

    assert widths(optimised(kernel, out=OUT)) == [4, 4]


def test_two_neighbours_are_joined_where_the_index_is_even() -> None:
    def kernel(out):
        shared = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        shared[tid] = out[tid]
        cuda.syncthreads()
        out[tid] = shared[2 * tid] - shared[2 * tid + 1]

    assert widths(optimised(kernel, out=OUT)) == [2]


def test_neighbours_are_joined_however_their_indices_are_added_up() -> None:
    """`tid * 4 + row * 64` and three more, the constants added before the row is."""

    def kernel(out, row):
        tile = cuda.shared.array(1024, np.float32)
        column = cuda.threadIdx.x * 4
        total = np.float32(0)
        for k in range(4):
            total += tile[(column + k) + row * 64]
        out[0] = total

    loads = counts(optimised(kernel, out=OUT, row=INT32))
    assert (loads["load_vector"], loads["load"]) == (1, 0)


def test_loads_whose_address_may_be_odd_stay_apart() -> None:
    def kernel(out):
        shared = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        shared[tid] = out[tid]
        cuda.syncthreads()
        out[tid] = shared[tid] - shared[tid + 1]

    assert widths(optimised(kernel, out=OUT)) == [1, 1]


def test_loads_with_a_barrier_or_a_store_between_them_stay_apart() -> None:
    def kernel(out):
        shared = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        shared[tid] = out[tid]
        cuda.syncthreads()
        first = shared[2 * tid]
        cuda.syncthreads()
        out[tid] = first - shared[2 * tid + 1]
        last = shared[4 * tid + 2]
        shared[tid] = first
        out[tid + 256] = last - shared[4 * tid + 3]

    assert widths(optimised(kernel, out=OUT)) == [1, 1, 1, 1]


def test_joined_loads_give_each_its_own_element() -> None:
    @cuda.jit
    def kernel(out):
        shared = cuda.shared.array(64, np.float32)
        tid = cuda.threadIdx.x
        shared[tid] = tid
        shared[tid + 32] = tid + 100
        cuda.syncthreads()
        total = np.float32(0)
        for k in range(4):
            total = total * np.float32(10) + shared[tid // 4 * 4 + k] - shared[32 + k]
        out[tid] = total

    out = np.zeros(32, np.float32)
    kernel[1, 32](out)
    rows = np.arange(32) // 4 * 4
    assert (out == (rows - 100) * np.float32(1111)).all()


def test_long_chains_that_need_nothing_of_each_other_are_issued_in_turns() -> None:
    """Eight chains of four links that take four cycles: four chains at a time never wait."""

    def row(number: int, source: int) -> Row:
        return Row("FADD", (number,), (source, source), FLOAT32)

    chains = [row(100 + 10 * chain + link, 100 + 10 * chain + link - 1)
              for chain in range(8) for link in range(4)]  # fmt: skip
    code = Code(Function("by hand", {}, [Block(0)]))
    code.rows[code.function.blocks[0]] = chains
    list_scheduling(code)
    ordered = code.rows[code.function.blocks[0]]
    assert ordered[:8] == [*chains[:16:4], *chains[1:17:4]]
    assert sorted(map(id, ordered)) == sorted(map(id, chains))


def test_short_code_keeps_the_order_in_which_it_is_written() -> None:
    rows = [Row("FADD", (k + 1,), (k, k), FLOAT32) for k in (10, 11, 20)]
    code = Code(Function("by hand", {}, [Block(0)]))
    code.rows[code.function.blocks[0]] = list(rows)
    list_scheduling(code)
    assert code.rows[code.function.blocks[0]] == rows


# -- division and remainder ----------------------------------------------------------------


def divided_and_left(out, a, b):
    out[0] = a % b
    out[1] = a // b


def test_a_remainder_goes_by_the_quotient_that_is_at_hand() -> None:
    """The quotient comes first, though the source has it second; by 8 both are bits."""
    whole = {"out": WHOLES, "a": UINT32}
    assert counts(optimised(divided_and_left, b=UINT32, **whole))["rem"] == 0
    assert counts(optimised(divided_and_left, b=UINT32, **whole))["idiv"] == 1


def test_a_remainder_whose_quotient_is_on_another_way_is_divided() -> None:
    def kernel(out, a, b):
        if a > 5:
            out[0] = a // b
        else:
            out[1] = a % b

    assert counts(optimised(kernel, out=WHOLES, a=UINT32, b=UINT32))["rem"] == 1


def test_what_a_variable_becomes_next_is_computed_behind_its_last_use() -> None:
    """The source has the next `x` before `y`, which still needs the last one."""

    def kernel(numbers, out, n):
        x, y = numbers[0], numbers[1]
        for _ in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            following = x * x + numbers[2]
            y = x * y + numbers[3]
            x = following
        out[0] = x + y

    function = optimised(kernel, numbers=NUMBERS, out=OUT, n=INT32)
    (loop,) = natural_loops(function)
    body, (latch,) = loop.latches[0].body, loop.latches
    phi = next(p for p in loop.header.phis if p.dtype == FLOAT32)
    following = phi.args[loop.header.preds.index(latch)]
    assert not any(phi in v.args for v in body[body.index(following) + 1 :])
