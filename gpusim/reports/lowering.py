"""The report of lowering: source lines with their SSA and machine code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

from rich.text import Text

from gpusim.isa.ops import OPS
from gpusim.prediction.clock.stall_counts import StallCount
from gpusim.program.flow import loop_bodies
from gpusim.reports.columns import Column, Columns
from gpusim.reports.excerpts import SCREEN, heaviest, height, others
from gpusim.reports.generators import code_of
from gpusim.reports.layout import BAD, DIM, NO_LINE, TITLE, heading, plural
from gpusim.reports.lowered import (
    Change,
    Lowered,
    SourceLine,
    changes,
    chosen_changes,
    source_lines,
)

CODE, SSA = "machine code", "SSA"
ADDED, REMOVED = "green", BAD
CODE_FRAME = 5  # lines around the source lines: their title, and the counts of what is left out
MANY = 1e6  # more instructions than a line has


def lowered_report(lowered: Lowered, width: int, *, whole: bool = True) -> Iterator[Text]:
    """Yield the lowering of a kernel: its passes, and its lines with their machine code.

    A `whole` report has passes without a change and the SSA form, too; others fit on one screen,
    with the machine code of inner loops before that of other lines.
    """
    before = [*_title(lowered)]
    if lowered.stages:
        before.append(heading("Passes", "lines of text added and removed by each"))
        before += passes_table(lowered).lines(width) if whole else _short_passes(lowered, width)
    yield from before
    note = "stall: stall count in cycles, + for a scoreboard wait; live: 32-bit registers"
    yield heading("Source lines", note)
    if whole:
        yield from code_table(source_lines(lowered)).lines(width)
    else:
        yield from _short_code(lowered, SCREEN - height(before, width) - CODE_FRAME, width)


def _short_passes(lowered: Lowered, width: int) -> Iterator[Text]:
    """Yield the passes with a change, and the number of the others."""
    every = changes(lowered)
    changed = [f"{one.after.label} {_summary(one)}" for one in every if one.is_change]
    unchanged = plural(len(every) - len(changed), "pass", "passes")
    for part in wrap(f"{', '.join(changed)}; {unchanged} without a change", width - 4):
        yield Text(f"  {part}")


def _short_code(lowered: Lowered, room: int, width: int) -> Iterator[Text]:
    """Yield the source lines that have room, and as much of their machine code."""
    loops = loop_bodies(lowered.program)
    lines = [replace(line, ssa=()) for line in source_lines(lowered)]
    weights = [_depth(line, loops) + len(line.instructions) / MANY for line in lines]
    closed = [replace(line, instructions=()) for line in lines]
    shown, left_out = heaviest(closed, weights, code_table, room, width)
    there = [line for line in closed if line not in left_out]
    hidden = sum(len(line.instructions) for line in lines)
    for _, line in sorted(zip(weights, lines, strict=True), key=lambda pair: -pair[0]):
        opened = [line if one.number == line.number else one for one in there]
        wider = code_table(opened).lines(width)
        if line.instructions and len(wider) <= room:
            shown, there = wider, opened
            hidden -= len(line.instructions)
    yield from shown
    yield from others(len(left_out), "line")
    ssa = ", SSA and passes without a change" if lowered.stages else ""
    yield Text(f"  --all: {plural(hidden, 'more instruction')}{ssa}", DIM)


def _depth(line: SourceLine, loops: Sequence[range]) -> int:
    """Return the number of loops around a line's innermost instruction."""
    return max((sum(row.pc in body for body in loops) for row in line.instructions), default=0)


def stage_report(lowered: Lowered, label: str) -> Iterator[Text]:
    """Yield the whole form after a pass."""
    stage = lowered.stage(label)
    yield Text(f"{lowered.program.name}: {SSA if stage.is_ssa else CODE} after {label}", TITLE)
    yield from map(Text, stage.texts)


def diff_report(lowered: Lowered, label: str | None = None) -> Iterator[Text]:
    """Yield the change by each pass, or by one of them, as unified diffs."""
    for change in chosen_changes(lowered, label):
        yield Text(f"{change.after.label}: {_summary(change)}", TITLE)
        if change.is_change and not change.is_selection:
            styles = {"+": ADDED, "-": REMOVED, "@": DIM}
            yield from (Text(line, styles.get(line[0], "")) for line in change.diff())


