"""The accesses of one source line by lane: active mask, addresses, banks and wavefronts.

The tables of the textbooks, computed from the addresses of a trace. A conflict shows as lanes
below each other at one bank.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rich.text import Text

from gpusim.advice.decisions import conditions_of
from gpusim.errors import InputError
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.reports.columns import Column, Columns
from gpusim.reports.excerpts import heaviest, others
from gpusim.reports.layout import BAD, DIM, TITLE, heading, integer, plural
from gpusim.tracing import lanes
from gpusim.tracing.execution import Execution
from gpusim.tracing.iterations import ITERATION, numbering
from gpusim.tracing.records import Trace

LABEL = 10
# A line in a long loop is drawn for its first iterations; JSON has all.
ITERATIONS_SHOWN = 16
YES, NO, OUT = "Y", ".", " "
# On one screen: rows of a condition, lines of the list of accesses, wavefronts of the drawn one.
MOST_ROWS, MOST_LISTED, MOST_WAVEFRONTS = 5, 8, 8


@dataclass(frozen=True)
class Access:
    """A warp's memory access in one iteration; `ops` with the same addresses are one."""

    iteration: int
    ops: tuple[str, ...]
    execution: Execution


def line_document(trace: Trace, line: int, warp: int | None) -> list[dict[str, Any]]:
    """Return the content of `line_report` as plain data, for one warp or all."""
    _checked(trace, line, warp)
    placed = zip(trace.executions, trace.iterations, strict=True)
    return [
        {"iteration": iteration, **asdict(execution)}
        for execution, iteration in placed
        if execution.line == line and warp in (None, execution.warp)
    ]


def _checked(trace: Trace, line: int, warp: int | None) -> dict[int, str]:
    """Return the lines' texts; InputError for a line or warp that there is not."""
    texts = {counted.line: counted.text.strip() for counted in trace.lines}
    if line not in texts:
        known = lanes.ranges(sorted(texts))
        raise InputError(
            f"line {line} of {trace.kernel} is not executed; the executed ones: {known}"
        )
    if warp is not None and not 0 <= warp < len(trace.warps):
        last = len(trace.warps) - 1
        raise InputError(f"block {trace.block_index} has warps 0 to {last}, not {warp}")
    return texts


def line_report(
    trace: Trace, line: int, warp: int | None, width: int, *, whole: bool = True
) -> Iterator[Text]:
    """Yield the drawing of a source line, for one warp or for the one with most replays.

    A `whole` report draws each access; others list them, and draw the one with most replays.
    Raises InputError where the kernel has no such line or the block no such warp.
    """
    texts = _checked(trace, line, warp)
    placed = list(zip(trace.executions, trace.iterations, strict=True))
    deciding = _deciding_lines(trace, line)
    if not any(lanes.is_condition(e) for e in trace.executions):
        known = conditions_of(trace)
        placed = [(e, i) for e, i in placed if not lanes.is_machine_branch(e)] + known
        deciding = [line] if any(e.line == line for e, _ in known) else []
    accesses = [(e, i) for e, i in placed if e.line == line and e.addresses is not None]
    title = Text(f"line {line}", TITLE)
    title.append(f"  {texts[line]}", style="not bold")
    yield title
    for decided in deciding:
        conditions = [(e, i) for e, i in placed if e.line == decided and _decides(e, placed)]
        if warp is not None:
            conditions = [(e, i) for e, i in conditions if e.warp == warp]
        if conditions:
            note = "" if decided == line else texts.get(decided, "")
            yield heading(f"Condition of line {decided}, lane by lane", note)
            yield from _condition_table(conditions, width, whole)
    if not accesses:
        if not deciding:
            yield Text("\nThis line has neither memory accesses nor a condition.")
        return
    chosen = _worst_warp(accesses) if warp is None else warp
    note = "" if warp is not None else "most excessive wavefronts; another: --warp"
    yield heading(f"Accesses of warp {chosen}, block {trace.block_index}", note)
    yield from _accesses([(e, i) for e, i in accesses if e.warp == chosen], trace.cc, width, whole)


