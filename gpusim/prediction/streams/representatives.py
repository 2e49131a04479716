"""Blocks that stand for others, where an SM gets too many different ones to play them all.

In order of their instructions the SM's own blocks are divided into equal parts, and one that is
about the mean of its part stands for it: what all of them do hardly changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim.prediction.streams import BlockStream

MOST_STEPS = 200_000  # of different blocks: making them takes 2 s, and they take 250 MB

Counted = tuple[BlockStream, int]  # what some of an SM's blocks do, and how many they are


def stand_ins(own: Sequence[Counted], iterations: int, resident: int) -> dict[int, BlockStream]:
    """Return by the `id` of each stream the one that is played for it: most often itself.

    `own` is what the SM's blocks do. So many `iterations` of each loop are played, of so many
    blocks at most. Where all blocks are `resident` at a time they begin together, and the SM ends
    with the longest of them: that one is played itself, beside what stands for the others.
    """
    ordered = sorted(own, key=lambda counted: counted[0].instructions)
    blocks = np.array([count for _, count in ordered])
    each = float(np.average([one.steps(iterations) for one, _ in ordered], weights=blocks))
    parts = max(1, int(MOST_STEPS / each))
    if len(ordered) <= parts:
        return {id(one): one for one, _ in ordered}
    if blocks.sum() > resident:
        return _of_parts(ordered, parts)
    longest = ordered.pop()[0]
    return {**_of_parts(ordered, max(1, parts - 1)), id(longest): longest}


def _of_parts(ordered: Sequence[Counted], parts: int) -> dict[int, BlockStream]:
    """Return for each stream of so many equal parts that of the part's middle."""
    blocks = np.array([count for _, count in ordered])
    middles = np.cumsum(blocks) - blocks / 2
    part_of = (middles * parts / blocks.sum()).astype(np.int64)
    found = {}
    for part in sorted(set(part_of.tolist())):
        here = [one for one, at in zip(ordered, part_of, strict=True) if at == part]
        found.update({id(one): _middle(here) for one, _ in here})
    return found


def _middle(counted: Sequence[Counted]) -> BlockStream:
    """Return the stream whose instructions are nearest to the mean of the blocks'."""
    instructions = [one.instructions for one, _ in counted]
    mean = np.average(instructions, weights=[count for _, count in counted])
    return counted[int(np.abs(np.array(instructions) - mean).argmin())][0]
