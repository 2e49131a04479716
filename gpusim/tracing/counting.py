"""The observer that counts: each counter's numbers by instruction, and by warp of each block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from gpusim.host.kept import Recent
from gpusim.isa.ops import Program
from gpusim.launch.events import Observer, Placement, Ran, Step, Sums
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.tracing.copies import LastCopies
from gpusim.tracing.counters import COUNTERS, CounterSpec
from gpusim.tracing.tally import Access, Seen, SummedTally, Tally
from gpusim.typing import Array

MOST_WAITING_BYTES = 1 << 22  # of masks and addresses not yet added up
Wanted = tuple[int, ...]  # numbers of counters
MIXED = np.int64(0x9E3779B97F4A7C15 - (1 << 64))  # odd, so that no bit of a number gets lost


@dataclass
class _Batch:
    """Sums of one batch: by counter (copies or 1, rows), and steps not yet added, by pc."""

    placement: Placement
    rows: Array
    columns: dict[int, Array] = field(default_factory=dict)
    times: dict[tuple[Tally, Wanted], dict[int, int]] = field(default_factory=dict)
    waiting_bytes: int = 0
    by_pc: Counter[tuple[int, int]] = field(default_factory=Counter)  # over all rows, by counter

    def moved_to(self, placement: Placement) -> None:
        """Go on with the same blocks unfolded."""
        copies, warps = len(placement.blocks), placement.warps_per_block
        self.placement = placement
        for number, known in self.columns.items():
            full = np.broadcast_to(known, (copies, warps))
            self.columns[number] = full.reshape(1, copies * warps).copy()

    def total(self, value: Array) -> int:
        """Return the sum of numbers over all blocks."""
        return int(value.sum()) * (self.placement.copies if len(value) == 1 else 1)

    def add(self, values: dict[int, Array]) -> None:
        """Add numbers of the rows to counters'."""
        count, rows = self.placement.rows, self.rows
        rise = _rise(rows)
        for number, value in values.items():
            known = self._column(number, len(value))
            if rise:
                known[:, slice(None) if len(rows) == count else rows] += value
                continue
            for copy in range(len(known)):  # parts of one warp
                np.add.at(known[copy], rows, value[copy if len(value) > 1 else 0])

    def _column(self, number: int, copies: int) -> Array:
        """Return a counter's sums, with at least `copies` copies."""
        known = self.columns.get(number)
        if known is None:
            known = np.zeros((copies, self.placement.rows), dtype=np.int64)
        elif len(known) < copies:
            known = np.repeat(known, copies, axis=0)
        self.columns[number] = known
        return known


@dataclass(frozen=True)
class _Linear:
    """Counters as linear functions of a table of sums.

    Part k of a pc's counter is one of the sums, weighted; `matrix` has the weights of all counters
    for a warp's sums. `columns` are the columns of the table, by pc.
    """

    columns: Mapping[int, Sums]
    pcs: Array
    counters: Array
    sums: Array
    weights: Array
    matrix: Array

    @classmethod
    def of(
        cls, columns: Mapping[int, Sums], wanted: Sequence[Wanted], specs: Sequence[CounterSpec]
    ) -> _Linear:
        """Return the functions for a program with such sums."""
        units = SummedTally()
        weights = [spec.count(units)[0].tolist() for spec in specs]  # type: ignore[arg-type]
        parts = [
            (pc, number, column, weight)
            for pc, mine in columns.items()
            for number in wanted[pc]
            for column, weight in zip(mine, weights[number], strict=True)
            if weight and column is not None
        ]
        pcs, counters, sums, factors = np.array(parts, dtype=np.int64).reshape(-1, 4).T
        matrix = np.zeros((int(sums.max(initial=0)) + 1, len(specs)))
        np.add.at(matrix, (sums, counters), factors)
        return cls(columns, pcs, counters, sums, factors, matrix)


# Products of matrices of as many terms are left to one thread by OpenBLAS (interface/gemm.c);
# others would wake threads that spin for longer than they work.
_MOST_TERMS = 4 * 65536


def _product(rows: Array, matrix: Array) -> Array:
    """Return rows of integers times a matrix of doubles, as integers: exact below 2^53."""
    most = _MOST_TERMS // matrix.size
    if most < 2:
        return np.asarray(rows @ matrix.astype(np.int64))
    found = np.empty((len(rows), matrix.shape[1]), dtype=np.int64)
    for begin in range(0, len(rows), most):
        some = rows[begin : begin + most].astype(np.float64)
        alone = len(some) == 1  # a product of a vector has more threads sooner
        some = np.repeat(some, 2, axis=0) if alone else some
        found[begin : begin + most] = (some @ matrix)[: 1 if alone else None]
    return found


