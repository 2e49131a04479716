"""Representative blocks of an SM, where its blocks differ too much to play them all.

The SM's blocks, ordered by instruction count, are divided into equal parts, and a block near the
mean of a part represents it: their total work hardly changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim.prediction.streams import BlockStream

Counted = tuple[BlockStream, int]  # a stream, and the number of its blocks on the SM


def representatives(
    own: Sequence[Counted], iterations: int, resident: int, steps: float
) -> dict[int, BlockStream]:
    """Return the stream played for each, by its `id`: most often itself.

    `own` are the SM's streams with block counts. At most `iterations` of each loop are played, of
    at most `resident` blocks at a time. If all blocks are resident they begin together, and the
    longest one ends the SM: it is played itself, beside the representatives of the others.
    """
    ordered = sorted(own, key=lambda counted: counted[0].instructions)
    blocks = np.array([count for _, count in ordered])
    each = float(np.average([one.steps(iterations) for one, _ in ordered], weights=blocks))
    parts = max(1, int(steps / each))
    if len(ordered) <= parts:
        return {id(one): one for one, _ in ordered}
    if blocks.sum() > resident:
        return _of_parts(ordered, parts)
    longest = ordered.pop()[0]
    return {**_of_parts(ordered, max(1, parts - 1)), id(longest): longest}


def _of_parts(ordered: Sequence[Counted], parts: int) -> dict[int, BlockStream]:
    """Return for each stream the representative of its part, of `parts` equal parts."""
    blocks = np.array([count for _, count in ordered])
    middles = np.cumsum(blocks) - blocks / 2
    part_of = (middles * parts / blocks.sum()).astype(np.int64)
    found = {}
    for part in sorted(set(part_of.tolist())):
        here = [one for one, at in zip(ordered, part_of, strict=True) if at == part]
        found.update({id(one): _middle(here) for one, _ in here})
    return found


def _middle(counted: Sequence[Counted]) -> BlockStream:
    """Return the stream with an instruction count nearest to the blocks' mean."""
    instructions = [one.instructions for one, _ in counted]
    mean = np.average(instructions, weights=[count for _, count in counted])
    return counted[int(np.abs(np.array(instructions) - mean).argmin())][0]
