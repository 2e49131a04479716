"""Requests of a stream's instructions to units: worked out for a whole stream at once.

Steps follow each other in the same way whatever lines are loaded: what a request asks for is not
part of the builder's state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES, WORD_BYTES
from gpusim.prediction.arithmetic.grouping import groups_by_hash
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.step_table import Numbered
from gpusim.prediction.clock.steps import READS, Action
from gpusim.prediction.memory import NO_ACCESS, Access, draws
from gpusim.prediction.memory.measured import LATENCY
from gpusim.prediction.streams import MOST_BEHIND, WarpStream

Array = np.ndarray[Any, Any]

SECTOR_WORDS = SECTOR_BYTES // WORD_BYTES
_TO_GLOBAL = (Action.GLOBAL_STORE, Action.GLOBAL_ATOMIC)


class Requests:
    """The requests of a program's instructions, by number among `accesses`."""

    def __init__(self, program: Sequence[Issue], accesses: Numbered[Access]) -> None:
        self._accesses = accesses
        self._action = np.array([one.action for one in program])
        self._words = np.array([one.words for one in program])
        self._joins = np.array([one.joins for one in program])
        self._latency = np.array([one.cost.latency for one in program])
        self._is_float = np.array([one.is_float for one in program])
        self._is_swap = np.array([one.is_swap for one in program])

    def numbers(
        self,
        stream: WarpStream,
        places: Array,
        under_way: Array,
        begins: Sequence[int],
        late: Mapping[int, int],
    ) -> Array:
        """Return the number of the request of each instruction at some places in a stream.

        `under_way` are the loads in flight before each, `begins` the places where pieces of the
        stream begin, `late` the ticks of missed constants by place.
        """
        if not len(places):
            return places
        pc = stream.pc[places]
        action, is_on = self._action[pc], stream.is_on[places]
        asked = self._asked(stream, places, begins)
        is_load = (action == Action.GLOBAL_LOAD) & is_on
        is_new = (asked["fresh"] > 0) | (asked["joins"] > 0)
        is_near = stream.behind[places] <= np.minimum(under_way, MOST_BEHIND - 1)
        further = np.where(is_load, draws.of_further_lines(stream.gaps[places]), 0)
        columns = {
            **asked,
            "draws": np.where(is_load, self._draws(stream, places, under_way, is_load), LATENCY),
            "apart": np.where(action == Action.GLOBAL_LOAD, stream.apart[places], 0),
            "pends": is_load & ~is_new & is_near,
            "pc": np.where(is_load | np.isin(action, _TO_GLOBAL), pc, NO_ACCESS.pc),
            "is_float": self._is_float[pc],
            "is_swap": self._is_swap[pc],
            "is_whole": self._are_whole(stream, places, action, asked),
            "words": self._words[pc],
            "places": further,
        }
        self._set_reads(columns, stream, places, late)
        return self._numbered([columns[name].astype(np.int64) for name in Access._fields])

    def _asked(self, stream: WarpStream, places: Array, begins: Sequence[int]) -> dict[str, Array]:
        """Return sectors, lines and passes, zero where no lane is on."""
        is_on = stream.is_on[places]
        names = ("cost", "fresh", "written", "lines", "wavefronts", "joins")
        columns = {name: np.where(is_on, getattr(stream, name)[places], 0) for name in names}
        is_joined = self._are_joined(stream, begins)[places]
        if is_joined.any():
            alone = np.where(is_joined, 1 - self._joins[stream.pc[places]], 1.0)
            for name in ("cost", "lines"):
                columns[name] = np.rint(columns[name] * alone).astype(np.int64)
        return columns

    def _are_joined(self, stream: WarpStream, begins: Sequence[int]) -> Array:
        """Return which stores merge in part with the store to the same sectors right before them.

        For local memory the sectors are unknown: consecutive stores go to words of their own.
        """
        is_joined = np.zeros(len(stream), dtype=bool)
        may_join = stream.is_on & (self._joins[stream.pc] > 0)
        behind = may_join.copy()
        behind[1:] &= may_join[:-1]
        behind[[0, *begins]] = False
        cost, written = stream.cost, stream.written
        for place in np.flatnonzero(behind).tolist():
            is_same = cost[place] == cost[place - 1] and not is_joined[place - 1]
            is_joined[place] = is_same and not written[place]
        return is_joined

    def _draws(self, stream: WarpStream, places: Array, under_way: Array, is_load: Array) -> Array:
        """Return the latencies of loads, with those of the loads in flight before them."""
        loads = places[is_load]
        before = under_way[is_load]
        first = draws.of_first_access(stream.cost[loads], stream.lines[loads])
        another = draws.of_another_access(stream.earlier[loads], before)
        own = np.where(before > 0, another, first) + draws.of_further_lines(stream.gaps[loads])
        whole = np.concatenate([[0], np.cumsum(own)])
        begin = np.maximum.accumulate(np.where(before > 0, 0, np.arange(len(loads))))
        found = np.zeros(len(places), dtype=np.int64)
        found[is_load] = whole[1:] - whole[begin]
        return found

    def _are_whole(
        self, stream: WarpStream, places: Array, action: Array, asked: Mapping[str, Array]
    ) -> Array:
        """Return which atomics update each word of their sectors, which stores cover theirs."""
        updated = np.bitwise_count(stream.lanes[places]) * self._words[stream.pc[places]]
        sectors = asked["lines"] * SECTOR_WORDS
        is_each = (asked["cost"] == asked["lines"]) & (updated == sectors)
        is_covered = updated >= asked["cost"] * SECTOR_WORDS
        is_atomic, is_store = action == Action.GLOBAL_ATOMIC, action == Action.GLOBAL_STORE
        return np.asarray(np.where(is_atomic, is_each, is_store & is_covered))

    def _set_reads(
        self, columns: dict[str, Array], stream: WarpStream, places: Array, late: Mapping[int, int]
    ) -> None:
        """Set the requests of special registers and constants: a latency, and distinct values."""
        pc = stream.pc[places]
        reads = np.flatnonzero(np.isin(self._action[pc], READS))
        if not len(reads):
            return
        missed = np.array([late.get(place, 0) for place in places[reads].tolist()])
        for name, usual in zip(Access._fields, NO_ACCESS, strict=True):
            columns[name] = columns[name].copy()
            columns[name][reads] = usual
        columns["draws"][reads], columns["places"][reads] = LATENCY, 0
        columns["cost"][reads] = self._latency[pc[reads]] + missed
        columns["lines"][reads] = np.maximum(1, stream.cost[places[reads]])

    def _numbered(self, columns: Sequence[Array]) -> Array:
        """Return the numbers of accesses with some fields, latencies in hundredths."""
        firsts, which = groups_by_hash(*columns)
        rows = zip(*(column[firsts].tolist() for column in columns), strict=True)
        numbers = [self._accesses.number(_access(*row)) for row in rows]
        return np.array(numbers, dtype=np.int64)[which]


def _access(*row: Any) -> Access:
    """Return an access from its fields as integers."""
    one = Access(*row)
    return one._replace(
        joins=bool(one.joins),
        draws=one.draws / LATENCY,
        pends=bool(one.pends),
        is_float=bool(one.is_float),
        is_swap=bool(one.is_swap),
        is_whole=bool(one.is_whole),
        places=NO_ACCESS.places + one.places / LATENCY,
    )
