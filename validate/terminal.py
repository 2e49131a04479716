"""Reports for a terminal, one screen for all GPUs; `page` has every launch, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from textwrap import wrap

from rich.text import Text

from gpusim.reports.columns import Column, Columns
from gpusim.reports.layout import BAD, DIM, TITLE

from . import page
from .compare import KINDS
from .report import Report, Section

MOST_NAMED = 4  # kernels with the largest errors
NOTE = "errors are of predicted times; wrong order: of pairs measured more than 5 % apart"


def summary(reports: Sequence[Report], width: int) -> Iterator[Text]:
    """Yield the errors of each GPU's launches, its largest errors and its missed bars."""
    for report in reports:
        machine = report.measurements.machine
        yield Text(machine.gpu, TITLE)
        source = f"{machine.source.rstrip('.')}{f', {machine.date}' if machine.date else ''}"
        yield from (Text(part, DIM) for part in wrap(source, width))
        if report.sections:
            yield from _errors(report.sections).lines(width)
        for text in (_worst(report.sections), _counters(report), _caches(report)):
            yield from (Text(part) for part in wrap(text, width, subsequent_indent="  "))
        for miss in report.misses():
            yield from (Text(part, BAD) for part in wrap(f"missed: {miss}", width))
        yield Text()
    yield Text(NOTE, DIM)
    yield Text("--all: each launch or kernel, pairs in the wrong order, and counters", DIM)


def _errors(sections: Sequence[Section]) -> Columns:
    """Return a row for each kind of launches in each code."""
    made = Columns(
        Column("launches", "left", "fold"),
        Column("code", "left"),
        *map(Column, ("cases", "mean error", "90th perc.", "worst", "wrong order")),
    )
    for one in sorted(sections, key=lambda one: KINDS.index(one.kind)):
        if (found := one.summary) is not None:
            made.row(
                one.kind.title,
                one.code,
                f"{found.cases:,}",
                (f"{found.mean_error:.1%}", TITLE),
                f"{found.percentile_90:.1%}",
                f"{found.worst:.1%}",
                f"{found.pairs_wrong:,} of {found.pairs_apart:,}",
            )
    return made


def _worst(sections: Sequence[Section]) -> str:
    """Return the kernels with the largest mean errors, of the first kind of launches."""
    if not sections:
        return ""
    first = sections[0]
    errors = {
        kernel: fmean(abs(one.error) for one in first.cases if one.kernel == kernel)
        for kernel in dict.fromkeys(one.kernel for one in first.cases)
    }
    named = sorted(errors.items(), key=lambda item: -item[1])[:MOST_NAMED]
    return f"largest: {', '.join(f'{kernel} {error:.1%}' for kernel, error in named)}"


def _caches(report: Report) -> str:
    """Return the mean errors of counters of caches and DRAM; "" for none."""
    said = []
    for one in report.caches:
        errors = [f"{row.metric} {page.off(row.metric, row.mean_error)}" for row in one.agreements]
        said += [f"with {one.code}: {', '.join(errors)}"] if errors else []
    return f"caches, mean error {'; '.join(said)}" if said else ""


def _counters(report: Report) -> str:
    """Return how many counts of Nsight Compute are equal to gpusim's; "" for none."""
    known = [one for one in (report.counted, report.counted_in_nvcc) if one.agreements]
    said = [
        f"{sum(row.equal for row in one.agreements):,} of "
        f"{sum(row.launches for row in one.agreements):,} equal with {one.code}"
        for one in known
    ]
    return f"counters: {'; '.join(said)}" if said else ""
