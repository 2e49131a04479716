"""Tables of the accuracy page: intervals by kind, with their coverage."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.codegen.generators import NVCC
from gpusim.prediction.uncertainty import CATALOGUE, GPUS, UNKNOWNS, Quantiles
from gpusim.prediction.uncertainty.kinds import MEASURED, REGULAR

from ..table import table
from .derivation import Coverage, cross_validated, derived, derived_factors, pooled
from .records import Residual, residuals

HEAD = "code", "kind", "launches", "kernels", "low", "high", "half width", "coverage"
BY_GPU = (
    "GPU", "GPUs left out", "launches", "coverage", "catalogue, low", "high", "half width",
    "regular, half width",
)  # fmt: skip
UNKNOWN = "unknown", "launches", "kernels", "coverage without", "factor", "coverage"
WHOLE = "code", "launches of", "launches", "coverage", "median half width"


def tables() -> str:
    """Return the tables of intervals and of their coverage as Markdown."""
    some = residuals()
    parts = whole(some), by_gpu(some), by_kind(some), by_unknown(some)
    return "\n\n".join("\n".join(lines) for lines in parts)


def whole(some: Sequence[Residual]) -> list[str]:
    """Return the cross-validated coverage on the measured GPU, catalogue and others apart."""
    rows = []
    for title, catalogue in (("the catalogue", True), ("other kernels", False)):
        for code, found in pooled(some, catalogue).items():
            rows.append([code, title, *_cells(found)])
    return table(WHOLE, rows, text=2)


def _cells(found: Coverage) -> list[str]:
    return [str(found.launches), f"{found.inside:.1%}", f"±{found.width:.1%}"]


def by_gpu(some: Sequence[Residual]) -> list[str]:
    """Return each kind of GPU: coverage of launches of GPUs left out, and widths with nvcc's code.

    The measured GPU leaves out sets of kernels.
    """
    covered, kinds, rows = cross_validated(some), derived(some), []
    for gpu in GPUS:
        mine = {key: one for key, one in covered.items() if key[0] == gpu}
        count = sum(one.launches for one in mine.values())
        inside = sum(one.launches * one.inside for one in mine.values())
        catalogue, regular = (kinds[gpu, NVCC, kind] for kind in (CATALOGUE, REGULAR))
        groups = {one.group for one in some if one.gpu == gpu}
        rows.append(
            [
                gpu,
                "" if gpu == MEASURED or not count else str(len(groups)),
                f"{count:,}" if count else "",
                f"{inside / count:.1%}" if count else "",
                *_ends(catalogue),
                f"±{regular.width:.1%}",
            ]
        )
    return table(BY_GPU, rows, text=1)


def _ends(one: Quantiles) -> list[str]:
    return [f"{one.low - 1:+.1%}", f"{one.high - 1:+.1%}", f"±{one.width:.1%}"]


def by_kind(some: Sequence[Residual]) -> list[str]:
    """Return each kind's interval on the measured GPU, with its cross-validated coverage."""
    covered, rows = cross_validated(some), []
    for key, one in derived(some).items():
        gpu, code, kind = key
        found = covered.get(key)
        if gpu == MEASURED:
            counts = str(one.launches), str(one.kernels)
            inside = f"{found.inside:.1%}" if found else ""
            rows.append([code, kind, *counts, *_ends(one), inside])
    return table(HEAD, rows, text=2)


def by_unknown(some: Sequence[Residual]) -> list[str]:
    """Return the factors of what was sampled, extrapolated or supposed, and coverage with them.

    Launches with nothing of these stand first. All are tried with the intervals of their own kinds.
    """
    kinds, factors = derived(some), derived_factors(some)
    known = [one for one in some if one.unknown is not None]
    parts = {"nothing": [one for one in known if not one.unknown]}
    parts |= {name: [one for one in known if name in (one.unknown or ())] for name in UNKNOWNS}
    rows = []
    for name, mine in parts.items():
        factor = factors[name].factor if name in factors else 1.0
        held = [kinds[one.gpu, one.code, one.kind] for one in mine]
        plain = Coverage.of(list(zip(mine, held, strict=True))) if mine else None
        wide = [one.widened(factor) for one in held]
        wider = Coverage.of(list(zip(mine, wide, strict=True))) if mine else None
        kernels = len({one.kernel for one in mine})
        inside = [f"{one.inside:.1%}" if one else "" for one in (plain, wider)]
        rows.append([name, str(len(mine)), str(kernels), inside[0], f"{factor:.2f}", inside[1]])
    return table(UNKNOWN, rows, text=1)
