"""Tables of the accuracy page: intervals by kind, with their coverage."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.prediction.uncertainty.intervals import MEASURED

from ..page import table
from .derivation import Coverage, cross_validated, derived, pooled
from .records import Residual, residuals

HEAD = (
    "GPU", "code", "kind", "launches", "kernels", "low", "high", "half width", "coverage",
)  # fmt: skip
WHOLE = "code", "launches of", "launches", "coverage", "median half width"


def tables() -> str:
    """Return the tables of intervals and of their coverage as Markdown."""
    some = residuals()
    return "\n".join([*whole(some), "", *by_kind(some)])


def whole(some: Sequence[Residual]) -> list[str]:
    """Return the cross-validated coverage on the measured GPU, catalogue and others apart."""
    rows = []
    for title, catalogue in (("the catalogue", True), ("other kernels", False)):
        for code, found in pooled(some, catalogue).items():
            rows.append([code, title, *_cells(found)])
    return table(WHOLE, rows, text=2)


def _cells(found: Coverage) -> list[str]:
    return [str(found.launches), f"{found.inside:.1%}", f"±{found.width:.1%}"]


def by_kind(some: Sequence[Residual]) -> list[str]:
    """Return each kind's interval, with its cross-validated coverage."""
    covered, rows = cross_validated(some), []
    for key, one in derived(some).items():
        gpu, code, kind = key
        found = covered.get(key)
        rows.append(
            [
                "H200" if gpu == MEASURED else gpu,
                code,
                kind,
                str(one.launches),
                str(one.kernels),
                f"{one.low - 1:+.1%}",
                f"{one.high - 1:+.1%}",
                f"±{one.width:.1%}",
                f"{found.inside:.1%}" if found else "",
            ]
        )
    return table(HEAD, rows, text=3)
