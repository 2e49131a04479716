"""From measured pairs of launches to the certainty of their order, with cross-validation.

`pairs.csv` has launches of the catalogue with predicted and measured times, `validate/others` and
`validate/tuning` launches of other kernels. A pair is of one GPU, size and type.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.prediction.uncertainty import CATALOGUE
from gpusim.prediction.uncertainty.certainty import (
    BLOCK,
    GENERATOR,
    GRID,
    KERNEL,
    LEAST_RATIO,
    Key,
    Step,
    is_certain,
    step_of,
)
from gpusim.prediction.uncertainty.kinds import MEASURED
from gpusim.typing import Array

from ..table import table
from .records import FOLDER, H200, rows_of

LAUNCHES = FOLDER / "pairs.csv"
VALIDATE = FOLDER.parent
CODES = NVCC, LOWERING
RATIOS = 1, LEAST_RATIO, 1.03, 1.05, 1.07, 1.1, 1.15, 1.2, 1.3, 1.5, 2, 3
FEWEST = 20  # pairs of a step
FEWEST_OF_A_KIND = 100
APART = 1.1  # measured ratio from which on a tie is a miss
FOLDS = 5
HEAD = (
    "GPU", "kernels", "another", "pairs", "GPUs", "tie below", "order certain", "of these right",
    "apart", "of these ties",
)  # fmt: skip


@dataclass(frozen=True)
class Launch:
    """A launch as predicted and as measured, in microseconds.

    Launches of a `group`, of one device, size, type and state of the L2, are compared. `gpu` is
    the kind of the GPU `device`, `kernels` is "catalogue" or empty, `kernel` tells kernels and
    sizes apart.
    """

    group: Hashable
    gpu: str
    device: str
    kernels: str
    kernel: Hashable
    block: str
    grid: str
    code: str
    predicted_us: float
    measured_us: float


@dataclass(frozen=True)
class Pairs:
    """Pairs of launches of one kind: numbers of the launches, and logarithms of ratios.

    A ratio is that of the launch predicted slower to the other one.
    """

    slow: Array
    fast: Array
    predicted: Array
    measured: Array

    def chosen(self, which: Array) -> Pairs:
        """Return some of the pairs, by a mask or places."""
        return Pairs(*(column[which] for column in vars(self).values()))


def launches() -> list[Launch]:
    """Return all measured launches with predictions."""
    return [*_of_catalogue(), *_of_others(), *_of_tuning()]


def _of_catalogue() -> Iterator[Launch]:
    for row in rows_of(LAUNCHES):
        group = row["gpu"], row["device"], row["n"], row["dtype"], row["l2"]
        about = row["gpu"], row["device"], CATALOGUE, row["kernel"], row["block"]
        grid = f"{row['grid']} {row['coarse']}"
        for code in CODES:
            if row[f"{code}_us"]:
                times = float(row[f"{code}_us"]), float(row["measured_us"])
                yield Launch(group, *about, grid, code, *times)


def _of_others() -> Iterator[Launch]:
    measured = {(row["kernel"], row["n"]): row for row in rows_of(VALIDATE / "others" / "h200.csv")}
    for row in rows_of(VALIDATE / "others" / "predicted.csv"):
        case = row["kernel"], row["n"]
        for l2 in ("cold", "warm"):
            if case in measured and row[f"{l2}_us"]:
                times = float(row[f"{l2}_us"]), float(measured[case][f"{l2}_us"])
                yield Launch(("others", l2), MEASURED, H200, "", case, "", "", row["code"], *times)


def _of_tuning() -> Iterator[Launch]:
    names = "kernel", "n", "block", "grid"
    rows = rows_of(VALIDATE / "tuning" / "predicted.csv")
    predicted = {tuple(row[name] for name in names): float(row["nvcc_us"]) for row in rows}
    for row in rows_of(VALIDATE / "tuning" / "h200.csv"):
        kernel = row["kernel"], row["n"]
        about = MEASURED, H200, "", kernel, row["block"], row["grid"], NVCC
        us = predicted.get((*kernel, row["block"], row["grid"]))
        if us is not None:
            yield Launch(("tuning", *kernel), *about, us, float(row["cold_us"]))


def pairs_of(some: Sequence[Launch]) -> dict[Key, Pairs]:
    """Return all pairs of launches of a group that are predicted apart, by kind of pair."""
    groups: dict[Hashable, list[int]] = {}
    for number, one in enumerate(some):
        groups.setdefault(one.group, []).append(number)
    parts: dict[Key, list[Pairs]] = {}
    for numbers in groups.values():
        for key, pairs in _of_group(some, np.array(numbers)):
            parts.setdefault(key, []).append(pairs)
    return {key: _joined(found) for key, found in sorted(parts.items())}


def _joined(parts: Sequence[Pairs]) -> Pairs:
    columns = zip(*(vars(one).values() for one in parts), strict=True)
    return Pairs(*(np.concatenate(column) for column in columns))


def _of_group(some: Sequence[Launch], numbers: Array) -> Iterator[tuple[Key, Pairs]]:
    """Yield the pairs of some launches, by kind."""
    mine = [some[number] for number in numbers]
    predicted, measured = (
        np.log([getattr(one, name) for one in mine]) for name in ("predicted_us", "measured_us")
    )
    kernel, block, grid, code = (
        _numbered([getattr(one, name) for one in mine])
        for name in ("kernel", "block", "grid", "code")
    )
    a, b = np.triu_indices(len(mine), 1)
    is_slow = predicted[a] >= predicted[b]
    slow, fast = np.where(is_slow, a, b), np.where(is_slow, b, a)
    ratios = predicted[slow] - predicted[fast], measured[slow] - measured[fast]
    whole = Pairs(numbers[slow], numbers[fast], *ratios)
    apart = [one[slow] != one[fast] for one in (kernel, block, grid)]
    others = code[slow] != code[fast]
    is_pair = (whole.predicted > 0) & np.any(apart, axis=0)
    differs = {
        GENERATOR: others,
        KERNEL: ~others & apart[0],
        BLOCK: ~others & ~apart[0] & apart[1],
        GRID: ~others & ~apart[0] & ~apart[1],
    }
    has_lowering = np.array([one.code == LOWERING for one in mine])
    by_lowering = has_lowering[slow] | has_lowering[fast]
    for name, which in differs.items():
        for kernels, has in _kernels(mine[0], by_lowering):
            chosen = is_pair & which & has
            if chosen.any():
                yield (mine[0].gpu, kernels, name), whole.chosen(chosen)


def _kernels(one: Launch, by_lowering: Array) -> list[tuple[str, Array]]:
    if one.kernels == CATALOGUE:
        return [(CATALOGUE, np.ones_like(by_lowering))]
    return [(LOWERING, by_lowering), (NVCC, ~by_lowering)]


def _numbered(values: Sequence[Hashable]) -> Array:
    """Return equal values as equal numbers."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values])


