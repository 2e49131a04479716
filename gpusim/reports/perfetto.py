"""Timelines as trace events, for Perfetto and chrome://tracing.

The format is the JSON of Chromium's "Trace Event Format". Its times are microseconds; of the steps
of a block, which have no time, one of them stands for one step. Perfetto takes process 0 for the
idle one, distinguishes threads by their numbers alone, draws no spans of a thread that overlap, and
cuts times to nanoseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpusim.host.files import write_whole
from gpusim.isa.ops import Instruction, Program, text_of
from gpusim.prediction.records import Prediction
from gpusim.prediction.timeline import Timeline, WarpLife
from gpusim.reports.program_timeline import OVERHEAD, kind_of, stream_name
from gpusim.tracing.block_steps import BlockSteps
from gpusim.tracing.records import Trace

Event = dict[str, Any]

WINDOWS = 200  # of a counter over a timeline
FIRST_PROCESS = 1
FIRST_THREAD = 101  # below are threads of the processes' own numbers, for their names and counters
SELECTED = "selected"
BLOCK = 0
PICOSECOND = 6  # decimals of a microsecond


def write_events(document: dict[str, Any], path: Path) -> None:
    """Write a document of trace events, whole or not at all."""
    write_whole(path, json.dumps(document, separators=(",", ":")) + "\n")


def prediction_events(prediction: Prediction, timeline: Timeline) -> dict[str, Any]:
    """Return the first blocks of an SM: a process for each scheduler, a thread for each warp.

    A span is named by its instruction where it issues, else by its reason. A process of the first
    block has a thread for each source line, with the times at which a warp is there, and the
    openings of barriers as instants. Times are in microseconds.
    """
    program, mhz = prediction.prepared.program, prediction.device.gpu.sm_clock_mhz
    events: list[Event] = []
    for scheduler in range(timeline.schedulers):
        process = FIRST_PROCESS + scheduler
        events.append(_named("process_name", f"SM 0, scheduler {scheduler}", process, process))
    for thread, life in enumerate(timeline.warps, FIRST_THREAD):
        name = f"block {life.block}, warp {life.warp}"
        events.append(_named("thread_name", name, FIRST_PROCESS + life.scheduler, thread))
        events += _spans(life, program, thread, mhz)
    process = FIRST_PROCESS + timeline.schedulers
    events += _first_block(timeline, program, process, FIRST_THREAD + len(timeline.warps), mhz)
    events += _counters(timeline, mhz)
    about = {"kernel": prediction.kernel, "device": prediction.device.gpu.name, "sm_clock_mhz": mhz}
    return _document(events, "microsecond", **about, blocks=timeline.blocks, of=timeline.simulated)


def trace_events(trace: Trace, steps: BlockSteps) -> dict[str, Any]:
    """Return the steps of one block: a thread for each warp, each step one unit of time long."""
    assert steps.program is not None
    program, block = steps.program, steps.block_index
    process = FIRST_PROCESS
    events = [_named("process_name", f"{trace.kernel}, block {block}", process, process)]
    for warp in range(trace.launch.warps_per_block):
        events.append(_named("thread_name", f"warp {warp}", process, FIRST_THREAD + warp))
    for at, step in enumerate(steps.steps):
        one = program.instructions[step.pc]
        for part in step.warps:
            args = {"line": one.line, "pc": step.pc, "lanes_on": sum(part.on)}
            text = text_of(one, program.immediates)
            thread = FIRST_THREAD + part.warp
            events.append(
                _complete(_mnemonic(one), "step", at, 1, process, thread, text=text, **args)
            )
        events.append(_counter("predicated-on threads", at, lanes=step.lanes_on))
        events.append(_counter("barrier interval", at, interval=step.interval))
    return _document(events, "step", kernel=trace.kernel, steps_are_all=steps.is_complete)


def program_events(intervals: Sequence[Mapping[str, Any]], device: str) -> dict[str, Any]:
    """Return the work of a program: a process of its own each, and a thread for each stream.

    Launches, their overhead, copies and memsets are spans; here a microsecond is one.
    """
    events: list[Event] = []
    threads: dict[tuple[int, int], int] = {}
    processes = list(dict.fromkeys(one["process"] for one in intervals))
    for number, process in enumerate(processes, FIRST_PROCESS):
        events.append(_named("process_name", f"GPU of process {process}", number, number))
    for one in intervals:
        number = FIRST_PROCESS + processes.index(one["process"])
        key = one["process"], one["stream"]
        if key not in threads:
            threads[key] = FIRST_THREAD + len(threads)
            name = stream_name(one["stream"])
            events.append(_named("thread_name", name, number, threads[key]))
        begin, thread, overhead = one["begin_us"], threads[key], one["overhead_us"]
        if overhead:
            events.append(_complete(OVERHEAD, OVERHEAD, begin, overhead, number, thread))
        args = {"launch": one["number"]} if one["number"] else {"bytes": one["bytes"]}
        name = one["name"] if one["kind"] == "kernel" else kind_of(one)
        begin += overhead
        length = one["end_us"] - begin
        events.append(_complete(name, one["kind"], begin, length, number, thread, **args))
    return _document(events, "microsecond", device=device)


def _us(cycles: float, mhz: float) -> float:
    return round(cycles / mhz, PICOSECOND)


def _spans(life: WarpLife, program: Program, thread: int, mhz: float) -> Iterator[Event]:
    for span in life.spans:
        one = program.instructions[span.pc] if span.pc >= 0 else None
        is_issue = span.reason == SELECTED and one is not None
        op = _mnemonic(one) if one is not None else ""
        name, kind = (op, "issue") if is_issue else (span.reason, "stall")
        args: dict[str, Any] = {"cycle": span.start, "cycles": span.end - span.start}
        if one is not None:
            args |= {"line": one.line, "pc": span.pc, "instruction": op}
        begin = _us(span.start, mhz)
        length = round(_us(span.end, mhz) - begin, PICOSECOND)
        process = FIRST_PROCESS + life.scheduler
        yield _complete(name, kind, begin, length, process, thread, **args)


def _first_block(
    timeline: Timeline, program: Program, process: int, thread: int, mhz: float
) -> Iterator[Event]:
    """Yield a thread with the barriers of the first block, then one for each of its lines."""
    yield _named("process_name", "SM 0, block 0", process, process)
    yield _named("thread_name", "barriers", process, thread)
    for block, cycle in timeline.barriers:
        if block == BLOCK:
            yield _instant("barrier opens", _us(cycle, mhz), process, thread)
    by_line: dict[int, list[tuple[float, float]]] = {}
    for life in timeline.of_block(BLOCK):
        for span in life.spans:
            line = program.instructions[span.pc].line if span.pc >= 0 else 0
            by_line.setdefault(line, []).append((span.start, span.end))
    for number, (line, spans) in enumerate(sorted(by_line.items()), thread + 1):
        name = f"line {line}" if line else "no line"
        yield _named("thread_name", name, process, number)
        for start, end in _merged(spans):
            begin = _us(start, mhz)
            length = round(_us(end, mhz) - begin, PICOSECOND)
            yield _complete(name, "line", begin, length, process, number, line=line)


def _merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the times that spans cover, as spans that do not touch."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _mnemonic(instruction: Instruction) -> str:
    """Return an instruction without guard and operands, as a disassembler writes it if one did."""
    words = instruction.text.split()
    return next((word for word in words if not word.startswith("@")), instruction.op)


def _counters(timeline: Timeline, mhz: float) -> Iterator[Event]:
    """Yield, window by window, how many of the warps issue and wait, by reason."""
    width = max(timeline.warps, key=lambda life: life.end).end / WINDOWS
    spent: list[dict[str, float]] = [{} for _ in range(WINDOWS)]
    for life in timeline.warps:
        for span in life.spans:
            for window in range(int(span.start / width), WINDOWS):
                begin, end = window * width, (window + 1) * width
                if begin >= span.end:
                    break
                part = min(end, span.end) - max(begin, span.start)
                found = spent[window]
                found[span.reason] = found.get(span.reason, 0.0) + part / width
    names = sorted({name for window in spent for name in window})
    for number, window_spent in enumerate(spent):
        warps = {name: round(window_spent.get(name, 0.0), 3) for name in names}
        yield _counter("warps by reason", _us(number * width, mhz), **warps)


def _named(kind: str, name: str, process: int, thread: int) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _complete(
    name: str, kind: str, start: float, length: float, process: int, thread: int, **args: Any
) -> Event:
    times = {"ts": start, "dur": length}
    return {
        "ph": "X", "name": name, "cat": kind, **times, "pid": process, "tid": thread, "args": args,
    }  # fmt: skip


def _instant(name: str, at: float, process: int, thread: int) -> Event:
    place = {"ts": at, "s": "t", "pid": process, "tid": thread}
    return {"ph": "i", "name": name, "cat": "barrier", **place, "args": {}}


def _counter(name: str, at: float, **values: float) -> Event:
    process = FIRST_PROCESS
    return {"ph": "C", "name": name, "ts": at, "pid": process, "tid": process, "args": values}


def _document(events: Iterable[Event], unit: str, **about: Any) -> dict[str, Any]:
    return {
        "traceEvents": sorted(events, key=lambda event: event.get("ts", -1.0)),
        "displayTimeUnit": "ns",
        "otherData": {"one microsecond is": f"one {unit}", **about},
    }
