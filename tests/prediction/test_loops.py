"""Loops whose iterations are all alike are kept once: exactly where they are, and nowhere else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from strategies import ENTRIES

from gpusim import cuda
from gpusim.catalogue import Request
from gpusim.codegen.programs import prepare
from gpusim.cuda import Kernel
from gpusim.gpu import device
from gpusim.launch.arguments import array_spec
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.predict import predict, predict_prepared
from gpusim.prediction.records import Prediction
from gpusim.prediction.streams import BlockStream, Classes, classify, folding
from gpusim.prediction.sweeps.jobs import Job, KernelLaunch, catalogue_job
from gpusim.prediction.workload import Budget
from gpusim.program.polling import spins

CC = ComputeCapability(9, 0)
H200 = device.load("h200")
COLUMNS = ("pc", "is_on", "is_taken", "cost", "lines", "fresh", "written", "joins", "lanes")


@pytest.fixture(autouse=True)
def short_loops_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold blocks of few instructions too: small launches show what is lost."""
    monkeypatch.setattr(folding, "FEWEST_INSTRUCTIONS", 64)


def classes_of(launch: KernelLaunch, *, folds: bool, level: str = "O3") -> Classes:
    return classify(prepare(launch.configured, launch.arguments, CC, level), folds=folds)


def own(kernel: Kernel, grid: object, block: object, *args: object) -> KernelLaunch:
    return KernelLaunch(kernel[grid, block], args)  # type: ignore[index]


def rows(stream: BlockStream, *, in_order: bool) -> list[list[tuple[object, ...]]]:
    """Return what each warp runs with its loops written out, an instruction a row."""
    found = []
    for warp in stream.warps:
        whole = warp.written_out(lambda _, times: times)
        columns = [getattr(whole, name).tolist() for name in COLUMNS]
        made = list(zip(*columns, strict=True))
        found.append(made if in_order else sorted(made))
    return found


def fresh_sectors(stream: BlockStream) -> Counter[int]:
    """Return the sectors that no warp of the block touched before, by pc."""
    found: Counter[int] = Counter()
    for warp in stream.warps:
        whole = warp.written_out(lambda _, times: times)
        for pc, fresh in zip(whole.pc.tolist(), whole.fresh.tolist(), strict=True):
            found[pc] += fresh
    return found


def expect_alike(launch: KernelLaunch, *, in_order: bool = True, level: str = "O3") -> None:
    """Expect loops that are kept once to be, written out, what is run in full."""
    short = classes_of(launch, folds=True, level=level)
    whole = classes_of(launch, folds=False, level=level)
    assert [c.ranges for c in short.classes] == [c.ranges for c in whole.classes]
    for one, other in zip(short.classes, whole.classes, strict=True):
        assert not other.stream.loops
        assert one.stream.instructions == other.stream.instructions
        assert one.stream.fresh_sectors == other.stream.fresh_sectors
        ours, theirs = (rows(each.stream, in_order=in_order) for each in (one, other))
        assert ours == theirs
        assert fresh_sectors(one.stream) == fresh_sectors(other.stream)


@cuda.jit
def grid_stride(a, out, n):
    i = cuda.grid(1)
    total = 0
    while i < n:
        total += a[i]
        i += cuda.gridDim.x * cuda.blockDim.x
    out[cuda.grid(1)] = total


@cuda.jit
def downwards(a, out, n):
    i = np.uint32(n) - 1 - cuda.grid(1)
    total = 0
    while i >= cuda.gridDim.x * cuda.blockDim.x:
        total += a[i]
        i -= cuda.gridDim.x * cuda.blockDim.x
    out[cuda.grid(1)] = total + i


@cuda.jit
def same_for_all(a, out, n):
    total = 0
    for i in range(n):
        total += a[i]
    out[cuda.grid(1)] = total


@cuda.jit
def neighbours(a, out, n):
    i = cuda.threadIdx.x + 1
    while i < n - 1:
        out[i] = a[i - 1] + a[i] + a[i + 1]
        i += cuda.blockDim.x


@cuda.jit
def tiles(a, out, n):
    tile = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    total = 0
    for start in range(0, n, 64):
        tile[t] = a[start + t]
        cuda.syncthreads()
        total += tile[63 - t]
        cuda.syncthreads()
    out[t] = total