def _decides(execution: Execution, placed: Sequence[tuple[Execution, int]]) -> bool:
    if execution.taken is None or not lanes.deciding_lanes(execution):
        return False
    conditions = any(lanes.is_condition(e) for e, _ in placed if e.line == execution.line)
    return lanes.is_condition(execution) == conditions


def _deciding_lines(trace: Trace, line: int) -> list[int]:
    """Return the line itself where it decides, else the lines that decide about its accesses."""
    if any(e.line == line and e.taken is not None for e in trace.executions):
        return [line]
    latest: dict[int, Execution] = {}
    found: set[int] = set()
    for execution in trace.executions:
        if execution.op == "BAR":
            latest.pop(execution.warp, None)
        elif lanes.is_condition(execution):
            latest[execution.warp] = execution
        elif execution.line == line and execution.warp in latest:
            condition = latest[execution.warp]
            on = lanes.on_lanes(execution)
            if on and set(on) <= set(lanes.taken_lanes(condition)):
                found.add(condition.line)
    return sorted(found)


def _unshown(steps: set[int], counted: str = ITERATION) -> Iterator[Text]:
    left_out = sum(step >= ITERATIONS_SHOWN for step in steps)
    if left_out:
        yield Text(f"\n{plural(left_out, f'further {counted}')} not drawn; --json has them.", DIM)


def _condition_table(
    conditions: Sequence[tuple[Execution, int]], width: int, whole: bool
) -> Iterator[Text]:
    """Yield a row for each pattern of lanes; warps and iterations that agree share it."""
    steps = {iteration for _, iteration in conditions}
    several = len(steps) > 1
    made = Columns(
        *([Column("iteration", "left")] if several else []),
        Column("warps", "left"),
        Column(_lane_ruler(), "left"),
        Column("pass"),
        Column("", "left", "fold"),
    )
    groups: dict[tuple[int, str], list[Execution]] = {}
    for execution, iteration in conditions:
        if iteration < ITERATIONS_SHOWN:
            groups.setdefault((iteration, _pattern(execution)), []).append(execution)
    alike: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for (iteration, pattern), executions in groups.items():
        warps = tuple(sorted({execution.warp for execution in executions}))
        alike.setdefault((pattern, warps), []).append(iteration)
    rows = sorted(alike.items(), key=lambda item: (item[1][0], item[0][1]))
    shown = rows if whole else rows[:MOST_ROWS]
    for (pattern, warps), iterations in shown:
        execution = groups[iterations[0], pattern][0]
        passing, deciding = lanes.taken_lanes(execution), lanes.deciding_lanes(execution)
        divergent = lanes.diverges(execution)
        words = lanes.which(passing, deciding)
        made.row(
            *([lanes.ranges(iterations)] if several else []),
            lanes.ranges(warps),
            pattern,
            f"{len(passing)} of {len(deciding)}",
            (f"{words}: divergent" if divergent else words, BAD if divergent else DIM),
        )
    yield from made.lines(width)
    yield from others(len(rows) - len(shown), "row")
    yield from _unshown(steps)


def _lane_ruler() -> str:
    return "lane 0   8        16       24      "


def _pattern(execution: Execution) -> str:
    """Return the 32 lanes in groups of eight: Y passes, "." does not, blank is not there."""
    passing, deciding = set(lanes.taken_lanes(execution)), set(lanes.deciding_lanes(execution))
    marks = [
        YES if lane in passing else NO if lane in deciding else OUT
        for lane in range(len(execution.active))
    ]
    return " ".join("".join(marks[start : start + 8]) for start in range(0, len(marks), 8))


