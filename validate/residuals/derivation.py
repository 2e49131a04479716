"""From residuals to the quantiles of each kind, and their coverage by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from gpusim.prediction.uncertainty.kinds import (
    DESCRIBED,
    GENERATION,
    GPUS,
    MEASURED,
    OLDER,
)
from gpusim.prediction.uncertainty.quantiles import COVERAGE, Key

from .records import Residual, published_error

CODES = NVCC, LOWERING
COVERED_ABOVE = 2 * COVERAGE - 1  # of an interval with the upper end of one side
FEWEST = 40  # launches of a kind of its own: two beyond either quantile
CELLS = [(gpu, code, kind) for gpu in GPUS for code in CODES for kind in KINDS]


def derived(some: Sequence[Residual]) -> dict[Key, Quantiles]:
    """Return the quantiles of all kinds.

    A kind with few launches has the quantiles that span all kinds of its GPU and generator. Those
    outside the catalogue are wider by the factor that blind launches need. The other kinds of GPUs
    have the measured one's, made wider by the factor of such GPUs.
    """
    found: dict[Key, Quantiles] = {}
    cells = [key for key in CELLS if key[0] == MEASURED]
    blind, some = [one for one in some if one.is_blind], [one for one in some if not one.is_blind]
    for key in cells:
        own = _of(some, key)
        if len(own) >= FEWEST:
            found[key] = _quantiles(own)
    for key in cells:
        if key not in found:
            near = [one for other, one in found.items() if other[:2] == key[:2]]
            low, high = min(one.low for one in near), max(one.high for one in near)
            own = _of(some, key)
            found[key] = Quantiles(len(own), _kernels(own), low, high)
    factor = _factor([(one, found[one.gpu, one.code, one.kind]) for one in blind])
    measured = {
        key: found[key] if key[2] == CATALOGUE else found[key].widened(factor) for key in cells
    }
    found |= measured
    found |= _of_generation(some, measured)
    described = _of_another_gpu([one for one in some if one.gpu == DESCRIBED])
    older = _spanning(described, [one for one in some if one.gpu == OLDER])
    for gpu, whole in ((DESCRIBED, described), (OLDER, older)):
        for (_, code, kind), one in measured.items():
            is_own = kind == CATALOGUE
            found[gpu, code, kind] = whole if is_own else whole.spanning(one)
    return {key: found[key] for key in CELLS}


def _spanning(held: Quantiles, some: Sequence[Residual]) -> Quantiles:
    """Return an interval that also holds launches of a further kind of GPU."""
    if not some:
        return held
    own = _quantiles(some)
    low, high = min(held.low, own.low), max(held.high, own.high)
    return replace(own, low=low, high=high)


def _of_generation(
    some: Sequence[Residual], measured: Mapping[Key, Quantiles]
) -> dict[Key, Quantiles]:
    """Return the quantiles of a GPU of a measured generation: wider by the factor it needs.

    The factor is the larger one of launches predicted with the file of another GPU of the
    generation and of published errors on such a GPU; kernels of the catalogue and others have
    their own.
    """
    mine = [one for one in some if one.gpu == GENERATION]
    factors = {}
    for is_catalogue in (True, False):
        own = [one for one in mine if (one.kind == CATALOGUE) == is_catalogue]
        needed = [_needed(measured[MEASURED, one.code, one.kind], one.ratio) for one in own]
        known = conformal(needed, COVERED_ABOVE)[1] if needed else 1.0
        error = published_error("catalogue" if is_catalogue else "others")
        factors[is_catalogue] = max(1.0, known), error
    found = {}
    for (_, code, kind), one in measured.items():
        factor, error = factors[kind == CATALOGUE]
        wider = one.widened(factor)
        low, high = min(wider.low, 1 / (1 + error)), max(wider.high, 1 / (1 - error))
        found[GENERATION, code, kind] = replace(wider, low=low, high=high)
    return found


def _needed(held: Quantiles, ratio: float) -> float:
    """Return the factor that an interval needs to hold a ratio."""
    return max(held.low / ratio, ratio / held.high)


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
            needed[name].append((one.kernel, _needed(held, one.ratio)))
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
    gpus = len({one.group for one in some}) if some[0].gpu in (DESCRIBED, OLDER) else 1
    return Quantiles(len(some), _kernels(some), *conformal([one.ratio for one in some]), gpus)


def _of_another_gpu(some: Sequence[Residual]) -> Quantiles:
    """Return the quantiles of a GPU that no residual is of.

    Launches of one GPU are not exchangeable with another's. The interval of all is wider by
    the factor that nine of ten launches need of the interval of the other GPUs: the score of
    conformalised quantile regression (Romano, Patterson and Candes, 2019).
    """
    return _quantiles(some).widened(_factor(left_out(some)))


def _factor(left: Sequence[tuple[Residual, Quantiles]]) -> float:
    """Return the factor with which nine of ten launches lie in the intervals, 1 or more."""
    scores = [_needed(held, one.ratio) for one, held in left]
    return max(1.0, conformal(scores, COVERED_ABOVE)[1]) if scores else 1.0


def left_out(some: Sequence[Residual]) -> list[tuple[Residual, Quantiles]]:
    """Return launches with the quantiles of other GPUs; none of a single GPU."""
    groups = dict.fromkeys(one.group for one in some)
    return [
        (one, held)
        for group in (groups if len(groups) > 1 else ())
        for held in [_quantiles([one for one in some if one.group != group])]
        for one in some
        if one.group == group
    ]


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
    """Return the coverage of each kind, each group tried with the quantiles of all others.

    Launches of GPUs that were not measured are tried as such: of a measured generation as predicted
    with another GPU's file, of a described GPU with the intervals of the other GPUs.
    """
    tried: dict[Key, list[tuple[Residual, Quantiles]]] = {}
    for group in dict.fromkeys(one.group for one in some if one.gpu == MEASURED):
        held = derived([one for one in some if one.group != group])
        for one in some:
            if one.group == group and one.gpu == MEASURED:
                key = one.gpu, one.code, one.kind
                tried.setdefault(key, []).append((one, held[key]))
    whole = derived(some)
    left = left_out([one for one in some if one.gpu == DESCRIBED])
    others = [(one, held.widened(_factor(left))) for one, held in left]
    for one in some:
        if one.gpu == GENERATION:
            others.append((one, whole[one.gpu, one.code, one.kind]))
    for one, held_by in others:
        tried.setdefault((one.gpu, one.code, one.kind), []).append((one, held_by))
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
