"""The launches of a whole program: a line each, and sums by kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap

from rich.text import Text

from gpusim.checking.coverage import Coverage, lines_not_run
from gpusim.reports.checking import MOST_SHOWN
from gpusim.reports.columns import Column, Columns
from gpusim.reports.layout import BAD, DIM, TITLE, integer, plural, size
from gpusim.reports.program_findings import of_checks, performance_lines, short
from gpusim.reports.program_records import KernelSum, ProgramLaunch, ProgramReport, by_kernel
from gpusim.reports.program_timeline import timeline_line
from gpusim.reports.quantities import interval

_MOST_KERNELS = 40
NUMBERS: Mapping[str, str] = {
    "instructions": "instructions",
    "shared_load_bank_conflicts": "load conflicts",
    "shared_store_bank_conflicts": "store conflicts",
    "global_load_sectors": "load sectors",
    "global_store_sectors": "store sectors",
}

NOT_PREDICTED = (
    "times that the program measures, by events or the host's clock, are the simulator's, not a "
    "GPU's: gpusim predict gives predicted times"
)


def launch_line(one: ProgramLaunch) -> str:
    """Return a launch as a line."""
    blocks = "block" if size(one.grid) == "1" else "blocks"
    parts = [
        f"{one.number:>4}  {short(one.kernel)}  {size(one.grid)} {blocks} of {size(one.block)}"
    ]
    if one.error:
        parts.append(one.error)
    if one.time_us is not None:
        parts.append(
            f"{one.kernel_us:,.2f} us ({interval(*one.interval_us)}), bound by {one.bound}"
        )
    if one.counters:
        parts.append(f"{one.counters.get('instructions', 0):,} instructions")
    if one.findings is not None:
        parts.append(plural(len(one.findings), "finding"))
    parts.append(f"as launch {one.equal}" if one.equal else f"[{one.seconds:.2f} s]")
    return "  ".join(parts)


def program_summary(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield the summary: a row for each kernel, then errors and refusals."""
    kernels = by_kernel(report.launches)
    total = plural(len(report.launches), "launch", "launches")
    yield Text(f"{total} of {plural(len(kernels), 'kernel')} on {report.device} (simulated)", TITLE)
    if kernels:
        yield from kernels_table(kernels[:_MOST_KERNELS]).lines(width)
    if any(one.time_us is not None for one in report.launches):
        yield Text(timeline_line(report.intervals))
        for part in wrap(_kernels_interval(kernels), width):
            yield Text(part)
    elif kernels:
        yield from (Text(line, DIM) for line in wrap(NOT_PREDICTED, width))
    if report.operations:
        said = plural(report.operations, "operation")
        yield Text(f"{said} of PyTorch's own on device memory, without a time", DIM)
    yield from searches(report.launches, width)
    left = len(kernels) - _MOST_KERNELS
    if left > 0:
        yield Text(f"and {plural(left, 'more kernel')} (--json --out FILE has all)", DIM)
    yield from performance_lines(report, width)
    shown = list(of_checks(report))
    for one in shown[:MOST_SHOWN]:
        yield Text("")
        yield from one.lines(width)
    if len(shown) > MOST_SHOWN:
        yield Text(f"\nand {plural(len(shown) - MOST_SHOWN, 'more finding')}", DIM)
    yield from _coverage(report, width)
    yield from _faults(report, width)
    for text in dict.fromkeys(report.refused):
        yield Text(f"not simulated: {text}", BAD)


def _kernels_interval(kernels: Sequence[KernelSum]) -> str:
    """Return the interval of all kernels' time together."""
    low, high = map(sum, zip(*(one.interval_us for one in kernels), strict=True))
    return f"90 % interval of the kernels' time: {interval(low, high)}"


