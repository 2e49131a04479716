"""Steps of all warps as columns, from the records that a module writes into linear memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpusim.gpu.memory import LINE_BYTES
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.events import Accesses, Omitted, Placement, Steps
from gpusim.machine.compiled.repeated_records import Repeated, repeated
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.warps.steps import DETAIL_BYTES, ON, RUN_BYTES, TAKEN, TOUCHED_BYTES
from gpusim.typing import Array

# Words of a record of a basic block, and of one of an instruction.
_PC, ROW, _LANES, _DETAILS = range(4)
_PASSES, _LINES, _WAVEFRONTS, _GAPS, _LOWEST, _ISONE, _RUNS = range(1, 8)
_PC_BITS = (1 << ON) - 1
_MOST_RUNS = 1 << 14  # that are recorded before they are taken


class Records:
    """Records of one batch, taken as often as their place in linear memory is full."""

    def __init__(self, made: Translation, begin: int) -> None:
        self._begin = begin
        longest = int(np.diff([*made.starts, made.length]).max())
        self._details = begin + RUN_BYTES * (_MOST_RUNS + 1)
        self._details_full = self._details + DETAIL_BYTES * _MOST_RUNS
        self._touched = self._details_full + DETAIL_BYTES * longest
        self._touched_full = self._touched + TOUCHED_BYTES * 4 * _MOST_RUNS
        widest = 32 * max(1, made.widest)
        self.end = -(-(self._touched_full + TOUCHED_BYTES * widest * longest) // 64) * 64
        self.taken: list[tuple[Array, Array, Array]] = []

    @property
    def begins(self) -> dict[str, int]:
        """The module's state: where records begin, and from where on they are taken."""
        return {
            "runs": self._begin,
            "runs_full": self._details - RUN_BYTES,
            "details": self._details,
            "details_full": self._details_full,
            "touched": self._touched,
            "touched_full": self._touched_full,
        }

    def take(self, memory: Array, ends: dict[str, int]) -> int:
        """Keep the records up to some ends; return the number of basic blocks."""
        blocks = _words(memory, self._begin, ends["runs"], RUN_BYTES)
        details = _words(memory, self._details, ends["details"], DETAIL_BYTES)
        runs = _words(memory, self._touched, ends["touched"], TOUCHED_BYTES)
        self.taken.append((blocks, details, runs))
        return len(blocks)

    def steps(
        self, program: Program, made: Translation, placement: Placement, shift: int, *, whole: bool
    ) -> Iterator[Steps]:
        """Yield the steps, in batches of records taken at a time, which are then dropped.

        If not `whole`, iterations that are alike are omitted.
        """
        reader = _Reader(program, made, placement, shift, self._details)
        taken, self.taken = self.taken[::-1], []
        if not whole:
            reader.omits = _Alone(reader, placement, taken)
        while taken:
            yield reader.steps(*taken.pop())