@cuda.jit
def halves(a, out, n):
    t = cuda.threadIdx.x
    total = 0
    for i in range(n):
        if i < n // 2:
            total += a[i * 64 + t]
        else:
            total ^= a[i * 64 + t] * 3
            total += i
    out[t] = total


@cuda.jit
def divergent_sides(a, out, n):
    t = cuda.threadIdx.x
    total = 0
    for i in range(n):
        if t % 32 < 16:
            for _ in range(3):
                total += a[i * 64 + t]
                cuda.threadfence()
        else:
            for _ in range(2):
                total ^= a[i * 64 + t]
                cuda.threadfence()
    out[t] = total


@cuda.jit
def two_passes(a, out, n):
    i = cuda.grid(1)
    total = 0
    while i < n:
        total += a[i]
        i += cuda.gridDim.x * cuda.blockDim.x
    i = cuda.grid(1)
    while i < n:
        out[i] = a[i] - total
        i += cuda.gridDim.x * cuda.blockDim.x


@cuda.jit
def ends_where_it_came_to(a, out, n):
    i = cuda.threadIdx.x
    total = 0
    while i < n:
        total += a[i]
        i += 64
    out[i - n] = total


LOOPS = [grid_stride, downwards, same_for_all, neighbours, tiles, halves, divergent_sides]
LOOPS += [two_passes, ends_where_it_came_to]


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("kernel", LOOPS, ids=lambda kernel: kernel.__name__)
def test_a_loop_that_is_kept_once_is_written_out_what_a_whole_run_does(
    kernel: Kernel, level: str
) -> None:
    n = 500 if kernel in (same_for_all, halves, divergent_sides) else 64 * 500
    arrays = array_spec(64 * 500, "int32"), array_spec(64 * 500, "int32")
    expect_alike(own(kernel, 1, 64, *arrays, n), level=level)


def test_blocks_may_run_a_loop_differently_often() -> None:
    @cuda.jit
    def kernel(a, out):
        total = 0
        for i in range(400 + 100 * cuda.blockIdx.x):
            total += a[i * 32 + cuda.threadIdx.x]
        out[cuda.grid(1)] = total

    launch = own(kernel, 8, 32, array_spec(32 * 1100, "int32"), array_spec(256, "int32"))
    expect_alike(launch, in_order=False)
    assert len(classes_of(launch, folds=True).classes) == 8


def test_warps_that_meet_at_a_barrier_skip_together() -> None:
    @cuda.jit
    def kernel(a, out, n):
        tile = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        if cuda.blockIdx.x % 3 == 0:
            return
        total = 0
        for start in range(0, n * cuda.blockIdx.x, 64):
            tile[t] = a[start + t]
            cuda.syncthreads()
            total += tile[63 - t]
            cuda.syncthreads()
        out[t] = total

    arrays = array_spec(64 * 160 * 6, "int32"), array_spec(64, "int32")
    expect_alike(own(kernel, 6, 64, *arrays, 64 * 160), in_order=False)


@pytest.mark.parametrize("rest", [0, 1, 33, 200])
@pytest.mark.parametrize(
    ("name", "per_thread"), [("kernel0", 1), ("kernel1", 1), ("kernel2", 4), ("kernel4", 4)]
)
def test_lanes_that_leave_a_loop_early_do_so_in_a_loop_that_is_kept_once(
    name: str, per_thread: int, rest: int
) -> None:
    n = 64 * 9 * 50 * per_thread + rest
    job = catalogue_job(Request(name, n, block=64, grid=9))
    expect_alike(job.launches[0], in_order=False)


@pytest.mark.parametrize(
    ("name", "n", "options"), [("reduce7", 2**16, {"grid": 8}), ("naive_scan", 2**11, {})]
)
def test_loops_of_reductions_and_scans_are_kept_once(
    name: str, n: int, options: dict[str, int]
) -> None:
    job = catalogue_job(Request(name, n, block=64, **options))  # type: ignore[arg-type]
    expect_alike(job.launches[0], in_order=False)


