"""The schedulers and their pipes: latencies, intervals, branches, barriers, fetching code."""

from __future__ import annotations

import numpy as np

from ..bench import Bench
from .probing import WARPS, Values, line, probe


def _chain(bench: Bench, operation: str, threads: int = 32) -> float:
    return bench.step("pipes", f"chain<{operation}, LENGTH>", np.int32(1), threads=threads)


def _flood(bench: Bench, operation: str) -> float:
    """Return the issue interval of a warp instruction in its scheduler's unit, in cycles."""
    step = bench.step("pipes", f"flood<{operation}, LENGTH>", np.int32(1), threads=32 * WARPS)
    return step / 4 / (WARPS / 4)


@probe("latency_cycles.alu", "latency_cycles.imad", "latency_cycles.fma", "latency_cycles.fp64")
def latency(bench: Bench) -> Values:
    """One warp, each instruction needing the one before: LOP3, IMAD, FFMA, DFMA."""
    bench.notes["latency_shift"] = _chain(bench, "Shift")
    wanted = ("Logic", "MultiplyAdd", "FloatMultiplyAdd", "DoubleMultiplyAdd")
    return [_chain(bench, operation) for operation in wanted]


@probe("latency_cycles.predicate", "latency_cycles.vote", "latency_cycles.other_pipe")
def between_units(bench: Bench) -> Values:
    """One warp: ISETP and its guarded SHF, less SHF; ISETP and VOTE; LOP3 and IMAD in turn."""
    alu, imad = _chain(bench, "Logic"), _chain(bench, "MultiplyAdd")
    guarded, vote = _chain(bench, "Guard"), _chain(bench, "Vote")
    choice, both = _chain(bench, "Choice"), _chain(bench, "Then<Logic, MultiplyAdd>")
    bench.notes["chains"] = {
        "isetp_guarded_shf": guarded,
        "isetp_sel": choice,
        "isetp_vote": vote,
        "lop3_imad": both,
    }
    return [guarded - alu, vote - (choice - alu), max(0.0, (both - alu - imad) / 2)]


@probe("latency_cycles.xu", "interval_cycles.xu")
def special_functions(bench: Bench) -> Values:
    """MUFU.EX2, each needing the one before, by one warp; four independent chains by 32 warps."""
    return [_chain(bench, "Exponential"), _flood(bench, "Exponential")]


@probe("interval_cycles.xu_dispatch", "interval_cycles.imad_wide_dispatch")
def dispatch(bench: Bench) -> Values:
    """A conversion behind 24 independent FFMA, or IMAD.HI behind LOP3, by 32 warps: added cycles.

    Between two LOP3 there is an issue slot for others, which IMAD.HI takes as well.
    """

    def added(operation: str, other: str) -> float:
        beside, alone = (
            bench.step(
                "pipes",
                f"beside<{operation}, {behind}, LENGTH>",
                np.int32(1),
                threads=32 * WARPS,
                lengths=(4, 8),
            )
            for behind in (other, "Nothing")
        )
        return (beside - alone) / (WARPS / 4)

    return [added("FloatMultiplyAdd", "Conversion"), 1 + added("Logic", "MultiplyHigh")]


@probe("interval_cycles.alu", "interval_cycles.imad", "interval_cycles.fma", "interval_cycles.fp64")
def throughput(bench: Bench) -> Values:
    """32 warps on one SM, four independent chains each: LOP3, IMAD, FFMA, DFMA."""
    bench.notes["interval_shift"] = _flood(bench, "Shift")
    bench.notes["interval_isetp_sel"] = _flood(bench, "Choice")
    bench.notes["interval_lop3_imad"] = _flood(bench, "Then<Logic, MultiplyAdd>")
    wanted = ("Logic", "MultiplyAdd", "FloatMultiplyAdd", "DoubleMultiplyAdd")
    return [_flood(bench, operation) for operation in wanted]


@probe("latency_cycles.imad_wide", "interval_cycles.imad_wide")
def wide_multiplication(bench: Bench) -> Values:
    """One warp: chains of mul.hi and of mad.hi, the mean of both; mul.hi by 32 warps."""
    chains = [_chain(bench, operation) for operation in ("MultiplyHigh", "MultiplyHighAdd")]
    bench.notes["chains_of_wide_multiplication"] = chains
    return [sum(chains) / 2, _flood(bench, "MultiplyHigh")]


@probe(
    "latency_cycles.tensor", "latency_cycles.tensor_register", "latency_cycles.tensor_fp64",
    "interval_cycles.tensor", "interval_cycles.tensor_single", "interval_cycles.tensor_least",
    "interval_cycles.tensor_fp64",
)  # fmt: skip
def tensor_cores(bench: Bench) -> Values:
    """Matrix products, each adding to the one before, by one warp; four chains by 8 warps.

    m16n8k16 and m16n8k8 of halves differ by two registers of A, m8n8k4 of doubles has half of the
    rows. GPUs before compute capability 8.0 lack some of them, and the probe is left out there.
    """
    names = "ProductOfFourInHalves", "ProductOfFour", "ProductOfTwo", "ProductOfDoubles"
    floods = [
        bench.step("pipes", f"flood<{one}, LENGTH>", np.int32(1), threads=32 * 8) / 4 / 2
        for one in names
    ]
    _, whole, half, double = (_chain(bench, name) for name in names)
    return [whole, (whole - half) / 2, double - floods[3] / 2, *floods]


