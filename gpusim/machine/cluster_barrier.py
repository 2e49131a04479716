"""The barrier of a thread block cluster: threads arrive, and wait for all of their cluster.

A phase ends when all threads of the cluster that have not exited have arrived (PTX ISA,
barrier.cluster).
"""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import Instruction
from gpusim.machine.barrier import held
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.machine.state import AT_CLUSTER, READY
from gpusim.typing import Array


def arrive(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Let lanes arrive, without waiting."""
    context.report(group, instruction, on)
    np.logical_or.at(context.batch.arrived, group.rows, on[0])
    release(context)


def wait(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Block the active lanes until the phase of their arrival ends."""
    context.report(group, instruction, on)
    held(context, group, on, AT_CLUSTER)
    release(context)
    return True


def release(context: Context) -> None:
    """End the phase of each cluster that has arrived, and release the lanes that wait for one."""
    batch, splits = context.batch, context.batch.splits
    if batch.launch.cluster_blocks == 1:
        return
    arrived, passed = batch.arrived, batch.passed
    missing = (splits.lanes(len(arrived))[0] & ~arrived).any(axis=1)
    of_clusters = missing.reshape(-1, batch.rows_of_cluster).any(axis=1)
    ended = np.repeat(~of_clusters, batch.rows_of_cluster)
    passed[ended] |= arrived[ended]
    arrived[ended] = False
    waiting = np.flatnonzero(splits.state == AT_CLUSTER)
    lanes, rows = splits.mask[0, waiting], splits.row[waiting]
    goes = ~(lanes & ~passed[rows]).any(axis=1)
    which = waiting[goes]
    if len(which):
        np.logical_and.at(passed, rows[goes], ~lanes[goes])
        context.tell_opened(splits.row[which], splits.pc[which])
        splits.pc[which] += 1
        splits.state[which] = READY
