"""Wavefronts over stride: the cost of shared memory accesses by the distance between lanes."""

from __future__ import annotations

from collections import Counter
from math import gcd
from typing import Any

from gpusim.errors import InputError
from gpusim.reports.plots.canvas import canvas, title
from gpusim.tracing import lanes
from gpusim.tracing.records import Trace


def strides(trace: Trace) -> dict[tuple[int, int], int]:
    """Return the count of accesses by (stride in words, wavefronts).

    Only accesses of single words by all lanes of a warp count; their law is gcd(stride, banks).
    """
    found: Counter[tuple[int, int]] = Counter()
    for execution in trace.executions:
        if execution.space != "shared" or execution.width_bytes != 4 or not all(execution.on):
            continue
        step = lanes.stride(execution)
        if step is not None:
            found[abs(step), execution.wavefronts] += 1
    return dict(sorted(found.items()))


def law(stride: int, banks: int) -> int:
    """Return a whole warp's wavefronts at a stride in words; 0 is a broadcast."""
    return (gcd(stride, banks) if stride else 1) * (32 // banks)


def plot_strides(trace: Trace, *, theme: str = "light") -> Any:
    """Draw the law as small dots, and the accesses of one block where they fall on it.

    Raises InputError where no warp accesses shared memory at a stride.
    """
    found = strides(trace)
    if not found:
        raise InputError(f"{trace.kernel} has no strided shared access of a whole warp to draw")
    banks = lanes.bank_count(trace.cc)
    furthest = max(banks, *(stride for stride, _ in found)) + 1
    with canvas(theme, 8, 4.2) as (figure, ink):
        axes = figure.subplots()
        every = range(furthest + 1)
        axes.plot(
            every,
            [law(stride, banks) for stride in every],
            ls="none",
            marker=".",
            color=ink.grey,
            label=f"law: gcd(stride, {banks})",
        )
        axes.plot(
            *zip(*found, strict=True),
            ls="none",
            marker="o",
            ms=10,
            mfc="none",
            mew=2,
            mec=ink.series[5],
            label=f"accesses of {trace.kernel}",
        )
        for (stride, wavefronts), count in found.items():
            axes.annotate(
                f"{count}x", (stride, wavefronts), xytext=(7, 5), textcoords="offset points"
            )
        axes.set_yscale("log", base=2)
        axes.set_yticks([1, 2, 4, 8, 16, 32][: banks.bit_length()])
        axes.yaxis.set_major_formatter("{x:.0f}")
        axes.set(xlabel="stride from lane to lane, words of 4 bytes", ylabel="wavefronts")
        axes.legend(loc="upper left")
        title(axes, f"{trace.kernel}, block {trace.block_index}: stride against wavefronts")
    return figure
