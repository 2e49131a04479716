"""Reports fit a terminal, show what the trace holds, and read without colour."""

from __future__ import annotations

import io

import pytest
from handmade import access, branch, reduce2, trace_of
from rich.text import Text

from gpusim.errors import InputError
from gpusim.reports.accesses import line_document, line_report
from gpusim.reports.columns import Column, Columns, beside, folded
from gpusim.reports.layout import console
from gpusim.reports.trace import trace_report
from gpusim.tracing import lanes
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.records import Trace


def complete(trace: Trace) -> Trace:
    return trace


def printed(lines: object, width: int = 100) -> str:
    screen = console(io.StringIO())
    screen.width = width
    for line in lines:  # type: ignore[attr-defined]
        screen.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    return screen.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return complete(reduce2(128))


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("block", [32, 128, 1024])
def test_no_line_is_wider_than_the_terminal(width: int, block: int) -> None:
    made = complete(reduce2(block, grid=4096))
    for report in (trace_report(made, width), line_report(made, 31, None, width)):
        lines = printed(report, width).splitlines()
        assert max(len(line) for line in lines) <= width


def test_every_counter_is_shown_with_its_value_kind_and_metric(trace: Trace) -> None:
    text = printed(trace_report(trace, 160), 160)
    for name, spec in COUNTERS.items():
        row = next(line for line in text.splitlines() if line.startswith(f"{name} "))
        assert row.split()[1] == f"{trace.counters[name]:,}"
        assert spec.unit in row
        assert spec.kind in row
        assert spec.ncu in row


def test_at_100_columns_units_stand_in_the_names_of_counters(trace: Trace) -> None:
    text = printed(trace_report(trace, 100))
    row = next(line for line in text.splitlines() if line.startswith("shared_load_wavefronts"))
    assert row.split() == [
        "shared_load_wavefronts",
        "376",
        "model",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    ]
    assert "\nshared_atomics, instructions " in text


def test_source_lines_stand_beside_their_counts_and_the_worst_are_marked(trace: Trace) -> None:
    rows = printed(trace_report(trace, 120), 120).splitlines()
    marked = [row for row in rows if row.startswith(">")]
    assert [row.split()[1] for row in marked] == ["30", "31"]
    assert "sdata[index] += sdata[index + s]" in marked[1]
    assert marked[1].split()[-8:] == ["672", "4.5", "4.5", ".", ".", "552", "360", "."]


def test_warps_are_shown_by_iteration(trace: Trace) -> None:
    rows = printed(trace_report(trace, 100)).splitlines()
    start = next(i for i, row in enumerate(rows) if row.startswith("Divergence"))
    assert "Excessive wavefronts  line 31, by iteration" in rows[start]
    divergent, replays = rows[start + 2][:36].split(), rows[start + 2][36:].split()
    assert divergent == ["0", ".", ".", "1", "1", "1", "1", "1", "5"]
    assert replays == ["0", "3", "9", "9", "9", "9", "3", ".", "42"]


def test_warps_of_a_large_block_that_did_the_same_share_a_row() -> None:
    text = printed(trace_report(complete(reduce2(1024)), 100))
    assert "\n16-31 " in text
    assert "\n17 " not in text


def test_the_report_ends_with_what_to_make_of_it(trace: Trace) -> None:
    text = printed(trace_report(trace, 100))
    ending = " ".join(text.partition("Findings")[2].split())
    for finding in trace.findings:
        assert f"{finding.kind}: {finding.message}" in ending


def test_a_line_is_drawn_lane_by_lane_with_its_conflicts(trace: Trace) -> None:
    """In iteration 1 lanes 0, 8, 16 and 24 want elements 0, 32, 64 and 96: all of bank 0."""
    text = printed(line_report(trace, 31, 0, 100))
    section = text.partition("iteration 1: LDS and STS sdata")[2].partition("iteration 1: LDS")[0]
    rows = [row.split() for row in section.splitlines()]
    assert section.startswith(", 32 lanes at stride 4: 4 wavefronts, 3 bank conflicts\n")
    assert ["byte", *(str(16 * lane) for lane in range(16))] in rows
    assert ["element", *(str(4 * lane) for lane in range(16))] in rows
    assert ["bank", *(f"{4 * lane % 32}*" for lane in range(16))] in rows
    grid = [row for row in rows if row and row[0] in {"1", "2", "3", "4"}]
    assert [row[1] for row in grid] == ["0", "8", "16", "24"]
    assert [row[5] for row in grid] == ["1", "9", "17", "25"]


def test_the_lanes_that_take_the_branch_are_drawn(trace: Trace) -> None:
    text = printed(line_report(trace, 30, None, 100))
    rows = text.splitlines()
    assert any("YYYYYYYY YYYYYYYY ........ ........  16 of 32  lanes 0-15" in row for row in rows)
    assert sum("divergent" in row for row in rows) == 5


def test_the_branch_that_guards_an_access_is_drawn_with_it(trace: Trace) -> None:
    assert "Condition of line 30, lane by lane" in printed(line_report(trace, 31, 0, 100))


def test_the_warp_with_most_replays_is_drawn_unless_told(trace: Trace) -> None:
    assert "Accesses of warp 0" in printed(line_report(trace, 31, None, 100))
    assert "Accesses of warp 1" in printed(line_report(trace, 31, 1, 100))


def test_global_accesses_are_drawn_with_their_sectors(trace: Trace) -> None:
    rows = printed(line_report(trace, 24, 1, 100)).splitlines()
    start = next(i for i, row in enumerate(rows) if row.startswith("LDG g_idata"))
    assert "stride 1: 4 sectors" in rows[start]
    assert rows[start + 4].split() == ["sector", *["4"] * 8, *["5"] * 8]


