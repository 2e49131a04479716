"""The machine: runs a batch's instructions, each for all splits that stand at one pc.

The split that has waited longest goes next, with all others at its pc, and runs until it
branches, leaves or meets others. Arithmetic is done by the instruction table; here is what
touches memory, moves values between lanes, or decides who runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpusim.arguments import ArraySpec
from gpusim.errors import BarrierError, KernelFault
from gpusim.events import Observer, Step
from gpusim.isa import OPS, Instruction
from gpusim.machine import storage
from gpusim.machine.state import (
    AT_BARRIER,
    AT_CONVERGENCE,
    AT_WARP,
    READY,
    Batch,
    Splits,
)

Array = np.ndarray[Any, Any]
LANES = np.arange(32)
LANE_BITS = np.left_shift(np.uint32(1), LANES.astype(np.uint32))


class _BlocksDisagree(Exception):
    """Blocks of a folded batch take different ways at an instruction."""


class Group:
    """Splits that run together: which ones, their rows and their lanes."""

    def __init__(self, splits: Splits, which: Array, rows: int) -> None:
        self.which = which
        self.rows = splits.row[which]
        self.is_all = len(which) == rows and bool((self.rows == np.arange(rows)).all())
        self.mask = splits.mask if len(which) == len(splits) else splits.mask[:, which]
        self.is_full = bool(self.mask.all())

    def put(self, target: Array, value: Array, on: Array) -> None:
        """Set the lanes of `target`, shaped (copies, all rows, 32), that are on."""
        ordered = np.sort(self.rows)
        if not (ordered[1:] == ordered[:-1]).any():
            target[:, self.rows] = np.where(on, value, target[:, self.rows])
            return
        # Splits of one warp run together: each sets its own lanes of the same row.
        shape = (len(target), len(self.rows), 32)
        copy, split, lane = np.nonzero(np.broadcast_to(on, shape))
        target[copy, self.rows[split], lane] = np.broadcast_to(value, shape)[copy, split, lane]


class Interpreter:
    """Runs one batch. `arguments` are the launch's scalars, `allocations` its arrays."""

    def __init__(
        self,
        batch: Batch,
        arguments: Mapping[str, Any],
        allocations: Mapping[str, storage.Allocation],
        observers: Sequence[Observer] = (),
    ) -> None:
        self.batch = batch
        self.arguments = arguments
        self.allocations = allocations
        self.observers = observers
        self.instructions = batch.program.instructions
        self.executed = 0

    # -- who runs ----------------------------------------------------------------------

    def run(self, instructions: int) -> bool:
        """Run about that many instructions; return whether the batch has finished."""
        stop = self.executed + instructions
        while len(self.batch.splits):
            if self.executed >= stop:
                return False
            group = self._next_group()
            if group is None:
                self._report_standstill()
            else:
                try:
                    self._run_group(group)
                except _BlocksDisagree:
                    self.batch.unfold()
        return True

    def _next_group(self) -> Group | None:
        splits = self.batch.splits
        ready = splits.state == READY
        if not ready.any():
            return None
        if not ready.all() or (splits.pc != splits.pc[0]).any():
            turn = np.where(ready, splits.turn, np.iinfo(np.int64).max)
            pc = splits.pc[int(turn.argmin())]
            which = np.flatnonzero(ready & (splits.pc == pc))
        else:
            which = np.arange(len(splits))
        self.batch.clock += 1
        splits.turn[which] = self.batch.clock
        return Group(splits, which, self.batch.rows)

    def _run_group(self, group: Group) -> None:
        pc = int(self.batch.splits.pc[group.which[0]])
        while True:
            instruction = self.instructions[pc]
            op = OPS[instruction.op]
            self.executed += 1
            on = self._lanes_on(group, instruction)
            if op.kind == "compute":
                self._compute(group, instruction, op.evaluate, on)
                if self.observers:
                    self._tell(group, pc, instruction, on)
            elif op.kind in _STRAIGHT:
                _STRAIGHT[op.kind](self, group, pc, instruction, on)
            else:
                self.batch.splits.pc[group.which] = pc
                if _CONTROL[op.kind](self, group, pc, instruction, on):
                    return
            pc += 1

    def _tell(
        self,
        group: Group,
        pc: int,
        instruction: Instruction,
        on: Array,
        addresses: Array | None = None,
        taken: Array | None = None,
    ) -> None:
        step = Step(
            pc, instruction, self.batch.placement, group.rows, group.mask, on, addresses, taken
        )
        for observer in self.observers:
            observer.step(step)

    # -- registers ---------------------------------------------------------------------

    def _lanes_on(self, group: Group, instruction: Instruction) -> Array:
        if instruction.guard is None:
            return group.mask
        guard = self._read(group, instruction.guard)
        return group.mask & (~guard if instruction.negated else guard)

    def _read(self, group: Group, register: int, dtype: Any = None) -> Array:
        """Return a register; zeros of `dtype` (int32 by default) where nothing was written."""
        value = self.batch.registers[register]
        if value is None:
            return np.zeros((1, 1, 1), dtype=np.int32 if dtype is None else dtype)
        return value if group.is_all or value.shape[1] == 1 else value[:, group.rows]

    def _sources(self, group: Group, instruction: Instruction) -> list[Array]:
        return [self._read(group, register, instruction.dtype) for register in instruction.src]

    def _write(self, group: Group, register: int, value: Array, on: Array) -> None:
        """Set a register for the lanes that are on."""
        registers = self.batch.registers
        old = registers[register]
        everyone = group.is_all and (group.is_full if on is group.mask else bool(on.all()))
        if everyone or (old is None and group.is_all):
            registers[register] = value
            return
        if old is None:
            old = np.zeros((1, 1, 1), dtype=value.dtype)
        if group.is_all:
            registers[register] = np.where(on, value, old)
            return
        copies = max(len(old), len(value), len(on))
        new = np.broadcast_to(old, (copies, self.batch.rows, 32)).copy()
        group.put(new, value, on)
        registers[register] = new

    def _compute(
        self,
        group: Group,
        instruction: Instruction,
        evaluate: Callable[..., Array] | None,
        on: Array,
    ) -> None:
        if evaluate is None or not instruction.dst:
            return
        if instruction.guard is not None and not on.any():
            return
        value = evaluate(instruction, *self._sources(group, instruction))
        self._write(group, instruction.dst[0], value, on)

    def _special(self, group: Group, pc: int, instruction: Instruction, on: Array) -> None:
        name, _, axis = str(instruction.detail).partition(".")
        launch, batch = self.batch.launch, self.batch
        if name in ("tid", "ctaid"):
            size = launch.block if name == "tid" else launch.grid
            linear = batch.thread_number() if name == "tid" else batch.block_number
            x, y, _ = size
            part = {"x": linear % x, "y": linear // x % y, "z": linear // (x * y)}[axis]
            value = part.astype(np.int32)
            if value.shape[1] > 1 and not group.is_all:
                value = value[:, group.rows]
        elif name == "laneid":
            value = LANES.astype(np.int32).reshape(1, 1, 32)
        else:
            value = self._launch_constant(str(instruction.detail))
        if instruction.dst:
            if instruction.dtype is not None:
                value = value.astype(instruction.dtype, copy=False)
            self._write(group, instruction.dst[0], value, on)
        if self.observers:
            self._tell(group, pc, instruction, on)

    def _launch_constant(self, name: str) -> Array:
        name, _, axis = name.partition(".")
        size = {"ntid": self.batch.launch.block, "nctaid": self.batch.launch.grid}.get(name)
        number = size["xyz".index(axis)] if size else 0
        return np.full((1, 1, 1), number, dtype=np.int32)

    def _constant(self, group: Group, pc: int, instruction: Instruction, on: Array) -> None:
        kind, *what = instruction.detail
        if instruction.dst:
            value: Any
            if kind == "param":
                value = self.arguments[what[0]]
            elif kind == "pointer":
                value = np.int64(self.allocations[what[0]].address)
            elif kind == "length":
                name, axis = what[0]
                array = self.allocations[name].array if name in self.allocations else None
                value = np.int32(self._length(name, array, axis))
            elif kind == "launch":
                value = self._launch_constant(what[0])
            else:
                value = np.int64(0)
            shaped = np.asarray(value).reshape(1, 1, 1)
            if instruction.dtype is not None:
                shaped = shaped.astype(instruction.dtype, copy=False)
            self._write(group, instruction.dst[0], shaped, on)
        if self.observers:
            self._tell(group, pc, instruction, on)

    def _length(self, name: str, array: Array | ArraySpec | None, axis: int | None) -> int:
        if array is not None:
            return int(array.size if axis is None else array.shape[axis])
        launch = self.batch.launch
        item = next(
            i.memory.dtype.itemsize
            for i in self.instructions
            if i.memory is not None and i.memory.name == name
        )
        return launch.dynamic_shared_bytes // item

    # -- memory ------------------------------------------------------------------------

    def _addresses(self, group: Group, instruction: Instruction) -> Array:
        memory = instruction.memory
        assert memory is not None
        if not instruction.src:
            return np.full((1, 1, 1), memory.offset, dtype=np.int64)
        address = self._read(group, instruction.src[0]).astype(np.int64)
        return address + memory.offset if memory.offset else address

    def _indices(
        self, group: Group, instruction: Instruction, addresses: Array, on: Array
    ) -> tuple[Array | None, Array]:
        """Return the memory's elements, flat, and where each lane's first one is in them.

        The elements are None for an array that has none.
        """
        memory, batch = instruction.memory, self.batch
        assert memory is not None
        if memory.space == "global":
            allocation = self.allocations[memory.name]
            size, base = allocation.array.size, allocation.address
        else:
            base = memory.base
            size = memory.size or batch.launch.dynamic_shared_bytes // memory.dtype.itemsize
        threads = batch.thread_number()
        lanes = storage.Lanes(
            batch.block_number if batch.placement.folded else batch.block_number[:, group.rows],
            threads if group.is_all else threads[:, group.rows],
            batch.launch.grid,
            batch.launch.block,
        )
        index = storage.element_index(addresses, on, base, size, memory, instruction.line, lanes)
        if memory.space == "global":
            return self.allocations[memory.name].flat, index
        index = index + base // memory.dtype.itemsize
        if memory.space == "local":
            assert batch.local is not None
            elements = batch.local.reshape(-1).view(memory.dtype)
            per_lane = batch.local.shape[-1] // memory.dtype.itemsize
            copies = np.arange(len(batch.local)).reshape(-1, 1, 1)
            rows = group.rows.reshape(1, -1, 1)
            lane = (copies * batch.rows + rows) * 32 + LANES
            return elements, lane * per_lane + index
        elements = batch.shared.reshape(-1).view(memory.dtype)
        per_block = batch.shared.shape[1] // memory.dtype.itemsize
        block = batch.block_of_row
        if not batch.placement.folded:
            block = block[:, group.rows]
        return elements, block * per_block + index

    def _load(self, group: Group, pc: int, instruction: Instruction, on: Array) -> None:
        memory = instruction.memory
        assert memory is not None
        addresses = self._addresses(group, instruction)
        if instruction.guard is None or on.any():
            elements, index = self._indices(group, instruction, addresses, on)
            for position, register in enumerate(instruction.dst):
                where = index + position if position else index
                if elements is None:
                    value = np.zeros((1, 1, 1), dtype=memory.dtype)
                else:
                    value = elements.take(where, mode="clip")
                if instruction.dtype is not None and value.dtype != instruction.dtype:
                    value = value.astype(instruction.dtype)
                self._write(group, register, value, on)
        if self.observers:
            self._tell(group, pc, instruction, on, addresses)

    def _store(self, group: Group, pc: int, instruction: Instruction, on: Array) -> None:
        memory = instruction.memory
        assert memory is not None
        addresses = self._addresses(group, instruction)
        if on.any():
            self._check_writable(instruction)
            elements, index = self._indices(group, instruction, addresses, on)
            for position, register in enumerate(instruction.src[1:]):
                if elements is None:
                    break
                value = self._read(group, register)
                where = index + position if position else index
                where, value, taking = np.broadcast_arrays(where, value, on)
                if taking.all():
                    elements[where.reshape(-1)] = value.reshape(-1)
                else:
                    elements[where[taking]] = value[taking]
        if self.observers:
            self._tell(group, pc, instruction, on, addresses)

    def _check_writable(self, instruction: Instruction) -> None:
        memory = instruction.memory
        assert memory is not None
        array = self.allocations[memory.name].array if memory.space == "global" else None
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            raise KernelFault(f"line {instruction.line}: {memory.name} is read-only")

    def _atomic(self, group: Group, pc: int, instruction: Instruction, on: Array) -> None:
        memory = instruction.memory
        assert memory is not None
        addresses = self._addresses(group, instruction)
        if on.any():
            self._check_writable(instruction)
            elements, index = self._indices(group, instruction, addresses, on)
            operands = [self._read(group, register) for register in instruction.src[1:]]
            # Every block takes its turn, also where all do the same.
            every = np.ones((self.batch.placement.copies, 1, 1), dtype=bool)
            index, taking, _, *operands = np.broadcast_arrays(index, on, every, *operands)
            values = [o[taking].astype(memory.dtype, copy=False) for o in operands]
            old = None
            if elements is not None:
                old = storage.update_atomically(
                    elements, index[taking], str(instruction.detail), values, bool(instruction.dst)
                )
            if instruction.dst:
                result = np.zeros(taking.shape, dtype=memory.dtype)
                result[taking] = 0 if old is None else old
                self._write(group, instruction.dst[0], result, on)
        if self.observers:
            self._tell(group, pc, instruction, on, addresses)

    def _nothing(self, group: Group, pc: int, instruction: Instruction, on: Array) -> None:
        if self.observers:
            self._tell(group, pc, instruction, on)

    def _source_branch(self, group: Group, pc: int, instruction: Instruction, on: Array) -> None:
        self.executed -= 1
        if self.observers:
            taken = on & self._read(group, instruction.src[0])
            self._tell(group, pc, instruction, on, taken=taken)

    # -- lanes of a warp together ------------------------------------------------------

    def _named_lanes(self, group: Group, mask: Array) -> Array:
        """Return the lanes that a mask operand names, shaped (copies, splits, 32)."""
        bits = mask.astype(np.uint32)
        if bits.shape[2] > 1:
            bits = np.bitwise_or.reduce(np.where(group.mask, bits, np.uint32(0)), axis=2)[..., None]
        return np.broadcast_to((bits & LANE_BITS) != 0, (len(bits), len(group.rows), 32))

    def _wait_for_lanes(self, group: Group, mask: Array) -> bool:
        """Hold splits of diverged warps until the lanes that the mask names are together."""
        splits = self.batch.splits
        if not self._diverged():
            return False
        named = self._named_lanes(group, mask)
        missing = (named & self._live(group.rows) & ~group.mask).any(axis=(0, 2))
        if not missing.any():
            return False
        splits.state[group.which] = AT_WARP
        splits.state[group.which[~missing]] = READY
        waiting = np.flatnonzero(splits.state == AT_WARP)
        keys = splits.row[waiting] * len(self.instructions) + splits.pc[waiting]
        gone: list[int] = []
        for key in np.unique(keys):
            together = waiting[keys == key]
            union = splits.mask[:, together].any(axis=1)
            live = self._live(splits.row[together[:1]])[:, 0]
            first = np.flatnonzero(np.isin(group.which, together))
            wanted = named[:, first[0]] if len(first) else union
            if len(first) and not (wanted & live & ~union).any():
                splits.mask[:, together[0]] = union
                splits.state[together[0]] = READY
                gone.extend(int(t) for t in together[1:])
        if gone:
            self.batch.splits = splits.take(np.setdiff1d(np.arange(len(splits)), gone))
        return True

    def _diverged(self) -> bool:
        rows = self.batch.splits.row
        return len(rows) > 1 and bool(np.bincount(rows).max() > 1)

    def _live(self, rows: Array) -> Array:
        """Return the lanes of these rows that have not left, shaped (copies, rows, 32)."""
        splits = self.batch.splits
        live = np.zeros((len(splits.mask), self.batch.rows, 32), dtype=bool)
        for number in range(len(splits)):
            live[:, splits.row[number]] |= splits.mask[:, number]
        return live[:, rows]

    def _shuffle(self, group: Group, pc: int, instruction: Instruction, on: Array) -> bool:
        mask, value, lane, width = self._sources(group, instruction)
        if self._wait_for_lanes(group, mask):
            return True
        source = _shuffle_source(str(instruction.detail), lane.astype(np.int64), width)
        if value.shape[2] == 1:
            result = value
        elif source.shape[:2] == (1, 1):
            result = value[:, :, source[0, 0]]
        else:
            shape = np.broadcast_shapes(value.shape[:2], source.shape[:2])
            result = np.take_along_axis(
                np.broadcast_to(value, (*shape, 32)), np.broadcast_to(source, (*shape, 32)), axis=2
            )
        if instruction.dst:
            self._write(group, instruction.dst[0], result, on)
        if self.observers:
            self._tell(group, pc, instruction, on)
        return False

    def _vote(self, group: Group, pc: int, instruction: Instruction, on: Array) -> bool:
        mask, predicate = self._sources(group, instruction)
        if self._wait_for_lanes(group, mask):
            return True
        voting = on & self._named_lanes(group, mask)
        yes = voting & predicate
        if instruction.detail == "ballot":
            result = np.where(yes, LANE_BITS, np.uint32(0)).sum(axis=2, dtype=np.uint32)
        elif instruction.detail == "all":
            result = ~(voting & ~predicate).any(axis=2)
        else:
            result = yes.any(axis=2)
        self._write(group, instruction.dst[0], result[..., None], on)
        if self.observers:
            self._tell(group, pc, instruction, on)
        return False

    def _activemask(self, group: Group, pc: int, instruction: Instruction, on: Array) -> None:
        bits = np.where(on, LANE_BITS, np.uint32(0)).sum(axis=2, dtype=np.uint32)
        self._write(group, instruction.dst[0], bits[..., None], on)
        if self.observers:
            self._tell(group, pc, instruction, on)

    def _warpsync(self, group: Group, pc: int, instruction: Instruction, on: Array) -> bool:
        if self._wait_for_lanes(group, self._read(group, instruction.src[0])):
            return True
        if self.observers:
            self._tell(group, pc, instruction, on)
        return False

    # -- warps of a block together -----------------------------------------------------

    def _barrier(self, group: Group, pc: int, instruction: Instruction, on: Array) -> bool:
        if self.observers:
            self._tell(group, pc, instruction, on)
        splits = self.batch.splits
        if len(group.which) == len(splits) and self.batch.placement.folded:
            self._pass_barrier(group.which)
            return True
        splits.state[group.which] = AT_BARRIER
        self._release_barriers()
        return True

    def _release_barriers(self) -> None:
        """Let go the blocks of which every live lane has come to a barrier."""
        splits, placement = self.batch.splits, self.batch.placement
        arrived = splits.state == AT_BARRIER
        if not arrived.any():
            return
        if placement.folded:
            complete = arrived if arrived.all() else np.zeros_like(arrived)
        else:
            block = splits.row // placement.warps_per_block
            missing = np.bincount(block[~arrived], minlength=len(placement.blocks)) > 0
            complete = arrived & ~missing[block]
        if complete.any():
            self._pass_barrier(np.flatnonzero(complete))

    def _pass_barrier(self, which: Array) -> None:
        splits = self.batch.splits
        for pc in np.unique(splits.pc[which]):
            instruction = self.instructions[int(pc)]
            if instruction.detail != "sync":
                here = which[splits.pc[which] == pc]
                self._reduce_over_block(Group(splits, here, self.batch.rows), instruction)
        splits.pc[which] += 1
        splits.state[which] = READY

    def _reduce_over_block(self, group: Group, instruction: Instruction) -> None:
        placement = self.batch.placement
        predicate = self._read(group, instruction.src[0])
        yes = np.count_nonzero(group.mask & predicate, axis=2)
        every = np.broadcast_to(np.count_nonzero(group.mask, axis=2), yes.shape)
        if placement.folded:
            yes_total = yes.sum(axis=1)[:, None, None]
            every_total = every.sum(axis=1)[:, None, None]
        else:
            block = group.rows // placement.warps_per_block
            yes_total = np.bincount(block, yes[0])[block].reshape(1, -1, 1)
            every_total = np.bincount(block, every[0])[block].reshape(1, -1, 1)
        result = {
            "count": yes_total,
            "and": yes_total == every_total,
            "or": yes_total > 0,
        }[str(instruction.detail)]
        self._write(group, instruction.dst[0], result.astype(np.int32), group.mask)

    # -- control -----------------------------------------------------------------------

    def _agreed(self, outcome: Array) -> Array:
        """Return, per split, what all copies agree on; _BlocksDisagree where they do not."""
        if len(outcome) > 1 and (outcome != outcome[:1]).any():
            raise _BlocksDisagree
        agreed: Array = outcome[0]
        return agreed

    def _branch(self, group: Group, pc: int, instruction: Instruction, on: Array) -> bool:
        splits = self.batch.splits
        if instruction.guard is None:
            splits.pc[group.which] = instruction.target
            if self.observers:
                self._tell(group, pc, instruction, on, taken=on)
            return True
        goes = self._agreed(_any_lane(on))
        stays = self._agreed(_any_lane(group.mask & ~on))
        if self.observers:
            self._tell(group, pc, instruction, on, taken=on)
        splits.pc[group.which] = np.where(goes, instruction.target, pc + 1)
        both = np.flatnonzero(goes & stays)
        if len(both):
            which = group.which[both]
            on = np.broadcast_to(on, np.broadcast_shapes(on.shape, group.mask.shape))
            mask = np.broadcast_to(group.mask, on.shape)
            leaving = splits.take(which)
            leaving.mask = on[:, both]
            if len(on) > len(splits.mask):
                splits.mask = np.repeat(splits.mask, len(on), axis=0)
            else:
                splits.mask = splits.mask.copy()
            splits.mask[:, which] = (mask & ~on)[:, both]
            splits.pc[which] = pc + 1
            self.batch.splits = splits.join(leaving)
        return True

    def _exit(self, group: Group, pc: int, instruction: Instruction, on: Array) -> bool:
        splits = self.batch.splits
        leave = self._agreed(_any_lane(on))
        stay = self._agreed(_any_lane(group.mask & ~on))
        if self.observers:
            self._tell(group, pc, instruction, on)
        splits.pc[group.which] = pc + 1
        some = leave & stay
        if some.any():
            if len(on) > len(splits.mask):
                splits.mask = np.repeat(splits.mask, len(on), axis=0)
            else:
                splits.mask = splits.mask.copy()
            splits.mask[:, group.which[some]] &= ~on[:, some]
        gone = group.which[leave & ~stay]
        if len(gone):
            keep = np.ones(len(splits), dtype=bool)
            keep[gone] = False
            self.batch.splits = splits.take(np.flatnonzero(keep))
        if leave.any():
            self._join_splits()
            self._release_barriers()
        return True

    def _bssy(self, group: Group, pc: int, instruction: Instruction, on: Array) -> bool:
        number = int(instruction.detail)
        tokens = self.batch.tokens
        token = self.batch.clock * len(self.instructions) * 64 + group.which + 1
        value = np.broadcast_to(token.reshape(1, -1, 1), (1, len(token), 32))
        old = tokens[number]
        if old is None:
            old = np.zeros((1, self.batch.rows, 32), dtype=np.int64)
        copies = max(len(old), len(on))
        new = np.broadcast_to(old, (copies, *old.shape[1:])).copy()
        group.put(new, value, on)
        tokens[number] = new
        if self.observers:
            self._tell(group, pc, instruction, on)
        return False

    def _break(self, group: Group, pc: int, instruction: Instruction, on: Array) -> bool:
        """Take lanes out of a convergence barrier that they will not come to."""
        number = int(instruction.detail)
        token = self.batch.tokens[number]
        if token is not None:
            copies = max(len(token), len(on))
            new = np.broadcast_to(token, (copies, *token.shape[1:])).copy()
            group.put(new, np.zeros((1, 1, 1), dtype=np.int64), on)
            self.batch.tokens[number] = new
        if self.observers:
            self._tell(group, pc, instruction, on)
        self.batch.splits.pc[group.which] = pc + 1
        self._join_splits()
        return True

    def _bsync(self, group: Group, pc: int, instruction: Instruction, on: Array) -> bool:
        if self.observers:
            self._tell(group, pc, instruction, on)
        if not self._diverged():
            return False
        self.batch.splits.state[group.which] = AT_CONVERGENCE
        self._join_splits()
        return True

    def _join_splits(self) -> None:
        """Join splits that wait at a BSYNC once all live lanes with their token are there."""
        splits = self.batch.splits
        waiting = np.flatnonzero(splits.state == AT_CONVERGENCE)
        if not len(waiting):
            return
        keep = np.ones(len(splits), dtype=bool)
        changed = False
        for first in waiting:
            if not keep[first] or splits.state[first] != AT_CONVERGENCE:
                continue
            token = self.batch.tokens[int(self.instructions[int(splits.pc[first])].detail)]
            assert token is not None
            row = splits.row[first]
            lanes = token[:, row]
            mine = np.where(splits.mask[:, first], lanes, 0).max()
            peers = [s for s in np.flatnonzero(splits.row == row) if keep[s]]
            members = [
                s for s in peers if s == first or (splits.mask[:, s] & (lanes == mine)).any()
            ]
            if all(
                splits.state[s] == AT_CONVERGENCE and splits.pc[s] == splits.pc[first]
                for s in members
            ):
                if not changed:
                    splits.mask = splits.mask.copy()
                    changed = True
                splits.mask[:, first] = splits.mask[:, members].any(axis=1)
                splits.state[first] = READY
                splits.pc[first] += 1
                keep[[s for s in members if s != first]] = False
        if not keep.all():
            self.batch.splits = splits.take(np.flatnonzero(keep))

    def _report_standstill(self) -> None:
        """Raise BarrierError: nobody can run, and these are who waits where."""
        splits, placement = self.batch.splits, self.batch.placement
        what = {
            AT_BARRIER: "at the barrier on line {}",
            AT_CONVERGENCE: "for lanes of its own to join it before line {}",
            AT_WARP: "for lanes named by the mask on line {}",
        }
        seen: dict[str, None] = {}
        for number in range(len(splits)):
            row = int(splits.row[number])
            block = placement.blocks[0 if placement.folded else row // placement.warps_per_block]
            line = self.instructions[int(splits.pc[number])].line
            lanes = int(np.count_nonzero(splits.mask[0, number]))
            where = what[int(splits.state[number])].format(line)
            warp = row % placement.warps_per_block
            seen[f"block {block}: warp {warp} ({lanes} lanes) waits {where}"] = None
        shown = list(seen)[:4]
        more = f"; and {len(seen) - 4} more" if len(seen) > 4 else ""
        raise BarrierError(
            "the kernel stands still: a barrier that some threads never reach. "
            + "; ".join(shown)
            + more
        )


def _any_lane(lanes: Array) -> Array:
    """Return, per split, whether a lane is in a mask."""
    return np.asarray(lanes.any(axis=2))


def _shuffle_source(mode: str, lane: Array, width: Array) -> Array:
    """Return the lane that each lane reads from; its own where that lies outside its segment."""
    size = width.astype(np.int64)
    start = LANES & ~(size - 1)
    if mode == "idx":
        return start + (lane & (size - 1))
    if mode == "up":
        source = LANES - lane
        return np.where(source < start, LANES, source)
    source = LANES + lane if mode == "down" else LANES ^ lane
    return np.where(source > start + size - 1, LANES, source)


_Handler = Callable[[Interpreter, Group, int, Instruction, Array], Any]

# Kinds after which the group goes on with the next instruction.
_STRAIGHT: dict[str, _Handler] = {
    "special": Interpreter._special,
    "constant": Interpreter._constant,
    "load": Interpreter._load,
    "store": Interpreter._store,
    "atomic": Interpreter._atomic,
    "fence": Interpreter._nothing,
    "activemask": Interpreter._activemask,
    "source_branch": Interpreter._source_branch,
}
# Kinds that may hold, divide or end the group: True where it must be chosen anew.
_CONTROL: dict[str, _Handler] = {
    "shuffle": Interpreter._shuffle,
    "vote": Interpreter._vote,
    "warpsync": Interpreter._warpsync,
    "barrier": Interpreter._barrier,
    "branch": Interpreter._branch,
    "exit": Interpreter._exit,
    "bssy": Interpreter._bssy,
    "break": Interpreter._break,
    "bsync": Interpreter._bsync,
}
