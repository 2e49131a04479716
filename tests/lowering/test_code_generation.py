"""The machine-dependent half of lowering: which instructions small kernels become."""

# Kernels are in the dialect, whose types the compiler works out.

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ENTRIES
from verified import verified

from gpusim import catalogue, cuda
from gpusim.codegen.programs import bind, parameter_types, prepare
from gpusim.compiler.build import build
from gpusim.compiler.ir import FLOAT32, FLOAT64, INT32, UINT8, UINT32, Array, DType, Function
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.events import Observer
from gpusim.launch.grid import ComputeCapability
from gpusim.lowering import lower
from gpusim.lowering.code import Code
from gpusim.lowering.selection.division import Emitter, divide
from gpusim.machine import run

HOPPER = ComputeCapability(9, 0)
NUMBERS = Array("numbers", "global", FLOAT32)
COUNTS = Array("counts", "global", INT32)


def lowered(
    kernel: Any, cc: ComputeCapability = HOPPER, level: str = "O3", **types: DType | Array
) -> Program:
    return verified(build(kernel.source, types), cc, level)


def issued(program: Program) -> list[Instruction]:
    return [i for i in program.instructions if OPS[i.op].issued]


def ops(program: Program) -> Counter[str]:
    return Counter(i.op for i in issued(program))


def guarded(program: Program) -> list[str]:
    return [i.op for i in issued(program) if i.guard is not None and i.op not in ("BRA", "EXIT")]


# -- division ------------------------------------------------------------------------------


def quotient_or_rest(op: str, dtype: DType, a: int, b: int, *, known: bool) -> tuple[int, Code]:
    """Evaluate the rows of a division on one lane."""
    code = Code(Function("division", {}))
    emit = Emitter(code, [])
    registers: dict[int, Any] = {}
    left, dst = code.register(dtype), code.register(dtype)
    registers[left] = np.array([a], dtype)
    if known:
        right = emit.number(b, dtype)
    else:
        right = code.register(dtype)
        registers[right] = np.array([b], dtype)
    divide(emit, op, left, right, dtype, dst)
    registers |= {r: np.array([v]) for r, v in code.immediates.items()}
    with np.errstate(all="ignore"):
        for row in emit.rows:
            if row.dst and (row.guard is None or registers[row.guard][0] != row.negated):
                ins = Instruction(row.op, row.dst, row.src, row.dtype, row.detail)
                evaluate = OPS[row.op].evaluate
                assert evaluate is not None
                value = evaluate(ins, *(registers[r] for r in row.src))
                assert value.dtype == code.dtypes[row.dst[0]]
                registers[row.dst[0]] = value
    code.rows = {None: emit.rows}  # type: ignore[dict-item]
    return int(registers[dst][0]), code


unsigned = st.integers(0, 2**32 - 1)
signed = st.integers(-(2**31), 2**31 - 1)


@pytest.mark.parametrize("known", [True, False])
@given(a=unsigned, b=unsigned.filter(bool))
def test_unsigned_division_is_exact(known: bool, a: int, b: int) -> None:
    assert quotient_or_rest("idiv", UINT32, a, b, known=known)[0] == a // b
    assert quotient_or_rest("rem", UINT32, a, b, known=known)[0] == a % b


@pytest.mark.parametrize("known", [True, False])
@given(a=signed, b=signed.filter(bool))
def test_signed_division_truncates_toward_zero(known: bool, a: int, b: int) -> None:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    wrapped = (quotient + 2**31) % 2**32 - 2**31
    assert quotient_or_rest("idiv", INT32, a, b, known=known)[0] == wrapped
    assert quotient_or_rest("rem", INT32, a, b, known=known)[0] == a - quotient * b


@pytest.mark.parametrize("b", [1, 2, 3, 5, 7, 10, 641, 2**16, 2**31 - 1, -1, -2, -7, -(2**31)])
@given(a=signed)
def test_division_by_a_constant_is_exact(b: int, a: int) -> None:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    wrapped = (quotient + 2**31) % 2**32 - 2**31
    assert quotient_or_rest("idiv", INT32, a, b, known=True)[0] == wrapped
    assert quotient_or_rest("rem", INT32, a, b, known=True)[0] == a - quotient * b