def steps_of(pairs: Pairs, devices: Array) -> list[Step]:
    """Return the steps of pairs: the part in order grows with the ratio, by isotonic regression.

    `devices` has the device of each launch as a number. Neighbours out of order are pooled
    (Ayer et al. 1955); a step with few pairs joins its neighbour with the nearest part, but for the
    first.
    """
    place = np.searchsorted(np.log(RATIOS), pairs.predicted, side="right") - 1
    within = place >= 0
    place, in_order = place[within], pairs.measured[within] > 0
    counts = np.bincount(place, minlength=len(RATIOS)).tolist()
    ordered = np.bincount(place[in_order], minlength=len(RATIOS)).tolist()
    seen = np.zeros((len(RATIOS), devices.max() + 1), np.bool_)
    seen[place, devices[pairs.slow][within]] = True
    made: list[_Pool] = []
    for number, ratio in enumerate(RATIOS):
        if counts[number]:
            on = frozenset(np.flatnonzero(seen[number]).tolist())
            made.append(_Pool(ratio, counts[number], ordered[number], on))
        while len(made) > 1 and made[-1].share < made[-2].share:
            made[-2:] = [made[-2].with_next(made[-1])]
    while len(made) > 2 and (few := min(made[1:], key=lambda one: one.pairs)).pairs < FEWEST:
        at = made.index(few)
        beside = [near for near in (at - 1, at + 1) if 0 < near < len(made)]
        nearest = min(beside, key=lambda near: abs(made[near].share - few.share))
        first = min(at, nearest)
        made[first : first + 2] = [made[first].with_next(made[first + 1])]
    made[0] = replace(made[0], ratio=1)
    return [Step(one.ratio, one.pairs, one.ordered, len(one.devices)) for one in made]


@dataclass(frozen=True)
class _Pool:
    """Pairs of neighbouring ratios, from one on."""

    ratio: float
    pairs: int
    ordered: int
    devices: frozenset[int]

    @property
    def share(self) -> float:
        return self.ordered / self.pairs

    def with_next(self, other: _Pool) -> _Pool:
        counts = self.pairs + other.pairs, self.ordered + other.ordered
        return _Pool(self.ratio, *counts, self.devices | other.devices)


