"""What the machine does for each kind of instruction: one table of handlers.

A row is added where its handler is written; `isa.OPS` names the kind of each op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.isa import Instruction

if TYPE_CHECKING:
    from gpusim.machine.group import Group
    from gpusim.machine.interpreter import Interpreter

Array = np.ndarray[Any, Any]

# The machine, the group that runs the instruction, and its lanes whose guard is true. A handler
# that may hold, divide or move the group says whether it did: then its splits know their pcs,
# and who runs next is chosen anew. Otherwise the group goes on with the next instruction.
Handler = Callable[["Interpreter", "Group", Instruction, Array], bool | None]

KINDS: dict[str, Handler] = {}


def runs(kind: str) -> Callable[[Handler], Handler]:
    """Let a function run the instructions of a kind."""

    def register(function: Handler) -> Handler:
        KINDS[kind] = function
        return function

    return register
