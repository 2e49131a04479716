"""Timelines: as a record, as a picture, in a terminal, and as trace events."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gpusim
from gpusim import catalogue
from gpusim.cli.app import main
from gpusim.errors import InputError
from gpusim.prediction.clock.spans import STALLS, Span
from gpusim.prediction.records import Prediction
from gpusim.prediction.timeline import Timeline, TimelineRecorder, WarpLife, joined
from gpusim.reports.perfetto import prediction_events, trace_events
from gpusim.reports.stall_styles import STALL_STYLES
from gpusim.reports.timeline import columns_of, timeline_lines
from gpusim.sass import wheels
from gpusim.tracing.block_steps import BlockSteps


@cache
def predicted() -> Prediction:
    """reduce2 of 64 threads, 528 blocks: 4 on each of an H200's 132 SMs."""
    call = catalogue.find("reduce2").call(catalogue.sample(64 * 528, "int32"), block=64)
    return gpusim.predict(call.configured, *call.arguments, device="h200", timeline=True)


def timeline() -> Timeline:
    found = predicted().timeline
    assert found is not None
    return found


def made(*spans: tuple[float, float, str]) -> WarpLife:
    return WarpLife(0, 3, 1, tuple(Span(0, 3, a, b, reason, 0) for a, b, reason in spans))


# -- the record ----------------------------------------------------------------------------


def test_spans_tile_the_life_of_every_warp_of_the_first_blocks() -> None:
    assert (timeline().blocks, timeline().simulated) == (4, 4)
    assert [(life.block, life.warp) for life in timeline().warps] == [
        (block, warp) for block in range(4) for warp in range(2)
    ]
    for life in timeline().warps:
        ends = [span.end for span in life.spans[:-1]]
        assert ends == [span.start for span in life.spans[1:]]
        assert life.end <= timeline().cycles
        assert life.scheduler == (life.block + life.warp) % 4


def test_their_lengths_add_up_to_the_stalls_that_are_told() -> None:
    """All blocks of the SM were simulated, so that fractions are those of these very spans."""
    spans = [span for life in timeline().warps for span in life.spans]
    whole = sum(span.end - span.start for span in spans)
    for name, fraction in predicted().stalls.items():
        mine = sum(s.end - s.start for s in spans if s.reason == name)
        assert mine / whole == pytest.approx(fraction, abs=1e-9)


def test_barriers_of_a_block_are_those_that_it_runs() -> None:
    """reduce2 has one barrier after loading and one in each of the 6 iterations of 64 threads."""
    for block in range(4):
        cycles = [cycle for number, cycle in timeline().barriers if number == block]
        assert len(cycles) == 7
        assert cycles == sorted(cycles)


def test_without_being_asked_for_none_is_kept() -> None:
    call = catalogue.find("reduce2").call(catalogue.sample(128, "int32"), block=64)
    plain = gpusim.predict(call.configured, *call.arguments)
    assert plain.timeline is None
    assert "timeline" not in plain.to_dict()
    with pytest.raises(InputError, match=r"predict\(..., timeline=True\) keeps it"):
        plain.plot_timeline()


def test_an_sm_that_is_simulated_again_begins_anew() -> None:
    recorder = TimelineRecorder(4, 2)
    for _ in range(2):
        recorder.begin(1)
        recorder.span(Span(0, 0, 1, 2, "wait", 0))
        recorder.barrier_opened(0, 2)
        recorder.end(5)
    assert len(recorder.timeline.warps[0].spans) == 1
    assert recorder.timeline.barriers == ((0, 2),)


def test_neighbours_with_one_reason_are_joined() -> None:
    life = made((0, 2, "wait"), (2, 5, "wait"), (5, 6, "selected"), (8, 9, "selected"))
    found = [(s.start, s.end, s.reason) for s in joined(life.spans)]
    assert found == [(0, 5, "wait"), (5, 6, "selected"), (8, 9, "selected")]


# -- the terminal --------------------------------------------------------------------------


def test_a_column_shows_what_takes_most_of_it() -> None:
    life = made((2, 4, "selected"), (4, 7, "barrier"), (7, 8, "wait"))
    assert columns_of(life, 0, 2, 5) == ["", "selected", "barrier", "barrier", ""]


