"""Results as text, for `print` and for viewers without HTML: the facts, and the findings."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from rich.text import Text

from gpusim.advice.records import Advice
from gpusim.checking.findings import Findings
from gpusim.prediction.rankings import Ranking
from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.sweep import Swept
from gpusim.prediction.sweeps.tuning import Tuned
from gpusim.reports import line_counts
from gpusim.reports.advice import finding_lines
from gpusim.reports.checking import check_report
from gpusim.reports.comparison import Comparison, comparison_report
from gpusim.reports.layout import plural
from gpusim.reports.notebook.elements import plain
from gpusim.reports.quantities import duration, interval, percent, rate
from gpusim.reports.ranking import ranking_report
from gpusim.reports.sweeps import sweep_table
from gpusim.reports.trace import launch_lines
from gpusim.reports.tuning import tuning_report
from gpusim.tracing.records import Trace

WIDTH = 100
MOST_STALLS = 4
SHOWN = 8  # candidates of a launch


def trace_summary(trace: Trace) -> str:
    """Return a trace's launch, its counters in brief, and its findings."""
    return plain(_trace(trace))


def _trace(trace: Trace) -> Iterator[Text]:
    yield from launch_lines(trace)
    wavefronts = sum(map(line_counts.wavefronts, trace.lines))
    excessive = sum(map(line_counts.conflicts, trace.lines))
    divergent = sum(map(line_counts.divergent, trace.lines))
    facts = [
        plural(trace.counters["instructions"], "instruction"),
        f"{divergent:,} divergent {'branch' if divergent == 1 else 'branches'}",
        f"{plural(wavefronts, 'shared wavefront')}, {excessive:,} of them excessive",
        plural(sum(map(line_counts.sectors, trace.lines)), "global sector"),
    ]
    yield from map(Text, wrap("; ".join(facts), WIDTH))
    yield from _advice(trace.findings)


def _advice(findings: list[Advice]) -> Iterator[Text]:
    for finding in findings:
        yield from finding_lines(finding, WIDTH)


def prediction_summary(prediction: Prediction) -> str:
    """Return a prediction's time with its interval, its limiter, and its largest stalls."""
    stalls = sorted(prediction.stalls.items(), key=lambda item: -item[1])
    most = ", ".join(f"{name} {percent(part)}" for name, part in stalls[:MOST_STALLS] if part)
    return "\n".join(
        (
            f"{prediction.kernel}: {duration(prediction.time_us)} on {prediction.device.name} "
            f"(model; 90 % interval {interval(*prediction.interval_us)}), "
            f"limiter {prediction.limiter.name}",
            f"  {rate(prediction.gbps(prediction.traffic.compulsory_bytes))} of compulsory "
            f"traffic, occupancy {percent(prediction.occupancy.fraction)}, "
            f"{prediction.waves:.3g} waves",
            f"  stalls: {most}",
        )
    )


def findings_summary(findings: Findings) -> str:
    """Return the report of a check."""
    return plain(check_report(findings, WIDTH))


def comparison_summary(comparison: Comparison) -> str:
    """Return two launches side by side."""
    return plain(comparison_report(comparison.sides, comparison.found, WIDTH))


def ranking_summary(ranking: Ranking) -> str:
    """Return the table of a ranking."""
    launches = ranking.forecasts[0].job.launches
    return plain(ranking_report(ranking, "all" if len(launches) > 1 else "one", WIDTH))


def sweep_summary(swept: Swept) -> str:
    """Return the table of a sweep."""
    return plain(sweep_table(swept.rows, WIDTH))


def tuned_summary(tuned: Tuned) -> str:
    """Return the fastest candidates of a launch."""
    return plain(tuning_report([tuned], SHOWN, WIDTH))