def test_remainder_by_a_variable_takes_seventeen_instructions() -> None:
    """As nvcc 13.0 has it: I2F.RP, MUFU.RCP, F2I, two IMAD.HI and guarded corrections."""
    _, code = quotient_or_rest("rem", UINT32, 17, 5, known=False)
    (rows,) = code.rows.values()
    assert len(rows) == 17
    assert [r.op for r in rows if r.guard is not None] == ["IADD3", "IADD3", "LOP3"]
    assert Counter(r.op for r in rows)["IMAD.HI"] == 2


@pytest.mark.parametrize(("dtype", "in_loop"), [(UINT32, 8), (INT32, 11)])
def test_a_loop_divides_with_a_reciprocal_that_was_computed_before_it(
    dtype: DType, in_loop: int
) -> None:
    @cuda.jit
    def kernel(values, n, by):
        tid = values[cuda.threadIdx.x]
        total = tid - tid
        turn = n - n
        while turn < n:
            total += (tid + turn) % by
            cuda.syncthreads()
            turn = 2 * turn + 1
        values[cuda.threadIdx.x] = total

    array = Array("values", "global", dtype)
    rows = issued(lowered(kernel, values=array, n=dtype, by=dtype))
    first = next(p for p, i in enumerate(rows) if i.op == "BAR")
    assert "MUFU.RCP" in [i.op for i in rows[:first]]
    start = max(p for p in range(first) if rows[p].op in ("MOV", "UMOV"))
    division = [i.op for i in rows[start + 1 : first]][1:-1]
    assert len(division) == in_loop
    assert division.count("IMAD.HI") == 1
    for by in (7, 0):
        values = np.arange(1, 33).astype(dtype)
        run(prepare(kernel[1, 32], (values, dtype.type(3), dtype.type(by)), HOPPER))
        rests = [(k + turn) % by if by else -1 for k in range(1, 33) for turn in (0, 1)]
        assert values.tolist() == np.reshape(rests, (32, 2)).sum(axis=1).astype(dtype).tolist()


def test_a_fixed_dividend_is_made_positive_before_the_loop_and_again_in_it() -> None:
    @cuda.jit
    def kernel(counts, n):
        tid = cuda.threadIdx.x
        step = 1
        while step < n:
            if tid % step == 0:
                counts[tid] += step
            cuda.syncthreads()
            step *= 2

    rows = lowered(kernel, counts=COUNTS, n=INT32).instructions
    top = next(i.target for p, i in enumerate(rows) if i.op == "BRA" and i.target < p)
    assert [i.op for i in rows[:top]].count("IABS") == 1
    assert [i.op for i in rows[top:]].count("IABS") == 3


def test_remainder_by_a_power_of_two_is_a_mask() -> None:
    _, code = quotient_or_rest("rem", UINT32, 17, 8, known=True)
    (rows,) = code.rows.values()
    assert [r.op for r in rows] == ["LOP3"]


# -- what is guarded -----------------------------------------------------------------------


def test_a_short_body_is_guarded() -> None:
    @cuda.jit
    def kernel(counts, n):
        shared = cuda.shared.array(256, np.int32)
        tid = cuda.threadIdx.x
        if tid < n:
            shared[tid] = shared[tid] + tid
        cuda.syncthreads()
        counts[tid] = shared[tid]

    program = lowered(kernel, counts=COUNTS, n=INT32)
    assert guarded(program) == ["LDS", "IADD3", "STS"]
    assert ops(program)["BRA"] == 0


@pytest.mark.parametrize(("stores", "branches"), [(8, 0), (9, 1)])
def test_a_body_of_nine_instructions_is_branched_around(stores: int, branches: int) -> None:
    @cuda.jit
    def kernel(counts, n):
        shared = cuda.shared.array(1024, np.int32)
        tid = cuda.threadIdx.x
        shared[tid] = 0
        if tid < n:
            for k in range(stores):
                shared[tid + 32 * k] = tid
        cuda.syncthreads()
        counts[tid] = shared[tid]

    assert ops(lowered(kernel, counts=COUNTS, n=INT32))["BRA"] == branches


