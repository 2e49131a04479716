"""Remedies for a predicted time, in sentences: from the limiters, the stalls and the ablations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpusim.isa.ops import OPS
from gpusim.prediction.bounds import SPINNING
from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.ablation import Ablation
from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.reports.quantities import duration, percent

SENTENCES = 3
AT_A_BOUND = 0.8  # a bound counts as reached from this fraction of the time on
WORTH_SAYING = 0.01
LOW_OCCUPANCY = 0.5
FEW_WAVES = 4
LARGE_TAIL = 0.1


class Stall(NamedTuple):
    """The meaning of a stall reason, and its remedy."""

    meaning: str
    remedy: str


# Nsight Compute's names ("Warp Stall Sampling" in its documentation), in our own words.
STALLS: dict[str, Stall] = {
    "selected": Stall("issues an instruction", "fewer instructions"),
    "not_selected": Stall("eligible, another warp is selected", "fewer instructions"),
    "wait": Stall("fixed-latency dependency", "more independent instructions"),
    "short_scoreboard": Stall(
        "dependency on LDS, SHFL, S2R, MUFU or LDC", "fewer of these in the dependency chain"
    ),
    "long_scoreboard": Stall(
        "dependency on global or local memory", "more loads in flight per thread"
    ),
    "mio_throttle": Stall(
        "full queue of shared memory, SHFL and LDC", "fewer of these, or fewer bank conflicts"
    ),
    "lg_throttle": Stall("full queue of global and local memory", "fewer or wider global accesses"),
    "math_pipe_throttle": Stall("busy execution pipe", "fewer instructions of one pipe"),
    "barrier": Stall("sibling warps not yet at the barrier", "fewer barriers"),
}

# Where the dearest line has atomics on global memory, these stalls are theirs.
OF_ATOMICS = ("long_scoreboard", "lg_throttle")
FEWER_ATOMICS = "fewer atomics, or atomics on more addresses"

_BOUND_REMEDIES = {
    "issue": "fewer instructions",
    "shared memory": "fewer wavefronts: fewer shared accesses, or fewer bank conflicts",
    "L2": "fewer bytes from L2",
    "DRAM": "fewer bytes from DRAM",
    "constants": "fewer distinct constants per warp",
    "atomics": "fewer atomics, or atomics on more addresses",
    "block launch": "fewer blocks with more work each",
    "latency": "shorter dependency chains, or more warps",
    SPINNING: "a shorter path from acquire to release in each block, or fewer blocks",
}

_WORKING = ("selected", "not_selected")


def advice(forecast: Forecast, ablations: Sequence[Ablation] | None) -> list[str]:
    """Return up to three sentences, the most important first."""
    found = [_limit(forecast.first)]
    if ablations:
        found.append(_cost(ablations))
    if forecast.first.limiter.name != SPINNING:  # not affected by occupancy or stalls
        found += _shape(forecast)
        found.append(_waiting(forecast.first))
    return found[:SENTENCES]


def _limit(first: Prediction) -> str:
    bound = first.limiter
    fraction = bound.time_us / first.time_us
    if bound.name == SPINNING:
        return (
            f"Limiter: blocks spin on other blocks for {duration(bound.time_us)}. "
            f"Fix: {_BOUND_REMEDIES[SPINNING]}."
        )
    remedy = _BOUND_REMEDIES.get(bound.name, f"less work for {bound.name}")
    if fraction >= AT_A_BOUND:
        return (
            f"Limiter {bound.name}: the duration is near its lower bound "
            f"({percent(fraction, 0)}). Fix: {remedy}."
        )
    return (
        f"No lower bound is reached: the nearest, {bound.name}, is {duration(bound.time_us)}, "
        f"{first.time_us / bound.time_us:.1f} times as fast; the rest is exposed latency."
    )


def _waiting(first: Prediction) -> str:
    waits = {name: fraction for name, fraction in first.stalls.items() if name not in _WORKING}
    name = max(waits, key=lambda stall: (waits[stall], stall))
    known = STALLS.get(name)
    stall = f"{name} ({known.meaning})" if known else name
    line = max(first.lines, key=lambda number: (first.lines[number], -number))
    text = f"Top stall: {stall}, {percent(waits[name], 0)} of warp cycles."
    remedy = FEWER_ATOMICS if name in OF_ATOMICS and _has_atomics(first, line) else None
    remedy = remedy or (known.remedy if known else None)
    text += f" Fix: {remedy}." if remedy else ""
    where = f"line {line}" if line else "the compiler's set-up code"
    return f"{text} Hot spot: {where}, {percent(first.lines[line], 0)} of warp cycles."


def _has_atomics(first: Prediction, line: int) -> bool:
    """Return whether a source line has atomics on global memory."""
    return any(
        OPS[one.op].kind == "atomic" and one.memory is not None and one.memory.space == "global"
        for one in first.prepared.program.instructions
        if one.line == line
    )


def _cost(ablations: Sequence[Ablation]) -> str:
    best = ablations[0]
    if best.saves < WORTH_SAYING:
        tried = ", ".join(one.mechanism for one in ablations)
        return f"No ablation saves more than 1 % ({tried})."
    text = (
        f"Without {best.mechanism} the duration is {duration(best.time_us)}, "
        f"{percent(best.saves)} less"
    )
    others = [one for one in ablations[1:] if one.saves >= WORTH_SAYING]
    if others:
        more = ", ".join(f"{one.mechanism} {percent(one.saves)}" for one in others[:2])
        return f"{text}; next: {more}."
    return f"{text}; no other ablation saves more than 1 %."


def _shape(forecast: Forecast) -> Iterator[str]:
    """Yield weaknesses of the launch: launch overhead, tail, occupancy."""
    first, held = forecast.first, forecast.first.occupancy
    gpu = forecast.device.gpu
    overhead = first.time_us - first.cycles / gpu.sm_clock_mhz
    if overhead > 0.5 * first.time_us:
        yield (
            f"Launch overhead: {percent(overhead / first.time_us, 0)} of the duration. Fix: more "
            "work per launch, or fewer launches."
        )
    blocks = held.blocks * gpu.sms
    idle = 1 - first.waves / -(-first.launch.blocks // blocks)
    if first.launch.blocks < gpu.sms:
        yield (
            f"Small grid: {first.launch.blocks:,} blocks leave {gpu.sms - first.launch.blocks} of "
            f"{gpu.sms} SMs idle."
        )
    elif first.waves < 1 - LARGE_TAIL:
        yield (
            f"Small grid: {percent(first.waves, 0)} of a wave; a full one has {blocks:,} blocks."
        )
    elif first.waves < FEW_WAVES and idle > LARGE_TAIL:
        yield (
            f"Tail effect: the last wave leaves {percent(idle, 0)} of the block slots idle. Fix: a "
            f"multiple of {blocks:,} blocks."
        )
    if held.fraction < LOW_OCCUPANCY:
        part = percent(held.fraction, 0)
        yield f"Low occupancy: {part} of an SM's warps, limited by {held.limit}."
