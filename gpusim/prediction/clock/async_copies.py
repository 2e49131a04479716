"""Copies from global to shared memory (`cp.async`): no register waits for them, but code does."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field


@dataclass
class Copies:
    """A warp's copies under numbers below 0, which no register has: they are results all the same.

    Those that have `begun` since a group was committed last, and the `groups` that nobody has
    waited for, the oldest first.
    """

    begun: tuple[int, ...] = ()
    groups: list[tuple[int, ...]] = field(default_factory=list)

    def begin(self, pending: Container[int]) -> int:
        """Begin a copy; return the first number that none of the `pending` results has."""
        number = -1
        while number in pending:
            number -= 1
        self.begun += (number,)
        return number

    def commit_group(self) -> None:
        """Let the copies that have begun be a group."""
        self.groups.append(self.begun)
        self.begun = ()

    def awaited(self, allowed: int) -> tuple[int, ...]:
        """Return the copies of all groups but the last so many that are `allowed` to be missing."""
        count = max(0, len(self.groups) - allowed)
        here = tuple(copy for group in self.groups[:count] for copy in group)
        del self.groups[:count]
        return here

    def again(self) -> Copies:
        """Return the same, which may go another way."""
        return Copies(self.begun, list(self.groups))

    def state(self) -> tuple[object, ...]:
        """Return all that decides what will be waited for."""
        return self.begun, tuple(self.groups)
