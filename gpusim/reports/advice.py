"""Remedies for a predicted time, in sentences: from the limiters, the stalls and the ablations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpusim.isa.ops import OPS
from gpusim.prediction.bounds import WAITING
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
    "selected": Stall("it issues an instruction", "fewer instructions"),
    "not_selected": Stall("another warp issues", "fewer instructions"),
    "wait": Stall("fixed latency of its last instruction", "more independent instructions"),
    "short_scoreboard": Stall(
        "a result of LDS, SHFL, S2R, MUFU or LDC", "fewer of these on the way to a result"
    ),
    "long_scoreboard": Stall(
        "data from global memory", "more loads in flight, several for each thread,"
    ),
    "mio_throttle": Stall(
        "the queue of shared memory, SHFL, LDC is full", "fewer of these, or fewer conflicts"
    ),
    "lg_throttle": Stall("the queue of global memory is full", "fewer or wider global accesses"),
    "math_pipe_throttle": Stall("the pipe it needs is busy", "fewer instructions of one kind"),
    "barrier": Stall("the other warps of its block, at a barrier", "fewer barriers"),
}

# Where the dearest line has atomics on global memory, these stalls are theirs.
OF_ATOMICS = ("long_scoreboard", "lg_throttle")
FEWER_ATOMICS = "fewer atomics, or atomics on more addresses,"

_BOUND_REMEDIES = {
    "issue": "fewer instructions",
    "shared memory": "fewer wavefronts: fewer shared accesses, or none that conflict",
    "L2": "fewer bytes from L2",
    "DRAM": "fewer bytes from DRAM",
    "constants": "fewer different constants for the lanes of a warp",
    "atomics": "fewer atomics, or atomics on more addresses",
    "block launch": "fewer blocks, each with more to do",
    "latency": "shorter chains of dependent instructions, or more warps",
    WAITING: "less between seeing another block's word and leaving one's own, or fewer blocks",
}

_WORKING = ("selected", "not_selected")


def advice(forecast: Forecast, ablations: Sequence[Ablation] | None) -> list[str]:
    """Return up to three sentences, the most important first."""
    found = [_limit(forecast.first)]
    if ablations:
        found.append(_cost(ablations))
    if forecast.first.limiter.name != WAITING:  # not affected by occupancy or stalls
        found += _shape(forecast)
        found.append(_waiting(forecast.first))
    return found[:SENTENCES]


def _limit(first: Prediction) -> str:
    bound = first.limiter
    fraction = bound.time_us / first.time_us
    if bound.name == WAITING:
        return (
            f"Blocks wait for words of others for {duration(bound.time_us)}: "
            f"only {_BOUND_REMEDIES[WAITING]} would make it much faster."
        )
    remedy = _BOUND_REMEDIES.get(bound.name, f"less work for {bound.name}")
    if fraction >= AT_A_BOUND:
        return (
            f"It runs at {percent(fraction, 0)} of what {bound.name} allows: "
            f"only {remedy} would make it much faster."
        )
    return (
        f"No limit is reached: the nearest, {bound.name}, would allow {duration(bound.time_us)}, "
        f"{first.time_us / bound.time_us:.1f} times as fast; the rest is waiting."
    )


def _waiting(first: Prediction) -> str:
    waits = {name: fraction for name, fraction in first.stalls.items() if name not in _WORKING}
    name = max(waits, key=lambda stall: (waits[stall], stall))
    known = STALLS.get(name)
    what = f"{name} ({known.meaning})" if known else name
    line = max(first.lines, key=lambda number: (first.lines[number], -number))
    text = f"Warps wait longest for {what}, {percent(waits[name], 0)} of their time"
    remedy = FEWER_ATOMICS if name in OF_ATOMICS and _has_atomics(first, line) else None
    remedy = remedy or (known.remedy if known else None)
    text += f"; {remedy} would shorten that" if remedy else ""
    where = f"line {line}" if line else "what the compiler sets up"
    return f"{text}. Most of all cycles, {percent(first.lines[line], 0)}, go to {where}."


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
        return f"Nothing that was switched off costs more than 1 % ({tried})."
    text = (
        f"Without {best.mechanism} it would take {duration(best.time_us)}, "
        f"{percent(best.saves)} less"
    )
    others = [one for one in ablations[1:] if one.saves >= WORTH_SAYING]
    if others:
        more = ", ".join(f"{one.mechanism} {percent(one.saves)}" for one in others[:2])
        return f"{text}; next: {more}."
    return f"{text}; nothing else costs more than 1 %."


def _shape(forecast: Forecast) -> Iterator[str]:
    """Yield weaknesses of the launch: launch overhead, tail, occupancy."""
    first, held = forecast.first, forecast.first.occupancy
    gpu = forecast.device.gpu
    overhead = first.time_us - first.cycles / gpu.sm_clock_mhz
    if overhead > 0.5 * first.time_us:
        yield (
            f"The launch itself is {percent(overhead / first.time_us, 0)} of the time: only more "
            "work for one launch, or fewer launches, would change much."
        )
    blocks = held.blocks * gpu.sms
    idle = 1 - first.waves / -(-first.launch.blocks // blocks)
    if first.launch.blocks < gpu.sms:
        yield (
            f"{first.launch.blocks:,} blocks leave {gpu.sms - first.launch.blocks} of "
            f"{gpu.sms} SMs without work."
        )
    elif first.waves < 1 - LARGE_TAIL:
        yield (
            f"The grid fills {percent(first.waves, 0)} of the GPU's places: "
            f"{blocks:,} blocks would fill them all."
        )
    elif first.waves < FEW_WAVES and idle > LARGE_TAIL:
        yield (
            f"The last wave leaves {percent(idle, 0)} of all places empty: a grid that is a "
            f"multiple of {blocks:,} blocks would not."
        )
    if held.fraction < LOW_OCCUPANCY:
        part = percent(held.fraction, 0)
        yield f"An SM holds {part} of its warps: {held.limit} stand in the way."
