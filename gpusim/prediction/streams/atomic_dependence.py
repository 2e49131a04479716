"""Blocks that communicate by atomics: each depends on words written by earlier blocks.

Examples are trees built bottom-up and hash tables: a block executed alone finds no marks of others
and takes another path.
"""

from __future__ import annotations

import numpy as np

from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams.classes import Classes
from gpusim.prediction.streams.last_block import MOST_WORDS, left_by_last, wanted_of_atomics
from gpusim.program.taint import data_dependent_lines

# Limit on the instructions of a grid, up to which all blocks are executed: a second or two.
MOST_INSTRUCTIONS = 8_000_000


def meet(prepared: Prepared, classes: Classes, step_limit: int) -> bool:
    """Return whether blocks depend on many words of others, and the whole grid may be executed.

    `classes` are those of blocks executed alone. A few words are counters of blocks or indices,
    handled by `last_block`.
    """
    names = wanted_of_atomics(prepared.program)
    if not (names and data_dependent_lines(prepared.program, names)):
        return False
    work = sum(one.blocks * one.stream.instructions for one in classes.classes)
    if work > MOST_INSTRUCTIONS:
        return False
    return _words(prepared, names, step_limit) > MOST_WORDS


def _words(prepared: Prepared, names: frozenset[str], step_limit: int) -> int:
    """Return the number of words of some arrays changed by the last block."""
    found = left_by_last(prepared, names, step_limit)
    return sum(int(np.count_nonzero(left != array)) for _, array, left in found)
