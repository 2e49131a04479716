"""From residuals to the quantiles of each kind, and their coverage by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.prediction.uncertainty import (
    CATALOGUE,
    KINDS,
    UNKNOWNS,
    Factor,
    Quantiles,
    conformal,
)
from gpusim.prediction.uncertainty.gpus import DESCRIBED, MEASURED
from gpusim.prediction.uncertainty.quantiles import COVERAGE, Key

from .records import Residual

CODES = NVCC, LOWERING
COVERED_ABOVE = 2 * COVERAGE - 1  # of an interval whose upper end is that of one side
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
        if key[0] == DESCRIBED:  # of both generators: the GPU makes the difference
            found[key] = _of_another_gpu([one for one in some if one.gpu == DESCRIBED])
        elif len(own) >= FEWEST:
            found[key] = _quantiles(own)
    for key in CELLS:
        if key not in found:
            near = [one for other, one in found.items() if other[:2] == key[:2]]
            low, high = min(one.low for one in near), max(one.high for one in near)
            own = _of(some, key)
            found[key] = Quantiles(len(own), _kernels(own), low, high)
    return {key: found[key] for key in CELLS}


def derived_factors(some: Sequence[Residual]) -> dict[str, Factor]:
    """Return the factors that launches need of their kinds' intervals where something is unknown.

    The score of a launch is the factor that its ratio needs of the interval of its kind, as in
    conformalised quantile regression. With few launches it is the largest factor of the others.
    """
    kinds = derived(some)
    needed: dict[str, list[tuple[str, float]]] = {name: [] for name in UNKNOWNS}
    for one in some:
        held = kinds[one.gpu, one.code, one.kind]
        for name in one.unknown or ():
            score = max(held.low / one.ratio, one.ratio / held.high)
            needed[name].append((one.kernel, score))
    own = {
        name: max(1.0, conformal([score for _, score in scores], COVERED_ABOVE)[1])
        for name, scores in needed.items()
        if len(scores) >= FEWEST
    }
    most = max(own.values(), default=1.0)
    return {
        name: Factor(len(scores), len({kernel for kernel, _ in scores}), own.get(name, most))
        for name, scores in needed.items()
    }


def _of(some: Iterable[Residual], key: Key) -> list[Residual]:
    return [one for one in some if (one.gpu, one.code, one.kind) == key]


def _quantiles(some: Sequence[Residual]) -> Quantiles:
    return Quantiles(len(some), _kernels(some), *conformal([one.ratio for one in some]))


def _of_another_gpu(some: Sequence[Residual]) -> Quantiles:
    """Return the quantiles of a GPU that no residual is of.

    Launches of one GPU are not exchangeable with those of another. The interval of all is wider by
    the factor that one GPU needs of the interval of the others: the score of conformalised quantile
    regression (Romano, Patterson and Candes, 2019), with the largest of the GPUs' quantiles, as
    there are so few of them.
    """
    whole = _quantiles(some)
    groups = dict.fromkeys(one.group for one in some)
    factor = 1.0
    for group in groups if len(groups) > 1 else ():
        mine = [one.ratio for one in some if one.group == group]
        others = _quantiles([one for one in some if one.group != group])
        needed = [max(others.low / ratio, ratio / others.high) for ratio in mine]
        factor = max(factor, conformal(needed, COVERED_ABOVE)[1])
    return replace(whole, low=whole.low / factor, high=whole.high * factor)


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
