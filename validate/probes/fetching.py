"""Fetches of an SM besides data: constants, parameters, instructions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.typing import Array

from ..bench import Bench
from .probing import KB, WARPS, Values, line, probe

APART_BYTES = 64
LATER = 3  # rounds; the last one counts
INSTRUCTION_BYTES = 16
LINE_INSTRUCTIONS = 8
CONSTANT_KB = (1, 2, 3, 4, 16, 64)
CODE_KB = (16, 24, 32, 48, 64, 112, 128, 192)


def _constants(bench: Bench, uniform: str, kilobytes: int, apart: int = APART_BYTES) -> Array:
    """Return the cycles of loads of constants, a row for each round, after emptying the L2."""
    count = kilobytes * KB // apart
    told = bench.told(
        "fetching",
        f"constants<{uniform}>",
        LATER * count,
        np.int32(count),
        np.int32(apart // 4),
        np.int32(LATER),
        np.uint32(0),
        block=1,
        before=bench.backend.empty_l2,
    )
    return told.reshape(LATER, count)


@probe("interval_cycles.constant_lookup")
def constants_of_a_load(bench: Bench) -> Values:
    """A warp loads 1 to 32 different constants by one LDC, each waiting for the one before.

    The slope of the fitted line.
    """
    notes = {}
    for apart in (1, 16):
        for lanes in (1, 2, 4, 8, 16, 32):
            spans = [
                bench.span(
                    "fetching", "looked_up<long long>", np.int32(lanes), np.int32(apart),
                    np.int32(rounds),
                )
                for rounds in (32, 96)
            ]  # fmt: skip
            notes[apart, lanes] = (spans[1] - spans[0]) / 64
    bench.notes["cycles_of_a_load_by_words_between_constants_and_their_number"] = {
        f"{apart} words apart, {lanes}": cycles for (apart, lanes), cycles in notes.items()
    }
    points = [(float(lanes), cycles) for (apart, lanes), cycles in notes.items() if apart == 1]
    return [max(0.01, line(points)[1])]


@probe("latency_cycles.constant_l15", "capacity.constant_bytes", "capacity.constant_piece_bytes")
def constant_caches(bench: Bench) -> Values:
    """A thread cycles through 1 to 64 KB of constants by LDC, 64 bytes apart, each after the other.

    The additional time of 64 KB over 1 KB, and the largest size with less than half of it. Out of
    DRAM, the bytes per late load: later than halfway to the latest. Also by ULDC, and a kernel's
    parameters.
    """
    notes: dict[str, Any] = {}
    later = {}
    for name, uniform in (("ULDC", "true"), ("LDC", "false")):
        for kilobytes in CONSTANT_KB:
            rows = _constants(bench, uniform, kilobytes)
            piece = late_one_in(rows[0]) * APART_BYTES
            notes[f"{name}, {kilobytes} KB: bytes of which one is late"] = piece
            means = [float(row.mean()) for row in rows]
            notes[f"{name}, {kilobytes} KB"] = {"cold": means[0], "later": means[-1]}
            later[kilobytes] = means[-1]
        cold = _constants(bench, uniform, 64, 256)[0]
        notes[f"{name}, cold, 256 bytes apart"] = float(cold.mean())
    told = bench.told(
        "fetching", "parameters<false>", 62, np.int32(62), np.int32(16), np.int32(1), np.uint32(0),
        np.void(bytes(4000)), block=1, before=bench.backend.empty_l2,
    )  # fmt: skip
    notes["parameters"] = float(told[1:].mean())
    bench.notes["cycles_of_constants"] = notes
    near, far = later[min(CONSTANT_KB)], later[max(CONSTANT_KB)]
    held = [kb for kb in CONSTANT_KB if later[kb] < (near + far) / 2]
    return [max(0.0, far - near), max(held, default=min(CONSTANT_KB)) * KB, piece]


@probe()
def constants_of_many_warps(bench: Bench) -> Values:
    """Warps of each SM go around 1 to 64 KB of constants by LDC, from one place or each its own.

    Cycles of an SM per load of a warp.
    """
    bench.notes["cycles_of_an_sm_per_load_of_constants"] = {
        f"{apart} words apart, {kb} KB, {warps} warps, {'apart' if is_apart else 'in step'}": (
            _of_warps(bench, kb, apart, warps, is_apart)
        )
        for apart in (4, 16)
        for kb in CONSTANT_KB
        for warps in (1, 4, 8, 16, WARPS)
        for is_apart in (False, True)
    }
    return []


def _of_warps(bench: Bench, kb: int, apart: int, warps: int, is_apart: bool) -> float:
    """Return SM cycles per load of a warp, with the same warps on all SMs."""
    words = kb * KB // 4
    times = [
        bench.time_us(
            bench.probe("fetching", "constants_of_warps<unsigned>"),
            np.uint32(words - 1),
            np.uint32(apart),
            np.uint32(words // warps if is_apart else 0),
            np.int32(loads),
            np.uint32(0),
            bench.stamps(1),
            grid=bench.sms,
            block=32 * warps,
            cold=False,
            repetitions=3,
        )
        for loads in (512, 1536)
    ]
    return (times[1] - times[0]) * bench.clock_mhz / (1024 * warps)


def late_one_in(cycles: Array) -> int:
    """Return the number of loads per late load, a power of two."""
    early, late = np.quantile(cycles, (0.1, 0.95))
    part = float((cycles > (early + late) / 2).mean())
    return int(2 ** np.round(np.log2(1 / part))) if part else 1


@probe(
    "interval_cycles.instruction_line",
    "interval_cycles.instruction_line_l2",
    "interval_cycles.instruction_line_dram",
    "capacity.instruction_bytes",
    "capacity.l15_bytes",
)
def straight_code(bench: Bench) -> Values:
    """A warp runs straight-line code of 16 to 192 KB repeatedly: cycles per 128 bytes.

    For 64 KB, then 192 KB, and the latter's first round, with an empty L2. The last two keys are
    the largest sizes with less than half the additional time of 64 KB, and of 192 KB.
    """
    counts = {kb: kb * KB // INSTRUCTION_BYTES for kb in CODE_KB}
    bench.prepare("fetching", *(f"code<{count}>" for count in counts.values()))
    first, later = {}, {}
    for kb, count in counts.items():
        told = bench.told(
            "fetching", f"code<{count}>", LATER, np.int32(LATER), np.float32(1), np.float32(0),
            before=bench.backend.empty_l2,
        )  # fmt: skip
        rows = (told * LINE_INSTRUCTIONS / count).tolist()
        first[kb], later[kb] = rows[0], rows[-1]
    bench.notes["cycles_of_128_bytes_of_code_by_kb"] = {"first": first, "later": later}
    middle, most = later[64], later[max(CODE_KB)]
    alone = LINE_INSTRUCTIONS
    held = [kb for kb in CODE_KB if later[kb] < (alone + middle) / 2]
    behind = [kb for kb in CODE_KB if later[kb] < (middle + most) / 2]
    sizes = [max(kept, default=min(CODE_KB)) * KB for kept in (held, behind)]
    return [middle, max(middle, most), max(most, first[max(CODE_KB)]), *sizes]
