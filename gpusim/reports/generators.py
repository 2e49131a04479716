"""The code generator of a report, and the reason for not using nvcc's compiler."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from rich.text import Text

from gpusim.isa.ops import Program
from gpusim.reports.layout import DIM


def code_of(program: Program) -> str:
    """Return "code of NVRTC 13.5" or "lowering O3"."""
    return made_by(program.compiler, program.lowering)


def made_by(compiler: str, lowering: str) -> str:
    """Return the code generator's name; `compiler` is empty for a lowering's code."""
    return f"code of {compiler}" if compiler else f"lowering {lowering}"


def fallback_lines(fallback: str, width: int, kernels: str = "") -> Iterator[Text]:
    """Yield the reason for the lowering's code, if nvcc's was requested; else nothing."""
    if not fallback:
        return
    about = f"{kernels}: " if kernels else ""
    for part in wrap(f"{about}not in nvcc's code: {fallback}", width):
        yield Text(part, DIM)
