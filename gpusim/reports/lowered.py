"""The stages of a lowering, and the machine code beside its source.

Reports of a `Program` do not depend on its origin; it may have no stages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from linecache import getline
from textwrap import dedent

from gpusim.errors import InputError, did_you_mean
from gpusim.gpu.device import Device
from gpusim.isa.ops import Program, text_of
from gpusim.lowering.stages import Stage
from gpusim.prediction.clock.stall_counts import StallCount, stall_counts
from gpusim.program.liveness import live_registers


@dataclass(frozen=True)
class Lowered:
    """A program, its origin, its target, and the stages of its lowering."""

    program: Program
    source_file: str
    cc: str
    device: Device
    stages: Sequence[Stage] = ()

    @property
    def recorded(self) -> Sequence[Stage]:
        """The stages; InputError where there are none."""
        if not self.stages:
            raise InputError(f"{self.program.name} is given as machine code: it has no passes")
        return self.stages

    def stage(self, label: str) -> Stage:
        """Return the stage after a pass; InputError where there is none of that name."""
        for stage in self.recorded:
            if stage.label == label:
                return stage
        known = [stage.label for stage in self.stages]
        near = did_you_mean(label, known)
        raise InputError(
            f"there is no pass {label!r} at {self.program.lowering}{near} (it has "
            f"{', '.join(known)})"
        )

    @property
    def ssa(self) -> Stage | None:
        """The SSA form that instruction selection started from."""
        return next((stage for stage in reversed(self.stages) if stage.is_ssa), None)


@dataclass(frozen=True)
class Change:
    """A step's change to the text of the previous stage; nothing for new machine code."""

    before: Stage
    after: Stage

    @property
    def is_selection(self) -> bool:
        """Whether the step made machine code of the SSA form, so that no line is the same."""
        return self.before.is_ssa != self.after.is_ssa

    @property
    def added(self) -> int:
        """Lines that are new."""
        return (Counter(self.after.texts) - Counter(self.before.texts)).total()

    @property
    def removed(self) -> int:
        """Lines that were removed."""
        return (Counter(self.before.texts) - Counter(self.after.texts)).total()

    @property
    def is_change(self) -> bool:
        """Whether anything is different."""
        return self.before.texts != self.after.texts

    def diff(self) -> list[str]:
        """Return the change as the lines of a unified diff."""
        names = self.before.label, self.after.label
        return list(unified_diff(self.before.texts, self.after.texts, *names, lineterm=""))


def changes(lowered: Lowered) -> list[Change]:
    """Return each step's change, if steps were recorded."""
    return [Change(*pair) for pair in zip(lowered.stages, lowered.stages[1:], strict=False)]


def chosen_changes(lowered: Lowered, label: str | None) -> list[Change]:
    """Return the change of each step, or of the step `label`; InputError if there is none."""
    stages = lowered.recorded if label is None else [lowered.stage(label)]
    return [change for change in changes(lowered) if change.after in stages]


@dataclass(frozen=True)
class InstructionRow:
    """An instruction as it is shown; `stall` is None where it is never issued."""

    pc: int
    text: str
    stall: StallCount | None
    live: int


@dataclass(frozen=True)
class SourceLine:
    """A line of the source (0: code set up by the compiler), with its SSA and machine code."""

    number: int
    text: str
    ssa: tuple[str, ...]
    instructions: tuple[InstructionRow, ...]


def source_lines(lowered: Lowered) -> list[SourceLine]:
    """Return the lines of the source with any code, in order."""
    ssa: dict[int, list[str]] = {}
    for number, text in lowered.ssa.lines if lowered.ssa else ():
        if text.startswith(" "):  # the names of blocks belong to no line
            ssa.setdefault(number, []).append(text.strip())
    code: dict[int, list[InstructionRow]] = {}
    for number, row in _instruction_rows(lowered):
        code.setdefault(number, []).append(row)
    numbers = sorted(ssa.keys() | code.keys())
    texts = _dedented(getline(lowered.source_file, n).rstrip() if n else "" for n in numbers)
    return [
        SourceLine(n, text, tuple(ssa.get(n, ())), tuple(code.get(n, ())))
        for n, text in zip(numbers, texts, strict=True)
    ]


def _dedented(texts: Iterable[str]) -> list[str]:
    return dedent("\n".join(text or " " for text in texts)).split("\n")


def _instruction_rows(lowered: Lowered) -> Iterator[tuple[int, InstructionRow]]:
    program = lowered.program
    stalls = stall_counts(program, lowered.device)
    rows = zip(program.instructions, stalls, live_registers(program), strict=True)
    for pc, (instruction, stall, live) in enumerate(rows):
        text = text_of(instruction, program.immediates)
        yield instruction.line, InstructionRow(pc, text, stall, live)
