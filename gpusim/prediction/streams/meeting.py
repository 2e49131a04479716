"""Blocks that meet in memory: what one does follows what atomics of blocks before it have left.

Trees that are built from below, tables that are filled: a block that is run alone finds no other's
mark, and goes another way.
"""

from __future__ import annotations

import numpy as np

from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams.classes import Classes
from gpusim.prediction.streams.last_block import MOST_WORDS, left_by_last, wanted_of_atomics
from gpusim.program.taint import data_lines

# All blocks are run where they do no more than this, each by itself: it takes a second or two.
MOST_INSTRUCTIONS = 8_000_000


def meet(prepared: Prepared, classes: Classes, step_limit: int) -> bool:
    """Return whether blocks go by what others left at many words, and all of them may be run.

    `classes` are those of blocks that are run alone. A few words are counters, of blocks or of
    places: what the last block does there is another matter.
    """
    names = wanted_of_atomics(prepared.program)
    if not (names and data_lines(prepared.program, names)):
        return False
    work = sum(one.blocks * one.stream.instructions for one in classes.classes)
    if work > MOST_INSTRUCTIONS:
        return False
    return _words(prepared, names, step_limit) > MOST_WORDS


def _words(prepared: Prepared, names: frozenset[str], step_limit: int) -> int:
    """Return how many words of some arrays the last block changes."""
    found = left_by_last(prepared, names, step_limit)
    return sum(int(np.count_nonzero(left != array)) for _, array, left in found)
