"""Compares the predicted times of configurations with the measured ones, kernel by kernel.

    python -m validate.autotune.compare

A measured time is the lesser of two rounds' medians: other work on the machine only adds time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("h200.json")
SEPARATE = 1.05  # measured times that differ by less change their order from round to round


class Comparison(NamedTuple):
    """A kernel's configurations: mean absolute error of their times, and quality of their order.

    `choice` is how much slower than the fastest the configuration of least predicted time is;
    `tau` is Kendall's over all pairs, `clear_tau` over pairs whose times differ by more than 5 %.
    """

    kernel: str
    configurations: int
    error: float
    choice: float
    tau: float
    clear_tau: float


def comparisons() -> Iterator[Comparison]:
    """Yield the comparison of each kernel."""
    for kernel, rows in json.loads(FILE.read_text())["kernels"].items():
        yield compared(kernel, rows)


def compared(kernel: str, rows: Sequence[dict[str, Any]]) -> Comparison:
    """Return the comparison of a kernel's configurations."""
    times = [(min(row["us"]), row["predicted_us"]) for row in rows]
    errors = [abs(predicted / measured - 1) for measured, predicted in times]
    chosen = min(times, key=lambda one: one[1])[0]
    pairs = list(combinations(times, 2))
    clear = [one for one in pairs if max(a := [m for m, _ in one]) > SEPARATE * min(a)]
    fastest = min(measured for measured, _ in times)
    return Comparison(
        kernel,
        len(rows),
        sum(errors) / len(errors),
        chosen / fastest - 1,
        tau(pairs),
        tau(clear),
    )


def tau(pairs: Sequence[tuple[tuple[float, float], tuple[float, float]]]) -> float:
    """Return Kendall's tau: the share of pairs in the right order less that in the wrong one."""
    signs = [(a - b) * (p - q) for (a, p), (b, q) in pairs]
    return (sum(one > 0 for one in signs) - sum(one < 0 for one in signs)) / max(1, len(signs))


def main() -> None:
    """Print a row for each kernel."""
    for one in comparisons():
        print(
            f"{one.kernel:<13}{one.configurations:>3}  error {one.error:6.1%}  "
            f"choice {one.choice:+5.1%}  tau {one.tau:5.2f}  clear pairs {one.clear_tau:5.2f}"
        )


if __name__ == "__main__":
    main()
