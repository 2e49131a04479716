"""Statistics of measurements and comparisons, on plain numbers."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(values: Sequence[float], part: float) -> float:
    """Return the quantile at `part` of the values, with linear interpolation."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def summary(values: Sequence[float]) -> tuple[float, float, float]:
    """Return median, 10th and 90th percentile."""
    return quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9)
