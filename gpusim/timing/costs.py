"""What each instruction of a program costs on a device, where nothing stands in its way."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.device import Device
from gpusim.isa import OPS, Instruction, Program

TICKS = 16  # ticks per cycle: intervals that are no whole number of cycles stay integers

# What a scheduler's instructions wait for while another keeps it, by number; special functions have
# a unit that one may wait for, and what needs no pipe finds it free.
PIPES = ("alu", "fma", "imad", "fp64", "uniform")
XU, NO_PIPE = len(PIPES), len(PIPES) + 1

# After these a warp waits for where it goes on, also where that is the next instruction.
_CONTROL = ("branch", "exit", "bsync", "warpsync")


@dataclass(frozen=True)
class Cost:
    """What an instruction costs, in ticks: result after `latency`, pipe kept for `interval`.

    Where another pipe takes the result it is there `elsewhere` later, and where it guards an
    instruction, `deciding` later. `slot` is how long the instruction keeps the scheduler,
    `after` how long its warp waits before the next one, and `jump` how long if it jumps.
    """

    pipe: str
    latency: int
    interval: int
    elsewhere: int
    deciding: int
    slot: int
    after: int
    jump: int


def ticks(cycles: float) -> int:
    """Return cycles as a whole number of ticks."""
    return round(cycles * TICKS)


def instruction_costs(program: Program, device: Device) -> list[Cost]:
    """Return, per pc, what an instruction costs on a device."""
    return [_cost(instruction, device) for instruction in program.instructions]


def _cost(instruction: Instruction, device: Device) -> Cost:
    latency, interval = device.latency_cycles, device.interval_cycles
    pipe, takes, keeps = _unit(instruction, device)
    decides = "SETP" in instruction.op or instruction.op == "PLOP3"
    issue = 1 / max(1, device.sm.issue_width)
    return Cost(
        pipe=pipe,
        latency=ticks(takes),
        interval=ticks(keeps),
        elsewhere=ticks(latency.other_pipe) if pipe in PIPES else 0,
        deciding=ticks(latency.predicate - takes) if decides else 0,
        slot=ticks(interval.xu_dispatch if pipe == "xu" else issue),
        after=ticks(_after(OPS[instruction.op].kind, device)),
        jump=ticks(latency.branch),
    )


def _after(kind: str, device: Device) -> float:
    """Return how long a warp waits behind a control instruction that does not jump, in cycles."""
    latency = device.latency_cycles
    if kind == "bsync":
        return latency.control + latency.branch
    return latency.control if kind in _CONTROL else 0


def _unit(instruction: Instruction, device: Device) -> tuple[str, float, float]:
    """Return the unit that computes, after how many cycles, and how many it is kept."""
    latency, interval = device.latency_cycles, device.interval_cycles
    op, pipe = instruction.op, OPS[instruction.op].pipe
    if op in ("S2R", "S2UR"):
        return "address", latency.special_register, interval.adu
    if op == "LDC":
        return "address", latency.constant, interval.adu
    if op == "VOTE":
        return pipe, latency.vote, interval.alu
    if op in ("IMAD.HI", "IMAD.WIDE"):
        return "imad", latency.imad_wide, interval.imad_wide
    if op.startswith("IMAD"):
        return "imad", latency.imad, interval.imad
    by_pipe = {
        "alu": (latency.alu, interval.alu),
        "fma": (latency.fma, interval.fma),
        "fp64": (latency.fp64, interval.fp64),
        "xu": (latency.xu, interval.xu),
        "uniform": (latency.uniform, interval.uniform),
    }
    return pipe, *by_pipe.get(pipe, (latency.alu, 1.0))