def test_a_body_with_a_conditional_of_its_own_is_branched_around() -> None:
    @cuda.jit
    def kernel(counts, n):
        shared = cuda.shared.array(256, np.int32)
        tid = cuda.threadIdx.x
        if tid < n:
            shared[tid] = 1
            if shared[tid + 1] == 3:
                shared[tid] = 5
        cuda.syncthreads()
        counts[tid] = shared[tid]

    program = lowered(kernel, counts=COUNTS, n=INT32)
    assert ops(program)["BRA"] == 1
    assert ops(program)["BSSY"] == ops(program)["BSYNC"] == 1


def test_a_load_from_global_memory_is_not_guarded_inside_a_loop() -> None:
    @cuda.jit
    def kernel(counts, n):
        tid = np.uint32(cuda.threadIdx.x)
        s = np.uint32(1)
        while s < n:
            if tid < s:
                counts[tid] += counts[tid + s]
            cuda.syncthreads()
            s *= 2

    assert "LDG" not in guarded(lowered(kernel, counts=COUNTS, n=UINT32))


def test_an_early_return_is_a_guarded_exit() -> None:
    @cuda.jit
    def kernel(counts, n):
        i = cuda.grid(1)
        if i >= n:
            return
        counts[i] = i

    program = lowered(kernel, counts=COUNTS, n=INT32)
    exits = [i for i in program.instructions if i.op == "EXIT"]
    assert [e.guard is not None for e in exits] == [True, False]
    assert ops(program)["BRA"] == ops(program)["BSSY"] == 0


def test_a_loop_behind_which_nothing_comes_branches_back_and_then_ends() -> None:
    """No guarded EXIT stands in it: an iteration has one branch."""

    @cuda.jit
    def kernel(counts, n):
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            counts[i] = n

    rows = issued(lowered(kernel, counts=COUNTS, n=INT32))
    assert [(i.op, i.guard is not None) for i in rows[-2:]] == [("BRA", True), ("EXIT", False)]


def test_a_choice_of_a_load_or_zero_is_a_move_and_a_guarded_load() -> None:
    @cuda.jit
    def kernel(counts, n):
        shared = cuda.shared.array(256, np.int32)
        tid = cuda.threadIdx.x
        shared[tid] = counts[tid] if tid < n else 0
        cuda.syncthreads()
        counts[tid] = shared[tid + 1]

    program = lowered(kernel, counts=COUNTS, n=INT32)
    load = next(i for i in issued(program) if i.op == "LDG")
    move = next(i for i in issued(program) if i.op == "MOV")
    assert load.guard is not None
    assert load.dst == move.dst


# -- order ---------------------------------------------------------------------------------


def test_what_needs_no_loaded_number_goes_before_what_waits_for_one() -> None:
    """As nvcc does: the address in shared memory is worked out while the loads are under way."""

    @cuda.jit
    def kernel(numbers):
        shared = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        shared[tid] = numbers[tid] + numbers[tid + 256]
        cuda.syncthreads()
        numbers[tid] = shared[255 - tid]

    program = issued(lowered(kernel, numbers=NUMBERS))
    found = [i.op for i in program]
    add = found.index("FADD")
    store = program[found.index("STS")]
    (address,) = (k for k, i in enumerate(program) if store.src[0] in i.dst)
    assert max(k for k, op in enumerate(found) if op == "LDG") < address < add


def test_a_copy_at_a_loops_end_stands_before_its_barrier() -> None:
    """Else the branch back would wait behind the barrier for what was there long before."""

    @cuda.jit
    def kernel(numbers, n):
        shared = cuda.shared.array(256, np.float32)
        tid = np.uint32(cuda.threadIdx.x)
        shared[tid] = numbers[tid]
        cuda.syncthreads()
        s = np.uint32(1)
        while s < n:
            index = 2 * s * tid
            if index < n:
                shared[index] += shared[index + s]
            cuda.syncthreads()
            s *= 2
        numbers[tid] = shared[0]

    found = [i.op for i in issued(lowered(kernel, numbers=NUMBERS, n=UINT32))]
    last = max(k for k, op in enumerate(found) if op == "BAR")
    begin = max(k for k, op in enumerate(found[: found.index("LDS")]) if op == "BRA")
    assert "MOV" in found[begin + 1 : last]
    assert "MOV" not in found[last : found.index("BRA", last)]


# -- where lanes meet ----------------------------------------------------------------------


