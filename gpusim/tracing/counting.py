"""The observer that counts: each counter's numbers by instruction, and by warp of each block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from gpusim.host.kept import Recent
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.events import Observer, Ran, Step, Sums
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.tracing.counters import COUNTERS, CounterSpec
from gpusim.tracing.tally import Tally, of_sums
from gpusim.typing import Array

Wanted = tuple[int, ...]  # numbers of counters
MIXED = np.int64(0x9E3779B97F4A7C15 - (1 << 64))  # odd, so that no bit of a number gets lost


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
        units = of_sums()
        weights = [spec.count(units)[0].tolist() for spec in specs]
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


def accessed(instruction: Instruction) -> str:
    """Return what an instruction accesses, "" for none: a space, `mbarrier`, or `reduction`.

    Operations on mbarriers are no accesses to shared memory in Nsight Compute; bulk copies that
    reduce have counters of their own.
    """
    memory = instruction.memory
    if OPS[instruction.op].kind == "bulk_copy":  # detail: its way, then a reduction's operation
        how = str(instruction.detail).partition(".")[2]
        return "global" if how in ("", "multicast") else "reduction"
    if memory is None:
        return ""
    return "mbarrier" if memory.is_barrier_word else memory.space


@lru_cache(maxsize=MOST_PROGRAMS)
def _wanted(program: Program, _: int) -> tuple[list[CounterSpec], list[Wanted]]:
    """Return the counters known of a program and, by pc, the numbers of the counters it changes.

    The second argument, the number of counters, is a part of the cache's key.
    """
    specs = [s for s in COUNTERS.values() if s.is_known_with(program.compiler)]
    kinds = [(one.op, accessed(one)) for one in program.instructions]
    wanted = {
        kind: tuple(number for number, spec in enumerate(specs) if spec.applies(*kind))
        for kind in set(kinds)
    }
    return specs, [wanted[kind] for kind in kinds]


class Counters(Observer):
    """Counts every step. Blocks with the same table of warps and counters share one table."""

    def __init__(self, cc: ComputeCapability) -> None:
        self.specs = list(COUNTERS.values())
        self._wanted: list[Wanted] = []
        self._cc_major = cc.major
        self._batches: dict[int, Array] = {}  # (counters, warps)
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
        """Count one step."""
        wanted = self._wanted[step.pc]
        if not wanted:
            return
        placement, tally = step.placement, Tally(step, self._cc_major)
        first = int(placement.blocks[0])
        table = self._batches.get(first)
        if table is None:
            shape = len(self.specs), len(placement.blocks) * self.warps
            table = self._batches[first] = np.zeros(shape, dtype=np.int64)
        warps = self.warps * np.arange(placement.copies)[:, None] + step.rows
        for number in wanted:
            value = np.broadcast_to(self.specs[number].count(tally), warps.shape).astype(np.int64)
            np.add.at(table[number], warps.reshape(-1), value.reshape(-1))
            self.by_pc[step.pc, number] += value.sum()

    def ran(self, ran: Ran) -> None:
        """Count the sums of compiled code: each counter is a linear function of them."""
        linear, tables = self._linear(ran.sums), ran.tables
        often = np.bincount(ran.table_of_block, minlength=len(tables))
        totals = (often @ tables.sum(axis=1))[linear.sums] * linear.weights
        np.add.at(self.by_pc, (linear.pcs, linear.counters), totals)
        width = len(linear.matrix)
        found = _product(tables[:, :, :width].reshape(-1, width), linear.matrix)
        found = found.reshape(len(tables), self.warps, len(self.specs))
        self._keep(found, ran.placement.blocks, ran.table_of_block)

    def _linear(self, sums: Mapping[int, Sums]) -> _Linear:
        """Return the counters as functions of a table of sums, kept for each program."""
        key = id(sums), len(self.specs)
        if key not in _LINEAR:
            _LINEAR[key] = _Linear.of(sums, self._wanted, self.specs)
        return _LINEAR[key]

    def batch_end(self, blocks: Array) -> None:
        """Add a batch to the launch."""
        table = self._batches.pop(int(blocks[0]), None)
        if table is not None:
            self._keep(table.T.reshape(len(blocks), self.warps, -1), blocks)

    def _keep(self, tables: Array, blocks: Array, table_of_block: Array | None = None) -> None:
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
