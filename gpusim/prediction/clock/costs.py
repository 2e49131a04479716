"""Costs of a program's instructions on a device, without contention."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gpusim.gpu.device import Device
from gpusim.gpu.memory import BANKS, WORD_BYTES
from gpusim.isa.matrices import MatrixProduct
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.isa.warpgroups import GROUP_ROWS, K_BYTES, WarpgroupProduct
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.memory.measured import (
    ADDITIONS_AN_IMAD,
    SHARED_WORK_FROM_CC_MAJOR,
)

# Pipes whose instructions wait while another one occupies them, by number; special functions queue
# at a unit of their own, and instructions without a pipe never wait.
PIPES = ("alu", "fma", "imad", "fp64", "uniform", "tensor")
XU, NO_PIPE = len(PIPES), len(PIPES) + 1
PIPE_NUMBERS = {pipe: number for number, pipe in enumerate(PIPES)}
# Results of the uniform datapath are for other pipes: its latency includes the transfer. Those of
# tensor cores take as long for any pipe, by the stall counts that ptxas writes.
_SHARED_PIPES = frozenset(PIPES) - {"uniform", "tensor"}
REGISTERS_OF_A = 4  # of the products that latency and interval of tensor cores are given for
# Nsight Compute's guide, pipelines: from compute capability 7.0 on the FMA pipe multiplies integers
# too.
_ONE_MULTIPLIER_FROM_CC_MAJOR = 7

# Pipe of each unit of `isa.OPS`, with its keys of latency and interval in a device file. Any other
# unit has the ALU's latency and no occupancy beyond the issue.
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
    """Cost of an instruction, in ticks: result after `latency`, pipe occupied for `interval`.

    `busy` is the occupancy of a pipe beyond the issue, as seen by others. The result is available
    `elsewhere` later in another pipe, and `deciding` later as a guard. `slot` is the time in the
    scheduler including operand reads, `after` the delay to the warp's next instruction, and `jump`
    that after a taken branch.
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


@lru_cache(maxsize=2)
def instruction_costs(program: Program, device: Device) -> Sequence[Cost]:
    """Return the cost of each instruction on a device, by pc; worked out once for all sizes."""
    return tuple(_costs(program, device))


def _costs(program: Program, device: Device) -> Iterator[Cost]:
    rows = list(_as_issued(program, device))
    of_kind = {_kind(row): row for row in rows}
    known = {kind: _cost(row, device) for kind, row in of_kind.items()}
    alone = [known[_kind(row)] for row in rows]
    slots = slots_with_reads(rows, [cost.slot for cost in alone], [cost.busy > 0 for cost in alone])
    # Equal costs are one object: builders whose results have equal costs are in the same state.
    made: dict[Cost, Cost] = {}
    by_slot: dict[tuple[int, int], Cost] = {}
    for cost, slot in zip(alone, slots, strict=True):
        if (id(cost), slot) not in by_slot:
            found = replace(cost, slot=slot)
            by_slot[id(cost), slot] = made.setdefault(found, found)
        yield by_slot[id(cost), slot]


def _kind(row: Instruction) -> Hashable:
    """Return all that the cost of an instruction alone follows from."""
    costs = isinstance(row.detail, MatrixProduct | WarpgroupProduct | str)
    return row.op, row.detail if costs else None


def _as_issued(program: Program, device: Device) -> Iterator[Instruction]:
    """Return a program's instructions, some of them as IMADs.

    These are moves and some additions of two numbers, distributed by nvcc over ALU and multiplier.
    """
    is_shared = device.cc.major >= SHARED_WORK_FROM_CC_MAJOR
    additions = 0
    for instruction in program.instructions:
        moves = OPS[instruction.op].multiplied
        is_addition = moves == "at times" and len(instruction.src) <= 2
        additions += is_addition
        is_moved = moves == "always" or (is_addition and additions % ADDITIONS_AN_IMAD == 0)
        yield replace(instruction, op="IMAD") if is_shared and is_moved else instruction


