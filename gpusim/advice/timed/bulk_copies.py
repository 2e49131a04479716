"""Pipelines of bulk copies: waits at their mbarriers, bytes in flight, sizes and multicast."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpusim.advice.evidence import Evidence
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule
from gpusim.advice.timed.waiting import is_waiting
from gpusim.isa.ops import OPS, PEER_COPY
from gpusim.prediction.records import Prediction

# Of the warps' time, at full mbarriers. Of 25 pipelines of 1 to 6 stages of 1 to 16 KB on an H200
# (validate/bulk/pipelines.csv), those predicted to wait 0.29 to 0.67 were 1.13 to 1.86 times as
# fast with a further stage, those of 0.08 to 0.27 at most 1.09 times.
FULL_WAIT = 0.28
EMPTY_WAIT = 0.5  # of the producers' own time: they wait for longer than they work
# Of a copy: one in flight for each block, 114 SMs of an H800 load 223 GB/s at 1 KB and 1,708 at
# 16 KB (HPMLL/NVIDIA-Hopper-Benchmark, tma_bw).
SMALL_BYTES = 1024
# Times that blocks load their distinct bytes: multicast would spare a third of the L2's reads.
SEVERAL = 1.5


@dataclass(frozen=True)
class _Copies:
    """The bulk loads of a block: bytes by mbarrier and by pc, copies by pc."""

    stages: dict[int, int]
    bytes: dict[int, int]
    count: dict[int, int]


def _copies(evidence: Evidence, made: Prediction) -> _Copies:
    rows = evidence.instructions
    loads = {pc for pc, row in enumerate(rows) if OPS[row.op].kind == "bulk_copy"}
    loads -= {pc for pc in loads if rows[pc].op == PEER_COPY}
    stages: dict[int, int] = defaultdict(int)
    moved: dict[int, int] = defaultdict(int)
    count: dict[int, int] = defaultdict(int)
    for warp in made.classes.classes[0].stream.warps:
        columns = (warp.pc, warp.gaps, warp.wavefronts, warp.times)
        for pc, word, size, times in zip(*(one.tolist() for one in columns), strict=True):
            if pc in loads and word and size:
                stages[word] += size * times
                moved[pc] += size * times
                count[pc] += times
    return _Copies(stages, moved, count)


def _asked(evidence: Evidence, made: Prediction) -> tuple[dict[int, set[int]], dict[int, int]]:
    """Return the mbarriers that are waited for by pc, and the phases of each."""
    rows = evidence.instructions
    words: dict[int, set[int]] = defaultdict(set)
    phases: dict[int, int] = defaultdict(int)
    for warp in made.classes.classes[0].stream.warps:
        own: dict[int, int] = defaultdict(int)
        columns = (warp.pc, warp.gaps, warp.times)
        for pc, word, times in zip(*(one.tolist() for one in columns), strict=True):
            memory = rows[pc].memory
            is_load = OPS[rows[pc].op].kind == "load"
            if word and is_load and memory is not None and memory.is_barrier_word:
                words[pc].add(word)
                own[word] += times
        for word, count in own.items():
            phases[word] = max(phases[word], count)
    return words, phases


def _asking(made: Prediction, pcs: set[int]) -> float:
    """Return the part of a block's warps that ask for a phase at one of these instructions."""
    warps = made.classes.classes[0].stream.warps
    asking = [warp for warp in warps if not pcs.isdisjoint(warp.pc[warp.gaps != 0].tolist())]
    return len(asking) / max(1, len(warps))


def _waits(
    evidence: Evidence, words: Mapping[int, set[int]], full: Mapping[int, int], *, at_full: bool
) -> tuple[int, float]:
    """Return the line of the longest wait at full or empty mbarriers, and the time at all of them.

    The time is a part of the warps' time.
    """
    waits: dict[int, float] = defaultdict(float)
    for pc, fraction in evidence.stalls("long_scoreboard").items():
        asks = pc if pc in words else pc - 1  # the fence after a load of the phase
        if asks in words and words[asks].isdisjoint(full) != at_full:
            waits[evidence.instructions[asks].line] += fraction
    return max(waits, key=lambda one: (waits[one], -one), default=0), sum(waits.values())


