"""The machine code of a page: each instruction with its counts, its time and its branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpusim.isa.lines import call_path, calls_of
from gpusim.isa.ops import OPS, Program, text_of
from gpusim.prediction.records import Prediction
from gpusim.reports.page.tables import Cell, CountColumns, Counts, counted, shares
from gpusim.reports.quantities import percent
from gpusim.tracing.records import Trace


@dataclass(frozen=True)
class CodeRow:
    """An instruction: its counts as cells, its time, the largest reason of its cycles.

    `target` is the instruction that a branch leads to, -1 for any other; `callers` are the calls
    by which it was inlined, in words.
    """

    pc: int
    line: int
    text: str
    target: int
    time: Cell
    stalls: str
    cells: tuple[Cell, ...]
    callers: str = ""


def code_rows(
    program: Program, trace: Trace, prediction: Prediction | None
) -> tuple[CountColumns, tuple[CodeRow, ...]]:
    """Return the columns of counts and a row for each instruction of the GPU."""
    pcs = [pc for pc, one in enumerate(program.instructions) if OPS[one.op].issued]
    issued = {pc: place for place, pc in enumerate(pcs)}
    columns = _columns(trace, pcs)
    spent = {} if prediction is None else prediction.stalls_by_pc
    times = shares([sum(spent.get(pc, {}).values()) for pc in pcs])
    rows = []
    for place, pc in enumerate(pcs):
        one = program.instructions[pc]
        target = _behind(issued, one.target, len(program.instructions))
        rows.append(
            CodeRow(
                pc,
                one.line,
                text_of(one, program.immediates),
                target if OPS[one.op].is_branch else -1,
                times[place],
                _most(spent.get(pc, {})),
                columns.row(place),
                call_path(calls_of(one.line)),
            )
        )
    return columns, tuple(rows)


def _behind(issued: dict[int, int], pc: int, end: int) -> int:
    """Return the first issued instruction at or after a pc, -1 where none is."""
    return next((at for at in range(pc, end) if at in issued), -1) if pc >= 0 else -1


def _columns(trace: Trace, pcs: Sequence[int]) -> CountColumns:
    def sums(*names: str) -> list[int]:
        known = [trace.blocks.by_pc(name) for name in names if name in trace.counters]
        return [sum(int(counts[pc]) for counts in known) for pc in pcs]

    executed, on = sums("instructions"), sums("thread_instructions_guard_on")
    means = [lanes / count if count else 0.0 for lanes, count in zip(on, executed, strict=True)]
    on_cells = tuple(Cell(f"{mean:.1f}" if mean else "", mean) for mean in means)
    wavefronts = sums("shared_load_wavefronts", "shared_store_wavefronts")
    conflicts = sums("shared_load_bank_conflicts", "shared_store_bank_conflicts")
    sectors = sums("global_load_sectors", "global_store_sectors")
    columns = [
        Counts("executions", counted(executed), is_minor=True, is_of_all=True),
        Counts("threads on", on_cells, is_minor=True, is_of_all=True),
        Counts("wavefronts", counted(wavefronts), is_minor=True),
        Counts("excessive", counted(conflicts)),
        Counts("sectors", counted(sectors)),
    ]
    return CountColumns.of(columns, "each instruction")


def _most(stalls: Mapping[str, float]) -> str:
    """Return the largest reason of an instruction's warp cycles, with its part of them."""
    whole = sum(stalls.values())
    if not whole:
        return ""
    name = max(stalls, key=lambda reason: stalls[reason])
    return f"{name} {percent(stalls[name] / whole, 0)}"
