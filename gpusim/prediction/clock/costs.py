"""What each instruction of a program costs on a device, where nothing stands in its way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpusim.gpu.device import Device
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.clock.operand_reads import slots_with_reads
from gpusim.prediction.memory.measured import ADDITIONS_AN_IMAD, SHARED_WORK_FROM_CC_MAJOR

# What a scheduler's instructions wait for while another keeps it, by number; special functions have
# a unit that one may wait for, and what needs no pipe finds it free.
PIPES = ("alu", "fma", "imad", "fp64", "uniform")
XU, NO_PIPE = len(PIPES), len(PIPES) + 1
# What the uniform datapath makes is for other pipes: its latency says when they may have it.
_SHARED_PIPES = frozenset(PIPES) - {"uniform"}
# Nsight Compute's guide, pipelines: from compute capability 7.0 on integers are multiplied where
# floating-point numbers are.
_ONE_MULTIPLIER_FROM_CC_MAJOR = 7

# The pipe that a unit of `isa.OPS` belongs to, and whose latency and interval of a device it has.
# What is none of these takes its result as the ALU does, and keeps nothing for long.
_UNITS: Mapping[str, tuple[str, str, str]] = {
    "alu": ("alu", "alu", "alu"),
    "vote": ("alu", "vote", "alu"),
    "fma": ("fma", "fma", "fma"),
    "imad": ("imad", "imad", "imad"),
    "imad_wide": ("imad", "imad_wide", "imad_wide"),
    "fp64": ("fp64", "fp64", "fp64"),
    "xu": ("xu", "xu", "xu"),
    "uniform": ("uniform", "uniform", "uniform"),
    "uniform_constants": ("uniform", "uniform_constant", "uniform"),
    "registers": ("registers", "special_register", "adu"),
    "constants": ("constants", "constant", "adu"),
}


@dataclass(frozen=True)
class Cost:
    """What an instruction costs, in ticks: result after `latency`, pipe kept for `interval`.

    The pipe is `busy` for others where it is kept for longer than the scheduler is. Where another
    pipe takes the result it is there `elsewhere` later, and where it guards an instruction,
    `deciding` later. `slot` is how long the instruction keeps the scheduler, with what it reads,
    `after` how long its warp waits before the next one, and `jump` how long if it jumps.
    """

    pipe: str
    latency: int
    interval: int
    busy: int
    elsewhere: int
    deciding: int
    slot: int
    after: int
    jump: int


def instruction_costs(program: Program, device: Device) -> list[Cost]:
    """Return, per pc, what an instruction costs on a device."""
    rows = list(_as_issued(program, device))
    alone = [_cost(row, device) for row in rows]
    slots = slots_with_reads(rows, [cost.slot for cost in alone], [cost.busy > 0 for cost in alone])
    return [replace(cost, slot=slot) for cost, slot in zip(alone, slots, strict=True)]


def _as_issued(program: Program, device: Device) -> Iterator[Instruction]:
    """Return a program's instructions, some of them as the multiplier does them.

    Moves and some additions of two numbers, where nvcc spreads work over ALU and multiplier.
    """
    is_shared = device.cc.major >= SHARED_WORK_FROM_CC_MAJOR
    additions = 0
    for instruction in program.instructions:
        is_addition = instruction.op == "IADD3" and len(instruction.src) <= 2
        additions += is_addition
        is_moved = instruction.op == "MOV" or (is_addition and additions % ADDITIONS_AN_IMAD == 0)
        yield replace(instruction, op="IMAD") if is_shared and is_moved else instruction


def _cost(instruction: Instruction, device: Device) -> Cost:
    latency, op = device.latency_cycles, OPS[instruction.op]
    is_constant = op.kind == "constant" or op.kind == "bank"
    is_uniform_constant = op.unit == "uniform" and is_constant
    pipe, takes, keeps = _unit("uniform_constants" if is_uniform_constant else op.unit, device)
    slot = ticks(_dispatch(op.unit, device))
    return Cost(
        pipe=pipe,
        latency=ticks(takes),
        interval=ticks(keeps),
        busy=ticks(keeps) if pipe in PIPES and ticks(keeps) > slot else 0,
        elsewhere=ticks(latency.other_pipe) if pipe in _SHARED_PIPES else 0,
        deciding=ticks(latency.predicate - takes) if op.sets_predicate else 0,
        slot=slot,
        after=ticks(_after(instruction, device)),
        jump=ticks(latency.branch),
    )


def _dispatch(unit: str, device: Device) -> float:
    """Return how long an instruction keeps the scheduler from issuing others, in cycles."""
    if unit == "xu":
        return device.interval_cycles.xu_dispatch
    if unit == "imad_wide":
        return device.interval_cycles.imad_wide_dispatch
    return 1 / max(1, device.sm.issue_width)


def _after(instruction: Instruction, device: Device) -> float:
    """Return how long a warp waits behind what does not jump before it goes on, in cycles.

    Behind a fence between blocks that is until what it did before has been seen.
    """
    latency, op = device.latency_cycles, OPS[instruction.op]
    if op.waits_for_memory and instruction.detail != "block":
        return latency.fence
    if op.kind == "bsync":
        return latency.control + latency.branch
    return latency.control if op.redirects else 0


def _unit(unit: str, device: Device) -> tuple[str, float, float]:
    """Return the pipe that computes, after how many cycles, and how many it is kept."""
    if unit not in _UNITS:
        return unit, device.latency_cycles.alu, 1.0
    pipe, latency, interval = _UNITS[unit]
    if pipe == "imad" and device.cc.major >= _ONE_MULTIPLIER_FROM_CC_MAJOR:
        pipe = "fma"
    return pipe, getattr(device.latency_cycles, latency), getattr(device.interval_cycles, interval)
