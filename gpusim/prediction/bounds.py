"""What a launch would take if one thing alone limited it: the walls of the roofline, in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.device import Device
from gpusim.isa import OPS, Instruction
from gpusim.prediction.clock.costs import instruction_costs
from gpusim.prediction.memory import MemoryShare
from gpusim.prediction.streams import BlockStream, Classes
from gpusim.prediction.ticks import TICKS
from gpusim.prediction.traffic import Traffic
from gpusim.prepared import Prepared

Array = np.ndarray[Any, Any]

WAITING = "waiting"  # the bound of blocks that wait for each other


@dataclass(frozen=True)
class Bound:
    """A limit and the least time it allows, in microseconds."""

    name: str
    time_us: float


_ABLATED = {
    "bandwidth": ("L2", "DRAM"),
    "block-launch": ("block launch",),
    "bank-conflicts": ("shared memory",),
}


def bounds_of(
    prepared: Prepared,
    classes: Classes,
    device: Device,
    share: MemoryShare,
    traffic: Traffic,
) -> tuple[Bound, ...]:
    """Return the least time by issue, shared memory, L2, DRAM and block launches."""
    program, launch = prepared.program, prepared.launch
    clock, interval = device.gpu.sm_clock_mhz, device.interval_cycles
    slot = np.array([cost.slot for cost in instruction_costs(program, device)]) / TICKS
    is_shared = np.array([_is_shared_access(one) for one in program.instructions])
    issue = shared = 0.0
    for block_class in classes.classes:
        work = _work(block_class.stream, slot, is_shared)
        issue += block_class.blocks * work[0]
        shared += block_class.blocks * work[1]
    through_l2 = traffic.l2_bytes + traffic.dram_bytes
    through_dram = traffic.moved_bytes + traffic.written_back_bytes * share.write_factor
    sms = share.sms
    blocks_on_sm = -(-launch.blocks // sms)
    by_name = {
        "issue": issue / sms / device.sm.schedulers,
        "shared memory": shared * interval.shared_wavefront / sms,
        "L2": through_l2 / sms / share.l2_bytes_per_cycle,
        "DRAM": through_dram / sms / share.dram_bytes_per_cycle,
        "block launch": blocks_on_sm * interval.block_completion,
    }
    for mechanism, names in _ABLATED.items():
        if mechanism in device.ablations:
            by_name.update(dict.fromkeys(names, 0.0))
    return tuple(Bound(name, cycles / clock) for name, cycles in by_name.items())


def _work(stream: BlockStream, slot: Array, is_shared: Array) -> tuple[float, float]:
    """Return a block's scheduler cycles and shared-memory wavefronts.

    `slot` has the scheduler cycles of each pc, `is_shared` says which pcs access shared memory.
    """
    slots = wavefronts = 0.0
    for warp in stream.warps:
        slots += float(warp.times @ slot[warp.pc])
        wavefronts += int(warp.times @ np.where(is_shared[warp.pc], warp.cost, 0))
    return slots, wavefronts


def _is_shared_access(instruction: Instruction) -> bool:
    found = instruction.memory
    shared = found is not None and found.space == "shared"
    return shared and OPS[instruction.op].kind != "atomic"
