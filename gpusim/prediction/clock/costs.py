"""What each instruction of a program costs on a device, where nothing stands in its way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpusim.device import Device
from gpusim.isa import OPS, Instruction, Program
from gpusim.launch import ComputeCapability

TICKS = 16  # ticks per cycle: intervals that are no whole number of cycles stay integers

# What a scheduler's instructions wait for while another keeps it, by number; special functions have
# a unit that one may wait for, and what needs no pipe finds it free.
PIPES = ("alu", "fma", "imad", "fp64", "uniform")
XU, NO_PIPE = len(PIPES), len(PIPES) + 1

WIDE = ("IMAD.HI", "IMAD.WIDE")  # whose product has twice the bits

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
    return [_cost(instruction, device) for instruction in _as_issued(program, device)]


def _as_issued(program: Program, device: Device) -> Iterator[Instruction]:
    """Return a program's instructions, some of them as the multiplier does them.

    From compute capability 7.0 on nvcc spreads work over ALU and multiplier: in the machine code of
    56 reductions (13.0, sm_90) 64 of 80 moves and 94 of 228 additions of two numbers are IMADs.
    """
    is_shared = ComputeCapability.parse(device.gpu.compute_capability).major >= 7
    additions = 0
    for instruction in program.instructions:
        is_addition = instruction.op == "IADD3" and len(instruction.src) <= 2
        additions += is_addition
        is_moved = instruction.op == "MOV" or (is_addition and additions % 2 == 0)
        yield replace(instruction, op="IMAD") if is_shared and is_moved else instruction


def _cost(instruction: Instruction, device: Device) -> Cost:
    latency = device.latency_cycles
    pipe, takes, keeps = _unit(instruction, device)
    decides = "SETP" in instruction.op or instruction.op == "PLOP3"
    return Cost(
        pipe=pipe,
        latency=ticks(takes),
        interval=ticks(keeps),
        elsewhere=ticks(latency.other_pipe) if pipe in PIPES else 0,
        deciding=ticks(latency.predicate - takes) if decides else 0,
        slot=ticks(_dispatch(pipe, instruction.op, device)),
        after=ticks(_after(OPS[instruction.op].kind, device)),
        jump=ticks(latency.branch),
    )


def _dispatch(pipe: str, op: str, device: Device) -> float:
    """Return how long an instruction keeps the scheduler from issuing others, in cycles."""
    if pipe == "xu":
        return device.interval_cycles.xu_dispatch
    if op in WIDE:
        return device.interval_cycles.imad_wide_dispatch
    return 1 / max(1, device.sm.issue_width)


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
        return "registers", latency.special_register, interval.adu
    if op == "LDC":
        return "constants", latency.constant, interval.adu
    if op == "VOTE":
        return pipe, latency.vote, interval.alu
    if op in WIDE:
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
