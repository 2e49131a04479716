"""The name of a removal: a mechanism to switch off, and the source lines concerned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

AT, AND = "@", "+"

# Each is a function in `gpusim.prediction.removals.mechanisms`.
Mechanism = Literal[
    "atomics",
    "bank-conflicts",
    "barriers",
    "constants",
    "dependent-instructions",
    "divergence",
    "double-precision",
    "few-blocks",
    "fine-grain",
    "idle-lanes",
    "instruction-fetch",
    "integer-division",
    "integers-64",
    "latency",
    "local-memory",
    "loop-overhead",
    "narrow-loads",
    "occupancy",
    "one-more-block",
    "repeated-accesses",
    "small-blocks",
    "special-functions",
    "tail",
    "uncoalesced",
]
MECHANISMS: frozenset[str] = frozenset(get_args(Mechanism))


@dataclass(frozen=True)
class Removal:
    """A mechanism to switch off, in some source lines; without lines, in the whole launch."""

    mechanism: str
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        at = AND.join(map(str, self.lines))
        return f"{self.mechanism}{AT}{at}" if at else self.mechanism


def require_known(name: str) -> None:
    """Raise ValueError for an unknown mechanism."""
    if name not in MECHANISMS:
        raise ValueError(f"{name!r} is not a mechanism; known are {', '.join(sorted(MECHANISMS))}")
