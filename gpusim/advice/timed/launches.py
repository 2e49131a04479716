"""The shape of a launch: occupancy, blocks, waves, overhead; code longer than its cache."""

from __future__ import annotations

from collections.abc import Iterator

from gpusim.advice.evidence import Evidence
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule
from gpusim.advice.timed.waiting import is_waiting
from gpusim.launch.grid import WARP_SIZE
from gpusim.prediction.bounds import LAUNCH_OVERHEAD
from gpusim.prediction.clock.code_fetch import code_bytes

LOW_OCCUPANCY = 0.5
BINDING = 0.5  # of the time that the bound of block launches has to be
LARGE_TAIL = 0.1
FEW_WAVES = 4
IDLE_SMS = frozenset({"latency", "dependent-instructions", "long-scoreboard", "occupancy"})


@rule("occupancy", removal="occupancy")
def occupancy(evidence: Evidence) -> Iterator[Advice]:
    """Few warps on an SM, because of registers, shared memory or the number of blocks."""
    made = evidence.prediction
    if made is None or not is_waiting(made):
        return
    held = made.occupancy
    waves = made.launch.blocks / made.device.gpu.sms
    if held.fraction >= LOW_OCCUPANCY or waves <= held.blocks or held.limit == "threads":
        return
    yield Advice(
        "occupancy",
        0,
        f"{held.warps} of {made.device.sm.max_threads // WARP_SIZE} warps are resident on an SM, "
        f"limited by {held.limit}, at {held.blocks} blocks.",
        (1 - held.fraction) * evidence.cycles,
        explains=frozenset({"long-scoreboard"}),
    )


@rule("small-blocks", removal="small-blocks")
def small_blocks(evidence: Evidence) -> Iterator[Advice]:
    """Blocks so small that an SM spends its time on their launch, or has too few places."""
    made = evidence.prediction
    if made is None:
        return
    bound = next((b.time_us for b in made.bounds if b.name == "block launch"), 0.0)
    warps = made.launch.warps_per_block
    most = made.device.sm.max_threads // WARP_SIZE // made.device.sm.max_blocks
    if bound < BINDING * made.time_us or warps >= most:
        return
    yield Advice(
        "small-blocks",
        0,
        f"Blocks of {made.launch.threads_per_block} threads: their launch alone takes "
        f"{100 * bound / made.time_us:.0f} % of the time; blocks of {4 * most * WARP_SIZE} threads "
        "would need fewer.",
        bound / made.time_us * max(1.0, evidence.cycles) * 10,
        explains=frozenset({"occupancy", "dependent-instructions"}),
    )


@rule("few-blocks", removal="few-blocks")
def few_blocks(evidence: Evidence) -> Iterator[Advice]:
    """A grid that leaves SMs, or most of their places, empty."""
    made = evidence.prediction
    if made is None:
        return
    sms, blocks = made.device.gpu.sms, made.launch.blocks
    places = made.occupancy.blocks * sms
    if blocks < sms:
        few = "1 block leaves" if blocks == 1 else f"{blocks:,} blocks leave"
        message = f"Small grid: {few} {sms - blocks} of {sms} SMs idle."
    elif blocks < (1 - LARGE_TAIL) * places:
        part = f"{100 * blocks / places:.0f} % of a wave"
        message = f"Small grid: {part}; a full one has {places:,} blocks."
    else:
        return
    yield Advice(
        "few-blocks",
        0,
        message,
        sms / blocks * max(1.0, evidence.cycles),
        explains=IDLE_SMS if blocks < sms else frozenset(),
    )


@rule("launch-overhead")
def launch_overhead(evidence: Evidence) -> Iterator[Advice]:
    """A launch with more overhead than work."""
    made = evidence.prediction
    if made is None or made.limiter.name != LAUNCH_OVERHEAD:
        return
    part = made.overhead_us / made.time_us
    yield Advice(
        "launch-overhead",
        0,
        f"{100 * part:.0f} % of the duration is overhead of the launch. Fix: more work per "
        "launch, or fewer launches.",
        part * max(1.0, evidence.cycles),
    )


@rule("tail", removal="tail")
def tail(evidence: Evidence) -> Iterator[Advice]:
    """A last wave of blocks that leaves most places empty."""
    made = evidence.prediction
    if made is None:
        return
    places = made.occupancy.blocks * made.device.gpu.sms
    waves = -(-made.launch.blocks // places)
    idle = 1 - made.launch.blocks / (waves * places)
    if waves < 2 or waves > FEW_WAVES or idle <= LARGE_TAIL:
        return
    yield Advice(
        "tail",
        0,
        f"The last wave leaves {100 * idle:.0f} % of the block slots idle. Fix: a "
        f"multiple of {places:,} blocks.",
        idle * evidence.cycles,
    )


@rule("instruction-fetch", removal="instruction-fetch")
def instruction_fetch(evidence: Evidence) -> Iterator[Advice]:
    """Code that the instruction caches do not hold."""
    made = evidence.prediction
    if made is None:
        return
    prepared, held = made.prepared, made.device.capacity.instruction_bytes
    size = code_bytes(prepared.program, prepared.cc)
    if size <= held:
        return
    by_line = {line: float(evidence.runs[pcs].sum()) for line, pcs in evidence.pcs_by_line()}
    line = max(by_line, key=lambda number: (by_line[number], -number), default=0)
    yield Advice(
        "instruction-fetch",
        line,
        f"line {line}: the code has {size:,} bytes, the SM's instruction caches {held:,}; less "
        "unrolling makes it fit.",
        0.5 * evidence.issued_cycles,
        explains=frozenset({"dependent-instructions"}),
    )
