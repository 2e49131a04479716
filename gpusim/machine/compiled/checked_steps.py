"""Steps of a check, read from a module's linear memory and reported to an observer.

One step is an instruction of all splits of a group in one pass, and of all blocks of the batch
while they agree: the steps of NumPy's machine, without instructions that only compute.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.events import BarrierArrived, BarrierOpened, Observer, Placement, Step
from gpusim.machine import access, control, exchanges, named_barrier, participation
from gpusim.machine.compiled.detection import kept_operands
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.compiled.vectors import is_wide
from gpusim.machine.context import Context, OnFault
from gpusim.machine.exchanges import source_operands
from gpusim.machine.group import Group
from gpusim.machine.participation import EVERY_LANE
from gpusim.machine.state import Batch, Splits
from gpusim.machine.turns import Turns
from gpusim.machine.warps.checked_steps import MET, OPENED, OPENED_NAMED, PASSED, STEP_BYTES
from gpusim.machine.warps.state import BARRIER_BITS, OPERAND_BYTES, OPERANDS
from gpusim.typing import Array, DType

MOST_STEPS = 1 << 14  # that are written down before they are taken
_TURN, _PC, _ROW, _ACTIVE, _ON, _ABLE, _OPERANDS = range(STEP_BYTES // 4)
_BLOCK = OPENED_NAMED - OPENED - 1  # of code, in place of the pc of an opened barrier
TELLING = ("bulk_copy", "land_bulk", "await_bulk", "warpgroup_product")  # kinds with told values
_LANES = np.arange(32, dtype=np.uint32)


class Listener(NamedTuple):
    """An observer of the steps of a check at some pcs; `on_fault` is called with each fault.

    The registers named by a pc are readable at its `steps`, as they were before it, and results as
    well: of `swaps`, and of computations by these registers. Warps run in the order of `turns`.
    Without `keeps_results` arrays stay as they were.
    """

    observer: Observer
    on_fault: OnFault
    steps: Mapping[int, Sequence[int]]
    swaps: Collection[int] = ()
    turns: Turns | None = None
    keeps_results: bool = True


class CheckedSteps:
    """The steps of one batch, taken as often as their place in linear memory is full."""

    def __init__(
        self, made: Translation, context: Context, blocks: Array, begin: int, listener: Listener
    ) -> None:
        self._made, self._rows, self._listener = made, context.instructions, listener
        self._context = context
        warps = context.batch.launch.warps_per_block
        program, launch = context.batch.program, context.batch.launch
        kinds = {OPS[row.op].kind for row in program.instructions}
        is_apart = launch.cluster_blocks > 1 or not kinds.isdisjoint(TELLING)
        self._placement = Placement(blocks, warps, folded=listener.turns is None and not is_apart)
        self._told: dict[tuple[int, int], list[tuple[int, Step]]] = {}
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
        """Report the steps up to some ends, without the steps of an unfinished pass."""
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

    @property
    def on_fault(self) -> OnFault:
        """The listener to faults."""
        return self._listener.on_fault

    def tell(self, turn: int, row: int, step: Step) -> None:
        """Keep what the handler of an instruction tells of a warp, for the step of its group."""
        if step.values:
            self._told.setdefault((turn, step.pc), []).append((row, step))

    def _values_told(self, turn: int, pc: int, rows: Array) -> tuple[Array, ...]:
        """Return the values that handlers have told of the warps of a step.

        Of a product each warp has as many, of copies there is a row each.
        """
        told = self._told.pop((turn, pc), [])
        if OPS[self._rows[pc].op].kind == "warpgroup_product" and told:
            by_row = {row: step.values[0][0] for row, step in told}
            none = np.zeros_like(told[0][1].values[0][0])
            return (np.stack([by_row.get(row, none) for row in rows.tolist()]),)
        columns = zip(*(step.values for _, step in told), strict=True)
        return tuple(np.concatenate(each) for each in columns)

    def finish(self) -> None:
        """Report the last steps."""
        self._tell(*self._left)
        self._listener.observer.batch_end(self._placement.blocks)

    def _tell(self, words: Array, operands: Array) -> None:
        pc, turn = _kinds(words[:, _PC]), words[:, _TURN]
        order = np.lexsort((pc, turn))
        pc, turn = pc[order], turn[order]
        ends = np.flatnonzero((pc[1:] != pc[:-1]) | (turn[1:] != turn[:-1])) + 1
        for begin, end in pairwise([0, *ends.tolist(), len(order)]):
            if end > begin:
                some = words[order[begin:end]]
                if pc[begin] == MET:
                    self._meet(some)
                elif pc[begin] == PASSED:
                    self._pass(some)
                elif pc[begin] >= OPENED:
                    self._open(some, is_named=pc[begin] == OPENED_NAMED)
                else:
                    self._step(int(pc[begin]), some, operands)

    def _step(self, pc: int, some: Array, operands: Array) -> None:
        row, kinds = self._rows[pc], self._made.operands.get(pc, [])
        active, on = _lanes(some[:, _ACTIVE]), _lanes(some[:, _ON])
        op = OPS[row.op]
        decides = op.kind in ("exit", "trap") or (op.convergent and op.timing == "barrier")
        ways = [np.any(lanes, axis=1) for lanes in (on, active & ~on)] if decides else []
        is_told, is_decided = pc in self._listener.steps, op.kind == "source_branch"
        rows, copies, placement = self._as_one(some, ways, is_told=is_told)
        first = some[:, _OPERANDS].astype(np.int64)
        found = [_values(operands[first + n], kinds[n]) for n in range(kept_operands(row))]
        kept = (*self._listener.steps.get(pc, ()), *(row.dst if pc in self._listener.swaps else ()))
        held = {
            register: _shaped(_values(operands[first + n], kinds[n]), copies)
            for n, register in enumerate(kept, len(kinds) - len(kept))
        }
        able = _lanes(some[:, _ABLE])
        active, on, able, *found = (_shaped(one, copies) for one in (active, on, able, *found))
        if op.kind == "trap" or (not is_decided and (able != on).any()):
            group = self._group(placement, pc, rows, active)
            on = self._at_fault(group, row, on, able, found)
        if not is_told:
            return
        addresses = mask = None
        if row.memory is not None:
            addresses = found.pop(0).astype(np.int64)
        elif found:
            mask = found.pop().astype(np.uint32)
        sources = None
        if op.kind == "shuffle":
            sources = exchanges.sources(row, *(held[one] for one in source_operands(row)))
        if op.checks_mask and mask is not None and not (on.all() and (mask == EVERY_LANE).all()):
            group = self._group(placement, pc, rows, active)
            participation.check(self._faulty(group), group, row, mask, on, sources)
        swapped, values = ([], found) if op.kind != "atomic" else (found, [])
        if op.kind in TELLING:
            values = [*self._values_told(int(some[0, _TURN]), pc, rows)]
        step = Step(pc, row, placement, rows, active, on, addresses, None, tuple(values), mask)
        step = step._replace(
            swapped=tuple(swapped), taken=able if is_decided else None, sources=sources
        )
        if held:
            step = step._replace(registers=partial(_register, row, held))
        self._last = step
        self._listener.observer.step(step)
        if op.kind == "arrive":
            group = self._group(placement, pc, rows, active)
            for register, value in held.items():
                group.hold_register(register, value)
            numbers, _ = named_barrier.asked(group, row)
            self._listener.observer.barrier_arrived(BarrierArrived(step, numbers))

    def _group(self, placement: Placement, pc: int, rows: Array, active: Array) -> Group:
        """Return the warps of a step as a group of the machine."""
        batch = self._context.batch
        batch = Batch(batch.program, batch.launch, placement.blocks, batch.liveness)
        if not placement.folded:
            batch.unfold()
        none = np.zeros(len(rows), np.int64)
        batch.splits = Splits(rows, none + pc, active, none, none)
        return Group(batch, np.arange(len(rows)))

    def _faulty(self, group: Group) -> Context:
        """Return the context of a group with faults."""
        known, on_fault = self._context, self._listener.on_fault
        return Context(group.batch, known.arguments, known.allocations, on_fault=on_fault)

    def _at_fault(
        self, group: Group, row: Instruction, on: Array, able: Array, operands: Sequence[Array]
    ) -> Array:
        """Report the faults of a step; return the lanes without one."""
        context = self._faulty(group)
        if row.memory is not None:
            addresses = operands[0].astype(np.int64)
            found = access.usable(context, group, row, addresses, on)
            if (found != able).any():
                raise NotDerivedError("lanes with a fault")
            return found
        if OPS[row.op].kind == "trap":
            control.tell_end(context, group, row, on)
            return on
        for register, value in zip(row.src, operands, strict=True):
            group.hold_register(register, value)
        access.bounds(context, group, row, on)
        return on

    def _open(self, some: Array, *, is_named: bool) -> None:
        pcs, barrier = self._ends[some[:, _PC] & _BLOCK] - 1, some[:, _ABLE].astype(np.int64)
        rows, copies, placement = self._as_one(some, [pcs, barrier] if is_named else [pcs])
        assert self._last is not None
        count, named = len(pcs) // copies, tuple[Array, ...]()
        if is_named:
            barrier, lanes = barrier[:count], _lanes(some[:count, _ON])
            named = barrier & (1 << BARRIER_BITS) - 1, barrier >> BARRIER_BITS, lanes
        opened = BarrierOpened(placement, rows, pcs[:count], self._last, *named)
        self._listener.observer.barrier_opened(opened)

    def _meet(self, some: Array) -> None:
        """Report the splits that pass a warp barrier as lanes have met at several."""
        starts = np.array(self._made.starts)[some[:, _PC] & _BLOCK]
        for pc in sorted(set(starts.tolist()) & self._listener.steps.keys()):
            here = some[starts == pc]
            rows, copies, placement = self._as_one(here, [here[:, _ON], here[:, _ABLE]])
            lanes, beside = (_shaped(_lanes(here[:, at]), copies) for at in (_ACTIVE, _ABLE))
            mask = _shaped(here[:, _ON, None], copies)
            step = Step(pc, self._rows[pc], placement, rows, lanes, lanes, mask=mask, beside=beside)
            self._last = step
            self._listener.observer.step(step)

    def _pass(self, some: Array) -> None:
        """Report warp barriers of whole warps that release without all lanes."""
        starts = np.array(self._made.starts)[some[:, _PC] & _BLOCK]
        for pc, one in zip(starts.tolist(), some, strict=True):
            rows, lanes = one[_ROW : _ROW + 1].astype(np.int64), _lanes(one[_ACTIVE : _ACTIVE + 1])
            apart = Placement(self._placement.blocks, self._placement.warps_per_block, folded=False)
            group = self._group(apart, pc, rows, lanes[None])
            every = np.ones_like(group.mask)
            participation.tell_absent(self._faulty(group), group, self._rows[pc], every)

    def _as_one(
        self, some: Array, ways: Sequence[Array], *, is_told: bool = True
    ) -> tuple[Array, int, Placement]:
        """Return the rows of a step, the number of blocks that are run as one, and their placement.

        Blocks with other rows or on other paths are separate from then on, unless the step only has
        the warps at fault.
        """
        rows, warps = some[:, _ROW].astype(np.int64), self._placement.warps_per_block
        copies = self._placement.copies
        if len(rows) % copies == 0:
            of_first = rows.reshape(copies, -1) - warps * np.arange(copies)[:, None]
            every = [of_first, *(one.reshape(copies, -1) for one in ways)]
            if all((one == one[0]).all() for one in every):
                return of_first[0], copies, self._placement
        apart = Placement(self._placement.blocks, warps, folded=False)
        if is_told:
            self._placement = apart
        return rows, 1, apart


def _register(row: Instruction, held: Mapping[int, Array], register: int) -> Array:
    """Return a register: one of those that are held, or a result that they give."""
    if register in held:
        return held[register]
    evaluate = OPS[row.op].evaluate
    assert evaluate is not None
    with np.errstate(all="ignore"):
        made = evaluate(row, *(held[one] for one in row.src))
    results = made if isinstance(made, tuple) else (made,)
    return np.asarray(results[row.dst.index(register)])


def _kinds(pc: Array) -> Array:
    """Return the pcs of steps, and the kinds of opened barriers without their block of code."""
    return np.where(pc >= OPENED, pc & ~np.uint32(_BLOCK), pc)


def _shaped(values: Array, copies: int) -> Array:
    """Return values shaped (copies, rows, lanes): one copy, if all blocks agree."""
    shaped = values.reshape(copies, -1, values.shape[1])
    return shaped[:1] if (shaped == shaped[:1]).all() else shaped


def _lanes(bits: Array) -> Array:
    return (bits[:, None] >> _LANES & 1).astype(bool)


def _values(held: Array, dtype: DType) -> Array:
    """Return an operand of each lane, as it lies in linear memory."""
    if dtype.kind == "b":
        return _lanes(held[:, :4].copy().view(np.uint32)[:, 0])
    if is_wide(dtype):
        return held.view(dtype)
    words = held[:, : OPERAND_BYTES // 2].copy().view(np.uint32)
    if dtype.itemsize < 4:
        words = words.astype(np.dtype(f"u{dtype.itemsize}"))
    return words.view(dtype)