def _worst_warp(accesses: Sequence[tuple[Execution, int]]) -> int:
    """Return the warp with most replays, else most sectors, else most lanes; the first such."""
    weights: dict[int, tuple[int, int, int]] = {}
    for execution, _ in accesses:
        replays, sectors, on = weights.get(execution.warp, (0, 0, 0))
        weights[execution.warp] = (
            replays + lanes.replays(execution),
            sectors + execution.sectors,
            on + len(lanes.on_lanes(execution)),
        )
    return max(weights, key=lambda warp: (weights[warp], -warp))


def _merged(accesses: Sequence[tuple[Execution, int]]) -> list[Access]:
    """Join the accesses of an iteration that touch the same addresses, such as of `a[i] += x`."""
    merged: dict[tuple[object, ...], Access] = {}
    for execution, iteration in accesses:
        key = (iteration, execution.array, execution.addresses, execution.on)
        known = merged.get(key)
        ops = (*(known.ops if known else ()), execution.op)
        merged[key] = Access(iteration, ops, known.execution if known else execution)
    return list(merged.values())


def _accesses(
    accesses: Sequence[tuple[Execution, int]], cc: str, width: int, whole: bool
) -> Iterator[Text]:
    """Yield the accesses of a warp, each drawn, or listed with the one with most replays drawn."""
    counted, numbers = numbering(accesses)
    steps = set(numbers)
    several = len(steps) > 1
    merged = _merged(
        [(e, n) for (e, _), n in zip(accesses, numbers, strict=True) if n < ITERATIONS_SHOWN]
    )
    there = [one for one in merged if lanes.on_lanes(one.execution)]
    drawn = there
    if not whole and len(there) > 1:
        yield from _list(there, counted if several else "", width)
        drawn = [max(there, key=_weight)]
    for access in drawn:
        yield Text()
        yield _access_title(access, counted if several else "")
        replays = lanes.replays(access.execution)
        if whole or not replays:
            yield from _lane_table(access.execution, cc, width)
        if replays:
            most = sys.maxsize if whole else MOST_WAVEFRONTS
            yield from _bank_grid(access.execution, lanes.bank_count(cc), width, most)
    off = sorted({one.iteration for one in merged if not lanes.on_lanes(one.execution)})
    if off:
        where = f"In {counted}{'s' if len(off) > 1 else ''} {lanes.ranges(off)} n"
        where = where if several else "N"
        yield Text(f"\n{where}o lane of the warp is predicated on: no access.", DIM)
    if len(drawn) < len(there):
        yield Text("\n--all: each access, with the address and the bank of each lane", DIM)
    yield from _unshown(steps, counted)


def _weight(access: Access) -> tuple[int, int]:
    return lanes.replays(access.execution), access.execution.sectors


def _list(accesses: Sequence[Access], counted: str, width: int) -> Iterator[Text]:
    """Yield a table of accesses, those with the most replays and sectors."""
    weights = [replays + sectors for replays, sectors in map(_weight, accesses)]
    table = partial(_list_table, counted)
    shown, left_out = heaviest(accesses, weights, table, MOST_LISTED + 1, width)
    yield from shown
    yield from others(len(left_out), "access", several="other accesses")


def _list_table(counted: str, accesses: Sequence[Access]) -> Columns:
    made = Columns(
        *([Column(counted)] if counted else []),
        Column("access", "left", "fold"),
        Column("lanes"),
        Column("stride"),
        Column("wavefronts"),
        Column("conflicts"),
        Column("sectors"),
    )
    for one in accesses:
        execution = one.execution
        stride, replays = lanes.stride(execution), lanes.replays(execution)
        made.row(
            *([str(one.iteration)] if counted else []),
            f"{' and '.join(one.ops)} {execution.array}",
            str(len(lanes.on_lanes(execution))),
            "" if stride is None else str(abs(stride)),
            integer(execution.wavefronts if execution.space == "shared" else 0),
            (integer(replays), BAD if replays else ""),
            integer(execution.sectors if execution.space == "global" else 0),
        )
    return made.without_zeros()


