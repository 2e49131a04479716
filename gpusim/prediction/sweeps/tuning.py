"""The best launch: candidates of a search space, predicted and ordered by time.

Small spaces are searched exhaustively. In larger ones all candidates are predicted with a fraction
of the simulated work, and the fastest quarter of them again with four times as much, until few
enough are left (successive halving: Karnin et al. 2013, Jamieson and Talwalkar 2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from gpusim.errors import InputError, shown_at_the_call
from gpusim.launch.description import LaunchDescription, described
from gpusim.launch.views import Shown
from gpusim.prediction.sweeps.choices import WAVES
from gpusim.prediction.sweeps.sweep import Case, Swept, sweep
from gpusim.prediction.sweeps.tables import Row, choices_of, timed
from gpusim.prediction.uncertainty import Judgement, judged
from gpusim.prediction.workload import BUDGET, Budget

EXHAUSTIVE = 256  # candidates of a launch that are all predicted in full
KEPT = 4  # one of that many candidates of a rung goes on
FEWEST_KEPT = 16


@dataclass(frozen=True)
class Tuned(Shown, shown_as="tuned"):
    """The candidates of one kernel, device and size, as rows of a sweep.

    `rows` are predicted in full, fastest first; `cannot` have a reason in place of a time, and
    `dropped` candidates were slower in an earlier rung. `rejected` have a time, too, but do
    something else than the first launch, which `description` is of.
    """

    kernel: str
    device: str
    n: int | None
    rows: Sequence[Row]
    cannot: Sequence[Row]
    dropped: int = 0
    rejected: Sequence[Row] = ()
    description: LaunchDescription | None = None

    def __repr__(self) -> str:
        return f"<Tuned {self.kernel} on {self.device}: {len(self.rows)} candidates>"

    @property
    def best(self) -> Row | None:
        """The fastest candidate, None where none can run."""
        return self.rows[0] if self.rows else None

    @cached_property
    def ties(self) -> int:
        """The number of other candidates that tie with the fastest."""
        return sum(self.judged(place).is_tie for place in range(1, len(self.rows)))

    def judged(self, place: int) -> Judgement:
        """Return the comparison of a candidate with the fastest."""
        return judged(timed(self.rows[0]), timed(self.rows[place]))

    @property
    def launch_rule(self) -> Row | None:
        """The candidate without choices, None where there is none or it cannot run."""
        return next((row for row in self.rows if not row["choices"]), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        rule = self.launch_rule
        return {
            "kernel": self.kernel,
            **described(self.description),
            "device": self.device,
            "n": self.n,
            "best": self.best,
            "ties": self.ties if self.rows else 0,
            "speedup": rule["time_us"] / self.rows[0]["time_us"] if rule else None,
            "candidates": list(self.rows),
            "rejected": list(self.rejected),
            "cannot_run": list(self.cannot),
            "dropped": self.dropped,
        }


def _no_listeners(_: Sequence[Case]) -> Mapping[str, Any]:
    return {}


@shown_at_the_call
def best_launches(
    cases: Sequence[Case],
    output: Path | None = None,
    *,
    exhaustive: int = EXHAUSTIVE,
    rung: Callable[[Sequence[Case]], Mapping[str, Any]] = _no_listeners,
    predict: Callable[..., Swept] = sweep,
    **settings: Any,
) -> list[Tuned]:
    """Return the candidates of each kernel, device and size by time, fastest first.

    `cases` are in any order, `settings` and `output` those of `sweep`; the rows of `output` are
    those predicted in full. `rung` is called with the cases of each rung, and returns further
    settings for it, such as listeners to its progress; `predict` predicts them.
    """
    if not cases:
        raise InputError("the search space is empty")
    groups: dict[Any, list[Case]] = {}
    for case in cases:
        request = case.request
        groups.setdefault((case.device, request.n, request.kernel), []).append(case)
    searches = [_Search(found) for found in groups.values()]
    for budget in _budgets(max(map(len, groups.values())), exhaustive):
        large = [one for one in searches if len(one.left) > exhaustive]
        asked = [replace(case, budget=budget) for one in large for case in one.left]
        rows = iter(predict(asked, **settings, **rung(asked)).rows)
        for one in large:
            one.narrow(list(islice(rows, len(one.left))))
    last = [case for one in searches for case in one.left]
    rows = iter(predict(last, output, **settings, **rung(last)).rows)
    return [one.tuned(list(islice(rows, len(one.left)))) for one in searches]


class _Search:
    """The candidates of one kernel, device and size that are `left`."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.left = list(cases)
        self._cannot: list[Row] = []
        self._dropped = 0

    def narrow(self, rows: Sequence[Row]) -> None:
        """Keep the fastest candidates by the rows of a rung, in the order they had."""
        able = [place for place, row in enumerate(rows) if row["reason"] is None]
        able.sort(key=lambda place: rows[place]["time_us"])
        kept = sorted(able[: max(FEWEST_KEPT, math.ceil(len(able) / KEPT))])
        self._dropped += len(able) - len(kept)
        self._cannot += [row for row in rows if row["reason"] is not None]
        self.left = [self.left[place] for place in kept]

    def tuned(self, rows: Sequence[Row]) -> Tuned:
        """Return the result by the rows of the candidates that were left."""
        launches: dict[Any, Row] = {}  # the same launch may have several choices
        for row in rows:
            if row["reason"] is None:
                launches.setdefault(_launch(row), row)
        every = sorted(launches.values(), key=lambda row: row["time_us"])
        able = [row for row in every if row["wrong"] is None]
        rejected = [row for row in every if row["wrong"] is not None]
        cannot = [*self._cannot, *(row for row in rows if row["reason"] is not None)]
        any_row = next(iter([*every, *cannot]))
        about = any_row["kernel"], any_row["device"], any_row["n"]
        return Tuned(*about, able, cannot, self._dropped, rejected)


def _budgets(most: int, exhaustive: int) -> list[Budget]:
    """Return the simulated work of the rungs before the last, least first."""
    found: list[Budget] = []
    while most > exhaustive:
        most = max(exhaustive, math.ceil(most / KEPT))
        part = KEPT ** (len(found) + 1)
        found.append(
            Budget(
                iterations=max(4, BUDGET.iterations // part),
                waves=max(2, BUDGET.waves // part),
                blocks=max(4, BUDGET.blocks // part),
                instructions=BUDGET.instructions // part,
                steps=BUDGET.steps // part,
            )
        )
    return found[::-1]


def _launch(row: Row) -> Any:
    """Return what tells launches of a kernel apart: full waves are a number of blocks."""
    others = {k: v for k, v in choices_of(row).items() if k not in ("block", WAVES)}
    return row["block"], row["grid"], tuple(others.items())