def test_a_branch_on_which_all_lanes_agree_needs_no_convergence_barrier() -> None:
    @cuda.jit
    def kernel(counts, n):
        tid = cuda.threadIdx.x
        total = 0
        s = n
        while s > 0:
            total += tid * s
            s >>= 1
        counts[tid] = total

    program = lowered(kernel, counts=COUNTS, n=INT32)
    assert ops(program)["BRA"] == 2
    assert ops(program)["BSSY"] == 0


def test_a_loop_that_lanes_leave_one_by_one_stands_between_bssy_and_bsync() -> None:
    @cuda.jit
    def kernel(numbers, n):
        total = np.float32(0)
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            total += numbers[i]
        numbers[cuda.threadIdx.x] = total

    program = lowered(kernel, numbers=NUMBERS, n=INT32)
    (bssy,) = (i for i in program.instructions if i.op == "BSSY")
    assert program.instructions[bssy.target].op == "BSYNC"
    assert program.instructions[bssy.target].detail == bssy.detail
    back = next(i for i in program.instructions if i.op == "BRA" and i.target < bssy.target)
    assert back.guard is not None
    assert program.barriers == 1


def test_lanes_that_leave_two_loops_at_once_break_the_inner_barrier() -> None:
    @cuda.jit(device=True)
    def search(counts, tid, n):
        for j in range(n):
            i = 1
            while i < tid:
                if counts[i] == tid:
                    return 1
                counts[i] = counts[i] + j
                i *= 3
            counts[j] = 4
        return 0

    @cuda.jit
    def kernel(counts, n):
        tid = cuda.threadIdx.x
        counts[tid] = search(counts, tid, n)

    program = lowered(kernel, counts=COUNTS, n=INT32)
    barriers = {i.detail for i in program.instructions if i.op == "BSSY"}
    (leave,) = (i for i in program.instructions if i.op == "BREAK")
    assert leave.guard is not None
    assert leave.detail in barriers
    outer = next(i for i in program.instructions if i.op == "BSSY")
    assert leave.detail != outer.detail


def test_lanes_also_meet_where_the_first_of_their_ways_do() -> None:
    """Who goes on early breaks the inner barrier; the warp is gathered behind the outer one."""

    @cuda.jit(device=True)
    def store(counts, tid, first):
        for k in range(9):
            counts[tid + first + k] = tid * k

    @cuda.jit
    def kernel(counts, n):
        tid = cuda.threadIdx.x
        k = 1
        while k < n:
            k *= 2
            if counts[tid] > k:
                store(counts, tid, 100)
                if counts[tid + 1] > k:
                    continue
                store(counts, tid, 200)
            store(counts, tid, 300)
            cuda.syncthreads()

    control = ("BSSY", "BREAK", "BSYNC", "WARPSYNC.ALL")
    rows = [i for i in lowered(kernel, counts=COUNTS, n=INT32).instructions if i.op in control]
    outer, inner = rows[0].detail, rows[1].detail
    assert [(i.op, i.detail) for i in rows] == [
        ("BSSY", outer),
        ("BSSY", inner),
        ("BREAK", inner),
        ("BSYNC", inner),
        ("BSYNC", outer),
        ("WARPSYNC.ALL", None),
    ]
    before = lowered(kernel, ComputeCapability(7, 5), counts=COUNTS, n=INT32)
    assert ops(before)["WARPSYNC.ALL"] == 0


def test_lanes_that_go_on_early_meet_the_others_after_each_turn() -> None:
    """With two ways back to the loop's start, lanes would part for good."""

    @cuda.jit
    def kernel(counts, n):
        tid = cuda.threadIdx.x
        k = tid & 3
        total = 0
        while k < 5:
            k += 1 + (tid & 1)
            if counts[k] < total:
                continue
            total += counts[k + 8]
            if total > n:
                break
        counts[tid] = total

    kinds = {}
    for level in ("O0", "O3"):
        counts = np.arange(64, dtype=np.int32)
        run(prepare(kernel[1, 32], (counts, 20), HOPPER, level))
        kinds[level] = counts
    assert (kinds["O0"] == kinds["O3"]).all()


# -- what is fused and what is kept --------------------------------------------------------


