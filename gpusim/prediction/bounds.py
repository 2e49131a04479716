"""Lower bounds of a launch's duration, one for each limiter: the roofline model in time."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace

import numpy as np

from gpusim.gpu.device import Device
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.prepared import Prepared
from gpusim.prediction.arithmetic.inner_product import inner
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.clock.costs import instruction_costs
from gpusim.prediction.memory import MemoryShare
from gpusim.prediction.memory.atomics import AtomicLoad
from gpusim.prediction.streams import BlockStream, Classes, InstructionTable, WarpStream
from gpusim.prediction.traffic import Traffic
from gpusim.typing import Array

LAUNCH_OVERHEAD = "launch overhead"
SPINNING = "spinning"  # the lower bound of blocks that spin on each other


@dataclass(frozen=True)
class Bound:
    """A limiter and its lower bound, in microseconds."""

    name: str
    time_us: float


_ABLATED = {
    "bandwidth": ("L2", "DRAM"),
    "block-launch": ("block launch",),
    "bank-conflicts": ("shared memory",),
    "atomics": ("atomics",),
}


@dataclass(frozen=True)
class _Costs:
    """Costs of instructions by pc: cycles of schedulers and tensor cores, L2 cycles of atomics.

    An access to shared memory takes `shared` cycles, and `conflict` for each further wavefront.

    A pass takes `pass_cycles`, the units of other groups in the mean `others_cycles`, both times
    `whole_sector` on a whole sector; a floating-point atomic at least `sector_cycles` for each pass
    on the sector of the one before it: its own, and with the probability `same_sector` that of
    another request.
    """

    slot: Array
    tensor: Array
    shared: Array
    conflict: Array
    is_constant: Array
    pass_cycles: Array
    others_cycles: Array
    sector_cycles: Array
    same_sector: Array
    group: Array
    whole_sector: float

    @classmethod
    def of(cls, program: Program, device: Device, share: MemoryShare) -> _Costs:
        """Return the costs of a program's instructions on a device."""
        rows, interval = program.instructions, device.interval_cycles
        none = AtomicLoad(math.inf)
        loads = [share.atomics.get(pc, none) for pc in range(len(rows))]
        at_once = np.array([one.at_once for one in loads])
        answering = np.array([share.answering.get(pc, 0.0) for pc in range(len(rows))])
        is_float = [row.memory is not None and row.memory.dtype.kind == "f" for row in rows]
        costs = instruction_costs(program, device)
        shared, conflict = np.transpose([_shared_cycles(row, device) for row in rows])
        float_cycles = interval.global_atomic_float_same_address * np.array(is_float)
        return cls(
            slot=np.array([cost.slot for cost in costs]) / TICKS,
            tensor=np.array([cost.interval * (cost.pipe == "tensor") for cost in costs]) / TICKS,
            shared=shared,
            conflict=conflict,
            is_constant=np.array([OPS[row.op].action == "constant" for row in rows]),
            pass_cycles=interval.global_atomic_same_address * (1 / at_once + answering),
            others_cycles=interval.global_atomic_same_address
            * (1 / device.bandwidth.l2_atomic_units + answering),
            sector_cycles=float_cycles / at_once,
            same_sector=np.array([one.same_sector for one in loads]),
            group=np.array([one.group for one in loads]),
            whole_sector=interval.global_atomic_whole_sector,
        )


@dataclass(frozen=True)
class _Work:
    """Work of blocks: cycles of schedulers, tensor cores, shared memory and L2; constants.

    The cycles of `atomics` are those of each of their groups.
    """

    issue: float = 0.0
    tensor: float = 0.0
    shared: float = 0.0
    constants: float = 0.0
    atomics: Array | float = 0.0

    def __add__(self, more: _Work) -> _Work:
        return _Work(
            self.issue + more.issue,
            self.tensor + more.tensor,
            self.shared + more.shared,
            self.constants + more.constants,
            self.atomics + more.atomics,
        )

    def times(self, blocks: int) -> _Work:
        """Return the work of a number of blocks."""
        return _Work(*(blocks * one for one in astuple(self)))


