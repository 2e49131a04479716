"""Loads go first as far as 32 registers reach; what is computed of them stays with them."""

from __future__ import annotations

import numpy as np
from lowering.test_passes import NUMBERS, OUT, optimised

from gpusim import cuda
from gpusim.compiler.ir import FLOAT32, INT64, Block, Function
from gpusim.isa.ops import Memory
from gpusim.lowering.code import Code, Row
from gpusim.lowering.machine_code.list_scheduling import list_scheduling
from gpusim.lowering.machine_code.liveness import peak_registers


def sum_of(loads: int) -> Code:
    """Return code that adds up so many elements, each when it is loaded, and stores the sum."""
    code = Code(Function("by hand", {}, [Block(0)]))
    rows = code.rows[code.function.blocks[0]] = []
    address = code.register(INT64)
    total = -1
    for _ in range(loads):
        memory = Memory("global", "numbers", np.dtype(np.float32), 1)
        element = code.register(FLOAT32)
        rows.append(Row("LDG", (element,), (address,), FLOAT32, memory=memory))
        if total < 0:
            total = element
            continue
        before, total = total, code.register(FLOAT32)
        rows.append(Row("FADD", (total,), (before, element), FLOAT32))
    rows.append(Row("STG", (), (address, total), FLOAT32, memory=memory))
    return code


def ops(code: Code) -> list[str]:
    list_scheduling(code)
    return [row.op for row in code.rows[code.function.blocks[0]]]


def test_loads_that_find_registers_all_go_first() -> None:
    code = sum_of(30)
    assert ops(code) == ["LDG"] * 30 + ["FADD"] * 29 + ["STG"]
    assert peak_registers(code) == 2 + 30


def test_further_loads_wait_until_registers_are_free() -> None:
    """An address has two registers and 30 elements have one each; a sum frees one for a load."""
    code = sum_of(40)
    assert peak_registers(code) == 2 + 2
    assert ops(code) == ["LDG"] * 30 + ["FADD", "LDG"] * 10 + ["FADD"] * 29 + ["STG"]
    assert peak_registers(code) == 32


def test_where_more_is_kept_anyway_a_wide_load_is_ahead() -> None:
    """So many values live through the block that 36 registers are the least: 40 are given."""
    code = sum_of(40)
    block = code.function.blocks[0]
    through = [code.register(FLOAT32) for _ in range(32)]
    made = [Row("MOV", (one,), (), FLOAT32) for one in through]
    kept = [
        Row("STG", (), (0, one), FLOAT32, memory=code.rows[block][-1].memory) for one in through
    ]
    code.rows[block] = [*made, Row("BAR"), *code.rows[block], Row("BAR"), *kept]
    loads = ops(code)[33:]
    assert peak_registers(code) == 40
    assert loads[:8] == ["LDG"] * 6 + ["FADD", "LDG"]


def test_a_sum_of_loads_does_not_sink_behind_a_branch() -> None:
    """Only its last addition does: it keeps two values for one, the others would keep each load."""

    def kernel(numbers, out):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(8):
            total += numbers[i + 2 * k] * numbers[i + 2 * k + 1]
        if i < 5:
            out[i] = total

    function = optimised(kernel, numbers=NUMBERS, out=OUT)
    behind = next(b for b in function.blocks if any(v.op == "store" for v in b.body))
    computed = [v.op for v in behind.body if v.dtype == FLOAT32]
    assert computed == ["add"]