def test_lanes_that_share_a_word_are_no_conflict() -> None:
    made = complete(trace_of([access(0, 7, "LDS", 0, 0, [t // 2 for t in range(32)])]))
    text = printed(line_report(made, 7, None, 100))
    assert "*" not in text
    assert "1 wavefront" in text


def test_eight_byte_accesses_are_drawn_half_warp_by_half_warp() -> None:
    elements = [2 * t for t in range(32)]
    made = complete(trace_of([access(0, 7, "LDS", 0, 0, elements, element_bytes=8)]))
    rows = [row.split() for row in printed(line_report(made, 7, None, 100)).splitlines()]
    grid = [row for row in rows if row and row[0] in {"1", "2", "3", "4"}]
    assert [row[1:3] for row in grid] == [["0", "0"], ["8", "8"], ["16", "16"], ["24", "24"]]


def test_a_long_loop_is_drawn_for_its_first_iterations() -> None:
    executions = [branch(0, 3, 0, step, [True] * 32) for step in range(40)]
    text = printed(line_report(complete(trace_of(executions)), 3, None, 100))
    assert "24 further iterations not drawn" in text


def test_a_line_or_warp_that_there_is_not_is_refused(trace: Trace) -> None:
    with pytest.raises(InputError, match=r"line 29 .*|line 99 of reduce2 is not executed"):
        list(line_report(trace, 99, None, 100))
    with pytest.raises(InputError, match="block 0 has warps 0 to 3, not 4"):
        list(line_report(trace, 31, 4, 100))


def test_a_line_as_data_has_lanes_addresses_and_banks(trace: Trace) -> None:
    rows = line_document(trace, 31, 0)
    assert len(rows) == 21
    assert rows[3]["iteration"] == 1
    assert rows[3]["addresses"][:3] == (0, 16, 32)
    assert rows[3]["banks"][8] == 0


def test_columns_give_way_where_they_may() -> None:
    made = Columns(Column("name", "left", "fold"), Column("count"))
    made.row("a rather long name of a thing", "1,234")
    assert [line.plain for line in made.lines(20)] == [
        "name           count",
        "a rather long  1,234",
        "name of a",
        "thing",
    ]


def test_a_long_source_line_spans_the_columns_on_its_right() -> None:
    made = Columns(Column("line"), Column("source", "left", "span", hang=4), Column("count"))
    made.row("1", "x = 1", "7")
    made.row("2", "    total = total + f(numbers[i + 1])", "8")
    made.row("3", "    total = total + scale(numbers)", "9")
    assert [line.plain for line in made.lines(26)] == [
        "line  source         count",
        "   1  x = 1              7",
        "   2      total = total +",
        "              f(numbers[i",
        "              + 1])      8",
        "   3      total = total +",
        "              scale(",
        "              numbers)",
        "                         9",
    ]


def test_a_source_line_indented_by_tabs_is_shown_whole() -> None:
    made = Columns(Column("line"), Column("source", "left", "span", hang=4), Column("count"))
    made.row("1", "\t\tout[i] = numbers[i] + numbers[i + 1];", "7")
    text = "\n".join(line.plain for line in made.lines(36))
    assert "\t" not in text
    assert "".join(text.split()) == "linesourcecount1out[i]=numbers[i]+numbers[i+1];7"


def test_headings_fold_before_text_is_narrow_and_the_gap_shrinks_last() -> None:
    made = Columns(Column("name", "left", "fold"), Column("load sectors"), Column("us"))
    made.row("reduction", "12", "3")
    assert [[line.plain for line in made.lines(width)] for width in (28, 22, 19)] == [
        ["name       load sectors  us", "reduction            12   3"],
        ["              load", "name       sectors  us", "reduction       12   3"],
        ["            load", "name     sectors us", "reductio      12  3", "n"],
    ]
    roomy = Columns(Column("of peak"), Column("changes", "left", "fold"))
    roomy.row("8.6 %", "half the blocks, and no bank conflicts")
    assert [line.plain for line in roomy.lines(36)] == [
        "of peak  changes",
        "  8.6 %  half the blocks, and no",
        "         bank conflicts",
    ]


def test_long_names_fold_at_underscores_members_and_brackets() -> None:
    assert folded("l1tex__data_pipe_lsu", 12) == ["l1tex__data", "_pipe_lsu"]
    assert folded("cuda.threadIdx.x", 10) == ["cuda", ".threadIdx", ".x"]
    assert folded("combine(shared[i])", 12) == ["combine(", "shared[i])"]
    assert folded("abcdefghij", 4) == ["abcd", "efgh", "ij"]


def test_tables_stand_side_by_side_only_where_there_is_room() -> None:
    left, right = [Text("ab"), Text("c")], [Text("de")]
    joined = beside(left, right, 20)
    assert joined is not None
    assert [line.plain for line in joined] == ["ab      de", "c"]
    assert beside(left, right, 9) is None


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([1, 2], "1, 2"), ([0, 1, 2, 5], "0-2, 5")],
)
def test_numbers_are_written_as_ranges(numbers: list[int], text: str) -> None:
    assert lanes.ranges(numbers) == text


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (range(32), "all lanes"),
        ([], "no lane"),
        ([0], "lane 0 alone"),
        (range(0, 32, 4), "every 4th lane"),
        (range(16), "lanes 0-15"),
        ([1, 2, 9, 17, 30], "5 of 32 lanes"),
    ],
)
def test_lanes_are_named_in_words(chosen: range, words: str) -> None:
    assert lanes.which(list(chosen), list(range(32))) == words