def _faults(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield a sentence for the first launches that ended with a fault."""
    faulty = [one for one in report.launches if one.is_fault]
    for one in faulty[:MOST_SHOWN]:
        file = f" ({Path(one.source_file).name}:{one.error_line})" if one.source_file else ""
        text = f"launch {one.number} of {short(one.kernel)} ended in a fault{file}: {one.error}"
        yield from (Text(line, BAD) for line in wrap(text, width))
    if not faulty:
        return
    text = "as on a GPU, later calls of its process return the fault's status, and do nothing"
    if not report.exit_code:
        text += "; the program still ends with code 0: does it check return codes?"
    if all(one.findings is None for one in report.launches):
        text += " (gpusim check continues after a fault, and shows all)"
    yield from (Text(line, DIM) for line in wrap(text, width))


def _coverage(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield what the checks of a program's launches have compared."""
    checked = [one for one in report.launches if one.findings is not None]
    if not checked:
        return
    kernels: dict[str, Coverage] = {}
    for one in checked:
        assert one.findings is not None
        made = one.findings.coverage
        kernels[one.kernel] = kernels[one.kernel] + made if one.kernel in kernels else made
    whole = sum((replace(one, lines_not_run=set()) for one in kernels.values()), Coverage())
    where = f"in {len(checked):,} of {plural(len(report.launches), 'launch')} with these inputs"
    if not any(one.findings for one in checked):
        where = f"no hazards found {where}"
    words = [f"{where.replace('launchs', 'launches')}: {whole}"]
    for name, all_of_it in kernels.items():
        left = lines_not_run(sorted(all_of_it.lines_not_run))
        words += [f"{short(name)}: {said}" for said in left]
    yield Text("")
    for part in words:
        for line in wrap(part, width):
            yield Text(line, DIM)


def kernels_table(kernels: Sequence[KernelSum]) -> Columns:
    """Return a row for each kernel: launches, times, findings, and the counters it has."""
    names = [name for name in NUMBERS if any(one.counters.get(name) for one in kernels)]
    is_timed = any(one.kernel_us is not None for one in kernels)
    is_checked = any(one.is_checked for one in kernels)
    times = [one.kernel_us or 0.0 for one in kernels]
    whole = sum(times)
    made = Columns(
        Column("kernel", "left", "span", hang=2),
        Column("launches"),
        *([Column("us"), Column("share")] if is_timed else []),
        *([Column("findings")] if is_checked else []),
        Column("simulated s"),
        *(Column(NUMBERS[name]) for name in names),
    )
    for one, time in zip(kernels, times, strict=True):
        share = f"{100 * time / whole:.0f} %" if whole else "."
        made.row(
            one.kernel,
            integer(len(one.launches)),
            *([f"{time:,.2f}", share] if is_timed else []),
            *([integer(one.findings)] if is_checked else []),
            f"{one.seconds:.2f}",
            *(integer(one.counters.get(name, 0)) for name in names),
        )
    return made


_TIE = 1.02  # closer times than this are a tie: configurations of one kernel share most errors
_REFUSED = "not simulated"


def searches(launches: Iterable[ProgramLaunch], width: int) -> Iterator[Text]:
    """Yield a title and a table for each search with times, the fastest configuration first."""
    found: dict[int, dict[str, ProgramLaunch]] = {}
    for one in launches:
        if one.tried is not None and (one.time_us is not None or one.error):
            found.setdefault(one.tried.search, {})[one.tried.configuration] = one
    for tried in found.values():
        yield from _table(tried, width)


def _table(tried: dict[str, ProgramLaunch], width: int) -> Iterator[Text]:
    timed = {name: one for name, one in tried.items() if one.time_us is not None}
    best = min((one.kernel_us for one in timed.values()), default=0.0)
    ties = sum(one.kernel_us <= _TIE * best for one in timed.values())
    kernel = short(next(iter(tried.values())).kernel)
    title = f"{kernel}: {plural(len(tried), 'configuration')} by predicted time"
    yield Text(title + (f", {ties} within 2 % of the fastest" if ties > 1 else ""), TITLE)
    made = Columns(
        Column("configuration", "left", "span", hang=2),
        Column("us"),
        Column("of the fastest"),
        Column("bound by", "left"),
    )
    for name, one in sorted(timed.items(), key=lambda item: item[1].kernel_us):
        ratio = one.kernel_us / best if best else 1.0
        made.row(name, f"{one.kernel_us:,.2f}", f"{ratio:.2f}", one.bound)
    for name in tried:
        if name not in timed:
            made.row(name, ".", ".", _REFUSED)
    yield from made.lines(width)