def bounds_of(
    prepared: Prepared, classes: Classes, device: Device, share: MemoryShare, traffic: Traffic
) -> tuple[Bound, ...]:
    """Return the lower bound of a launch's duration by each limiter."""
    clock, interval = device.gpu.sm_clock_mhz, device.interval_cycles
    costs = _Costs.of(prepared.program, device, share)
    works = _Works(costs)
    work = sum((works.of(one.stream).times(one.blocks) for one in classes.classes), start=_Work())
    through_l2 = traffic.l2_bytes + traffic.dram_bytes
    through_dram = traffic.moved_bytes + traffic.written_back_bytes * share.write_factor
    sms = share.sms
    blocks_on_sm = -(-prepared.launch.blocks // sms)
    by_name = {
        "issue": work.issue / sms / device.sm.schedulers,
        "shared memory": work.shared / sms,
        "constants": work.constants * interval.adu / sms,
        "atomics": float(np.max(work.atomics)),
        "L2": through_l2 / sms / share.l2_bytes_per_cycle,
        "DRAM": through_dram / sms / share.dram_bytes_per_cycle,
        "block launch": blocks_on_sm * interval.block_completion,
    }
    if work.tensor:
        by_name["tensor cores"] = work.tensor / sms / device.sm.schedulers
    for mechanism, names in _ABLATED.items():
        if mechanism in device.ablations:
            by_name.update(dict.fromkeys(names, 0.0))
    return tuple(Bound(name, cycles / clock) for name, cycles in by_name.items())


class _Works:
    """The work of blocks: that of a warp is worked out once, and that of a table's rows."""

    def __init__(self, costs: _Costs) -> None:
        self._costs = costs
        self._of_warps: dict[int, _Work] = {}
        self._of_tables: dict[int, dict[str, Array]] = {}

    def of(self, stream: BlockStream) -> _Work:
        """Return the work of a block."""
        return sum(map(self._of_warp, stream.warps), start=_Work())

    def _of_warp(self, warp: WarpStream) -> _Work:
        if id(warp) not in self._of_warps:
            table = id(warp.table)
            if table not in self._of_tables:
                self._of_tables[table] = _of_rows(warp.table, self._costs)
            rows = self._of_tables[table]
            sums = {n: float(warp.total(rows[n])) for n in rows if n != "atomics"}
            found = _Work(**sums)
            if "atomics" in rows:
                groups = [inner(warp.times, one.take(warp.numbers)) for one in rows["atomics"]]
                found = replace(found, atomics=np.array(groups))
            self._of_warps[id(warp)] = found
        return self._of_warps[id(warp)]


def _of_rows(table: InstructionTable, costs: _Costs) -> dict[str, Array]:
    """Return the work of a table's rows, without what none of them does.

    A pass over a whole sector takes less time in the L2.
    """
    pc, asked = table.columns["pc"], table.columns["cost"]
    sectors = np.maximum(table.columns["lines"], 1)
    passes = np.where(asked > sectors, asked, asked * costs.whole_sector)
    again = np.where(asked > 0, asked / sectors - 1 + costs.same_sector[pc], 0)
    atomics = np.maximum(passes * costs.pass_cycles[pc], again * costs.sector_cycles[pc])
    others = np.minimum(atomics, passes * costs.others_cycles[pc])
    groups = np.arange(costs.group.max(initial=0) + 1)[:, None]
    # In all of them but the last one a sum is exact: they are sixteenths of cycles, or whole.
    work = {
        "issue": costs.slot[pc],
        "tensor": costs.tensor[pc],
        "shared": np.where(asked > 0, costs.shared[pc] + (asked - 1) * costs.conflict[pc], 0),
        "constants": np.where(costs.is_constant[pc], np.maximum(asked, 1), 0),
        "atomics": np.where(costs.group[pc] == groups, atomics, others),
    }
    return {name: column for name, column in work.items() if column.any()}


def _shared_cycles(instruction: Instruction, device: Device) -> tuple[float, float]:
    """Return the cycles of an access to shared memory, and of a further wavefront; else zeros."""
    found, kind = instruction.memory, OPS[instruction.op].kind
    if found is None or found.space != "shared" or kind == "atomic":
        return 0.0, 0.0
    interval = device.interval_cycles
    further = interval.shared_store_conflict if kind == "store" else interval.shared_wavefront
    return ticks(interval.shared_wavefront) / TICKS, ticks(further) / TICKS