@rule("bulk-latency")
def bulk_latency(evidence: Evidence) -> Iterator[Advice]:
    """Waits for bulk copies: too few bytes in flight for the latency of memory."""
    made = evidence.prediction
    if made is None or not is_waiting(made):
        return
    copies = _copies(evidence, made)
    words, phases = _asked(evidence, made)
    line, part = _waits(evidence, words, copies.stages, at_full=True)
    if part < FULL_WAIT:
        return
    stage = sum(size // max(1, phases[word]) for word, size in copies.stages.items())
    clock = made.device.gpu.sm_clock_mhz
    share = made.device.bandwidth.dram_gbps * 1000 / clock / made.device.gpu.sms
    needed = share * made.device.latency_cycles.dram
    stages = len(copies.stages)
    yield Advice(
        "bulk-latency",
        line,
        f"line {line}: warps wait {100 * part:.0f} % of their time at full mbarriers; the "
        f"pipeline has {stages} {'stage' if stages == 1 else 'stages'} with {stage:,} bytes in "
        f"flight for each block, and {needed:,.0f} bytes on an SM would hide the latency of DRAM. "
        "Fix: more stages, larger copies, or more blocks on an SM.",
        part * evidence.cycles,
        explains=frozenset({"long-scoreboard", "latency"}),
    )


@rule("bulk-empty")
def bulk_empty(evidence: Evidence) -> Iterator[Advice]:
    """Waits of a producer of bulk copies for its consumers."""
    made = evidence.prediction
    if made is None or not is_waiting(made):
        return
    copies = _copies(evidence, made)
    words, _ = _asked(evidence, made)
    line, part = _waits(evidence, words, copies.stages, at_full=False)
    _, full = _waits(evidence, words, copies.stages, at_full=True)
    empty = {pc for pc, asked in words.items() if asked.isdisjoint(copies.stages)}
    own = part / max(_asking(made, empty), part, 1e-9)
    if not copies.stages or full >= FULL_WAIT or own < EMPTY_WAIT:
        return
    yield Advice(
        "bulk-empty",
        line,
        f"line {line}: the producers of copies wait {100 * own:.0f} % of their time at mbarriers "
        "that consumers arrive at: the copies are faster than their use. Fix: more warps that "
        "consume, or the arrival right after the last read of a stage.",
        part * evidence.cycles,
        explains=frozenset({"long-scoreboard"}),
    )


@rule("small-copies")
def small_copies(evidence: Evidence) -> Iterator[Advice]:
    """Bulk copies of few bytes, each with the engine's start and a latency."""
    made = evidence.prediction
    if made is None or not is_waiting(made):
        return
    copies = _copies(evidence, made)
    moved = sum(copies.bytes.values())
    for pc, size in copies.bytes.items():
        each = size / copies.count[pc]
        if each >= SMALL_BYTES or 2 * size < moved or copies.count[pc] < 2:
            continue
        line = evidence.instructions[pc].line
        yield Advice(
            "small-copies",
            line,
            f"line {line}: a block makes {copies.count[pc]:,} bulk copies of {each:,.0f} bytes; "
            f"boxes of {SMALL_BYTES:,} bytes and more use the bandwidth of the engine. Fix: one "
            "copy for several rows, or a larger box of the tensor map.",
            0.0,
            cause=f"{each:,.0f} bytes",
        )


@rule("multicast")
def multicast(evidence: Evidence) -> Iterator[Advice]:
    """Bulk copies by which blocks of a cluster load the same bytes."""
    made = evidence.prediction
    if made is None or made.launch.cluster_blocks == 1:
        return
    copies = _copies(evidence, made)
    rows = evidence.instructions
    plain = {pc: size for pc, size in copies.bytes.items() if "MULTICAST" not in rows[pc].text}
    loaded = sum(plain.values()) * made.launch.blocks
    distinct = max(1.0, made.traffic.compulsory_bytes)
    if not plain or loaded < SEVERAL * distinct:
        return
    line = rows[max(plain, key=lambda pc: (plain[pc], -pc))].line
    yield Advice(
        "multicast",
        line,
        f"line {line}: bulk copies load {loaded:,} bytes, {loaded / distinct:.1f} times the "
        f"launch's {distinct:,.0f} distinct ones. Fix: one copy with .multicast::cluster for the "
        f"{made.launch.cluster_blocks} blocks of a cluster: it spares bandwidth of the L2.",
        0.0,
    )
