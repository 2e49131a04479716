"""Inter-block synchronisation: fences, and words passed from SM to SM."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import fmean, median

import numpy as np

from ..bench import Bench
from .probing import DRAM_BYTES, Values, probe

ROUNDS = 16
ROUND = 8000  # cycles, longer than the whole sequence
FEW_LINES = 8
PASSES = 200


@dataclass(frozen=True)
class Pair:
    """Cycles of the fences of two warps of an SM, the second begun `apart` cycles later."""

    apart: int
    first: float
    second: float

    @property
    def overlap(self) -> float:
        """Return the overlap of both, if the second waited for the first."""
        return self.first - (self.apart + self.second - self.first)


@probe(
    "latency_cycles.fence",
    "latency_cycles.fence_of_one_line",
    "latency_cycles.fence_of_many_lines",
    "latency_cycles.fence_overlap",
)
def fences(bench: Bench) -> Values:
    """Two warps of each SM fence some cycles apart, behind stores to none, one and eight lines.

    Lines lie at random. If their parts of the L2 are equally likely at all distances, eight lines
    are seven ninths of the way from one to many.
    """
    pairs = {
        lines: [_pair(bench, lines, apart) for apart in (*range(0, 401, 20), ROUND // 4)]
        for lines in (0, 1, FEW_LINES)
    }
    bench.notes["cycles_of_two_fences_by_lines"] = {
        lines: [asdict(pair) for pair in some] for lines, some in pairs.items()
    }
    alone = {lines: some[-1].first for lines, some in pairs.items()}
    further = (alone[FEW_LINES] - alone[1]) * (FEW_LINES + 1) / (FEW_LINES - 1)
    waited = [
        pair.overlap for lines in (1, FEW_LINES) for pair in pairs[lines] if 80 <= pair.apart <= 200
    ]
    return [alone[0], alone[1], alone[1] + further, median(waited)]


def _pair(bench: Bench, lines: int, apart: int) -> Pair:
    """Return the duration of the fences of two warps, the mean over SMs."""
    told = bench.told(
        "ordering",
        "fenced_apart",
        2 * bench.sms,
        bench.buffer(DRAM_BYTES),
        np.int32(lines),
        np.int32(apart),
        np.int32(ROUNDS),
        np.int32(ROUND),
        grid=bench.sms,
        block=64,
    )
    first, second = (float(sums) / ROUNDS for sums in told.reshape(-1, 2).mean(axis=0))
    return Pair(apart, first, second)


@probe("latency_cycles.flag", "latency_cycles.fenced_flag")
def flags(bench: Bench) -> Values:
    """Two SMs pass a number to and fro by plain stores and loads: cycles one way.

    With data and a fence before the number, too; the mean over 16 partners of a block. Also by
    release and acquire, and by atomics.
    """
    partners = sorted({max(1, bench.sms * k // 16 - 1) for k in range(1, 17)})
    notes = {}
    for passing in ("VOLATILE", "RELEASE", "EXCHANGE", "DATA_AND_FLAG"):
        notes[passing] = {partner: _one_way(bench, passing, partner) for partner in partners}
    bench.notes["cycles_of_passing_a_word_by_partner"] = notes
    return [fmean(notes[passing].values()) for passing in ("VOLATILE", "DATA_AND_FLAG")]


def _one_way(bench: Bench, passing: str, partner: int) -> float:
    """Return the cycles in which block 0's number reaches another block, or comes back."""
    words = bench.buffer(DRAM_BYTES)
    bench.driver.memset_d8(words, 0, 2**16)
    begin, end = bench.told(
        "ordering",
        f"passed<{passing}>",
        2,
        words,
        np.int32(partner),
        np.int32(PASSES),
        grid=bench.sms,
    ).tolist()
    return float(end - begin) / PASSES / 2
