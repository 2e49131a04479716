"""What the handlers of instructions share: the batch, its arguments and memory, who listens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.events import Step
from gpusim.isa import Instruction
from gpusim.machine.group import Group
from gpusim.machine.state import Batch
from gpusim.machine.storage import Allocation

Array = np.ndarray[Any, Any]


class Context:
    """A batch with what its launch gives it: scalars by name, arrays by name, listeners.

    `executed` counts the instructions that were run, each once for all splits in its group.
    """

    def __init__(
        self,
        batch: Batch,
        arguments: Mapping[str, Any],
        allocations: Mapping[str, Allocation],
        listeners: list[Callable[[Step], None]],
    ) -> None:
        self.batch = batch
        self.arguments = arguments
        self.allocations = allocations
        self.listeners = listeners
        self.instructions = batch.program.instructions
        self.executed = 0

    def tell(
        self,
        group: Group,
        instruction: Instruction,
        on: Array,
        addresses: Array | None = None,
        taken: Array | None = None,
    ) -> None:
        """Tell those who listen, if there are any, that a group ran an instruction."""
        if not self.listeners:
            return
        placement = self.batch.placement
        step = Step(group.pc, instruction, placement, group.rows, group.mask, on, addresses, taken)
        for listener in self.listeners:
            listener(step)


# Runs an instruction for a group, given its lanes whose guard is true. A handler that may hold,
# divide or move the group says whether it did: then its splits know their pcs, and who runs next
# is chosen anew. Otherwise the group goes on with the next instruction.
Handler = Callable[[Context, Group, Instruction, Array], bool | None]
