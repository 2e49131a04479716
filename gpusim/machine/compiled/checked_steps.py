"""Steps of a check, from what a module writes into linear memory, told to an observer.

What all splits of a group do in one pass is one step: these are the steps of NumPy's machine,
without what computes only.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.events import BarrierOpened, Observer, Placement, Step
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.compiled.vectors import is_wide
from gpusim.machine.context import Context
from gpusim.machine.warps.checked_steps import OPENED, STEP_BYTES
from gpusim.machine.warps.state import OPERAND_BYTES, OPERANDS
from gpusim.typing import Array, DType

MOST_STEPS = 1 << 14  # that are written down before they are taken
_TURN, _PC, _ROW, _ACTIVE, _ON, _OPERANDS = range(STEP_BYTES // 4)
_LANES = np.arange(32, dtype=np.uint32)


class CheckedSteps:
    """The steps of one batch, taken as often as their place in linear memory is full."""

    def __init__(
        self, made: Translation, context: Context, blocks: Array, begin: int, observer: Observer
    ) -> None:
        self._made, self._rows, self._observer = made, context.instructions, observer
        warps = context.batch.launch.warps_per_block
        self._placement = Placement(blocks, warps, folded=False)
        self._ends = np.array([*made.starts[1:], made.length])
        self._begin, self._operands = begin, begin + STEP_BYTES * (MOST_STEPS + 1)
        self._full = self._operands + OPERAND_BYTES * 2 * MOST_STEPS
        self.end = self._full + OPERAND_BYTES * OPERANDS
        self._left = (
            np.zeros((0, STEP_BYTES // 4), np.uint32),
            np.zeros((0, OPERAND_BYTES), np.uint8),
        )
        self._last: Step | None = None

    @property
    def begins(self) -> dict[str, int]:
        """The module's state: where steps begin, and from where on they are taken."""
        return {
            "runs": self._begin,
            "runs_full": self._operands - STEP_BYTES,
            "details": self._operands,
            "details_full": self._full,
        }

    def take(self, memory: Array, ends: dict[str, int]) -> int:
        """Tell the steps up to some ends, but for those of a pass that goes on."""
        words = memory[self._begin : ends["runs"]].view(np.uint32).reshape(-1, STEP_BYTES // 4)
        operands = memory[self._operands : ends["details"]].reshape(-1, OPERAND_BYTES)
        before, kept = self._left
        words = words.copy()
        words[:, _OPERANDS] = (words[:, _OPERANDS] - self._operands) // OPERAND_BYTES + len(kept)
        words, operands = np.concatenate([before, words]), np.concatenate([kept, operands])
        whole = int(np.searchsorted(words[:, _TURN], words[-1, _TURN])) if len(words) else 0
        if whole:
            self._tell(words[:whole], operands)
            words = words[whole:]
            used = int(words[0, _OPERANDS])
            words[:, _OPERANDS] -= np.uint32(used)
            operands = operands[used:]
        self._left = words, operands
        return 0

    def finish(self) -> None:
        """Tell the last steps."""
        self._tell(*self._left)
        self._observer.batch_end(self._placement.blocks)

    def _tell(self, words: Array, operands: Array) -> None:
        pc, turn = np.minimum(words[:, _PC], OPENED), words[:, _TURN]
        order = np.lexsort((pc, turn))
        pc, turn = pc[order], turn[order]
        ends = np.flatnonzero((pc[1:] != pc[:-1]) | (turn[1:] != turn[:-1])) + 1
        for begin, end in pairwise([0, *ends.tolist(), len(order)]):
            if end > begin:
                some = words[order[begin:end]]
                if pc[begin] == OPENED:
                    self._open(some)
                else:
                    self._step(int(pc[begin]), some, operands)

    def _step(self, pc: int, some: Array, operands: Array) -> None:
        row, kinds = self._rows[pc], self._made.operands.get(pc, [])
        first = some[:, _OPERANDS].astype(np.int64)
        found = [_values(operands[first + n], kinds[n]) for n in range(kept_operands(row))]
        addresses = mask = None
        if row.memory is not None:
            addresses = found.pop(0).astype(np.int64)
        elif found:
            mask = found.pop().astype(np.uint32)
        self._last = Step(
            pc,
            row,
            self._placement,
            some[:, _ROW].astype(np.int64),
            _lanes(some[:, _ACTIVE]),
            _lanes(some[:, _ON]),
            addresses,
            values=tuple(found),
            mask=mask,
        )
        self._observer.step(self._last)

    def _open(self, some: Array) -> None:
        pcs = self._ends[some[:, _PC] ^ OPENED] - 1
        rows = some[:, _ROW].astype(np.int64)
        assert self._last is not None
        self._observer.barrier_opened(BarrierOpened(self._placement, rows, pcs, self._last))


def kept_operands(row: Instruction) -> int:
    """Return how many operands of an instruction a check has: address and values, or the mask."""
    if row.memory is not None:
        return len(row.src) if OPS[row.op].kind == "store" else 1
    return int(OPS[row.op].waits_for_lanes)


def _lanes(bits: Array) -> Array:
    return (bits[None, :, None] >> _LANES & 1).astype(bool)


def _values(held: Array, dtype: DType) -> Array:
    """Return an operand of each lane, as it lies in linear memory, shaped (1, rows, lanes)."""
    if is_wide(dtype):
        return held.view(dtype)[None]
    words = held[:, : OPERAND_BYTES // 2].copy().view(np.uint32)[None]
    if dtype.itemsize < 4:
        words = words.astype(np.dtype(f"u{dtype.itemsize}"))
    return words.view(dtype)
