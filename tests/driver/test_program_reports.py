"""A program's report: the summary, the page and the events for Perfetto, of the same timeline."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from driver.host import Host, needs_compilers

from gpusim.advice.records import Advice
from gpusim.checking.coverage import Coverage
from gpusim.checking.findings import Finding, Findings, Place
from gpusim.cli.app import main
from gpusim.driver.timeline import TO_DEVICE, Duration, Timeline
from gpusim.gpu.device import load
from gpusim.reports.diagnostics import gcc
from gpusim.reports.layout import console
from gpusim.reports.page import checks
from gpusim.reports.page import program as page
from gpusim.reports.perfetto import program_events
from gpusim.reports.program_findings import program_diagnostics
from gpusim.reports.program_records import HostFinding, ProgramLaunch, ProgramReport
from gpusim.reports.program_timeline import COLUMNS, by_kind, strips
from gpusim.reports.programs import program_summary

TAKEN = Duration(kernel_us=10, overhead_us=3, gap_us=1)
TIMES: dict[str, Any] = {"time_us": 13, "kernel_us": 10, "interval_us": (9, 12)}
MEGABYTES = 63_000_000  # in 1,000 us over the link


def report(launches: int = 2, kernel: str = "scale(float*, int)") -> ProgramReport:
    timeline = Timeline(load("h200"))
    timeline.add_stream(20, 1)
    timeline.copy(TO_DEVICE, MEGABYTES, 0, waits=True)
    for number in range(1, launches + 1):
        timeline.launch(kernel, 20, TAKEN, number)
    found = [
        ProgramLaunch(n, 7, kernel, (4, 1, 1), (64, 1, 1), 0, 20, 0.1, bound="dram", **TIMES)
        for n in range(1, launches + 1)
    ]
    intervals = [{"process": 7, **vars(one)} for one in timeline.intervals]
    return ProgramReport(("./a.out", "9"), "H200", 0, found, intervals=intervals)


def test_work_is_summed_up_by_kind_with_overhead_apart() -> None:
    sums = {one.kind: one for one in by_kind(report().intervals)}
    assert list(sums) == ["copies host to device", "kernels", "launch overhead"]
    assert sums["copies host to device"].gbps == pytest.approx(63)
    assert (sums["kernels"].pieces, sums["kernels"].time_us) == (2, 20)
    assert sums["launch overhead"].time_us == 3 + 1


def test_kernels_have_the_same_sum_and_their_interval_in_all_tables() -> None:
    made = report()
    document = made.to_dict()
    shown = "\n".join(line.plain for line in program_summary(made, 100))
    [kernels] = [one["time_us"] for one in document["work"] if one["kind"] == "kernels"]
    assert kernels == document["kernels"][0]["kernel_us"] == 20
    assert document["kernels"][0]["interval_us"] == [18, 24]
    assert re.search(r"scale\(float\*, int\) +2 +20\.00 +100 %", shown)
    assert "kernels 20.0 us" in shown
    assert "90 % interval of the kernels' time: 18.0 to 24.0 us" in shown


def test_time_without_work_is_idle() -> None:
    first, second = report().intervals[0], dict(report().intervals[1])
    second |= {"begin_us": first["end_us"] + 5, "end_us": first["end_us"] + 18}
    assert by_kind([first, second])[-1].to_dict() == {"kind": "idle", "pieces": 1, "time_us": 5}


def test_bars_narrower_than_a_column_are_one() -> None:
    many = strips(report(launches=9000).intervals)[1].bars
    assert len(many) < 3 * COLUMNS
    assert many[-1].end_us == pytest.approx(1000 + 3 + 10 + 8999 * 11)


def test_the_page_has_the_timeline_and_the_tables_and_no_foreign_markup() -> None:
    pytest.importorskip("jinja2")
    text = page.page(report(kernel="<script>evil"), {})
    assert "<script>evil" not in text
    assert text.count("<rect") == 1 + 2 * 2
    assert "launch 2: &lt;script&gt;evil, 10.0 us" in text
    assert "1000.0 us" not in text
    assert "63.0 GB/s" in text
    assert "Without a section of their own: &lt;script&gt;evil" in text


def test_events_for_perfetto_have_the_pages_times() -> None:
    document = program_events(report().intervals, "H200")
    spans = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert [(e["name"], e["dur"]) for e in spans] == [
        ("copies host to device", 1000), ("launch overhead", 3), ("scale(float*, int)", 10),
        ("launch overhead", 1), ("scale(float*, int)", 10),
    ]  # fmt: skip
    assert spans[2]["args"] == {"launch": 1}


def test_the_summary_says_what_was_compared_and_which_lines_no_launch_of_a_kernel_ran() -> None:
    def checked(number: int, accesses: int, lines: set[int]) -> ProgramLaunch:
        made = Findings("k", "", (1, 1, 1), (32, 1, 1), "9.0", coverage=Coverage(accesses, 2))
        made.coverage.lines_not_run |= lines
        launch = ProgramLaunch(number, 7, "k", (1, 1, 1), (32, 1, 1), 0, 20, 0.1)
        return replace(launch, findings=made)

    left = replace(checked(3, 0, set()), findings=None)
    launches = [checked(1, 1000, {3, 4, 9}), checked(2, 500, {4, 5, 9}), left]
    lines = program_summary(ProgramReport(("a.out",), "H200", 0, launches), 120)
    assert [str(line) for line in lines][-2:] == [
        "no hazards found in 2 of 3 launches with these inputs: "
        "1,500 accesses, 4 pairs of accesses ordered",
        "k: lines 4, 9 not run",
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_summary_keeps_within_the_width(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    screen = console(sys.stdout)
    screen.width = width
    for line in program_summary(report(), width):
        screen.print(line)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert all(word in "\n".join(lines) for word in ("scale(float*, int)", "20.00", "0.20"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--sarif", "--out", "x", "--", "app"], "sarif has findings: gpusim check, trace"),
        (["report", "--format", "gcc", "--", "app"], "check, trace, predict, not report"),
        (["trace", "--format", "sarif", "--", "app"], "standard output is the program's"),
        (["check", "--format", "gcc", "--json", "--out", "x", "--", "app"], "have one format"),
        (["run", "--lenient", "--", "app"], "--lenient is of gpusim check"),
        (["check", "-G", "--", "app"], "-G cannot be given here"),
        (["trace", "--out", "x.json", "--", "app"], "--out is of --json"),
        (["trace", "--perfetto", "x.json", "--", "app"], "gpusim predict and gpusim report"),
        (["report", "--out", "page.txt", "--", "app"], "ends in .html"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_the_program_runs(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


@needs_compilers
def test_a_programs_page_has_a_section_of_each_kernel(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    out, events = tmp_path / "page.html", tmp_path / "events.json"
    ran = Host(tmp_path, capfd).run(
        """