def test_each_warp_has_a_row_within_the_width() -> None:
    lines = [line.plain for line in timeline_lines(timeline(), 80)]
    assert max(map(len, lines)) <= 80
    rows = [line for line in lines if line.startswith("warp ")]
    assert [row[:9] for row in rows] == ["warp 0 (s", "warp 1 (s"]
    (marks,) = (line for line in lines if line.startswith("barrier opens"))
    assert 1 <= marks.count("^") <= 7
    assert "L long_scoreboard" in " ".join(lines)


def test_every_reason_has_a_letter_and_a_colour_of_its_own() -> None:
    assert list(STALL_STYLES) == list(STALLS)
    assert len({reason.letter for reason in STALL_STYLES.values()}) == len(STALLS)
    assert len({reason.colour for reason in STALL_STYLES.values()}) == len(STALLS)


def test_the_command_draws_it_and_writes_events(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "events.json"
    words = ["predict", "reduce2", "-n", "4096", "--block", "64", "--timeline"]
    assert main([*words, "--perfetto", str(path)]) == 0
    assert "\nTimeline  the SM's first block" in capsys.readouterr().out
    check_events(json.loads(path.read_text(encoding="utf-8")))


# -- the picture ---------------------------------------------------------------------------


def test_the_picture_has_the_spans_of_the_block_and_of_the_sm() -> None:
    figure = predicted().plot_timeline()
    upper, middle, lower = figure.axes
    assert upper.get_xlim() == middle.get_xlim() == lower.get_xlim()
    for axes, lives in ((upper, timeline().of_block(0)), (lower, timeline().warps)):
        spans = [span for life in lives for span in joined(life.spans)]
        drawn = {c.get_gid(): len(c.get_paths()) for c in axes.collections}
        assert drawn == {
            name: sum(s.reason == name for s in spans) for name in {s.reason for s in spans}
        }
    dotted = [line.get_xdata()[0] for line in upper.get_lines()]
    assert dotted == [cycle for block, cycle in timeline().barriers if block == 0]
    assert "cycles" in lower.get_xlabel()
    (above,) = upper.child_axes
    mhz = predicted().device.gpu.sm_clock_mhz
    figure.draw_without_rendering()
    assert above.get_xlim() == pytest.approx([end / mhz for end in upper.get_xlim()])


def test_the_picture_has_a_row_for_each_line_with_the_warps_that_are_there() -> None:
    """Shades are mean warps: over time they add up to the cycles that the line's spans have."""
    _, middle, _ = predicted().plot_timeline().axes
    block = timeline().of_block(0)
    code = predicted().prepared.program.instructions
    cycles: dict[str, float] = {}
    for life in block:
        for span in life.spans:
            line = code[span.pc].line if span.pc >= 0 else 0
            name = f"line {line}" if line else "no line"
            cycles[name] = cycles.get(name, 0.0) + span.end - span.start
    shades = middle.images[0].get_array()
    assert shades.max() <= len(block) + 1e-9
    width = middle.get_xlim()[1] / shades.shape[1]
    names = [text.get_text() for text in middle.get_yticklabels()]
    drawn = dict(zip(names, shades.sum(axis=1) * width, strict=True))
    assert drawn == pytest.approx(cycles)


# -- trace events --------------------------------------------------------------------------

FIELDS = {
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
    "X": {
        "name": str, "cat": str, "ts": int | float, "dur": int | float,
        "pid": int, "tid": int, "args": dict,
    },
    "i": {
        "name": str, "cat": str, "ts": int | float, "s": str, "pid": int, "tid": int, "args": dict,
    },
    "C": {"name": str, "ts": int | float, "pid": int, "tid": int, "args": dict},
}  # fmt: skip


def check_events(document: dict[str, Any]) -> None:
    """The Trace Event Format, as far as it is used: fields, types, and no overlap on a track."""
    assert set(document) == {"traceEvents", "displayTimeUnit", "otherData"}
    tracks: dict[tuple[int, int], float] = {}
    named = set()
    processes: dict[int, int] = {}  # Perfetto tells threads apart by their number alone
    now = -1.0
    for event in document["traceEvents"]:
        fields = FIELDS[event["ph"]]
        assert set(event) == {"ph", *fields}
        assert all(isinstance(event[name], kind) for name, kind in fields.items()), event
        track = event["pid"], event["tid"]
        assert event["pid"] > 0
        assert processes.setdefault(event["tid"], event["pid"]) == event["pid"]
        assert event.get("ts", now) >= now, "names first, then in the order of time"
        now = event.get("ts", now)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            named.add(track)
        elif event["ph"] == "X":
            assert track in named
            assert event["dur"] > 0
            assert event["ts"] >= tracks.get(track, 0) - 1e-9
            tracks[track] = event["ts"] + event["dur"]
        elif event["ph"] == "i":
            assert track in named
            assert event["s"] == "t", "a mark on its thread"
        else:
            assert all(isinstance(v, int | float) for v in event["args"].values())
    assert tracks


def test_events_of_a_prediction_are_its_spans() -> None:
    document = prediction_events(predicted(), timeline())
    check_events(document)
    events = document["traceEvents"]
    spans = [span for life in timeline().warps for span in life.spans]
    drawn = [event for event in events if event["ph"] == "X" and event["cat"] != "line"]
    mhz = predicted().device.gpu.sm_clock_mhz
    expected = sorted((span.start, span.end - span.start) for span in spans)
    found = sorted((e["args"]["cycle"], e["args"]["cycles"]) for e in drawn)
    assert found == expected
    for event in drawn:
        assert event["ts"] == pytest.approx(event["args"]["cycle"] / mhz, abs=1e-6)
        assert event["dur"] == pytest.approx(event["args"]["cycles"] / mhz, abs=2e-6)
    names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    warps = {f"block {life.block}, warp {life.warp}" for life in timeline().warps}
    assert warps < names
    stalls = {event["name"] for event in drawn if event["cat"] == "stall"}
    assert stalls <= set(STALLS) - {"selected"}
    assert {"LDS", "STS", "BAR"} <= {event["name"] for event in drawn if event["cat"] == "issue"}


def test_each_line_of_the_first_block_has_a_track_and_each_barrier_a_mark() -> None:
    events = prediction_events(predicted(), timeline())["traceEvents"]
    mhz = predicted().device.gpu.sm_clock_mhz
    marks = [event["ts"] for event in events if event["ph"] == "i"]
    barriers = [cycle / mhz for block, cycle in timeline().barriers if block == 0]
    assert marks == pytest.approx(barriers, abs=1e-6)
    code = predicted().prepared.program.instructions
    spans = [span for life in timeline().of_block(0) for span in life.spans]
    for line in {code[span.pc].line for span in spans}:
        mine = [e for e in events if e.get("cat") == "line" and e["args"]["line"] == line]
        there = [span for span in spans if code[span.pc].line == line]
        for span in there:
            middle = (span.start + span.end) / 2 / mhz
            assert sum(e["ts"] <= middle <= e["ts"] + e["dur"] for e in mine) == 1
        first = min(span.start for span in there) / mhz
        assert min(e["ts"] for e in mine) == pytest.approx(first, abs=1e-6)


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_events_of_machine_code_have_the_disassemblers_names() -> None:
    call = catalogue.find("reduce2").call(catalogue.sample(64, "int32"), block=64)
    steps = BlockSteps(0)
    trace = gpusim.trace(call.configured, *call.arguments, observers=[steps], code="nvcc")
    names = {event["name"] for event in trace_events(trace, steps)["traceEvents"]}
    assert {"LDS", "STS", "BAR.SYNC.DEFER_BLOCKING"} <= names
    assert not any(name.startswith(("bits.", "@", ".")) for name in names)


def test_its_counters_are_warps_at_a_time() -> None:
    events = prediction_events(predicted(), timeline())["traceEvents"]
    totals = [sum(event["args"].values()) for event in events if event["ph"] == "C"]
    assert max(totals) <= len(timeline().warps) + 0.01
    windows = len(totals)
    last = max(life.end for life in timeline().warps)
    lives = sum(life.end - life.start for life in timeline().warps)
    assert sum(totals) * last / windows == pytest.approx(lives, rel=0.01)


def test_events_of_a_trace_are_its_steps() -> None:
    call = catalogue.find("reduce2").call(catalogue.sample(128, "int32"), block=64)
    steps = BlockSteps(1)
    trace = gpusim.trace(call.configured, *call.arguments, observers=[steps])
    document = trace_events(trace, steps)
    check_events(document)
    drawn = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert len(drawn) == sum(len(step.warps) for step in steps.steps)
    counted = [
        e["args"]["lanes"] for e in document["traceEvents"] if e["name"] == "predicated-on threads"
    ]
    assert counted == [step.lanes_on for step in steps.steps]
