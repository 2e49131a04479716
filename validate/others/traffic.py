"""Traffic of the memory hierarchy: counted by Nsight Compute beside predicted with nvcc's code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from ..statistics import quantile
from ..table import rows_of, table
from .errors import COUNTED, PREDICTED, Key, by_launch
from .plans import KERNELS

# Nsight Compute's name of a metric and the heading of its column.
TRAFFIC = {
    "lts__t_sectors_op_read.sum": "L2 sectors",
    "dram__bytes_read.sum": "DRAM bytes",
    "l1tex__t_sector_hit_rate.pct": "L1 hit rate",
}


@dataclass(frozen=True)
class Traffic:
    """A metric of a launch with a cold L2; `predicted` is None where the model has no value."""

    kernel: str
    n: int
    metric: str
    counted: float
    predicted: float | None

    @property
    def key(self) -> Key:
        """The kernel's name and the size."""
        return self.kernel, self.n

    @property
    def error(self) -> float | None:
        """Predicted over counted, less one; of rates in percent the difference, as a fraction."""
        if self.predicted is None:
            return None
        if self.metric.endswith(".pct"):
            return (self.predicted - self.counted) / 100
        return self.predicted / self.counted - 1 if self.counted else None


def traffic() -> Iterator[Traffic]:
    """Yield the metrics of each launch that was both counted and predicted with nvcc's code."""
    counted = by_launch(COUNTED)
    for row in rows_of(PREDICTED):
        key = row["kernel"], int(row["n"])
        if row["code"] == "nvcc" and not row["refused"] and key in counted:
            for metric in TRAFFIC:
                predicted = float(row[metric]) if row[metric] else None
                yield Traffic(*key, metric, float(counted[key][metric]), predicted)


def group_by_group(found: Iterable[Traffic]) -> list[str]:
    """Return the table of errors of each metric, a row a group of kernels and one for all."""
    groups: dict[str, dict[str, list[float]]] = {}
    for one in found:
        if one.error is not None:
            for group in (KERNELS[one.kernel].file, "all"):
                errors = groups.setdefault(group, {metric: [] for metric in TRAFFIC})
                errors[one.metric].append(abs(one.error))
    head = ["group", *(f"{title} {part}" for title in TRAFFIC.values() for part in _PARTS)]
    order = sorted(groups, key=lambda group: group == "all")
    return table(head, [[group, *_cells(groups[group])] for group in order])


_PARTS = "median", "90th perc."


def _cells(errors: dict[str, list[float]]) -> list[str]:
    """Return median and 90th percentile of the errors of each metric."""
    cells: list[str] = []
    for metric in TRAFFIC:
        of_metric = errors[metric]
        if not of_metric:
            cells += [""] * len(_PARTS)
            continue
        cells += [f"{part:.1%}" for part in (median(of_metric), quantile(of_metric, 0.9))]
    return cells


def farthest(found: Sequence[Traffic], count: int = 5) -> list[str]:
    """Return the table of the launches farthest off in each metric, a kernel once."""
    head = "metric", "kernel", "n", "counted", "predicted", "off by"
    rows: list[list[str]] = []
    for metric, title in TRAFFIC.items():
        off = [one for one in found if one.metric == metric and one.error is not None]
        off.sort(key=lambda one: -abs(one.error or 0))
        kernels: dict[str, Traffic] = {}
        for one in off:
            kernels.setdefault(one.kernel, one)
        rows += [_row(title, one) for one in list(kernels.values())[:count]]
    return table(head, rows, text=2)


def _row(title: str, one: Traffic) -> list[str]:
    if one.metric.endswith(".pct"):
        numbers = f"{one.counted:.1f} %", f"{one.predicted:.1f} %", f"{100 * (one.error or 0):+.1f}"
    else:
        numbers = f"{one.counted:,.0f}", f"{one.predicted:,.0f}", f"{one.error:+.1%}"
    return [title, one.kernel, f"{one.n:,}", *numbers]
