"""An advice: a finding about the speed of a launch, with its cost and the gain of its cure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpusim.prediction.removals import Replay

NONE, LIMIT = "none", "limit"
LEAST_SAID = 0.005  # of the time


@dataclass(frozen=True)
class Advice:
    """A finding: kind, source line (0 for the launch as a whole), and a sentence with the cause.

    `cost` is an estimate in cycles of an SM for each block: the order of findings without a device.
    `gain` is the result of the launch without the mechanism that the rule names.
    `explains` are the stall reasons that are symptoms of the cause, at the `lines` it concerns.
    Findings of a kind with the same `cause`, unless "", are one finding with several `places`.
    """

    kind: str
    line: int
    message: str
    cost: float = 0.0
    gain: Replay | None = None
    explains: frozenset[str] = field(default_factory=frozenset)
    lines: frozenset[int] = field(default_factory=frozenset)
    cause: str = ""
    others: tuple[int, ...] = ()

    @property
    def places(self) -> tuple[int, ...]:
        """The source lines of the finding in order, none for the launch as a whole."""
        return tuple(sorted({self.line, *self.others} - {0}))

    @property
    def times(self) -> str:
        """The speedup of the fix as text, "1.03x", "" where unknown."""
        if self.gain is None:
            return ""
        speedup = self.gain.speedup
        digits = 0 if speedup >= 10 else 1 if speedup >= 1.1 else 2
        return f"{speedup:,.{digits}f}x"

    @property
    def worth(self) -> str:
        """The time and the speedup of its fix, "" where they are unknown."""
        if self.gain is None:
            return ""
        if self.gain.saves < LEAST_SAID:
            return "fixing it alone gains nothing"
        return f"fixing it: {microseconds(self.gain.time_us)} ({self.times} faster)"

    @property
    def sentence(self) -> str:
        """The message, with the gain of its fix."""
        return f"{self.message.rstrip('.')}; {self.worth}." if self.worth else self.message

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as plain data."""
        document: dict[str, Any] = {"kind": self.kind, "line": self.line, "message": self.message}
        document["lines"] = list(self.places)
        return document if self.gain is None else {**document, "gain": self.gain.to_dict()}


def microseconds(time_us: float) -> str:
    """Return a time with three digits."""
    digits = 0 if time_us >= 1000 else 1 if time_us >= 10 else 2
    return f"{time_us:,.{digits}f} us"
