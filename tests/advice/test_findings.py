"""Findings name a line and its cause, from addresses and masks alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO

import pytest
from handmade import access, branch, plain, reduce2, trace_of

from gpusim.advice.findings import find, removal_of
from gpusim.advice.records import Advice as Finding
from gpusim.cli.app import main
from gpusim.launch.removal import Removal
from gpusim.prediction.removals import parse
from gpusim.reports.diagnostics import of_advice
from gpusim.reports.trace import trace_report
from gpusim.tracing.execution import Execution
from gpusim.tracing.iterations import iterations, numbering


def only(executions: Sequence[Execution], kind: str) -> Finding:
    found = find(trace_of(executions))
    assert [finding.kind for finding in found] == [kind]
    return found[0]


def test_strided_indexing_is_named_by_stride_banks_and_wavefronts() -> None:
    """With 2*s*tid the worst step has s = 2: all lanes of warp 0, on every fourth bank."""
    found = find(reduce2(128))
    assert [finding.kind for finding in found] == ["bank-conflict", "idle-lanes"]
    assert found[0].line == 31
    assert "line 31: stride 4 puts 32 lanes on 8 banks, 4 wavefronts each" in found[0].message
    # 15 of 23 wavefronts a block for each of two loads and a store, in 8 blocks.
    assert "360 of the line's 552 wavefronts are excessive" in found[0].message


def test_warps_without_work_are_told_with_what_they_still_do() -> None:
    found = find(reduce2(128))[1]
    assert found.line == 30
    assert "in 20 of the block's 28 executions" in found.message
    assert "1 of 4 warps has work" in found.message
    assert "predicated-off accesses of line 31 and wait at the barrier of line 32" in found.message


@pytest.mark.parametrize(("stride", "banks", "passes"), [(2, 16, 2), (8, 4, 8), (32, 1, 32)])
def test_a_stride_of_a_power_of_two_meets_in_fewer_banks(
    stride: int, banks: int, passes: int
) -> None:
    finding = only([access(0, 7, "LDS", 0, 0, [stride * t for t in range(32)])], "bank-conflict")
    noun = "bank" if banks == 1 else "banks"
    assert f"stride {stride} puts 32 lanes on {banks} {noun}, {passes} wavefronts each" in (
        finding.message
    )


def test_irregular_conflicts_are_named_by_the_most_crowded_bank() -> None:
    elements = [0, 32, 64, *range(3, 32)]
    finding = only([access(0, 7, "LDS", 0, 0, elements)], "bank-conflict")
    assert "32 lanes of sdata fall on 30 banks, up to 3 different words in one" in finding.message


@pytest.mark.parametrize("stride", [0, 1, 3, 33])
def test_a_broadcast_and_odd_strides_are_no_conflict(stride: int) -> None:
    only([access(0, 7, "LDS", 0, 0, [stride * t for t in range(32)])], "none")


def test_eight_byte_elements_side_by_side_need_two_wavefronts_and_have_no_conflict() -> None:
    only([access(0, 7, "LDS", 0, 0, range(32), element_bytes=8)], "none")


def test_eight_byte_elements_at_a_stride_cost_more_than_the_two_they_need() -> None:
    elements = [2 * t for t in range(32)]
    finding = only([access(0, 7, "LDS", 0, 0, elements, element_bytes=8)], "bank-conflict")
    assert "stride 2 puts 32 lanes on 16 banks, 4 wavefronts each instead of 2" in (finding.message)


def test_lanes_that_disagree_in_most_executions_are_divergence() -> None:
    executions = [branch(0, 9, warp, 0, [t % 2 == 0 for t in range(32)]) for warp in range(4)]
    finding = only(executions, "divergence")
    assert finding.line == 9
    assert "every 2nd lane takes the branch" in finding.message
    assert "4 of the block's 4 executions diverge" in finding.message
    assert "machine code predicates the body" in finding.message


def test_divergence_of_machine_branches_is_not_called_guarded() -> None:
    lanes = [t < 16 for t in range(32)]
    executions = [branch(0, 9, warp, 0, lanes, op="BRA") for warp in range(2)]
    finding = only(executions, "divergence")
    assert "lanes 0-15 take the branch" in finding.message
    assert "guards" not in finding.message


def test_one_warp_that_writes_the_result_is_not_worth_a_sentence() -> None:
    only([branch(0, 9, warp, 0, [warp == t == 0 for t in range(32)]) for warp in range(4)], "none")


def test_a_lane_that_writes_its_warps_result_is_not_worth_a_sentence() -> None:
    only([branch(0, 9, warp, 0, [t == 0 for t in range(32)]) for warp in range(4)], "none")


def test_global_accesses_far_apart_are_uncoalesced() -> None:
    elements = [32 * t for t in range(32)]
    executions = [access(0, 5, "LDG", 0, 0, elements, space="global", array="data")]
    finding = only(executions, "uncoalesced")
    assert "stride 32 spreads 32 lanes of data over 32 sectors instead of 4" in finding.message
    assert "12 % of the bytes of loaded sectors are used" in finding.message


def test_stores_of_a_line_do_not_count_as_loaded_bytes() -> None:
    """Of each loaded sector a lane uses 4 bytes of 32, whatever the line stores beside it."""
    load = access(0, 5, "LDG", 0, 0, [8 * t for t in range(32)], space="global", array="data")
    store = access(0, 5, "STG", 0, 1, list(range(32)), space="global", array="out")
    finding = only([load, store], "uncoalesced")
    assert "12 % of the bytes of loaded sectors are used" in finding.message


@pytest.mark.parametrize("stride", [0, 1])
def test_neighbouring_and_equal_global_addresses_are_fine(stride: int) -> None:
    elements = [stride * t for t in range(32)]
    only([access(0, 5, "LDG", 0, 0, elements, space="global", array="data")], "none")


def test_the_head_of_a_loop_is_not_idle_when_it_ends_the_loop() -> None:
    executions = [
        branch(0, 3, warp, step, [step < 1] * 32) for warp in range(4) for step in range(2)
    ]
    only(executions, "none")


def test_nothing_to_say_is_said() -> None:
    finding = only([access(0, 5, "LDS", 0, 0, range(32))], "none")
    assert finding.message == (
        "No findings with a gain: no bank conflicts; no divergence; no global accesses."
    )


def test_the_dearest_finding_comes_first() -> None:
    mild = [access(0, 5, "LDS", 0, 0, [2 * t for t in range(32)])]
    bad = [access(1, 9, "LDS", 0, 0, [32 * t for t in range(32)])]
    assert [finding.line for finding in find(trace_of([*mild, *bad]))] == [9, 5]


def conflict(line: int, stride: int) -> Execution:
    return access(line, line, "LDS", 0, 0, [stride * t for t in range(32)])


def test_lines_with_one_cause_are_one_finding() -> None:
    """Lines 5, 6 and 9 have stride 8, with 7 excessive wavefronts each; line 7 has stride 32."""
    found = find(trace_of([conflict(line, 32 if line == 7 else 8) for line in (5, 6, 7, 9)]))
    assert [(one.line, one.places, one.cost) for one in found] == [
        (7, (7,), 31),
        (5, (5, 6, 9), 21),
    ]
    assert found[1].message.endswith("; likewise lines 6, 9, 3 places in all.")
    assert found[1].to_dict()["lines"] == [5, 6, 9]


def test_every_place_of_a_finding_is_marked() -> None:
    trace = trace_of([conflict(5, 8), conflict(6, 8)])
    marked = [line.plain for line in trace_report(trace, 80) if line.plain.startswith(">")]
    assert len(marked) == 2
    (one,) = of_advice(find(trace), "x.cu")
    assert (one.line, one.count, [place.line for place in one.related]) == (5, 2, [6])


def test_a_finding_of_several_lines_is_played_without_all_of_them() -> None:
    (one,) = find(trace_of([conflict(5, 8), conflict(6, 8)]))
    removal = removal_of(one)
    assert removal == Removal("bank-conflicts", (5, 6))
    assert parse(str(removal)) == removal


@pytest.mark.parametrize("name", ["reduce2", "reduction2"])
def test_findings_of_a_trace_stand_in_the_order_of_a_prediction(name: str) -> None:
    """Idle lanes save more of the time of `reduce2` than conflicts, which a trace says first."""
    traced, predicted = kinds("trace", name), kinds("predict", name)
    assert len(traced) > 1
    assert [kind for kind in predicted if kind in traced] == traced


def kinds(command: str, name: str) -> list[str]:
    """The kinds of findings that a command prints."""
    with redirect_stdout(StringIO()) as printed:
        main([command, name, "-n", "65536", "--json"])
    return [one["kind"] for one in json.loads(printed.getvalue())["findings"]]


def test_iterations_of_a_loop_are_its_instructions_occurrences() -> None:
    executions = reduce2(128).executions
    assert iterations(executions) == [execution.occurrence for execution in executions]


def test_an_unrolled_loop_has_iterations_although_each_instruction_runs_once() -> None:
    executions = []
    for step in range(3):
        executions.append(access(10 * step + 1, 7, "LDS", 0, 0, range(32)))
        executions.append(access(10 * step + 2, 7, "LDS", 0, 0, range(1, 33)))
        executions.append(access(10 * step + 3, 7, "STS", 0, 0, range(32)))
        executions.append(plain(10 * step + 4, 8, "BAR", 0))
    accesses = [i for e, i in zip(executions, iterations(executions), strict=True) if e.line == 7]
    assert accesses == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_the_head_of_an_unrolled_loop_is_an_iteration_each_time() -> None:
    executions = []
    for step in range(3):
        executions.append(branch(10 * step, 6, 0, 0, [True] * 32))
        executions.append(access(10 * step + 1, 7, "LDS", 0, 0, range(32)))
    assert iterations(executions) == [0, 0, 1, 1, 2, 2]


def test_two_conditions_in_a_row_are_one_iteration() -> None:
    executions = [branch(pc, 6, 0, 0, [True] * 32) for pc in range(2)]
    assert iterations(executions) == [0, 0]


def test_a_branch_behind_the_body_belongs_to_the_iteration_of_the_branch_before_it() -> None:
    executions = []
    for step in range(2):
        executions.append(branch(0, 6, 0, step, [True] * 32))
        executions.append(branch(1, 6, 0, step, [True] * 32, op="BRA"))
        executions.append(access(2, 7, "LDS", 0, step, range(32)))
        executions.append(branch(3, 6, 0, step, [True] * 32, op="BRA"))
    assert iterations(executions) == [0] * 4 + [1] * 4


def test_a_warp_that_skips_the_first_iterations_is_counted_from_where_it_joins() -> None:
    """Compiled without guards, only warps that pass the condition run its body."""
    executions = []
    for step in range(3):
        passes = step == 2
        executions.append(branch(1, 6, 0, step, [passes] * 32))
        if passes:
            executions.append(access(2, 7, "LDS", 0, 0, range(32)))
        executions.append(plain(3, 8, "BAR", 0, step))
    found = [i for e, i in zip(executions, iterations(executions), strict=True) if e.line == 7]
    assert found == [2]


def test_what_follows_a_loop_is_not_an_iteration_of_it() -> None:
    executions = [branch(1, 6, 0, step, [step < 2] * 32) for step in range(3)]
    executions.append(access(2, 9, "LDS", 0, 0, range(32)))
    assert iterations(executions)[-1] == 0


def test_two_sides_of_a_divergent_branch_are_one_iteration() -> None:
    left = tuple(t < 16 for t in range(32))
    right = tuple(t >= 16 for t in range(32))
    halves = [
        Execution(4, 7, "LDS", 0, occurrence, active=side, on=side)
        for occurrence, side in enumerate((left, right))
    ]
    assert iterations(halves) == [0, 0]


@pytest.mark.parametrize(
    ("ops", "counted"),
    [
        ([["LDS", "LDS", "STS"]] * 3, "iteration"),
        ([["LDS"]] * 3, "iteration"),
        ([["LDS"] * 4], "iteration"),
        ([["LDS"] * 4] * 2, "execution"),
        ([["LDS"], ["LDS"] * 3], "execution"),
    ],
)
def test_accesses_of_unrolled_loops_are_numbered_by_execution(
    ops: list[list[str]], counted: str
) -> None:
    """Four loads at once are four iterations or four elements: nothing tells which."""
    placed = [
        (access(10 * pc, 7, op, 0, step, range(32)), step)
        for step, several in enumerate(ops)
        for pc, op in enumerate(several)
    ]
    name, numbers = numbering(placed)
    assert name == counted
    if counted == "execution":
        assert numbers == list(range(len(placed)))
    else:
        assert numbers == [step for _, step in placed]


def test_a_report_has_a_row_for_each_finding_behind_the_first_sentences() -> None:
    trace = reduce2(128)
    vars(trace)["findings"] = [Finding("barrier", line, f"Line {line}.") for line in range(5)]
    text = "\n".join(str(row) for row in trace_report(trace, 100, whole=False))
    assert text.count("barrier: Line") == 3
    assert [row.split() for row in text.splitlines()[-4:]] == [
        ["further", "line", "gain"],
        ["barrier", "3", "Warps", "that", "wait", "for", "the", "others", "of", "their", "block"],
        ["barrier", "4", "Warps", "that", "wait", "for", "the", "others", "of", "their", "block"],
        ["in", "full:", "--all"],
    ]
    assert sum("barrier: Line" in str(row) for row in trace_report(trace, 100)) == 5
    vars(trace)["findings"] = trace.findings[:3]
    assert not any("further" in str(row) for row in trace_report(trace, 100, whole=False))


def test_counted_events_are_said_in_a_sentence_wherever_they_stand() -> None:
    trace = reduce2(128)
    kinds = ["barrier"] * 3 + ["bank-conflict"] * 2
    vars(trace)["findings"] = [Finding(kind, 31, "Cause.") for kind in kinds]
    text = [str(row) for row in trace_report(trace, 100, whole=False)]
    assert sum("bank-conflict: Cause" in row for row in text) == 1
    assert sum(row.startswith("  bank-conflict ") for row in text) == 1
