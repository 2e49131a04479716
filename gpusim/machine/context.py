"""The context of instruction handlers: the batch, its arguments and memory, the observers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpusim.errors import KernelFault
from gpusim.isa.ops import Instruction
from gpusim.launch.events import BarrierArrived, BarrierOpened, Observer, Step, hooks
from gpusim.machine.banks import banks, word
from gpusim.machine.group import Group
from gpusim.machine.livelock import Changes
from gpusim.machine.state import Batch
from gpusim.machine.storage import Allocation
from gpusim.typing import Array

OnFault = Callable[[KernelFault], None]


_READS_OF_A_WAIT, _LONGEST_SKIP = 64, 1 << 20


class Wait:
    """The time that a clock skips while lanes only wait for it: `skipped`, in ticks.

    Readings by one instruction with no change of memory between are a loop that ends by the time
    alone; after 64 of them the clock skips twice as much each time.
    """

    def __init__(self) -> None:
        self.skipped = 0
        self._reads = 0
        self._last = (-1, -1)

    def read(self, pc: int, changes: int) -> None:
        """Take note of a reading, with the number of changes of memory before it."""
        self._reads = self._reads + 1 if self._last == (pc, changes) else 0
        self._last = pc, changes
        if self._reads >= _READS_OF_A_WAIT:
            self.skipped += min(1 << (self._reads - _READS_OF_A_WAIT), _LONGEST_SKIP)


class Context:
    """A batch with its launch's scalars by name, arrays by name, and observers.

    Of observers it uses only the hooks that they override.

    `executed` counts the executed instructions, each once for all splits in its group.
    `on_fault` is called with each fault of some lanes, and the others go on; without it,
    the fault is raised. `banks` are constant memory as bytes, if the program has any.
    """

    def __init__(
        self,
        batch: Batch,
        arguments: Mapping[str, Any],
        allocations: Mapping[str, Allocation],
        observers: Sequence[Observer] = (),
        on_fault: OnFault | None = None,
        changes: Changes | None = None,
    ) -> None:
        self.batch = batch
        self.arguments = arguments
        self.allocations = allocations
        self.listeners = hooks(observers, "step")
        self._barrier_listeners = hooks(observers, "barrier_opened")
        self._arrival_listeners = hooks(observers, "barrier_arrived")
        self._last_step: Step | None = None
        self.on_fault = on_fault
        self.instructions = batch.program.instructions
        self.executed = 0
        self.wait = Wait()
        self.changes = Changes() if changes is None else changes
        self.printed: list[bytes] | None = None  # the output of printf
        self.banks: dict[int, Array] = {}
        self.constants: dict[int, list[Array]] = {}  # words of banks that an instruction names
        layout = batch.program.layout
        if layout is not None:
            self.banks = banks(layout, batch.launch, arguments, allocations)
            for register, (bank, offset) in batch.program.constants.items():
                value = word(self.banks, bank, offset)
                batch.registers[register] = np.asarray(value).reshape(1, 1, 1)

    def report(
        self,
        group: Group,
        instruction: Instruction,
        on: Array,
        addresses: Array | None = None,
        taken: Array | None = None,
        values: tuple[Array, ...] = (),
        mask: Array | None = None,
        left: Array | None = None,
        sources: Array | None = None,
        constants: Array | None = None,
        before: Array | None = None,
        added: Array | None = None,
        beside: Array | None = None,
    ) -> None:
        """Report to observers, if there are any, that a group ran an instruction."""
        if not (self.listeners or self._barrier_listeners or self._arrival_listeners):
            return
        placement = self.batch.placement
        rows, active = group.rows, group.mask
        step = Step(
            group.pc,
            instruction,
            placement,
            rows,
            active,
            on,
            addresses,
            taken,
            values,
            mask,
            left,
            sources,
            constants,
            group.read,
            before,
            added,
            beside,
        )
        self._last_step = step
        for listener in self.listeners:
            listener(step)

    def tell_opened(self, rows: Array, pcs: Array, *named: Array) -> None:
        """Report to observers that warps waiting at a barrier continue.

        Of barriers with a number `named` are the numbers, the threads waited for, and the lanes.
        """
        if self._barrier_listeners:
            assert self._last_step is not None
            opened = BarrierOpened(self.batch.placement, rows, pcs, self._last_step, *named)
            for listener in self._barrier_listeners:
                listener(opened)

    def tell_arrived(self, numbers: Array) -> None:
        """Report to observers that the last step's threads arrived at barriers and continue."""
        if self._arrival_listeners:
            assert self._last_step is not None
            for listener in self._arrival_listeners:
                listener(BarrierArrived(self._last_step, numbers))

    def fault(self, fault: KernelFault) -> None:
        """Raise a fault, or report it if the other lanes continue."""
        if self.on_fault is None:
            raise fault
        self.on_fault(fault)


# Runs an instruction for a group, given its lanes with a true predicate. A handler that may hold,
# divide or move the group returns whether it did: then its splits know their pcs, and the next
# group is chosen again. Otherwise the group continues with the next instruction.
Handler = Callable[[Context, Group, Instruction, Array], bool | None]
