"""Loops with little in their bodies, and threads with few elements."""

from __future__ import annotations

from collections.abc import Iterator

from gpusim.advice.evidence import Evidence
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule
from gpusim.advice.timed.waiting import nearness
from gpusim.isa.ops import OPS
from gpusim.launch.grid import WARP_SIZE
from gpusim.prediction.removals.mechanisms.loops import COARSER
from gpusim.program.loops import control

NEAR = 0.9  # of the nearest limit: more work of each thread moves no more
LEAST_CONTROL = 0.05  # of the instructions of a block's warps
FEW_BYTES = 16  # loaded by a thread: what one vector load brings (CUDA's programming guide, 5.3.2)


@rule("loop-overhead", removal="loop-overhead")
def loop_overhead(evidence: Evidence) -> Iterator[Advice]:
    """Loops that count, compare and branch for a large part of their instructions."""
    made = evidence.prediction
    if made is None:
        return
    rows = evidence.instructions
    for branch, pcs in control(made.prepared.program).items():
        cost = evidence.issue_cycles(pcs)
        if cost < LEAST_CONTROL * evidence.issued_cycles:
            continue
        line = max((rows[pc].line, pc) for pc in pcs if rows[branch].guard in rows[pc].dst)[0]
        times = evidence.runs[branch] / made.launch.warps_per_block
        yield Advice(
            "loop-overhead",
            line,
            f"line {line}: counter, comparison and branch of its loop are "
            f"{100 * cost / evidence.issued_cycles:.0f} % of the instructions, in {times:,.3g} "
            "iterations of a warp; with a trip count known at compile time the loop is unrolled.",
            cost,
        )


@rule("fine-grain", removal="fine-grain")
def fine_grain(evidence: Evidence) -> Iterator[Advice]:
    """Threads with so few elements that their other instructions take most of the time."""
    made = evidence.prediction
    if made is None or nearness(made) > NEAR:
        return
    launch, places = made.launch, made.occupancy.blocks * made.device.gpu.sms
    each = _bytes_of_a_thread(evidence)
    if launch.blocks < COARSER * places or not 0 < each <= FEW_BYTES:
        return
    issued = float(evidence.runs.sum()) / launch.warps_per_block
    yield Advice(
        "fine-grain",
        0,
        f"A warp runs {issued:,.0f} instructions for {each:.3g} loaded bytes of each thread, in "
        f"{launch.blocks:,} blocks. Fix: thread coarsening; a loop over "
        f"{COARSER} times the elements, in fewer blocks.",
        evidence.issued_cycles,
    )


def _bytes_of_a_thread(evidence: Evidence) -> float:
    """Return the mean bytes of global memory requested by a thread."""
    assert evidence.prediction is not None
    asked = 0.0
    for pc, row in enumerate(evidence.instructions):
        if row.memory is not None and row.memory.space == "global" and OPS[row.op].kind == "load":
            lanes = evidence.runs[pc] * evidence.fraction_on[pc] * WARP_SIZE
            asked += float(lanes) * row.memory.width_bytes
    return asked / evidence.prediction.launch.threads_per_block