def _words(memory: Array, begin: int, end: int, size: int) -> Array:
    return memory[begin:end].view(np.int32).reshape(-1, size // 4).copy()


class _Reader:
    """The records of a program's modules as steps."""

    def __init__(
        self, program: Program, made: Translation, placement: Placement, shift: int, details: int
    ) -> None:
        rows = program.instructions
        self._placement, self._shift, self._details = placement, shift, details
        is_issued = np.array([OPS[row.op].issued for row in rows])
        self._issued = np.flatnonzero(is_issued).astype(np.int32)
        self._number = np.cumsum(is_issued) - is_issued  # of issued instructions before
        self._length = np.zeros(len(rows) + 1, dtype=np.int64)  # last: an opened barrier has none
        self._length[made.starts] = np.add.reduceat(is_issued, made.starts, dtype=np.int64)
        self._takes = np.array([_takes(row) for row in rows])
        self._has_more = np.array([_has_more(row) for row in rows])
        self._is_global = np.array([_is_global(row) for row in rows])
        self.omits: _Alone | None = None

    def lengths(self, blocks: Array) -> Array:
        """Return the steps of each record of a basic block."""
        return self._length[blocks[:, _PC]]

    def steps(self, blocks: Array, details: Array, runs: Array) -> Steps:
        """Return the steps of some records."""
        begins = blocks[:, _DETAILS].view(np.uint32).astype(np.int64)
        number = (begins - self._details) // DETAIL_BYTES
        owned = np.diff(number, append=len(details))
        found = None
        if self.omits is not None:
            pcs = details[:, 0].view(np.uint32) & _PC_BITS
            details[~self._has_more[pcs], _PASSES:] = 0  # words that were not written
            is_global = self._is_global[pcs]
            found = repeated(blocks, owned, details, runs, is_global)
            found = found if self.omits.allows(blocks, found) else None
        if found is not None:
            gone = slice(found.begin, found.end)
            of_details = slice(int(owned[: gone.start].sum()), int(owned[: gone.stop].sum()))
            ends = np.append(0, np.cumsum(details[:, _RUNS]))
            runs = np.delete(runs, slice(ends[of_details.start], ends[of_details.stop]), axis=0)
            details = np.delete(details, of_details, axis=0)
            blocks, owned = np.delete(blocks, gone, axis=0), np.delete(owned, gone)
        starts, rows, lanes, _ = blocks.T
        length = self._length[starts]
        begin = np.cumsum(length) - length
        first = self._number[starts] - begin  # issued instructions are numbered on in a block
        pc = self._issued[np.repeat(first, length) + np.arange(length.sum())]
        bits = details[:, 0].view(np.uint32)
        what = (bits & _PC_BITS).astype(np.int64)
        at = self._number[what] - np.repeat(first, owned)
        is_on, is_taken = np.ones(len(pc), dtype=bool), self._takes[pc]
        is_on[at] = (bits >> ON) & 1 != 0
        is_taken[at] = bits >> TAKEN != 0
        is_opened = starts < 0
        position = rows[is_opened] // self._placement.warps_per_block
        opened = np.stack([begin[is_opened], position], axis=1)
        more = self._has_more[what]
        accesses = self._accesses(what[more], at[more], details[more], runs)
        row, active = np.repeat(rows, length), np.repeat(lanes.view(np.uint32), length)
        omitted = None
        if found is not None:
            at, before = int(begin[found.begin]), int(begin[found.begin - found.period])
            omitted = Omitted(at, at - before, found.times, found.kept, found.strides)
        return Steps(self._placement, pc, row, active, is_on, is_taken, accesses, opened, omitted)

    def _accesses(self, pc: Array, at: Array, details: Array, runs: Array) -> Accesses:
        passes, lines, wavefronts, gaps, lowest, is_one, count = details[:, _PASSES:].T
        is_global = self._is_global[pc]
        lowest = lowest.astype(np.int64)
        is_known = lowest >= 0
        lowest += np.where(is_global, self._shift // LINE_BYTES, 0)
        shift = np.repeat(np.where(is_global, self._shift, 0), count)
        first, last, lanes = runs.view(np.uint32).T.astype(np.int64)
        return Accesses(
            at,
            passes,
            lines,
            wavefronts,
            gaps,
            np.where(is_known, lowest, -1),
            is_one != 0,
            count,
            first + shift,
            last + shift,
            lanes,
        )


class _Alone:
    """A warp that runs long after all others of its block have ended.

    Concurrent warps depend on each other; only such a warp's iterations are omitted.
    """

    def __init__(
        self, reader: _Reader, placement: Placement, taken: list[tuple[Array, Array, Array]]
    ) -> None:
        self._reader = reader
        self._ran = np.zeros(placement.rows, dtype=np.int64)
        whole = np.zeros(placement.rows, dtype=np.int64)
        for blocks, _, _ in taken:
            whole += self._steps(blocks)
        of_blocks = whole.reshape(-1, placement.warps_per_block)
        none = np.zeros((len(of_blocks), 1), dtype=np.int64)
        *_, second, most = np.sort(np.append(of_blocks, none, axis=1), axis=1).T[:, :, None]
        self._others = np.where(of_blocks == most, second, most).reshape(-1)

    def _steps(self, blocks: Array) -> Array:
        rows, lengths = blocks[:, ROW], self._reader.lengths(blocks)
        return np.bincount(rows, lengths, minlength=len(self._ran)).astype(np.int64)

    def allows(self, blocks: Array, found: Repeated | None) -> bool:
        """Return whether the iterations found among records may be omitted; note the records."""
        if found is not None:
            row = int(blocks[found.begin, ROW])
            first = found.begin - 2 * found.kept * found.period
            before = int(self._ran[row] + self._steps(blocks[:first])[row])
        self._ran += self._steps(blocks)
        return found is not None and before >= self._others[row]


def _takes(row: Instruction) -> bool:
    """Return whether an instruction without a guard sends its lanes elsewhere."""
    kind = OPS[row.op].kind
    return row.guard is None and (kind == "branch" or kind == "jump")


def _has_more(row: Instruction) -> bool:
    op = OPS[row.op]
    return bool(op.access) or (op.kind == "bank" and bool(row.src))


def _is_global(row: Instruction) -> bool:
    return row.memory is not None and row.memory.space == "global"