def derived_steps(
    some: Sequence[Launch], pairs: Mapping[Key, Pairs] | None = None
) -> dict[Key, list[Step]]:
    """Return the steps of all kinds of pairs; kinds with few pairs have none of their own."""
    devices = _numbered([one.device for one in some])
    found = pairs_of(some) if pairs is None else pairs
    return {
        key: steps_of(mine, devices)
        for key, mine in found.items()
        if len(mine.slow) >= FEWEST_OF_A_KIND
    }


@dataclass(frozen=True)
class Tried:
    """Pairs of a kind judged by others: counts of all, and of those with a certain order.

    `apart` were measured `APART` times or more from each other; `ties` of them were called ties.
    """

    pairs: int
    certain: int
    right: int
    apart: int
    ties: int


def tried(some: Sequence[Launch]) -> dict[Key, Tried]:
    """Return how pairs fare that are judged without their GPU, or without their kernels.

    On a kind of GPU with several, each is left out in turn; with one alone, kernels in folds, so
    that no pair is judged by another one with either of its kernels.
    """
    pairs, devices = pairs_of(some), _numbered([one.device for one in some])
    by_gpu: dict[str, set[int]] = {}
    for number, one in zip(devices.tolist(), some, strict=True):
        by_gpu.setdefault(one.gpu, set()).add(number)
    names = _numbered([_name(one.kernel) for one in some])
    folds = np.random.default_rng(0).permutation(names.max() + 1)[names] % FOLDS
    whole = derived_steps(some, pairs)
    found: dict[Key, list[Tried]] = {}
    for gpu, numbers in by_gpu.items():
        parts = [devices == one for one in sorted(numbers)]
        by_devices = len(parts) > 1
        parts = parts if by_devices else [folds == fold for fold in range(FOLDS)]
        for one, other in combinations_with_replacement(parts, 2):
            if by_devices and one is not other:
                continue
            _try(pairs, whole, devices, gpu, one, other, found)
    return {key: _summed(parts) for key, parts in found.items()}


def _name(kernel: Hashable) -> Hashable:
    return kernel[0] if isinstance(kernel, tuple) else kernel


def _try(
    pairs: Mapping[Key, Pairs],
    whole: Mapping[Key, list[Step]],
    devices: Array,
    gpu: str,
    one: Array,
    other: Array,
    found: dict[Key, list[Tried]],
) -> None:
    """Judge the pairs between two parts of the launches by the pairs without either part.

    `whole` are the steps of all pairs: those of other kinds of GPU stay as they are.
    """
    left = ~(one | other)
    rest: dict[Key, Sequence[Step]] = {}
    for key, mine in pairs.items():
        if key[0] != gpu:
            rest |= {key: whole[key]} if key in whole else {}
            continue
        kept = mine.chosen(left[mine.slow] & left[mine.fast])
        if len(kept.slow) >= FEWEST_OF_A_KIND:
            rest[key] = steps_of(kept, devices)
    for key, mine in pairs.items():
        if key[0] == gpu:
            here = (one[mine.slow] & other[mine.fast]) | (other[mine.slow] & one[mine.fast])
            judged = mine.chosen(here)
            if len(judged.slow):
                found.setdefault(key, []).append(_judged(key, judged, rest))


def _judged(key: Key, pairs: Pairs, steps: Mapping[Key, Sequence[Step]]) -> Tried:
    limits = np.array([is_certain(step_of(key, ratio, steps), ratio) for ratio in RATIOS])
    place = np.searchsorted(np.log(RATIOS), pairs.predicted, side="right") - 1
    certain = limits[place]
    apart = np.abs(pairs.measured) >= math.log(APART)
    counts = certain, certain & (pairs.measured > 0), apart, apart & ~certain
    return Tried(len(place), *(int(one.sum()) for one in counts))


def _summed(parts: Sequence[Tried]) -> Tried:
    return Tried(*(sum(column) for column in zip(*(astuple(one) for one in parts), strict=True)))


def certainty_table(some: Sequence[Launch]) -> list[str]:
    """Return each kind of pair with its limit of ties, and how left-out pairs fared."""
    judged, rows = tried(some), []
    for key, steps in derived_steps(some).items():
        one = judged[key]
        limit = next((step.ratio for step in steps if is_certain(step, step.ratio)), None)
        rows.append(
            [
                *key,
                f"{one.pairs:,}",
                str(max(step.gpus for step in steps)),
                "" if limit is None else f"{limit:.2f}",
                f"{one.certain:,}",
                _percent(one.right, one.certain),
                f"{one.apart:,}",
                _percent(one.ties, one.apart),
            ]
        )
    return table(HEAD, rows, text=3)


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""