def test_a_loop_through_addresses_that_are_hashed_is_run_in_full() -> None:
    @cuda.jit
    def kernel(a, out, n):
        where = np.uint32(cuda.threadIdx.x)
        total = 0
        for _ in range(n):
            where = (where * np.uint32(1664525) + np.uint32(1013904223)) & np.uint32(1023)
            total += a[where]
        out[cuda.threadIdx.x] = total

    arrays = array_spec(1024, "int32"), array_spec(32, "int32")
    expect_alike(own(kernel, 1, 32, *arrays, 100))


@cuda.jit
def by_growing_steps(a, out, n):
    i, step, total = cuda.threadIdx.x, 1, 0
    while i < n * n // 2:
        total += a[i]
        i += step
        step += 1
    out[cuda.threadIdx.x] = total


@cuda.jit
def at_squares(a, out, n):
    total = 0
    for i in range(n):
        total += a[i * i]
    out[cuda.threadIdx.x] = total


@cuda.jit
def around_in_a_ring(a, out, n):
    total = 0
    for i in range(n):
        total += a[(32 * i + cuda.threadIdx.x) & 2047]
    out[cuda.threadIdx.x] = total


@cuda.jit
def more_at_every_third(a, out, n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total += a[32 * i]
        cuda.syncthreads()
    out[cuda.threadIdx.x] = total


@cuda.jit
def lanes_at_a_pace_of_their_own(a, out, n):
    total = 0
    for i in range(n):
        total += a[32 * i * cuda.threadIdx.x]
    out[cuda.threadIdx.x] = total


@cuda.jit
def lanes_further_and_further_apart(a, out, n):
    banks = cuda.shared.array(32 * 160, np.int32)
    t = cuda.threadIdx.x
    banks[t] = a[t]
    total = 0
    for i in range(n):
        total += banks[i * t]
    out[t] = total


@pytest.mark.parametrize(
    "kernel",
    [
        by_growing_steps,
        at_squares,
        around_in_a_ring,
        more_at_every_third,
        lanes_at_a_pace_of_their_own,
        lanes_further_and_further_apart,
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_a_loop_whose_iterations_differ_is_run_in_full(kernel: Kernel) -> None:
    n = 160
    arrays = array_spec(32 * 32 * n, "int32"), array_spec(32, "int32")
    expect_alike(own(kernel, 1, 32, *arrays, n), level="O0")


@pytest.mark.parametrize("among", [frozenset({"a", "out"}), frozenset()])
def test_a_loop_through_one_of_several_arrays_is_kept_once(among: frozenset[str]) -> None:
    """As nvcc's code has them, whose pointers were chosen: which array it is, its addresses say."""
    arrays = array_spec(2**16, "int32"), array_spec(256, "int32")
    named = prepare(grid_stride[2, 128], (*arrays, 2**16), CC, code="lowering")
    rows = [
        row
        if row.memory is None
        else replace(row, memory=replace(row.memory, name="", by_address=True, among=among))
        for row in named.program.instructions
    ]
    unnamed = replace(named, program=replace(named.program, instructions=tuple(rows)))
    found, known = (classify(one).classes[0].stream for one in (unnamed, named))
    assert found.loops == known.loops
    assert found.fresh_sectors == known.fresh_sectors


def test_a_loop_that_the_data_lead_is_run_in_full() -> None:
    @cuda.jit
    def gather(index, a, out, n):
        total = 0
        for i in range(n):
            total += a[index[i]]
        out[cuda.threadIdx.x] = total

    @cuda.jit
    def follow(index, a, out, n):
        at = cuda.threadIdx.x
        for _ in range(n):
            at = index[at]
        out[cuda.threadIdx.x] = a[at]

    index = np.random.default_rng(1).permutation(256).astype(np.int32)
    a, out = np.zeros(256, dtype=np.int32), np.zeros(32, dtype=np.int32)
    for kernel in (gather, follow):
        expect_alike(own(kernel, 1, 32, index, a, out, 100))


def test_a_loop_that_stores_what_decides_later_is_run_in_full() -> None:
    @cuda.jit
    def kernel(out, n):
        steps = cuda.shared.array(1, np.int32)
        if cuda.threadIdx.x == 0:
            steps[0] = 0
        cuda.syncthreads()
        for _ in range(n):
            cuda.atomic.add(steps, 0, 1)
        cuda.syncthreads()
        for i in range(steps[0] // 32):
            out[i * 32 + cuda.threadIdx.x] = i

    expect_alike(own(kernel, 1, 32, array_spec(32 * 20, "int32"), 20))


def test_sectors_that_threads_share_later_in_their_loops_are_counted_once() -> None:
    @cuda.jit
    def rows_of_their_own(a, out, n):
        total = 0
        for i in range(n):
            total += a[cuda.threadIdx.x * 24 + i]
        out[cuda.threadIdx.x] = total

    arrays = array_spec(24 * 32 + 400, "int32"), array_spec(32, "int32")
    launch = own(rows_of_their_own, 1, 32, *arrays, 400)
    short, whole = (classes_of(launch, folds=folds) for folds in (True, False))
    for one, other in zip(short.classes, whole.classes, strict=True):
        assert one.stream.fresh_sectors == other.stream.fresh_sectors == (24 * 31 + 400) // 8 + 4
        assert rows(one.stream, in_order=True) == rows(other.stream, in_order=True)


def job_of(name: str, n: int, block: int = 256, **options: int) -> Job:
    return catalogue_job(Request(name, n, block=block, **options))  # type: ignore[arg-type]


def of_loop(name: str, n: int, **options: int) -> Prediction:
    return job_of(name, n, **options).on("h200").first


def in_full(launch: KernelLaunch, iterations: int) -> Prediction:
    """A prediction with all iterations simulated."""
    budget = Budget(iterations=iterations)
    return predict_prepared(launch.prepared(H200.cc), H200, budget=budget)


def in_part(launch: KernelLaunch) -> Prediction:
    """A prediction with a budget that is too small for all iterations."""
    budget = Budget(instructions=150_000)
    return predict_prepared(launch.prepared(H200.cc), H200, budget=budget)


@pytest.mark.parametrize(
    ("name", "n", "options"),
    [
        ("kernel0", 2**23, {}),
        ("kernel1", 2**26, {"block": 1024}),
        ("kernel2", 2**25, {}),
        ("kernel4", 2**25, {"block": 128}),
        ("reduce7", 2**24, {"grid": 528}),
    ],
)
def test_a_loop_played_in_part_takes_as_long_as_one_played_in_full(
    name: str, n: int, options: dict[str, int]
) -> None:
    """But warps that drift apart in all iterations wait longer for each other behind the loop."""
    part = of_loop(name, n, **options)
    whole = in_full(job_of(name, n, **options).launches[0], n)
    assert part.extent.iterations_simulated < part.extent.iterations
    assert whole.extent.iterations_simulated == whole.extent.iterations == part.extent.iterations
    assert part.instructions == whole.instructions
    assert {b.name: b.time_us for b in part.bounds if b.name != "latency"} == {
        b.name: b.time_us for b in whole.bounds if b.name != "latency"
    }
    assert part.cycles == pytest.approx(whole.cycles, rel=0.02)
    assert part.limiter.time_us == pytest.approx(
        whole.limiter.time_us, rel=0.04
    )  # of one block alone
    assert part.stalls == pytest.approx(whole.stalls, abs=0.025)


@pytest.mark.usefixtures("both_evaluators")
@pytest.mark.parametrize(("name", "options"), [("kernel0", {}), ("reduce7", {"grid": 528})])
def test_both_evaluators_play_a_loop_in_part(name: str, options: dict[str, int]) -> None:
    found = of_loop(name, 2**24, **options)
    assert found.extent.iterations_simulated < found.extent.iterations


@cuda.jit
def recurrence(out, n):
    value = np.float32(0.5)
    for _ in range(n):
        value = value * value + np.float32(0.25)
        value = value * value + np.float32(0.125)
    out[cuda.grid(1)] = value


def test_a_loop_for_which_warps_wait_for_their_scheduler_takes_as_long_as_all_of_them_need() -> (
    None
):
    """Sixteen warps of a scheduler: the oldest hold it, and others begin when these have ended."""
    arguments = array_spec(264 * 1024, "float32"), np.int32(2048)
    launch = own(recurrence, 264, 1024, *arguments)
    part, whole = in_part(launch), in_full(launch, 2048)
    issue = next(bound for bound in part.bounds if bound.name == "issue")
    assert part.extent.iterations_simulated < whole.extent.iterations_simulated
    assert issue.time_us < part.time_us == pytest.approx(whole.time_us, rel=0.02)


@cuda.jit
def one_after_the_other(out, integers, floats):
    a = cuda.threadIdx.x
    for _ in range(integers):
        a = a * np.uint32(1664525) + np.uint32(1013904223)
    b = np.float32(a)
    for _ in range(floats):
        b = b * b + np.float32(0.25)
        b = b * b + np.float32(0.125)
    out[cuda.grid(1)] = b


@pytest.mark.parametrize(("integers", "floats"), [(1200, 400), (400, 1200)])
def test_loops_one_after_the_other_overlap_when_played_in_part_as_they_do_in_full(
    integers: int, floats: int
) -> None:
    """Old warps are in the second loop while young ones are in the first."""
    arguments = array_spec(264 * 1024, "float32"), np.int32(integers), np.int32(floats)
    launch = own(one_after_the_other, 264, 1024, *arguments)
    part, whole = in_part(launch), in_full(launch, 2048)
    assert part.extent.iterations_simulated < whole.extent.iterations_simulated
    assert part.time_us == pytest.approx(whole.time_us, rel=0.02)


LONG = pytest.mark.parametrize(
    ("name", "options"), [("kernel0", {}), ("kernel4", {}), ("reduce7", {"grid": 528})]
)


@LONG
def test_twice_the_iterations_of_a_loop_take_twice_as_long(
    name: str, options: dict[str, int]
) -> None:
    found = [of_loop(name, n, **options) for n in (2**24, 2**25, 2**26)]
    assert all(one.extent.iterations_simulated <= 64 for one in found)
    assert found[-1].extent.iterations > 2 * found[-1].extent.iterations_simulated
    for measure in (lambda one: one.instructions, lambda one: one.cycles):
        some, more, most = map(measure, found)
        assert most - more == pytest.approx(2 * (more - some), rel=0.05)


@pytest.mark.slow
@LONG
def test_a_huge_loop_takes_in_proportion_to_a_large_one(name: str, options: dict[str, int]) -> None:
    small, large = (of_loop(name, n, **options) for n in (2**26, 2**30))
    assert large.extent.iterations_simulated == small.extent.iterations_simulated
    assert large.instructions == pytest.approx(16 * small.instructions, rel=0.1)
    assert large.cycles == pytest.approx(16 * small.cycles, rel=0.05)


def test_blocks_that_run_a_loop_differently_often_are_played_in_full() -> None:
    found = of_loop("naive_scan", 2**12)
    assert not found.extent.iterations
    assert len(found.classes.classes) == found.launch.blocks
    adds = sum(range(2**12)) / 32  # a warp adds its lanes' elements at once
    assert found.instructions > adds
    assert found.time_us > found.limiter.time_us * 0.99


def test_without_divergence_loops_that_are_kept_once_cost_their_longest_lane_alone() -> None:
    @cuda.jit
    def kernel(a, out, n):
        total = 0
        for i in range(n):
            total += a[i * 32 + cuda.threadIdx.x]
        out[cuda.threadIdx.x] = total

    arguments = array_spec(32 * 5000, "int32"), array_spec(32, "int32"), 5000
    whole = predict(kernel[1, 32], *arguments)
    free = predict(kernel[1, 32], *arguments, device=device.load("h200").without("divergence"))
    assert whole.extent.iterations > 100
    assert free.cycles == pytest.approx(whole.cycles)


def test_the_catalogue_runs_every_kernel_with_loops_kept_once() -> None:
    """What a kernel's warps run does not depend on whether its loops are kept once.

    The times of blocks that wait for blocks decide it, and `classify` does not run these.
    """
    for entry in ENTRIES:
        setup = entry.setup(None)
        launch = catalogue_job(Request(entry.name, setup.n)).launches[0]
        program = prepare(launch.configured, launch.arguments, CC, "O3").program
        if entry.defect or spins(program):
            continue
        short, whole = (classes_of(launch, folds=folds) for folds in (True, False))
        counts = [[(c.ranges, c.stream.instructions) for c in k.classes] for k in (short, whole)]
        assert counts[0] == counts[1], entry.name
