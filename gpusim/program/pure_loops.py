"""Loops that concern nobody but the lanes that run them: all leave before others go on.

Lanes leave such a loop in many iterations. Those that have left would else go on in as many small
groups; waiting takes nothing from them, for nothing in the loop depends on what they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Program
from gpusim.program.flow import loop_bodies
from gpusim.program.memoisation import once

Array = np.ndarray[Any, Any]


@once
def pure_loops(program: Program) -> Array:
    """Return, by pc, whether it lies in a loop that neither touches memory nor meets others."""
    is_pure = [OPS[instruction.op].is_pure for instruction in program.instructions]
    inside = np.zeros(len(is_pure), dtype=bool)
    for body in loop_bodies(program):
        if all(is_pure[pc] for pc in body):
            inside[body] = True
    return inside
