"""From residuals to the quantiles of each kind, and their coverage by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.prediction.uncertainty import CATALOGUE, KINDS, Quantiles, conformal
from gpusim.prediction.uncertainty.intervals import DESCRIBED, MEASURED
from gpusim.prediction.uncertainty.quantiles import Key

from .records import Residual

CODES = NVCC, LOWERING
FEWEST = 40  # launches of a kind of its own: two beyond either quantile
CELLS = [
    (gpu, code, kind)
    for gpu, kinds in ((MEASURED, tuple(KINDS)), (DESCRIBED, (CATALOGUE,)))
    for code in CODES
    for kind in kinds
]


def derived(some: Sequence[Residual]) -> dict[Key, Quantiles]:
    """Return the quantiles of all kinds.

    A kind with few launches has the quantiles that span all kinds of its GPU and generator.
    """
    found: dict[Key, Quantiles] = {}
    for key in CELLS:
        own = _of(some, key)
        if len(own) >= FEWEST or (own and key[0] == DESCRIBED):
            found[key] = _quantiles(own)
    for key in CELLS:
        if key not in found:
            near = [one for other, one in found.items() if other[:2] == key[:2]]
            low, high = min(one.low for one in near), max(one.high for one in near)
            own = _of(some, key)
            found[key] = Quantiles(len(own), _kernels(own), low, high)
    return {key: found[key] for key in CELLS}


def _of(some: Iterable[Residual], key: Key) -> list[Residual]:
    return [one for one in some if (one.gpu, one.code, one.kind) == key]


def _quantiles(some: Sequence[Residual]) -> Quantiles:
    return Quantiles(len(some), _kernels(some), *conformal([one.ratio for one in some]))


def _kernels(some: Iterable[Residual]) -> int:
    return len({one.kernel for one in some})


@dataclass(frozen=True)
class Coverage:
    """Launches of a kind, the part of them inside, and the median of half the widths."""

    launches: int
    inside: float
    width: float

    @classmethod
    def of(cls, tried: Sequence[tuple[Residual, Quantiles]]) -> Coverage:
        """Return the coverage of launches with the quantiles that they are tried with."""
        inside = sum(held.low <= one.ratio <= held.high for one, held in tried)
        return cls(len(tried), inside / len(tried), median(held.width for _, held in tried))


def cross_validated(some: Sequence[Residual]) -> dict[Key, Coverage]:
    """Return the coverage of each kind, each group tried with the quantiles of all others."""
    tried: dict[Key, list[tuple[Residual, Quantiles]]] = {}
    for group in dict.fromkeys(one.group for one in some):
        held = derived([one for one in some if one.group != group])
        for one in some:
            if one.group == group:
                key = one.gpu, one.code, one.kind
                tried.setdefault(key, []).append((one, held[key]))
    return {key: Coverage.of(tried[key]) for key in CELLS if key in tried}


def pooled(some: Sequence[Residual], catalogue: bool) -> dict[str, Coverage]:
    """Return cross-validated coverage by generator: on the measured GPU, catalogue or others."""
    wanted = [one for one in some if (one.kind == CATALOGUE) == catalogue and one.gpu == MEASURED]
    tried: dict[str, list[tuple[Residual, Quantiles]]] = {}
    for group in dict.fromkeys(one.group for one in wanted):
        held = derived([one for one in some if one.group != group])
        for one in wanted:
            if one.group == group:
                key = one.gpu, one.code, one.kind
                tried.setdefault(one.code, []).append((one, held[key]))
    return {code: Coverage.of(tried[code]) for code in CODES if code in tried}