@probe("latency_cycles.warpgroup_product", "interval_cycles.warpgroup_column")
def warpgroup_products(bench: Bench) -> Values:
    """One warpgroup: groups of 1, 9 and 17 products, all of one sum, each group awaited.

    What eight products take more, of 128 columns than of 64: by column. A group of one product,
    less its columns and the stall counts of WARPGROUP.ARRIVE, 6, and of the wait, 2. GPUs without
    wgmma lack it, and the probe is left out there.
    """
    times = {
        columns: [
            bench.step(
                "warpgroups",
                f"products<Columns{columns}, {products}, LENGTH>",
                threads=128,
                lengths=(2, 4),
            )
            for products in (1, 9, 17)
        ]
        for columns in (64, 128)
    }
    bench.notes["warpgroup_products_awaited"] = times
    steps = {columns: (of[2] - of[1]) / 8 for columns, of in times.items()}
    column = (steps[128] - steps[64]) / 64
    return [sum(of[0] - column * columns for columns, of in times.items()) / 2 - 8, column]


@probe("interval_cycles.adu")
def address_unit(bench: Bench) -> Values:
    """LDC by 32 warps, each needing the one before of its warp: cycles of the SM for one."""
    step = bench.step("pipes", "constants<LENGTH>", np.int32(0), threads=32 * WARPS)
    return [step / WARPS]


@probe("latency_cycles.special_register", "latency_cycles.constant")
def registers_and_constants(bench: Bench) -> Values:
    """One warp: S2R behind an ISETP, less the latency to guard; LDC by LDC, less an IMAD."""
    guard = _chain(bench, "Guard") - _chain(bench, "Logic")
    constant = bench.step("pipes", "constants<LENGTH>", np.int32(0))
    return [_chain(bench, "SpecialRegister") - guard, constant - _chain(bench, "MultiplyAdd")]


@probe("latency_cycles.branch")
def taken_branch(bench: Bench) -> Values:
    """One warp: loops of 32, 64, 128 independent FFMA; an iteration's cycles beyond them, less 3.

    The 3 are the loop's own addition, comparison and branch. A chain of dependent FFMA beside it
    shows the part of the loss hidden by other waits.
    """

    def iteration(expression: str) -> float:
        times = [
            bench.span("pipes", expression, np.int32(iterations), np.int32(1))
            for iterations in (100, 300)
        ]
        return (times[1] - times[0]) / 200

    lengths = (8, 16, 32)
    loops = {4 * k: iteration(f"flood<FloatMultiplyAdd, {k}>") for k in lengths}
    bench.notes["loop_of_independent_ffma"] = loops
    bench.notes["loop_of_dependent_ffma"] = {
        k: iteration(f"chain<FloatMultiplyAdd, {k}>") for k in lengths
    }
    beyond, _ = line([(float(k), cycles) for k, cycles in loops.items()])
    return [max(0.0, beyond - 3)]


@probe("latency_cycles.barrier", "latency_cycles.barrier_per_warp")
def barriers(bench: Bench) -> Values:
    """One block meets at barriers without work between: the line through 2 to 32 warps."""
    times = {w: _chain(bench, "Barrier", 32 * w) for w in (1, 2, 4, 8, 12, 16, 24, 32)}
    bench.notes["barrier_by_warps"] = times
    bench.notes["barrier_of_several_blocks_on_an_sm"] = {
        f"{blocks} blocks of {warps} warps": _meetings(bench, blocks, warps)
        for blocks, warps in ((1, 8), (2, 8), (4, 8), (8, 8), (32, 2), (16, 4), (2, 32), (4, 16))
    }
    return line([(float(w), t) for w, t in times.items() if w > 1])


def _meetings(bench: Bench, blocks: int, warps: int) -> float:
    """Return cycles of a barrier with `blocks` blocks of `warps` warps on each SM."""
    kernel = bench.probe("launch", "meet<long long>")
    grid = blocks * bench.sms
    spans = []
    for iterations in (8, 24):
        memory = bench.stamps(4 * grid)
        kernel(memory, np.int32(iterations), grid=(grid, 1, 1), block=(32 * warps, 1, 1))
        stamps = bench.read(memory, 4 * grid).reshape(grid, 4)
        spans.append(float(np.median(stamps[:, 3] - stamps[:, 1])))
    return (spans[1] - spans[0]) / (16 * 32)


@probe("latency_cycles.shuffle", "interval_cycles.shuffle")
def shuffles(bench: Bench) -> Values:
    """SHFL by one warp, each needing the one before; independent ones by 32 warps, per SM."""
    return [_chain(bench, "Shuffle"), _flood(bench, "Shuffle") / 4]


@probe()
def instruction_fetch(bench: Bench) -> Values:
    """One warp runs code for the first time, with the L2 emptied before and not."""
    found = {}
    for length in (32, 64, 128, 256, 512, 1024, 2048):
        expression = f"straight<{length}>"
        arguments = (np.int32(1), np.int32(1))
        cold = bench.spans("pipes", expression, *arguments, before=bench.backend.empty_l2)
        found[length] = {"emptied": cold, "not": bench.spans("pipes", expression, *arguments)}
    bench.notes["straight_code"] = found
    return []
