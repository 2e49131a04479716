"""The verifiers find what they are for, and nothing in what lowering makes of any kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import program_verifier as machine
import pytest
import ssa_verifier as ssa
from strategies import ENTRIES
from verified import verified

from gpusim import catalogue
from gpusim.codegen.programs import bind, parameter_types
from gpusim.compiler.build import build
from gpusim.compiler.ir import BOOL, INT32, UINT32, Array, Block, Function, Value, constant
from gpusim.isa.ops import Instruction, Program
from gpusim.launch.grid import ComputeCapability

OUT = Array("out", "global", INT32)


def diamond() -> Function:
    """If n < 5: x = n + 1 else: x = 7; out[0] = x."""
    start, left, join = Block(0), Block(1), Block(2)
    n = Value("param", INT32, detail="n")
    small = Value("lt", BOOL, [n, constant(5, INT32)])
    more = Value("add", INT32, [n, constant(1, INT32)])
    x = Value("phi", INT32, [more, constant(7, INT32)])
    store = Value("store", None, [constant(0, INT32), x], OUT)
    start.body, start.condition, start.targets = [n, small], small, (left, join)
    left.body, left.targets, left.preds = [more], (join,), [start]
    join.phis, join.body, join.preds = [x], [store], [left, start]
    return Function("diamond", {}, [start, left, join])


def test_a_whole_function_has_no_mistakes() -> None:
    assert list(ssa.mistakes(diamond())) == []


def _use_the_side_after_the_join(f: Function) -> None:
    f.blocks[2].body[0].args[1] = f.blocks[1].body[0]


def _use_before_the_definition(f: Function) -> None:
    f.blocks[0].body.reverse()


def _forget_a_value_of_the_phi(f: Function) -> None:
    f.blocks[2].phis[0].args.pop()


def _forget_a_predecessor(f: Function) -> None:
    f.blocks[2].preds.pop()


def _lead_two_ways_without_a_condition(f: Function) -> None:
    f.blocks[0].condition = None


def _lead_out_of_the_function(f: Function) -> None:
    f.blocks[2].targets = (Block(9),)


def _mix_types(f: Function) -> None:
    f.blocks[1].body[0].args[1] = constant(1, UINT32)


def _store_another_type(f: Function) -> None:
    f.blocks[2].body[0].args[1] = constant(1, UINT32)


def _branch_on_a_number(f: Function) -> None:
    f.blocks[0].condition = f.blocks[0].body[0]


def _forget_an_operand(f: Function) -> None:
    f.blocks[1].body[0].args.pop()


def _leave_a_block_out_of_reach(f: Function) -> None:
    f.blocks.append(Block(3))


@pytest.mark.parametrize(
    ("breaks", "mistake"),
    [
        (_use_the_side_after_the_join, "uses <add int32 None>, which is not defined there"),
        (_use_before_the_definition, "uses <param int32 'n'>, which is not defined there"),
        (_forget_a_value_of_the_phi, "has 1 values for 2 paths"),
        (_forget_a_predecessor, "<block 2> has predecessors [<block 1>]"),
        (_lead_two_ways_without_a_condition, "<block 0> has 2 targets and condition None"),
        (_lead_out_of_the_function, "leads to <block 9>, which is not in the function"),
        (_mix_types, "<add int32 None> works on int32, uint32"),
        (_store_another_type, "works on int32, uint32"),
        (_branch_on_a_number, ": not a predicate"),
        (_forget_an_operand, "<add int32 None> has 1 operands"),
        (_leave_a_block_out_of_reach, "no path leads to <block 3>"),
    ],
)
def test_each_mistake_in_the_ssa_form_is_found(
    breaks: Callable[[Function], None], mistake: str
) -> None:
    function = diamond()
    breaks(function)
    assert any(mistake in found for found in ssa.mistakes(function))
    with pytest.raises(AssertionError, match="<"):
        ssa.verify(function)


# R0 = tid; R1 = R0 < 5; barrier 0 up to 6; @!R1 branch to 6; R2 = R0; (5: nothing); join; exit
DIVERGENT = Program(
    "divergent",
    (
        Instruction("S2R", (0,), dtype=INT32, detail="tid.x"),
        Instruction("ISETP", (1,), (0, 3), BOOL, ("lt",)),
        Instruction("BSSY", detail=0, target=6),
        Instruction("BRA", guard=1, negated=True, target=6),
        Instruction("MOV", (2,), (0,), INT32),
        Instruction("NOP"),
        Instruction("BSYNC", detail=0),
        Instruction("EXIT"),
    ),
    registers=4,
    immediates={3: np.int32(5)},
    barriers=1,
)


def changed(pc: int, **fields: object) -> Program:
    """Return the program with one of its instructions changed."""
    rows = list(DIVERGENT.instructions)
    rows[pc] = replace(rows[pc], **fields)  # type: ignore[arg-type]
    return replace(DIVERGENT, instructions=tuple(rows))


def test_a_whole_program_has_no_mistakes() -> None:
    assert list(machine.mistakes(DIVERGENT)) == []


@pytest.mark.parametrize(
    ("program", "mistake"),
    [
        (changed(3, target=8), "3: BRA leads to 8, where there is not an instruction"),
        (changed(2, target=5), "2: BSSY of barrier 0 leads to NOP None"),
        (changed(6, detail=1), "2: BSSY of barrier 0 leads to BSYNC 1"),
        (changed(4, target=5), "4: MOV has target 5"),
        (changed(3, guard=0), "3: BRA is guarded by R0: not a predicate"),
        (changed(4, dst=(7,)), "4: MOV names a register beyond 4"),
        (changed(4, dst=(3,)), "4: MOV writes a constant"),
        (changed(7, op="NOP"), "7: NOP runs past the end"),
        (changed(5, op="OUCH"), "5: OUCH is not an instruction"),
        (changed(0, dst=(2,)), "1: ISETP reads R0, which need not be written"),
        (changed(7, src=(2,)), "7: EXIT reads R2, which need not be written"),
        (changed(2, op="NOP", detail=None, target=-1), "6: BSYNC of barrier 0, which is not set"),
    ],
)
def test_each_mistake_in_a_program_is_found(program: Program, mistake: str) -> None:
    assert mistake in list(machine.mistakes(program))
    with pytest.raises(AssertionError, match=str(mistake[:4])):
        machine.verify(program)


def test_what_is_written_under_a_guard_may_be_read_under_it_and_where_others_have_left() -> None:
    def reading(*reader: Instruction) -> list[str]:
        rows = (
            *DIVERGENT.instructions[:2],
            Instruction("MOV", (2,), (0,), INT32, guard=1),
            *reader,
            Instruction("EXIT"),
        )
        return list(machine.mistakes(replace(DIVERGENT, instructions=rows, barriers=0)))

    use = Instruction("IADD3", (0,), (2, 2), INT32, "++")
    leave = Instruction("EXIT", guard=1, negated=True)
    other_side = Instruction("MOV", (2,), (3,), INT32, guard=1, negated=True)
    assert reading(replace(use, guard=1)) == []
    assert reading(leave, use) == []
    assert reading(other_side, use) == []
    assert reading(use) == ["3: IADD3 reads R2, which need not be written"]
    assert reading(replace(use, guard=1, negated=True)) == reading(use)


@pytest.mark.parametrize("cc", [ComputeCapability(3, 5), ComputeCapability(9, 0)], ids=str)
@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_step_of_lowering_a_catalogue_kernel_leaves_a_whole_form(
    entry: catalogue.Entry, level: str, cc: ComputeCapability
) -> None:
    for block in {entry.block_rule.least, min(256, entry.block_rule.most)}:
        call = entry.call(catalogue.sample(block, entry.dtypes[0]), block=block)
        types = parameter_types(bind(call.kernel, call.arguments))
        verified(build(call.kernel.source, types), cc, level)