def test_constants_in_indices_become_displacements() -> None:
    @cuda.jit
    def kernel(numbers):
        tid = cuda.threadIdx.x
        numbers[tid] = numbers[tid + 1] + numbers[tid + 2]

    program = lowered(kernel, numbers=NUMBERS)
    assert [i.memory.offset for i in program.instructions if i.memory] == [4, 8, 0]
    assert ops(program)["IMAD.WIDE"] == 1


def test_an_unsigned_index_that_may_wrap_keeps_its_addition() -> None:
    @cuda.jit
    def kernel(numbers, start):
        numbers[start] = numbers[start + 1]

    program = lowered(kernel, numbers=NUMBERS, start=UINT32)
    assert ops(program)["IMAD.WIDE"] == 2


@pytest.mark.parametrize("dtype", [INT32, UINT32])
def test_an_index_that_is_needed_again_behind_a_branch_is_widened_anew(dtype: DType) -> None:
    @cuda.jit
    def kernel(counts, numbers, first, n):
        tid = first + first
        value = counts[tid]
        if n > 3:
            for k in range(5):
                cuda.syncthreads()
                counts[k] = n
        numbers[tid] = value

    @cuda.jit
    def at_once(counts, numbers, first, n):
        tid = first + first
        numbers[tid] = counts[tid]

    types = {"counts": COUNTS, "numbers": NUMBERS, "first": dtype, "n": INT32}
    count = ops(lowered(kernel, **types))
    assert count["LEA.HI"] == 1
    assert count["SHF"] - ops(lowered(at_once, **types))["SHF"] == (1 if dtype == INT32 else 0)
    assert ops(lowered(at_once, **types))["LEA.HI"] == 0


def test_a_product_and_a_sum_are_one_instruction() -> None:
    @cuda.jit
    def kernel(numbers, a):
        tid = cuda.threadIdx.x
        numbers[tid] = a * numbers[tid] + numbers[tid + 1]

    program = lowered(kernel, numbers=NUMBERS, a=FLOAT32)
    assert ops(program)["FFMA"] == 1
    assert ops(program)["FMUL"] == ops(program)["FADD"] == 0


def test_a_comparison_that_several_conditions_need_is_part_of_each() -> None:
    """Of three comparisons two are computed, the third within two of the three conditions."""

    @cuda.jit
    def kernel(counts, n):
        p = counts[3] < n
        q = counts[4] < n
        r = counts[5] < n
        counts[0] = 1 if p and q else 2
        counts[1] = 1 if q and r else 2
        counts[2] = 1 if p and r else 2

    count = ops(lowered(kernel, counts=COUNTS, n=INT32))
    assert (count["ISETP"], count["PLOP3"]) == (4, 1)


def test_a_shift_that_several_sums_need_is_part_of_each() -> None:
    @cuda.jit
    def kernel(counts, b, c):
        a = counts[0]
        counts[0] = (a << 5) + b
        counts[1] = (a << 5) + c

    count = ops(lowered(kernel, counts=COUNTS, b=INT32, c=INT32))
    assert (count["LEA"], count["SHF"]) == (2, 0)


@pytest.mark.parametrize(("cc", "rows"), [("9.0", 3), ("8.0", 2)])
def test_a_fence_beyond_the_block_waits_for_errors_and_empties_the_l1(cc: str, rows: int) -> None:
    @cuda.jit
    def kernel(counts):
        counts[0] = 1
        cuda.threadfence()
        counts[1] = 1

    count = ops(lowered(kernel, ComputeCapability.parse(cc), counts=COUNTS))
    assert (count["MEMBAR"], count["ERRBAR"]) == (1, rows)


def test_opposites_are_signs_of_a_fused_multiply_add() -> None:
    @cuda.jit
    def kernel(numbers):
        a, b, c = numbers[0], numbers[1], numbers[2]
        numbers[3] = cuda.fma(-a, b, -c)
        numbers[4] = cuda.fma(-a, -b, c)

    rows = [i for i in issued(lowered(kernel, numbers=NUMBERS)) if i.op.startswith("F")]
    assert [(i.op, i.detail) for i in rows] == [("FFMA", "--"), ("FFMA", None)]
    numbers = np.array([2, 3, 5, 0, 0], np.float32)
    kernel[1, 1](numbers)
    assert numbers[3:].tolist() == [-11, 11]


