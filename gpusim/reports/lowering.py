"""The report of lowering: source lines with their SSA and machine code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from gpusim.isa.ops import OPS
from gpusim.prediction.clock.stall_counts import StallCount
from gpusim.reports.columns import Column, Columns
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


def lowered_report(lowered: Lowered, width: int, *, whole: bool = True) -> Iterator[Text]:
    """Yield the lowering of a kernel: its passes, and its lines with their machine code.

    A `whole` report has passes without a change and the SSA form, too.
    """
    yield from _title(lowered)
    if lowered.stages:
        yield heading("Passes", "lines of text added and removed by each")
        yield from passes_table(lowered, whole=whole).lines(width)
    if not whole:
        unchanged = sum(not change.is_change for change in changes(lowered))
        note = f"{plural(unchanged, 'pass', 'passes')} without a change, and SSA: --all"
        yield Text(note, DIM)
    note = "stall: stall count in cycles, + for a scoreboard wait; live: 32-bit registers"
    yield heading("Source lines", note)
    yield from code_table(lowered, whole=whole).lines(width)


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


def passes_table(lowered: Lowered, *, whole: bool) -> Columns:
    """Return the passes in order, with the change by each; unless `whole`, those with a change."""
    made = Columns(
        Column("pass", "left"), Column("form", "left"), Column("lines"), Column("", "left")
    )
    for change in changes(lowered):
        if not whole and not change.is_change:
            continue
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


def code_table(lowered: Lowered, *, whole: bool) -> Columns:
    """Return the source lines, each followed by its machine code; of a `whole` report SSA too."""
    made = Columns(
        Column("line"),
        Column("pc"),
        Column("", "left", "fold", hang=4),
        Column("stall"),
        Column("live"),
    )
    for line in source_lines(lowered):
        text = line.text if line.number else NO_LINE
        made.row(str(line.number or ""), "", (text, TITLE), "", "")
        for text in line.ssa if whole else ():
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
