"""Lowering step by step: the form after each step, as text. Labels tell a pass's runs apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gpusim.compiler.dump import Line, Names
from gpusim.compiler.dump import listing as ssa_listing
from gpusim.compiler.ir import Function
from gpusim.isa.ops import Program
from gpusim.launch.grid import ComputeCapability
from gpusim.lowering import lower
from gpusim.lowering.code import Code
from gpusim.lowering.machine_code.listing import listing as code_listing

BUILT = "build"  # the input of lowering


@dataclass(frozen=True)
class Stage:
    """A function after one step: its lines of text, each with its line in the source.

    `label` is the step's name, from its second run on with a number: `dse`, `dse:2`.
    """

    label: str
    is_ssa: bool
    lines: tuple[Line, ...]

    @property
    def texts(self) -> list[str]:
        """The lines without the source's."""
        return [text for _, text in self.lines]


@dataclass
class _Recorder:
    names: Names = field(default_factory=Names)
    stages: list[Stage] = field(default_factory=list)
    runs: Counter[str] = field(default_factory=Counter)

    def watch(self, name: str, form: Function | Code) -> None:
        self.runs[name] += 1
        label = name if self.runs[name] == 1 else f"{name}:{self.runs[name]}"
        if isinstance(form, Code):
            self.stages.append(Stage(label, False, tuple(code_listing(form, self.names))))
        else:
            self.stages.append(Stage(label, True, tuple(ssa_listing(form, self.names))))


def lower_in_stages(
    function: Function, cc: ComputeCapability, level: str
) -> tuple[Program, list[Stage]]:
    """Lower `function`, modified in place; return its program and the form after each step."""
    recorder = _Recorder()
    recorder.watch(BUILT, function)
    program = lower(function, cc, level, recorder.watch)
    return program, recorder.stages