def _cost(instruction: Instruction, device: Device) -> Cost:
    latency, op = device.latency_cycles, OPS[instruction.op]
    is_constant = op.kind == "constant" or op.kind == "bank"
    is_uniform_constant = op.unit == "uniform" and is_constant
    pipe, takes, keeps = _unit("uniform_constants" if is_uniform_constant else op.unit, device)
    if isinstance(instruction.detail, MatrixProduct):
        takes, keeps = _tensor_cost(instruction.detail, device)
    elif isinstance(instruction.detail, WarpgroupProduct):
        takes, keeps = _warpgroup_cost(instruction.detail, device)
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
    """Return the issue interval of an instruction in its scheduler, in cycles."""
    if unit == "xu":
        return device.interval_cycles.xu_dispatch
    if unit == "imad_wide":
        return device.interval_cycles.imad_wide_dispatch
    return 1 / max(1, device.sm.issue_width)


def _after(instruction: Instruction, device: Device) -> float:
    """Return the delay after an instruction without a taken branch, in cycles.

    After a fence between blocks it lasts until the warp's earlier accesses are visible.
    """
    latency, op = device.latency_cycles, OPS[instruction.op]
    if op.waits_for_memory and instruction.detail != "block":
        return latency.fence
    if op.kind == "cluster_arrive":
        return latency.cluster_barrier
    if op.kind == "bsync":
        return latency.control + latency.branch
    return latency.control if op.redirects else 0


def _tensor_cost(form: MatrixProduct, device: Device) -> tuple[float, float]:
    """Return latency and interval of a matrix product, in cycles."""
    latency, interval = device.latency_cycles, device.interval_cycles
    if form.sums == "f64":
        keeps = interval.tensor_fp64 * form.k / 4
        return latency.tensor_fp64 + keeps * form.m / 16, keeps
    registers, _, _ = form.registers
    whole = interval.tensor_single if form.sums == "f32" else interval.tensor
    keeps = max(interval.tensor_least, whole * registers / REGISTERS_OF_A)
    takes = latency.tensor - latency.tensor_register * (REGISTERS_OF_A - registers)
    return max(takes, keeps), keeps


def _warpgroup_cost(product: WarpgroupProduct, device: Device) -> tuple[float, float]:
    """Return latency and interval of a warpgroup's product, in cycles.

    Its unit has it no longer than it takes to compute, unless shared memory takes longer to give
    both factors. A result takes the same time in either case (`warpgroup_cycles`, an H200).
    """
    columns = product.form.n * device.interval_cycles.warpgroup_column
    rows = product.form.n + (0 if product.a_in_registers else GROUP_ROWS)
    keeps = max(columns, rows * K_BYTES / (BANKS * WORD_BYTES))
    return device.latency_cycles.warpgroup_product + columns, keeps


def _unit(unit: str, device: Device) -> tuple[str, float, float]:
    """Return pipe, latency and interval of a unit, in cycles."""
    if unit not in _UNITS:
        return unit, device.latency_cycles.alu, 1.0
    pipe, latency, interval = _UNITS[unit]
    if pipe == "imad" and device.cc.major >= _ONE_MULTIPLIER_FROM_CC_MAJOR:
        pipe = "fma"
    return pipe, getattr(device.latency_cycles, latency), getattr(device.interval_cycles, interval)


def slots_with_reads(
    instructions: Sequence[Instruction], slots: Sequence[int], is_narrow: Sequence[bool]
) -> list[int]:
    """Return the ticks of each instruction in its scheduler, including operand reads, by pc.

    An `is_narrow` pipe is occupied longer than the scheduler; `slots` are the ticks without operand
    reads. Warps run the same code, so that the pending reads of one represent those of another.
    """
    free: dict[int, int] = {}  # by bank: the time from which on it is free
    found, now = [], 0
    for instruction, slot, keeps in zip(instructions, slots, is_narrow, strict=True):
        there = now + slot
        for bank, reads in enumerate(instruction.bank_reads):
            if reads:
                free[bank] = max(free.get(bank, 0), now) + reads * TICKS
                there = max(there, free[bank] - (0 if keeps else TICKS))
        found.append(there - now)
        now = there if OPS[instruction.op].issued else now
    return found