def test_half_of_an_integer_adds_its_sign_without_a_shift_for_it() -> None:
    @cuda.jit
    def kernel(counts):
        counts[0] = counts[0] // 2

    @cuda.jit
    def quarter(counts):
        counts[0] = counts[0] // 4

    assert ops(lowered(kernel, counts=COUNTS))["SHF"] == 1
    assert ops(lowered(quarter, counts=COUNTS))["SHF"] == 2


def test_narrow_elements_are_loaded_wide_and_stored_as_they_are() -> None:
    @cuda.jit
    def kernel(small):
        tid = cuda.threadIdx.x
        small[tid] = small[tid] + 1

    program = lowered(kernel, small=Array("small", "global", UINT8))
    body = [i.op for i in issued(program) if i.op not in ("LDC", "ULDC", "S2R", "IMAD.WIDE")]
    assert body == ["LDG", "IADD3", "STG", "EXIT"]


def test_a_counter_is_changed_in_place() -> None:
    @cuda.jit
    def kernel(counts, n):
        tid = cuda.threadIdx.x
        total = 0
        s = n
        while s > 0:
            total += tid * s
            s >>= 1
        counts[tid] = total

    program = lowered(kernel, counts=COUNTS, n=INT32)
    top = next(i.target for i in program.instructions if i.op == "BRA" and i.target < 20)
    end = next(p for p, i in enumerate(program.instructions) if i.op == "BRA" and i.target == top)
    assert not any(i.op in ("MOV", "UMOV") for i in program.instructions[top:end])


def test_64_bit_values_are_shuffled_in_halves() -> None:
    @cuda.jit
    def kernel(values):
        tid = cuda.threadIdx.x
        values[tid] = cuda.shfl_down_sync(0xFFFFFFFF, values[tid], 1)

    assert ops(lowered(kernel, values=Array("values", "global", FLOAT64)))["SHFL"] == 2


@pytest.mark.parametrize(
    ("mask", "question"), [(0xFFFFFFFF, ["UMOV", "BRA.DIV"]), (0xFFFF, ["MOV", "R2UR", "BRA.DIV"])]
)
def test_lanes_that_may_be_apart_ask_once_a_block_whether_they_are_together(
    mask: int, question: list[str]
) -> None:
    @cuda.jit
    def kernel(counts, n):
        tid = cuda.threadIdx.x
        if tid < n:
            counts[tid] = 1
            cuda.syncwarp(mask)
            counts[tid + 1] = 2
            cuda.syncwarp(mask)
            counts[tid + 2] = 3
        counts[tid + 3] = 4

    names = [i.op for i in issued(lowered(kernel, counts=COUNTS, n=INT32))]
    first = names.index("WARPSYNC")
    assert names[first - len(question) : first] == question
    assert (names.count("BRA.DIV"), names.count("WARPSYNC")) == (1, 2)


def test_a_vote_of_lanes_that_may_be_apart_gathers_the_warp_first() -> None:
    @cuda.jit
    def kernel(counts, n):
        tid = cuda.threadIdx.x
        if tid < n:
            counts[tid] = cuda.ballot_sync(0xFFFFFFFF, counts[tid] > 1)
        counts[tid + 1] = 2

    names = [i.op for i in issued(lowered(kernel, counts=COUNTS, n=INT32))]
    assert names[names.index("VOTE") - 1] == "WARPSYNC.ALL"


def test_lanes_that_are_together_are_not_asked() -> None:
    @cuda.jit
    def kernel(counts):
        tid = cuda.threadIdx.x
        counts[tid] = cuda.shfl_down_sync(0xFFFFFFFF, counts[tid], 1)
        cuda.syncwarp()

    count = ops(lowered(kernel, counts=COUNTS))
    assert count["BRA.DIV"] == count["WARPSYNC"] == 0


def test_before_9_0_parameters_are_operands_and_shared_memory_begins_at_0() -> None:
    @cuda.jit
    def kernel(counts, n):
        shared = cuda.shared.array(256, np.int32)
        tid = cuda.threadIdx.x
        shared[tid] = n
        cuda.syncthreads()
        counts[tid] = shared[tid ^ 1]

    before = ops(lowered(kernel, ComputeCapability(8, 0), counts=COUNTS, n=INT32))
    now = ops(lowered(kernel, counts=COUNTS, n=INT32))
    assert before["LDC"] == before["S2UR"] == before["ULEA"] == 0
    assert now["S2UR"] == now["UMOV"] == now["ULEA"] == 1