x, y = take(400), take(400)
to(x, bytes(400))
for turn in range(2): launch("scale", 2, 64, y, x, C.c_int(100))
launch("count", 1, 32)
""",
        *("report", "--out", str(out), "--perfetto", str(events)),
    )
    assert ran.code == 0
    text = out.read_text()
    assert [text.count(f'id="kernel-{number}"') for number in range(3)] == [1, 1, 0]
    assert text.count('href="#kernel-0"') == 2
    assert f"{out} is the page" in ran.err
    names = [e["name"] for e in json.loads(events.read_text())["traceEvents"] if e["ph"] == "X"]
    assert names.count("scale") == 2


def checked(number: int, *found: Finding) -> ProgramLaunch:
    size = (1, 1, 1), (64, 1, 1)
    held = Findings("race", "kernels.cu", *size, "9.0", found=found)
    return ProgramLaunch(number, 7, "race", *size, 0, 20, 0.1, findings=held)


def test_a_finding_of_several_launches_is_one_diagnostic_and_a_fault_has_its_line() -> None:
    place = Place(12, "reads s[63]")
    race = Finding("shared-race", "thread 0 reads s[63]", (place,), "s", 63, count=64)
    leak = HostFinding(Finding("leak", "400 bytes are not freed", ()))
    faulty = replace(checked(3), error="OutOfBounds: arg0[9]", error_line=14, source_file="b.cu")
    found = ProgramReport(
        ("./a.out",), "H200", 0, [checked(1, race), checked(2, race), faulty], [leak]
    )
    diagnostics = program_diagnostics(found)
    assert [(one.level, one.rule, one.file, one.line, one.count) for one in diagnostics] == [
        ("error", "kernel-fault", "b.cu", 14, 1),
        ("error", "shared-race", "kernels.cu", 12, 128),
        ("warning", "leak", "", 0, 1),
    ]  # fmt: skip


def test_findings_on_performance_name_the_kernel_where_they_have_no_line() -> None:
    few = Advice("few-blocks", 0, "Small grid.")
    conflict = Advice("bank-conflict", 7, "line 7: stride 32.")
    size = (1, 1, 1), (64, 1, 1)
    launches = [
        ProgramLaunch(n, 7, "add", *size, 0, 20, 0.1, advice=found, source_file="a.cu")
        for n, found in enumerate([[few, conflict], [few]], 1)
    ]
    report = ProgramReport(("./a.out",), "H200", 0, launches)
    assert list(gcc(program_diagnostics(report))) == [
        "a.cu:1: warning: add: Small grid. [few-blocks]",
        "a.cu:7: warning: stride 32. [bank-conflict]",
    ]
    text = "\n".join(map(str, program_summary(report, 80)))
    assert "add  findings, from launch 1 on\n  few-blocks: Small grid.\n  bank-conflict:" in text


@needs_compilers
def test_a_programs_findings_go_to_editors_and_hosts_by_format(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    host, out = Host(tmp_path, capfd), tmp_path / "found.sarif"
    text = 'for turn in range(2): launch("conflicts", 1, 32, take(400))\nprint("done")'
    traced = host.run(text, "trace", "--format", "gcc")
    assert (traced.code, traced.out) == (0, ["done"])
    warnings = [line for line in traced.err.splitlines() if "[bank-conflict]" in line]
    assert len(warnings) == 2  # its store and its load, of both launches
    assert warnings[0].startswith("gpusim: warning: line 17: stride 32 puts 32 lanes on 1 bank")
    assert "launches of" not in traced.err
    predicted = host.run(text, "predict", "--sarif", "--out", str(out))
    results = json.loads(out.read_text())["runs"][0]["results"]
    found = [one["message"]["text"] for one in results if one["ruleId"] == "bank-conflict"]
    assert len(found) == 2
    assert all("fixing it" in text for text in found)
    assert "2 launches of 1 kernel" in predicted.err


@needs_compilers
def test_the_page_of_a_check_has_each_finding_with_its_lines_threads_and_fix(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2")
    out = tmp_path / "checked.html"
    ran = Host(tmp_path, capfd).run(
        """
x = take(256)
for turn in range(2): launch("race", 1, 64, x)
launch("count", 1, 32)
call("cuMemFree_v2", C.c_uint64(12345))
""",
        *("check", "--out", str(out)),
    )
    assert ran.code == 1
    assert f"{out} is the page" in ran.err
    text = out.read_text()
    assert text.count('<article class="finding error"') == 2
    assert "launch 1 and 1 more launch of race, 128 times" in text
    assert "thread 63 (block 0, warp 1, lane 31) writes s[63]" in text
    assert "put __syncthreads() between the two accesses" in text
    assert re.findall(r'<h2 id="file-\d">([^<]*)', text) == ["without lines", "host"]
    assert "0x3039 is freed, where no allocation begins" in text


def test_a_page_of_a_check_without_findings_says_so_and_shows_no_foreign_markup() -> None:
    pytest.importorskip("jinja2")
    text = checks.page(report(kernel="<script>evil"))
    assert "No hazards found" in text
    assert "<script>evil" not in text
    assert "2 launches only ran." in text
