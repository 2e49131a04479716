"""Asynchronous copies from global to shared memory (`cp.async`), awaited by groups."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field


@dataclass
class Copies:
    """A warp's copies, as results under negative numbers, distinct from registers.

    `begun` are the copies since the last committed group, `groups` the groups not yet awaited, the
    oldest first.
    """

    begun: tuple[int, ...] = ()
    groups: list[tuple[int, ...]] = field(default_factory=list)

    def begin(self, pending: Container[int]) -> int:
        """Begin a copy; return the first number without a `pending` result."""
        number = -1
        while number in pending:
            number -= 1
        self.begun += (number,)
        return number

    def commit_group(self) -> None:
        """Commit the begun copies as a group."""
        self.groups.append(self.begun)
        self.begun = ()

    def awaited(self, allowed: int) -> tuple[int, ...]:
        """Return the copies of all groups but the last `allowed` ones."""
        count = max(0, len(self.groups) - allowed)
        here = tuple(copy for group in self.groups[:count] for copy in group)
        del self.groups[:count]
        return here

    def again(self) -> Copies:
        """Return an independent copy of this state."""
        return Copies(self.begun, list(self.groups))

    def state(self) -> tuple[object, ...]:
        """Return the state that determines further waits."""
        return self.begun, tuple(self.groups)
