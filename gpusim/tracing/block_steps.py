"""A block's steps, one by one: the instructions of each warp, and the changes of shared memory.

All instructions are kept, with the values stored to shared memory: as changes that give the
contents at any step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Program
from gpusim.launch.events import BarrierOpened, Observer, Step
from gpusim.launch.grid import Launch
from gpusim.tracing.block_log import BlockPart, part_of
from gpusim.typing import Array

MOST_STEPS = 4000


@dataclass(frozen=True)
class WarpPart:
    """One warp's part of a step; tuples are by lane. `addresses` are of shared memory.

    `results` are the destination registers, as the instruction leaves them, if they are kept.
    """

    warp: int
    active: tuple[bool, ...]
    on: tuple[bool, ...]
    taken: tuple[bool, ...] | None
    addresses: tuple[int, ...] | None
    results: tuple[Array, ...] = ()


@dataclass(frozen=True)
class Written:
    """An element of shared memory after a step: its first byte, its width and its value."""

    address: int
    width_bytes: int
    value: float


@dataclass(frozen=True)
class BlockStep:
    """One instruction of a block. `interval` counts the barriers that the block has passed."""

    pc: int
    interval: int
    warps: tuple[WarpPart, ...]
    written: tuple[Written, ...]

    @property
    def lanes_on(self) -> int:
        """Lanes that take part, of all its warps."""
        return sum(sum(part.on) for part in self.warps)


class BlockSteps(Observer):
    """Keeps the first MOST_STEPS steps of one block; `is_complete` says whether that was all.

    `program` is the executed program, once the launch has begun. With `registers` the results of
    instructions are kept, too.
    """

    def __init__(
        self, block_index: int, most: int = MOST_STEPS, *, registers: bool = False
    ) -> None:
        self.block_index = block_index
        self._keeps_registers = registers
        self.steps: list[BlockStep] = []
        self.is_complete = True
        self.program: Program | None = None
        self._most = most
        self._interval = 0

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch."""
        self.program = program

    def step(self, step: Step) -> None:
        """Keep the part of a step that is this block's."""
        part = part_of(step, self.block_index)
        if part is None or not part.rows or not OPS[step.instruction.op].issued:
            return
        if len(self.steps) >= self._most:
            self.is_complete = False
            return
        found = step.instruction.memory
        is_shared = found is not None and found.space == "shared"
        results = _results(step) if self._keeps_registers else []
        warps = tuple(
            _warp(step, part, place, is_shared, results) for place in range(len(part.rows))
        )
        written = _written(step, part) if is_shared else ()
        self.steps.append(BlockStep(step.pc, self._interval, warps, written))

    def barrier_opened(self, opened: BarrierOpened) -> None:
        """Record that the block has passed a barrier."""
        self._interval += int(np.isin(self.block_index, opened.blocks))


def _results(step: Step) -> list[Array]:
    """Return the destination registers of a step, in their order."""
    if step.registers is None:
        return []
    return [step.registers(register) for register in step.instruction.dst]


def _warp(
    step: Step, part: BlockPart, place: int, is_shared: bool, results: Sequence[Array]
) -> WarpPart:
    row = part.rows[place]

    def lanes(values: Array | None) -> tuple[Any, ...] | None:
        return None if values is None else tuple(part.lanes(values, row).tolist())

    on = lanes(step.on) or ()
    addresses = lanes(step.addresses) if is_shared else None
    if addresses is not None:
        addresses = tuple(a if o else -1 for a, o in zip(addresses, on, strict=True))
    return WarpPart(
        part.warps[place],
        lanes(step.active) or (),
        on,
        lanes(step.taken),
        addresses,
        tuple(np.array(part.lanes(values, row)) for values in results),
    )


def _written(step: Step, part: BlockPart) -> tuple[Written, ...]:
    """Return the bytes that a store or an atomic leaves in shared memory; the last lane wins."""
    memory = step.instruction.memory
    values = step.values or ((step.left,) if step.left is not None else ())
    if memory is None or step.addresses is None:
        return ()
    size = memory.dtype.itemsize
    found: dict[int, Written] = {}
    for row in part.rows:
        on, addresses = part.lanes(step.on, row), part.lanes(step.addresses, row)
        for position, stored in enumerate(values):
            lanes = part.lanes(stored, row).astype(memory.dtype)
            for lane in np.flatnonzero(on).tolist():
                address = int(addresses[lane]) + position * size
                found[address] = Written(address, size, lanes[lane].item())
    return tuple(found.values())