def passes_table(lowered: Lowered) -> Columns:
    """Return the passes in order, with the change by each."""
    made = Columns(
        Column("pass", "left"), Column("form", "left"), Column("lines"), Column("", "left")
    )
    for change in changes(lowered):
        style = "" if change.is_change else DIM
        form = SSA if change.after.is_ssa else CODE
        made.row(
            (change.after.label, style),
            (form, style),
            (f"{len(change.after.lines):,}", style),
            (_summary(change), style),
        )
    return made


def _summary(change: Change) -> str:
    if change.is_selection:
        return "instructions are selected"
    if not change.is_change:
        return "no change"
    if not change.added and not change.removed:
        return "moved lines"
    return f"+{change.added} -{change.removed}"


def code_table(lines: Sequence[SourceLine]) -> Columns:
    """Return source lines, each followed by its SSA form and its machine code."""
    made = Columns(
        Column("line"),
        Column("pc"),
        Column("", "left", "fold", hang=4),
        Column("stall"),
        Column("live"),
    )
    for line in lines:
        text = line.text if line.number else NO_LINE
        made.row(str(line.number or ""), "", (text, TITLE), "", "")
        for text in line.ssa:
            made.row("", "", (f"  {text}", DIM), "", "")
        for row in line.instructions:
            style = "" if row.stall else DIM
            stall = _shown(row.stall) if row.stall else ""
            made.row(
                "", (str(row.pc), style), (f"    {row.text}", style), stall, (str(row.live), style)
            )
    return made


def _shown(stall: StallCount) -> str:
    cycles = f"{stall.cycles:.3g}"
    return f"{cycles}+" if stall.waits else f"{cycles} "


def _title(lowered: Lowered) -> Iterator[Text]:
    program = lowered.program
    issued = sum(OPS[i.op].issued for i in program.instructions)
    text = Text(program.name, TITLE)
    made = f"  compute capability {lowered.cc}, {code_of(program)}"
    text.append(f"{made}, stall counts of {lowered.device.name}", "not bold")
    yield text
    barriers = plural(program.barriers, "convergence barrier")
    code = f"{plural(issued, 'instruction')}, {program.register_estimate} registers, {barriers}"
    memory = f"{program.shared_bytes:,} bytes of shared memory, {program.local_bytes:,} of local"
    yield Text(f"{code}; {memory}", DIM)


def lowered_document(lowered: Lowered) -> dict[str, Any]:
    """Return the report, ready for JSON."""
    program = lowered.program
    return {
        "kernel": program.name,
        "source_file": lowered.source_file,
        "compute_capability": lowered.cc,
        "lowering": program.lowering,
        "generator": program.generator,
        "device": lowered.device.id,
        "registers": program.register_estimate,
        "shared_bytes": program.shared_bytes,
        "local_bytes": program.local_bytes,
        "convergence_barriers": program.barriers,
        "passes": [_pass_document(change) for change in changes(lowered)],
        "lines": [_line_document(line) for line in source_lines(lowered)],
    }


def stage_document(lowered: Lowered, label: str) -> dict[str, Any]:
    """Return the form after a pass, ready for JSON."""
    stage = lowered.stage(label)
    lines = [{"line": number or None, "text": text} for number, text in stage.lines]
    return {"pass": label, "form": SSA if stage.is_ssa else CODE, "lines": lines}


def diff_document(lowered: Lowered, label: str | None = None) -> list[dict[str, Any]]:
    """Return the change by each pass, or by one of them, as unified diffs, ready for JSON."""
    return [
        {"pass": change.after.label, "diff": [] if change.is_selection else change.diff()}
        for change in chosen_changes(lowered, label)
    ]


def _pass_document(change: Change) -> dict[str, Any]:
    return {
        "pass": change.after.label,
        "form": SSA if change.after.is_ssa else CODE,
        "lines": len(change.after.lines),
        "changed": change.is_change,
        "added": change.added,
        "removed": change.removed,
    }


def _line_document(line: SourceLine) -> dict[str, Any]:
    return {
        "line": line.number or None,
        "text": line.text,
        "ssa": list(line.ssa),
        "instructions": [
            {
                "pc": row.pc,
                "text": row.text,
                "issued": row.stall is not None,
                "stall_cycles": row.stall.cycles if row.stall else None,
                "waits_on_scoreboard": bool(row.stall and row.stall.waits),
                "live_registers": row.live,
            }
            for row in line.instructions
        ],
    }
