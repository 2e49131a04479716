"""What blocks wait for each other: fences, and words passed from SM to SM."""

from __future__ import annotations

from statistics import fmean

import numpy as np

from ..bench import Bench
from .probing import DRAM_BYTES, Values, probe

ROUNDS = 16
PASSES = 200


def _fence(bench: Bench, kind: str, blocks: int, warps: int, count: int) -> list[float]:
    """Return the cycles of a fence behind so many requests, and of an atomic behind the fence."""
    told = bench.told(
        "ordering",
        f"fenced<{kind}>",
        2 * blocks * warps,
        bench.buffer(DRAM_BYTES),
        np.int32(count),
        np.int32(ROUNDS),
        grid=blocks,
        block=32 * warps,
    )
    return [float(sums) / ROUNDS for sums in told.reshape(-1, 2).mean(axis=0)]


@probe("latency_cycles.fence")
def fences(bench: Bench) -> Values:
    """One warp of an SM stores a line and fences.

    Also by more warps, behind more stores, behind RED, and on all SMs, with the atomic that waits
    behind it.
    """
    notes = {
        f"{kind}, {blocks} blocks of {warps} warps": {
            count: _fence(bench, kind, blocks, warps, count) for count in (0, 1, 4, 16, 64)
        }
        for kind in ("STORE", "RED")
        for blocks in (1, bench.sms)
        for warps in (1, 8, 32)
    }
    bench.notes["cycles_of_a_fence_and_of_an_atomic_behind_it_by_requests"] = notes
    return [notes["STORE, 1 blocks of 1 warps"][1][0]]


@probe("latency_cycles.fenced_store", "latency_cycles.fence_per_warp")
def fences_in_turn(bench: Bench) -> Values:
    """Warps of an SM store a line and fence, again and again: a turn of one warp.

    What each of 32 warps of all SMs adds to that.
    """
    turns = {
        f"{blocks} blocks of {warps} warps": _turn(bench, blocks, warps)
        for blocks in (1, bench.sms)
        for warps in (1, 8, 32)
    }
    bench.notes["cycles_of_a_store_and_a_fence"] = turns
    alone = turns["1 blocks of 1 warps"]
    return [alone, max(0.01, (turns[f"{bench.sms} blocks of 32 warps"] - alone) / 31)]


def _turn(bench: Bench, blocks: int, warps: int) -> float:
    """Return the cycles in which a warp stores and fences once."""
    told = bench.told(
        "ordering",
        "fenced_in_turn",
        2 * blocks * warps,
        bench.buffer(DRAM_BYTES),
        np.int32(ROUNDS),
        grid=blocks,
        block=32 * warps,
    ).reshape(-1, 2)
    return float((told[:, 1] - told[:, 0]).mean()) / ROUNDS


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
