"""Requests of streams' instructions to units: worked out for those of many warps at once.

Steps follow each other in the same way whatever lines are loaded: what a request loads is not
part of the builder's state.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES, WORD_BYTES
from gpusim.prediction.arithmetic.grouping import groups_by_hash
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.step_table import Numbered
from gpusim.prediction.clock.steps import BULK, BULK_STORES, OF_WORDS, READS, Action
from gpusim.prediction.memory import NO_ACCESS, Access, draws
from gpusim.prediction.memory.measured import BULK_PIECE_BYTES, LATENCY, LATENCY_BY_DISTANCE
from gpusim.prediction.streams import MOST_BEHIND, WarpStream
from gpusim.prediction.streams.instruction_table import COLUMNS, InstructionTable
from gpusim.typing import Array

SECTOR_WORDS = SECTOR_BYTES // WORD_BYTES
_TO_GLOBAL = (Action.GLOBAL_STORE, Action.GLOBAL_ATOMIC)


@dataclass(frozen=True, eq=False)
class Asking:
    """The instructions of a stream that ask units for something, at some `places` in it.

    `under_way` are the loads in flight before each, `steps` those that they belong to, `begins` the
    places where pieces of the stream begin, `late` the ticks of missed constants by place.
    """

    stream: WarpStream
    places: Array
    under_way: Array
    steps: Array
    begins: Sequence[int]
    late: Mapping[int, int]

    @property
    def behind(self) -> Array:
        """Whether each directly follows another one in the same piece of the stream."""
        behind = np.asarray(np.diff(self.places, prepend=-2) == 1)
        if behind.any():
            firsts = np.searchsorted(self.places, self.begins)
            behind[firsts[firsts < len(behind)]] = False
        return behind

    @property
    def missed(self) -> Array:
        """The ticks of missed constants."""
        if not self.late:
            return np.zeros_like(self.places)
        return np.array([self.late.get(place, 0) for place in self.places.tolist()])


class _Joint(NamedTuple):
    """The asking instructions of some warps, warp after warp, as one `stream`.

    Some stand right `after` another one, in the same piece of their stream; `missed` are the ticks
    of missed constants.
    """

    stream: WarpStream
    under_way: Array
    behind: Array
    missed: Array

    @classmethod
    def of(cls, asking: Sequence[Asking]) -> _Joint:
        """Return the instructions of these warps."""
        return cls(
            _joined(asking),
            np.concatenate([one.under_way for one in asking]),
            np.concatenate([one.behind for one in asking]),
            np.concatenate([one.missed for one in asking]),
        )


def _joined(asking: Sequence[Asking]) -> WarpStream:
    """Return the asking instructions as a stream of one table, joined of those of the warps."""
    tables = list({id(one.stream.table): one.stream.table for one in asking}.values())
    numbers = [one.stream.numbers[one.places] for one in asking]
    if len(tables) == 1:
        return WarpStream(tables[0], np.concatenate(numbers))
    sizes = itertools.accumulate(map(len, tables), initial=0)
    begins = {id(table): begin for table, begin in zip(tables, sizes, strict=False)}
    both = zip(numbers, asking, strict=True)
    shifted = [some.astype(np.int64) + begins[id(one.stream.table)] for some, one in both]
    columns = {name: np.concatenate([t.columns[name] for t in tables]) for name in COLUMNS}
    return WarpStream(InstructionTable(columns), np.concatenate(shifted))


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

    def numbers(self, asking: Sequence[Asking]) -> Array:
        """Return the number of the request of each instruction that some warps ask with."""
        joint = _Joint.of(asking)
        stream, under_way = joint.stream, joint.under_way
        if not len(stream):
            return under_way
        pc = stream.pc
        action, is_on = self._action[pc], stream.is_on
        asked = self._asked(joint)
        is_load = (action == Action.GLOBAL_LOAD) & is_on
        is_new = (asked["fresh"] > 0) | (asked["joins"] > 0)
        is_near = stream.behind <= np.minimum(under_way, MOST_BEHIND - 1)
        further = np.where(is_load, draws.of_further_lines(stream.gaps), 0)
        columns = {
            **asked,
            "draws": np.where(is_load, self._draws(joint, is_load), LATENCY),
            "apart": np.where(action == Action.GLOBAL_LOAD, stream.apart, 0),
            "pends": is_load & ~is_new & is_near,
            "pc": np.where(is_load | np.isin(action, _TO_GLOBAL), pc, NO_ACCESS.pc),
            "is_float": self._is_float[pc],
            "is_swap": self._is_swap[pc],
            "is_whole": self._are_whole(stream, action, asked),
            "words": self._words[pc],
            "places": further,
            "word": np.zeros_like(pc),
        }
        self._set_reads(columns, joint)
        self._set_words(columns, stream)
        return self._numbered([columns[name].astype(np.int64) for name in Access._fields])

    def _asked(self, joint: _Joint) -> dict[str, Array]:
        """Return sectors, lines and passes, zero where no lane is on."""
        stream = joint.stream
        names = ("cost", "fresh", "written", "lines", "wavefronts", "joins")
        columns = {name: np.where(stream.is_on, getattr(stream, name), 0) for name in names}
        is_joined = self._are_joined(joint)
        if is_joined.any():
            alone = np.where(is_joined, 1 - self._joins[stream.pc], 1.0)
            for name in ("cost", "lines"):
                columns[name] = np.rint(columns[name] * alone).astype(np.int64)
        return columns

    def _are_joined(self, joint: _Joint) -> Array:
        """Return which stores merge in part with the store to the same sectors right before them.

        For local memory the sectors are unknown: consecutive stores go to words of their own.
        """
        stream = joint.stream
        is_joined = np.zeros(len(stream), dtype=bool)
        may_join = stream.is_on & (self._joins[stream.pc] > 0)
        behind = may_join & joint.behind
        behind[1:] &= may_join[:-1]
        cost, written = stream.cost, stream.written
        for at in np.flatnonzero(behind).tolist():
            is_same = cost[at] == cost[at - 1] and not is_joined[at - 1]
            is_joined[at] = is_same and not written[at]
        return is_joined

    def _draws(self, joint: _Joint, is_load: Array) -> Array:
        """Return the latencies of loads, with those of the loads in flight before them."""
        stream, before = joint.stream, joint.under_way[is_load]
        first = draws.of_first_access(stream.cost[is_load], stream.lines[is_load])
        another = draws.of_another_access(stream.earlier[is_load], before)
        further = draws.of_further_lines(stream.gaps[is_load])
        own = np.where(before > 0, another, first) + further
        whole = np.concatenate([[0], np.cumsum(own)])
        begin = np.maximum.accumulate(np.where(before > 0, 0, np.arange(len(before))))
        found = np.zeros(len(is_load), dtype=np.int64)
        found[is_load] = whole[1:] - whole[begin]
        return found

    def _are_whole(self, stream: WarpStream, action: Array, asked: Mapping[str, Array]) -> Array:
        """Return which atomics update each word of their sectors, which stores cover theirs."""
        updated = np.bitwise_count(stream.lanes) * self._words[stream.pc]
        sectors = asked["lines"] * SECTOR_WORDS
        is_each = (asked["cost"] == asked["lines"]) & (updated == sectors)
        is_covered = updated >= asked["cost"] * SECTOR_WORDS
        is_atomic, is_store = action == Action.GLOBAL_ATOMIC, action == Action.GLOBAL_STORE
        return np.asarray(np.where(is_atomic, is_each, is_store & is_covered))

    def _set_reads(self, columns: dict[str, Array], joint: _Joint) -> None:
        """Set the requests of special registers and constants: a latency, and distinct values."""
        stream = joint.stream
        reads = np.flatnonzero(np.isin(self._action[stream.pc], READS))
        if not len(reads):
            return
        for name, usual in zip(Access._fields, NO_ACCESS, strict=True):
            columns[name] = columns[name].copy()
            columns[name][reads] = usual
        columns["draws"][reads], columns["places"][reads] = LATENCY, 0
        columns["cost"][reads] = self._latency[stream.pc[reads]] + joint.missed[reads]
        columns["lines"][reads] = np.maximum(1, stream.cost[reads])

    def _set_words(self, columns: dict[str, Array], stream: WarpStream) -> None:
        """Set the requests of mbarriers and bulk copies, of these for each of their pieces."""
        of_words = np.flatnonzero(np.isin(self._action[stream.pc], OF_WORDS))
        if not len(of_words):
            return
        pc = stream.pc[of_words]
        columns["word"][of_words] = np.where(stream.is_on, stream.gaps, 0)[of_words]
        at = of_words[np.isin(self._action[pc], BULK)]
        pieces = np.maximum(1, -(-columns["wavefronts"][at] // BULK_PIECE_BYTES))
        columns["word"], columns["pc"] = columns["word"].copy(), columns["pc"].copy()
        columns["pc"][at] = stream.pc[at]
        for name in ("cost", "fresh", "written", "lines"):
            columns[name] = columns[name].copy()
            columns[name][at] = np.rint(columns[name][at] / pieces)
        further = np.maximum(0, columns["lines"][at] - 1) * LATENCY_BY_DISTANCE[1]
        for name, first in (("draws", LATENCY), ("places", 0)):
            columns[name] = columns[name].copy()
            columns[name][at] = first + further
        is_store = np.isin(self._action[stream.pc[at]], BULK_STORES)
        columns["is_whole"][at] = is_store
        columns["lines"][at[is_store]] = 0  # packets of whole lines

    def _numbered(self, columns: Sequence[Array]) -> Array:
        """Return the numbers of accesses with some fields, latencies in hundredths."""
        firsts, which = groups_by_hash(*columns)
        rows = zip(*(column[firsts].tolist() for column in columns), strict=True)
        numbers = [self._accesses.number(_access(*row)) for row in rows]
        return np.array(numbers, dtype=np.int64)[which]


def _access(*row: Any) -> Access:
    """Return an access from its fields as integers."""
    cost, fresh, written, lines, passes, joins, drawn, apart, pends, pc, *kinds, words = row[:-2]
    places, word = row[-2:]
    is_float, is_swap, is_whole = map(bool, kinds)
    return Access(
        cost, fresh, written, lines, passes, bool(joins), drawn / LATENCY, apart, bool(pends), pc,
        is_float, is_swap, is_whole, words, NO_ACCESS.places + places / LATENCY, word,
    )  # fmt: skip
