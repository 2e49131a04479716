"""Results as pandas DataFrames, one row for each line, finding, kernel or prediction."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpusim.checking.findings import Findings
from gpusim.errors import InputError
from gpusim.host.installation import install
from gpusim.prediction.rankings import Ranking
from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.sweep import Swept
from gpusim.prediction.sweeps.tables import COLUMNS
from gpusim.prediction.sweeps.tuning import Tuned
from gpusim.reports.comparison import Comparison
from gpusim.tracing.records import Trace


class PandasMissingError(InputError):
    """Pandas is not there."""


def frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> Any:
    """Return rows as a DataFrame; PandasMissingError where pandas is not installed."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise PandasMissingError(f"to_dataframe() needs pandas: {install('jupyter')}") from None
    return pandas.DataFrame(list(rows), columns=columns)


def trace_frame(trace: Trace) -> Any:
    """Return the source lines: number, text, executions, active lanes, and every counter."""
    return frame(
        {
            "line": line.line,
            "text": line.text,
            "executions": line.executions,
            "active_lanes": line.active_lanes,
            **line.counters,
        }
        for line in trace.lines
    )


def prediction_frame(prediction: Prediction) -> Any:
    """Return the source lines: fraction of the warp cycles, and that of each stall reason."""
    return frame(
        {"line": line, "fraction": prediction.lines.get(line, 0.0), **stalls}
        for line, stalls in prediction.stalls_by_line.items()
    )


def findings_frame(findings: Findings) -> Any:
    """Return the findings of a check, with the lines of each as a list."""
    columns = ("rule", "severity", "message", "fix", "hazard", "array", "index", "count", "lines")
    documents = (finding.to_dict() for finding in findings)
    return frame(({name: one[name] for name in columns} for one in documents), columns)


def comparison_frame(comparison: Comparison) -> Any:
    """Return a row for either launch: name, facts, time and interval in us, and counters."""
    return frame(
        {
            "kernel": side.name,
            **side.facts,
            "time_us": side.time_us,
            "low_us": None if side.interval_us is None else side.interval_us[0],
            "high_us": None if side.interval_us is None else side.interval_us[1],
            **side.counters,
        }
        for side in comparison.sides
    )


def ranking_frame(ranking: Ranking) -> Any:
    """Return the kernels from slow to fast: time and interval in us, GB/s, step, limiter."""
    return frame(
        {
            "kernel": one.job.name,
            "device": one.device.id,
            "time_us": one.time_us,
            "low_us": one.interval_us[0],
            "high_us": one.interval_us[1],
            "gbps": one.gbps,
            "peak_fraction": one.peak_fraction,
            "step": ranking.step(place) if place else None,
            "tie": ranking.is_tie(place) if place else None,
            "limiter": one.first.limiter.name,
        }
        for place, one in enumerate(ranking.forecasts)
    )


def sweep_frame(swept: Swept) -> Any:
    """Return the rows of a sweep, with the columns of its files."""
    return frame(swept.rows, COLUMNS)


def tuned_frame(tuned: Tuned) -> Any:
    """Return the candidates of a launch, fastest first, then those that cannot run."""
    return frame([*tuned.rows, *tuned.cannot], COLUMNS)
