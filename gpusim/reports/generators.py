"""Who made the machine code that a report is about, and why it was not nvcc's compiler."""

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
    """Yield why the lowering made the code, where nvcc's was wanted; nothing where it was not."""
    if not fallback:
        return
    about = f"{kernels}: " if kernels else ""
    for part in wrap(f"{about}not in nvcc's code: {fallback}", width):
        yield Text(part, DIM)