MOST_PROGRAMS = 64
_LINEAR: Recent[Any, _Linear] = Recent(MOST_PROGRAMS)


def _rise(rows: Array) -> bool:
    return len(rows) == 1 or bool((rows[1:] > rows[:-1]).all())


@lru_cache(maxsize=MOST_PROGRAMS)
def _wanted(program: Program, _: int) -> tuple[list[CounterSpec], list[Wanted]]:
    """Return the counters known of a program and, by pc, the numbers of the counters it changes.

    The second argument, the number of counters, is a part of the cache's key.
    """
    specs = [s for s in COUNTERS.values() if s.is_known_with(program.compiler)]
    kinds = [(i.op, "" if i.memory is None else i.memory.space) for i in program.instructions]
    wanted = {
        kind: tuple(number for number, spec in enumerate(specs) if spec.applies(*kind))
        for kind in set(kinds)
    }
    return specs, [wanted[kind] for kind in kinds]


class Counters(Observer):
    """Counts every step. Blocks with the same table of warps and counters share one table."""

    def __init__(self, cc: ComputeCapability, copies: LastCopies) -> None:
        self.specs = list(COUNTERS.values())
        self._wanted: list[Wanted] = []
        self._seen = Seen(cc.major, copies)
        self._batches: dict[int, _Batch] = {}
        self._current: _Batch | None = None
        self._tables: dict[int, int] = {}
        self.tables: list[Array] = []

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch."""
        specs, self._wanted = _wanted(program, len(COUNTERS))
        self.specs = list(specs)
        self.by_pc = np.zeros((len(program.instructions), len(self.specs)), dtype=np.int64)
        self.warps = launch.warps_per_block
        self.table_of_block = np.zeros(launch.blocks, dtype=np.int32)

    def step(self, step: Step) -> None:
        """Count one step: its tally is computed when the batch is added up."""
        wanted = self._wanted[step.pc]
        if not wanted:
            return
        batch = self._current
        if batch is None or batch.rows is not step.rows or batch.placement is not step.placement:
            batch = self._current = self._batch(step)
        tally = self._seen.tally(step)
        times = batch.times.get((tally, wanted))
        if times is not None:
            times[step.pc] = times.get(step.pc, 0) + 1
            return
        batch.times[tally, wanted] = {step.pc: 1}
        if tally.access is not None and tally.access.is_large:
            self._work_out(tally, tally.access, wanted)
        batch.waiting_bytes += tally.nbytes
        if batch.waiting_bytes > MOST_WAITING_BYTES:
            self._add_up(batch)

    def ran(self, ran: Ran) -> None:
        """Count the sums of compiled code: each counter is a linear function of them."""
        linear, tables = self._linear(ran.sums), ran.tables
        often = np.bincount(ran.table_of_block, minlength=len(tables))
        totals = (often @ tables.sum(axis=1))[linear.sums] * linear.weights
        np.add.at(self.by_pc, (linear.pcs, linear.counters), totals)
        width = len(linear.matrix)
        found = _product(tables[:, :, :width].reshape(-1, width), linear.matrix)
        found = found.reshape(len(tables), self.warps, len(self.specs))
        blocks = ran.placement.blocks
        batch = self._batches.get(int(blocks[0]))
        if batch is None:
            self._keep(found, blocks, ran.table_of_block)
            return
        self._add_up(batch)
        if batch.placement is not ran.placement:
            batch.moved_to(ran.placement)
        batch.rows = np.arange(ran.placement.rows)
        of_rows = found[ran.table_of_block].reshape(1, -1, len(self.specs))
        batch.add({number: of_rows[:, :, number] for number in range(len(self.specs))})

    def _linear(self, sums: Mapping[int, Sums]) -> _Linear:
        """Return the counters as functions of a table of sums, kept for each program."""
        key = id(sums), len(self.specs)
        if key not in _LINEAR:
            _LINEAR[key] = _Linear.of(sums, self._wanted, self.specs)
        return _LINEAR[key]

    def _work_out(self, tally: Tally, access: Access, wanted: Wanted) -> None:
        """Compute the counters of an access while its addresses are still in the cache."""
        for number in wanted:
            self.specs[number].count(tally)
        access.forget()

    def _batch(self, step: Step) -> _Batch:
        """Return a step's batch, after adding up steps of other rows."""
        start = int(step.placement.blocks[0])
        batch = self._batches.get(start)
        if batch is None:
            batch = self._batches[start] = _Batch(step.placement, step.rows)
        if batch.placement is not step.placement:
            self._add_up(batch)
            batch.moved_to(step.placement)
        if batch.rows is not step.rows:
            if not np.array_equal(batch.rows, step.rows):
                self._add_up(batch)
            batch.rows = step.rows
        return batch

    def _add_up(self, batch: _Batch) -> None:
        """Add pending steps to the sums: numbers shared by several steps are computed once."""
        values: dict[int, Array] = {}
        sums: dict[int, int] = {}
        of_counter: Counter[tuple[int, int]] = Counter()
        for (tally, wanted), times in batch.times.items():
            every = sum(times.values())
            for number in wanted:
                value = self.specs[number].count(tally)
                key = id(value)
                if key not in values:
                    values[key], sums[key] = value, batch.total(value)
                of_counter[key, number] += every
                for pc, often in times.items():
                    batch.by_pc[pc, number] += sums[key] * often
        of_rows: dict[int, Array] = {}
        for (key, number), every in of_counter.items():
            value = values[key] * np.int64(every)
            of_rows[number] = of_rows[number] + value if number in of_rows else value
        batch.add(of_rows)
        batch.times.clear()
        batch.waiting_bytes = 0

    def batch_end(self, blocks: Array) -> None:
        """Add a batch to the launch."""
        self._current = None
        batch = self._batches.pop(int(blocks[0]), None)
        if batch is None:
            return
        self._add_up(batch)
        for place, total in batch.by_pc.items():
            self.by_pc[place] += total
        folded = batch.placement.folded
        same = folded and all(len(known) == 1 for known in batch.columns.values())
        tables = np.zeros((1 if same else len(blocks), self.warps, len(self.specs)), dtype=np.int64)
        for number, known in batch.columns.items():
            tables[:, :, number] = known if folded else known.reshape(len(blocks), self.warps)
        self._keep(tables, blocks, np.zeros(len(blocks), np.int64) if same else None)

    def _keep(self, tables: Array, blocks: Array, table_of_block: Array | None) -> None:
        """Give blocks their tables: one each, or those of their numbers."""
        mixed = _mixed(tables.reshape(len(tables), -1))
        first, which = _different(tables.reshape(len(tables), -1), mixed)
        keys = mixed[first].tolist()
        numbers = [self._table(tables[place], key) for place, key in zip(first, keys, strict=True)]
        kept = np.array(numbers, dtype=np.int32)[which]
        self.table_of_block[blocks] = kept if table_of_block is None else kept[table_of_block]

    def _table(self, table: Array, key: int) -> int:
        """Return the number of a table by a key computed from it; a new one is added."""
        number = self._tables.get(key)
        if number is None or not np.array_equal(self.tables[number], table):
            number = self._tables[key] = len(self.tables)
            self.tables.append(table.copy())
        return number

    @property
    def requested_sectors(self) -> Array:
        """The sectors of global memory that each pc's loads or stores request."""
        names = ("global_load_sectors", "global_store_sectors")
        mine = [number for number, spec in enumerate(self.specs) if spec.name in names]
        return np.asarray(self.by_pc[:, mine].sum(axis=1))

    def named(self, row: Array) -> dict[str, int]:
        """Return a row of numbers under their counters' names, as plain ints."""
        return {spec.name: int(n) for spec, n in zip(self.specs, row, strict=True)}


_ONLY = np.zeros(1, np.int64)


def _mixed(rows: Array, factor: np.int64 = MIXED) -> Array:
    """Return a hash of each row, hardly ever equal for different rows."""
    return np.asarray(rows @ _powers(rows.shape[1], factor))


@lru_cache(maxsize=MOST_PROGRAMS)
def _powers(count: int, factor: np.int64) -> Array:
    """Return the weights of as many numbers in a hash."""
    return np.multiply.accumulate(np.full(count, factor))


def _different(rows: Array, mixed: Array) -> tuple[Array, Array]:
    """Return the index of the first of each kind of equal rows, and each row's kind.

    Hashes of the rows are sorted: a tenth of the time of sorting rows, the fallback when two
    different rows have the same hash.
    """
    if len(rows) == 1:
        return _ONLY, _ONLY
    _, first, which = np.unique(mixed, return_index=True, return_inverse=True)
    if (rows != rows[first[which]]).any():
        _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, which.reshape(-1)
