"""A labelled kernel of a suite, its launch, and the verdict on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RACE, BOUNDS, ANY = "race", "bounds", "any"  # defects that a label may name
# The rules of a check that find a defect; ANY is found by every error.
RULES = {
    RACE: frozenset(
        {
            "shared-race", "warp-race", "one-instruction", "global-race", "block-race", "copy-race",
            "barrier-place", "barrier-missed", "barrier-apart", "deadlock", "mask",
        }
    ),
    BOUNDS: frozenset({"bounds", "misaligned"}),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Kernels of a file, the defects that its label may name and those it names, and its launches.

    `arguments` make new arguments from the kernel's parameters, each for a launch. A case that
    cannot be launched has the reason in `excluded`. `debug` cases are compiled without
    optimisation. Of the rules in `ignored` the label says nothing.
    """

    name: str
    file: Path
    kernels: tuple[str, ...]
    judged: frozenset[str]
    defects: frozenset[str]
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (32,)
    arguments: tuple[Callable[[Any], list[Any]], ...] = (list,)
    includes: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    debug: bool = False
    ignored: frozenset[str] = frozenset()
    excluded: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a check says of a case: the rules of its errors, or why it was refused."""

    case: Case
    rules: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    refused: str = ""
    seconds: float = 0.0

    @property
    def found(self) -> frozenset[str]:
        """The defects that were found, of those that the label may name."""
        rules = set(self.rules) - self.case.ignored
        return frozenset(
            defect
            for defect in self.case.judged
            if (rules if defect == ANY else RULES[defect] & rules)
        )

    @property
    def state(self) -> str:
        """One of "right", "missed", "false report", "refused" and "excluded"."""
        if self.case.excluded:
            return "excluded"
        if self.refused:
            return "refused"
        if self.case.defects - self.found:
            return "missed"
        return "false report" if self.found - self.case.defects else "right"
