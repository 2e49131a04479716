"""Loops that concern nobody but the lanes that run them: all leave before others go on.

Lanes leave such a loop in many iterations. Those that have left would else go on in as many small
groups; waiting takes nothing from them, for nothing in the loop depends on what they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Program
from gpusim.program.flow import loop_bodies
from gpusim.program.once import once

Array = np.ndarray[Any, Any]


@once
def lone_loops(program: Program) -> Array:
    """Return, by pc, whether it lies in a loop that neither touches memory nor meets others."""
    is_lone = [OPS[instruction.op].is_lone for instruction in program.instructions]
    inside = np.zeros(len(is_lone), dtype=bool)
    for body in loop_bodies(program):
        if all(is_lone[pc] for pc in body):
            inside[body] = True
    return inside
