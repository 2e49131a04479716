"""The name of a removal: a mechanism, and the source line that is to go without it."""

from __future__ import annotations

from dataclasses import dataclass

AT = "@"


@dataclass(frozen=True)
class Removal:
    """A mechanism and the source line that goes without it, None for the launch as a whole."""

    mechanism: str
    line: int | None = None

    def __str__(self) -> str:
        return self.mechanism if self.line is None else f"{self.mechanism}{AT}{self.line}"