def test_at_o0_nothing_is_guarded() -> None:
    @cuda.jit
    def kernel(counts, n):
        tid = cuda.threadIdx.x
        if tid < n:
            counts[tid] = 1
        counts[tid + 1] = 2

    program = lowered(kernel, level="O0", counts=COUNTS, n=INT32)
    assert guarded(program) == []
    assert ops(program)["BRA"] == ops(program)["BSSY"] == ops(program)["BSYNC"] == 1


def test_at_o0_each_access_has_an_address_of_its_own() -> None:
    @cuda.jit
    def kernel(counts, n):
        own = cuda.local.array(8, "int32")
        own[n] = counts[n]
        counts[n] = own[n]

    program = lowered(kernel, level="O0", counts=COUNTS, n=INT32)
    accesses = [i for i in program.instructions if i.memory is not None]
    assert len(accesses) == len({i.src[0] for i in accesses}) == 4


def _catalogue_kernel(name: str) -> tuple[Any, dict[str, Any], Any]:
    entry = catalogue.find(name)
    setup = entry.setup(256 if entry.one_block else 1024, block=256)
    call = setup.call(np.ones(setup.n, setup.dtype))
    return call.kernel, bind(call.kernel, call.arguments), call.launch


@pytest.mark.parametrize("name", [e.name for e in ENTRIES])
def test_conditionals_of_the_source_change_nothing(name: str) -> None:
    """Without them the same instructions are issued."""
    kernel, arguments, _ = _catalogue_kernel(name)
    types = parameter_types(arguments)
    bare = build(kernel.source, types)
    for block in bare.blocks:
        block.body = [v for v in block.body if v.op != "source_branch"]
    shown = [(i.op, i.guard is None) for i in issued(lowered(kernel, **types))]
    assert shown == [(i.op, i.guard is None) for i in issued(lower(bare, HOPPER, "O3"))]


# -- against the GPU -----------------------------------------------------------------------

# Instructions, branches, shared loads and stores of 2^20 ints on an H200 (CUDA 13.0, -O3, sm_90,
# Nsight Compute).
MEASURED = {
    ("reduce1", 128): (7_241_728, 262_144, 466_944, 262_144),
    ("reduce1", 1024): (9_936_896, 360_448, 656_384, 360_448),
    ("reduce2", 128): (4_030_464, 262_144, 466_944, 262_144),
    ("reduce2", 1024): (5_349_376, 360_448, 656_384, 360_448),
    ("reduce3", 128): (3_145_728, 262_144, 466_944, 262_144),
    ("reduce3", 1024): (4_071_424, 360_448, 656_384, 360_448),
    ("reduce4", 128): (1_605_632, 131_072, 233_472, 131_072),
    ("reduce4", 1024): (2_068_480, 180_224, 328_192, 180_224),
    ("reduce5_fixed", 128): (786_432, 49_152, 86_016, 57_344),
    ("reduce5_fixed", 1024): (1_212_416, 98_304, 137_728, 84_992),
    ("reduce6", 128): (643_072, 16_384, 86_016, 57_344),
    ("reduce6", 1024): (834_048, 16_384, 137_728, 84_992),
    ("reduce7", 128): (856_064, 49_152, 86_016, 73_728),
    ("reduce7", 1024): (1_047_040, 49_152, 137_728, 101_376),
}


class Executed(Observer):
    """An observer that counts how often each kind of instruction is issued by a warp."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def step(self, step: Any) -> None:
        if OPS[step.instruction.op].issued:
            self.count[step.instruction.op] += len(step.rows) * step.placement.copies


@pytest.mark.parametrize(("name", "block"), MEASURED)
def test_the_seven_reductions_issue_what_the_gpu_counts(name: str, block: int) -> None:
    setup = catalogue.find(name).setup(2**20, block=block, dtype="int32")
    call = setup.call(np.ones(2**20, np.int32))
    prepared = prepare(call.configured, call.arguments, HOPPER)
    executed = Executed()
    run(prepared, observers=[executed])
    count = executed.count
    found = (count.total(), count["BRA"], count["LDS"], count["STS"])
    assert found == MEASURED[name, block]
    assert prepared.program.register_estimate == 16
