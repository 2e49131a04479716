"""What the modules of all programs share, and what each has of its own."""

from __future__ import annotations

import re

import numpy as np
from evaluators import HOPPER

from gpusim import cuda
from gpusim.codegen.programs import prepare
from gpusim.machine.compiled import linking
from gpusim.machine.compiled.places import Variant
from gpusim.machine.compiled.translator import translated


@cuda.jit
def doubled(x):
    x[cuda.threadIdx.x] += x[cuda.threadIdx.x]


def functions(text: str) -> set[str]:
    """Return the functions that a module has itself."""
    return set(re.findall(r"^\(func \$([\w.]+)", text, re.MULTILINE))


def test_a_programs_module_has_nothing_that_needs_no_program() -> None:
    """Its code: warps, their start, a load and a store of words of 4 bytes."""
    program = prepare(doubled[1, 32], (np.zeros(32, np.int32),), HOPPER, code="lowering").program
    addresses = tuple(
        (pc, np.dtype(np.int64)) for pc, row in enumerate(program.instructions) if row.op == "LDC"
    )
    made = translated(Variant(program, addresses, pairs=False, counting=True, watching=False))
    accesses = {name for name in functions(made.text) if "global" in name}
    assert functions(made.text) == {"start", "warp"} | accesses
    assert len(accesses) == 2
    shared = functions(linking.shared_text(linking.PLAIN))
    assert {"run", "release", "gather"} <= shared
    assert not accesses & shared


def test_a_module_imports_the_functions_that_it_calls() -> None:
    code = """(func $start (param $W i32))
(func $warp (param $W i32) (param $i i32)
  (call $drain) (call $give (local.get $W) (i32.const 0) (i32.const 1)))"""
    text = linking.text(code, "", 0, linking.PLAIN)
    assert re.findall(r'"gpusim" "(\w+)" \(func', text) == ["drain", "give"]


def test_memory_reaches_behind_the_data_of_a_program() -> None:
    code = "(func $start (param $W i32)) (func $warp (param $W i32) (param $i i32))"
    assert linking.pages(3 * linking.PAGE + 1) == 4
    assert '"memory" (memory 4)' in linking.text(code, "", 3 * linking.PAGE + 1, linking.PLAIN)
