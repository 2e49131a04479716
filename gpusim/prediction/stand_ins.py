"""Blocks that stand for others, where an SM gets too many different ones to play them all.

In order of their instructions they are divided into equal parts, and one that is about the mean of
its part stands for it: what all of them do hardly changes.
"""

from __future__ import annotations

import numpy as np

from gpusim.prediction.streams import BlockClass, BlockStream, Classes

MOST_STEPS = 200_000  # of different blocks: making them takes 2 s, and they take 250 MB


def stand_ins(classes: Classes, blocks_on_sm: int, iterations: int) -> dict[int, BlockStream]:
    """Return by the `id` of each stream the one that is played for it: most often itself.

    So many `iterations` of each loop are played, of so many blocks at most.
    """
    ordered = sorted(classes.classes, key=lambda one: one.stream.instructions)
    blocks = np.array([one.blocks for one in ordered])
    each = float(np.average([one.stream.steps(iterations) for one in ordered], weights=blocks))
    parts = max(1, int(MOST_STEPS / each))
    if min(len(ordered), blocks_on_sm) <= parts:
        return {id(one.stream): one.stream for one in ordered}
    middles = np.cumsum(blocks) - blocks / 2
    part_of = (middles * parts / blocks.sum()).astype(np.int64)
    found = {}
    for part in sorted(set(part_of.tolist())):
        here = [one for one, own in zip(ordered, part_of, strict=True) if own == part]
        found.update({id(one.stream): _middle(here) for one in here})
    return found


def _middle(classes: list[BlockClass]) -> BlockStream:
    """Return the stream whose instructions are nearest to the mean of the classes' blocks."""
    instructions = [one.stream.instructions for one in classes]
    mean = np.average(instructions, weights=[one.blocks for one in classes])
    return classes[int(np.abs(np.array(instructions) - mean).argmin())].stream
