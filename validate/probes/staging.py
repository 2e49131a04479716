"""Staging data in shared memory: through registers, and by cp.async."""

from __future__ import annotations

import numpy as np

from ..bench import Bench
from .probing import DRAM_BYTES, MB, Values, probe

TURNS = 128


@probe()
def staging(bench: Bench) -> Values:
    """A block stages pieces in shared memory with a barrier each: cycles per piece, out of the L2.

    And GB/s of all SMs out of 24 MB of the L2, and out of 1 GB of DRAM.
    """
    ways = {
        "LDG and STS": ("REGISTERS", 16),
        "cp.async": ("ASYNC", 16),
        "of 4 bytes": ("ASYNC_SMALL", 4),
    }
    notes: dict[str, float] = {}
    for name, (way, size) in ways.items():
        for depth in (1, 4):
            expression = f"staged<{way}, {depth}>"
            for warps in (1, 8, 32):
                piece = 32 * warps * size * depth
                for _ in range(2):  # the first brings it to the L2
                    begin, end = bench.told(
                        "staging", expression, 2, bench.buffer(DRAM_BYTES),
                        np.uint64(TURNS * piece), block=32 * warps, shared=piece,
                    ).tolist()  # fmt: skip
                notes[f"{name}, {depth} pieces, {warps} warps: cycles"] = (end - begin) / TURNS
            for megabytes in (24, 1024):
                time = bench.time_us(
                    bench.probe("staging", expression), bench.stamps(8 * bench.sms),
                    bench.buffer(DRAM_BYTES), np.uint64(megabytes * MB), grid=4 * bench.sms,
                    block=256, shared=256 * size * depth, cold=megabytes > 24, repetitions=5,
                )  # fmt: skip
                notes[f"{name}, {depth} pieces: GB/s out of {megabytes} MB"] = (
                    megabytes * MB / time / 1000
                )
    bench.notes["bringing_to_shared_memory"] = notes
    return []
