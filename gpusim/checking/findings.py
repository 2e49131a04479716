"""Findings: plain records, one for each pair of source lines, sorted and counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gpusim.checking.coverage import Coverage
from gpusim.checking.rules import ERROR, RULES, SEVERITIES, WARNING, Rule, worded
from gpusim.isa.lines import Call, call_path, calls_of
from gpusim.launch.description import LaunchDescription, described
from gpusim.launch.languages import PYTHON
from gpusim.launch.views import Shown


@dataclass(frozen=True)
class Thread:
    """A thread: linear block number, its linear number in the block, warp and lane."""

    block: int
    thread: int

    @property
    def warp(self) -> int:
        """The warp of the block that it is in."""
        return self.thread // 32

    @property
    def lane(self) -> int:
        """Its lane in the warp."""
        return self.thread % 32

    def __str__(self) -> str:
        return f"thread {self.thread} (block {self.block}, warp {self.warp}, lane {self.lane})"

    def to_dict(self) -> dict[str, int]:
        """Return the thread, ready for JSON."""
        return {**asdict(self), "warp": self.warp, "lane": self.lane}


@dataclass(frozen=True)
class Place:
    """Something that a thread does at a source line: "reads", "writes", "adds to", ..."""

    line: int
    does: str
    thread: Thread | None = None
    since: int | None = None  # line of the barrier that its interval began with; 0 is the start

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of the device function that the line is in, innermost first."""
        return calls_of(self.line)

    def to_dict(self) -> dict[str, Any]:
        """Return the place, ready for JSON."""
        thread = None if self.thread is None else self.thread.to_dict()
        calls = [call.to_dict() for call in self.calls]
        return {
            "line": self.line,
            "does": self.does,
            "thread": thread,
            "since": self.since,
            **({"called_from": calls} if calls else {}),
        }


@dataclass(frozen=True)
class Finding:
    """One error or warning: its rule, places, count and fix.

    `places` are in order of execution. `array` and `index` name the element, if there is one;
    `hazard` is "read-after-write", "write-after-read" or "write-after-write" for a race. `language`
    is that of the kernel's source: the fix names its functions. `fix_text` takes the place of the
    rule's fix. For a race by a wrong use of a flag, `missing` is the missing operation, `flag` the
    flag's array, and `sequence` has fences and flag between the two accesses.
    """

    rule: str
    message: str
    places: tuple[Place, ...]
    array: str = ""
    index: int | None = None
    hazard: str = ""
    count: int = 1
    language: str = PYTHON
    fix_text: str = ""
    missing: str = ""
    flag: str = ""
    sequence: tuple[Place, ...] = ()

    @property
    def about(self) -> Rule:
        """The rule's row."""
        return RULES[self.rule]

    @property
    def severity(self) -> str:
        """One of "error", "warning" and "note"."""
        return self.about.severity

    @property
    def fix(self) -> str:
        """The remedy, in the imperative, with the functions of the kernel's language."""
        is_within = len(self.lines) == 1 and self.hazard not in ("", "write-after-write")
        if self.fix_text:
            return worded(self.fix_text, self.language)
        return self.about.fix_in(self.language, within=is_within)

    @property
    def lines(self) -> tuple[int, ...]:
        """The source lines, each once, in order."""
        return tuple(sorted({place.line for place in self.places}))

    def callers(self, line: int) -> str:
        """Return in words the callers of the device function with one of the lines; "" if none."""
        paths = dict.fromkeys(place.calls for place in self.places if place.line == line)
        return "; or ".join(filter(None, map(call_path, paths)))

    @property
    def element(self) -> str:
        """The element as `array[index]`, "" where there is none."""
        return self.array if self.index is None else f"{self.array}[{self.index}]"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding, ready for JSON."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "title": self.about.title,
            "message": self.message,
            "fix": self.fix,
            "hazard": self.hazard,
            "missing": self.missing,
            "array": self.array,
            "index": self.index,
            "count": self.count,
            "lines": list(self.lines),
            "places": [place.to_dict() for place in self.places],
            "sequence": [place.to_dict() for place in self.sequence],
        }


def place_of(finding: Finding) -> tuple[Any, ...]:
    """Errors before warnings before notes, then by line."""
    return (SEVERITIES.index(finding.severity), finding.lines, finding.rule, finding.message)


@dataclass(frozen=True)
class Findings(Shown, Sequence[Finding], shown_as="findings"):
    """All findings of a check, errors first. True in a condition if there are any.

    `kernel`, `source_file`, `grid`, `block` and `compute_capability` identify the launch,
    `lowering` and `compiler` its machine code: a Python kernel always has the lowering's at O0.
    With `lenient`, locks and flags acquired without a fence; `order` is the seed of random orders
    of warps and blocks. `coverage` counts the compared accesses. `description` is the origin of the
    launch's members.
    """

    kernel: str
    source_file: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    compute_capability: str
    generator: str = ""
    lowering: str = ""
    compiler: str = ""
    lenient: bool = False
    order: int | None = None
    coverage: Coverage = field(default_factory=Coverage)
    description: LaunchDescription | None = field(default=None, repr=False, compare=False)
    found: tuple[Finding, ...] = field(default=())

    def __repr__(self) -> str:
        return f"<Findings of {self.kernel}: {len(self.errors)} errors of {len(self)}>"

    def __getitem__(self, position: Any) -> Any:
        return self.found[position]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found)

    def of(self, severity: str) -> list[Finding]:
        """Return the findings of one severity."""
        return [finding for finding in self.found if finding.severity == severity]

    @property
    def errors(self) -> list[Finding]:
        """Findings that make the kernel wrong."""
        return self.of(ERROR)

    @property
    def warnings(self) -> list[Finding]:
        """Findings that are harmless on this GPU today, without a guarantee."""
        return self.of(WARNING)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        return {
            "kernel": self.kernel,
            "source_file": self.source_file,
            "grid": list(self.grid),
            "block": list(self.block),
            **described(self.description),
            "compute_capability": self.compute_capability,
            "generator": self.generator,
            "lenient": self.lenient,
            "order": self.order,
            "checked": self.coverage.to_dict(),
            "counts": {severity: len(self.of(severity)) for severity in SEVERITIES},
            "findings": [finding.to_dict() for finding in self.found],
        }