def _access_title(access: Access, counted: str) -> Text:
    execution = access.execution
    text = Text(f"{counted} {access.iteration}: " if counted else "", TITLE)
    text.append(" and ".join(access.ops), TITLE)
    text.append(f" {execution.array}, {plural(len(lanes.on_lanes(execution)), 'lane')}")
    step = lanes.stride(execution)
    if step is not None:
        text.append(f" at stride {abs(step)}")
    if execution.space == "shared":
        text.append(f": {plural(execution.wavefronts, 'wavefront')}")
        extra = lanes.replays(execution)
        if extra:
            text.append(f", {plural(extra, 'bank conflict')}", BAD)
    elif execution.space == "global":
        text.append(f": {plural(execution.sectors, 'sector')}")
    return text


def _lane_table(execution: Execution, cc: str, width: int) -> Iterator[Text]:
    """Yield lane, byte address, element and bank or sector of every lane that is on."""
    on = lanes.on_lanes(execution)
    addresses, banks = execution.addresses or (), execution.banks or ()
    elements = lanes.element_numbers(execution)
    rows = [
        ("lane", [str(lane) for lane in on]),
        ("byte", [str(addresses[lane]) for lane in on]),
        ("element", [str(elements[lane]) for lane in on]),
    ]
    if execution.space == "shared":
        crowded = _crowded_lanes(execution, lanes.bank_count(cc))
        marks = {lane: "*" if lane in crowded else " " for lane in on}
        rows = [(name, [f"{cell} " for cell in cells]) for name, cells in rows]
        rows.append(("bank", [f"{banks[lane]}{marks[lane]}" for lane in on]))
    elif execution.space == "global":
        rows.append(("sector", [str(addresses[lane] // SECTOR_BYTES) for lane in on]))
    cell = max(4, max(len(text) for _, cells in rows for text in cells) + 1)
    room = max(1, (width - LABEL) // cell)
    per_line = next((count for count in (32, 16, 8, 4, 2) if count <= room), 1)
    for start in range(0, len(on), per_line):
        for name, cells in rows:
            line = Text(f"  {name:<{LABEL - 2}}", DIM)
            for text in cells[start : start + per_line]:
                line.append(text.rjust(cell), BAD if text.endswith("*") else "not dim")
            line.rstrip()
            yield line


def _crowded_lanes(execution: Execution, banks: int) -> set[int]:
    """Return the lanes in bank conflict: another lane of their part needs the bank's other word."""
    crowded: set[int] = set()
    for part in lanes.parts(execution, banks):
        for words in lanes.words_in_banks(execution, banks, part).values():
            if len(words) > 1:
                crowded.update(lane for wanting in words.values() for lane in wanting)
    return crowded


def _bank_grid(execution: Execution, banks: int, width: int, most: int) -> Iterator[Text]:
    """Yield the banks across, and below each the lanes that it serves, one word a row."""
    label = 4
    per_line = next(n for n in (banks, 16, 8, 4) if label + 3 * n <= width or n == 4)
    yield Text(
        "  the lane served by each bank, wavefront by wavefront (first lane of a word):", DIM
    )
    for start in range(0, banks, per_line):
        columns = range(start, min(start + per_line, banks))
        yield Text("bank" + "".join(f"{bank:>3}" for bank in columns), DIM)
        number = 0
        for part in lanes.parts(execution, banks):
            table = lanes.words_in_banks(execution, banks, part)
            stacks = {bank: list(words.values()) for bank, words in table.items()}
            for row in range(max(len(stack) for stack in stacks.values())):
                number += 1
                if number <= most:
                    yield _grid_row(number, row, [stacks.get(bank, []) for bank in columns])
    yield from others(number - most, "wavefront")


def _grid_row(number: int, row: int, stacks: Sequence[Sequence[Sequence[int]]]) -> Text:
    line = Text(f"{number:>3} ", DIM)
    for stack in stacks:
        served = row < len(stack)
        text = f"{stack[row][0]:>3}" if served else "  ."
        line.append(text, BAD if served and len(stack) > 1 else "not dim" if served else DIM)
    line.rstrip()
    return line
