"""Predictions: classes of blocks, occupancy, bounds, ablations, and grids of any size."""

from __future__ import annotations

import gc
import time
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from gpusim import catalogue, cuda
from gpusim.codegen.programs import prepare
from gpusim.cuda import Kernel
from gpusim.errors import InputError, LaunchError
from gpusim.gpu import device
from gpusim.gpu.occupancy import occupancy
from gpusim.launch.arguments import array_spec
from gpusim.launch.configured import ConfiguredKernel
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.clock.spans import SpanObserver
from gpusim.prediction.predict import predict, predict_prepared
from gpusim.prediction.records import Prediction, total_time_us
from gpusim.prediction.streams import Classes, classify
from gpusim.prediction.workload import Budget

CC = ComputeCapability(9, 0)


def predicted(name: str, n: int, block: int, **options: object) -> Prediction:
    setup = catalogue.find(name).setup(n, block=block)
    return predict(setup.configured, *setup.specs, **options)  # type: ignore[arg-type]


def in_full(configured: ConfiguredKernel, *arguments: object) -> Prediction:
    """The same with all waves of blocks simulated."""
    gpu = device.load("h200")
    budget = Budget(waves=1000, instructions=10**9)
    return predict_prepared(prepare(configured, arguments, gpu.cc), gpu, budget=budget)


def classes_of(kernel: Kernel, grid: int, block: int, *args: object) -> Classes:
    return classify(prepare(kernel[grid, block], args, CC))


def test_blocks_that_do_the_same_are_one_class_and_tails_are_others() -> None:
    @cuda.jit
    def kernel(a, out, n):
        i = cuda.grid(1)
        if i < n:
            out[i] = a[i]

    found = classes_of(
        kernel, 1000, 64, array_spec(64_000, "int32"), array_spec(64_000, "int32"), 63_900
    )
    assert [(c.blocks, c.ranges) for c in found.classes] == [
        (998, ((0, 997),)),
        (1, ((998, 998),)),
        (1, ((999, 999),)),
    ]
    assert not found.is_sampled
    assert found.probed < 100


def test_sectors_are_fresh_the_first_time_a_block_touches_them() -> None:
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        cuda.syncthreads()
        first = a[t]
        cuda.syncthreads()
        out[t] = first + a[31 - t]

    found = classes_of(kernel, 1, 32, np.arange(32, dtype=np.int32), np.zeros(32, np.int32))
    warp = found.classes[0].stream.warps[0]
    loads = [(int(c), int(f)) for c, f in zip(warp.cost, warp.fresh, strict=True) if c]
    assert loads == [(4, 4), (4, 0), (4, 4)]


def test_an_array_that_is_passed_twice_is_not_two_that_are_alike() -> None:
    @cuda.jit
    def kernel(a, b, out):
        t = cuda.threadIdx.x
        cuda.syncthreads()
        out[t] = a[t]
        cuda.syncthreads()
        out[t] += b[t]

    one, other, out = (array_spec(32, "int32") for _ in range(3))
    twice = classes_of(kernel, 1, 32, one, one, out)
    apart = classes_of(kernel, 1, 32, one, other, out)
    assert [c.stream.fresh_sectors for c in twice.classes] == [8]
    assert [c.stream.fresh_sectors for c in apart.classes] == [12]


def test_control_flow_that_depends_on_missing_elements_is_refused() -> None:
    @cuda.jit
    def kernel(a, out):
        i = cuda.grid(1)
        while a[i] > 0:
            out[i] += 1

    with pytest.raises(InputError, match="depend on the arrays' elements"):
        classes_of(kernel, 2, 32, array_spec(64, "int32"), array_spec(64, "int32"))


def test_predicting_leaves_arrays_alone() -> None:
    data = np.arange(4096, dtype=np.int32)
    call = catalogue.find("reduce3").call(data, block=128)
    predict(call.configured, *call.arguments)
    assert not call.output.any()


@pytest.mark.parametrize(
    ("block", "blocks", "limit"), [(64, 32, "threads"), (128, 16, "threads"), (1024, 2, "threads")]
)
def test_occupancy_is_what_the_sm_holds(block: int, blocks: int, limit: str) -> None:
    setup = catalogue.find("reduce3").setup(2**20, block=block)
    found = occupancy(prepare(setup.configured, setup.specs, CC), device.load("h200"))
    assert (found.blocks, found.warps, found.limit) == (blocks, blocks * block // 32, limit)


def test_shared_memory_can_limit_occupancy_and_forbid_a_launch() -> None:
    setup = catalogue.find("reduce3").setup(2**20, block=128)
    small = prepare(setup.configured, setup.specs, CC)
    large = replace(small, launch=replace(small.launch, dynamic_shared_bytes=100_000))
    found = occupancy(large, device.load("h200"))
    assert (found.blocks, found.limit) == (2, "shared memory")
    with pytest.raises(LaunchError, match="not enough shared memory"):
        occupancy(large, device.load("k40m"))


@pytest.mark.usefixtures("both_evaluators")
@pytest.mark.parametrize("name", ["reduce1", "reduce4", "reduce7", "kernel2"])
def test_time_is_never_below_a_bound_and_stalls_are_shares(name: str) -> None:
    found = predicted(name, 2**24, 256)
    assert found.time_us >= found.limiter.time_us
    assert sum(found.stalls.values()) == pytest.approx(1)
    assert sum(found.lines.values()) == pytest.approx(1)
    assert found.gbps(4 * 2**24) < found.device.bandwidth.dram_peak_gbps


def test_atomics_that_follow_each_other_are_a_bound() -> None:
    """Of 1,024 warps 32 passes each, on floats of one sector 3.46 cycles apart."""

    @cuda.jit
    def kernel(out):
        cuda.atomic.add(out, 0, np.float32(1))

    found = predict(kernel[128, 256], array_spec(1, "float32"), device="h200")
    cycles = 1024 * 32 * found.device.interval_cycles.global_atomic_float_same_address
    assert found.limiter.name == "atomics"
    assert found.limiter.time_us == pytest.approx(cycles / found.device.gpu.sm_clock_mhz)
    assert found.limiter.time_us > 0.9 * found.cycles / found.device.gpu.sm_clock_mhz


def test_constants_that_an_sm_looks_up_one_after_the_other_are_a_bound() -> None:
    """Each of 264 warps on 132 SMs looks up its parameters, a constant for each LDC."""

    @cuda.jit
    def kernel(out, value):
        out[cuda.grid(1)] = value

    arguments = array_spec(264 * 32, "int32"), np.int32(1)
    found = predict(kernel[132, 64], *arguments, device="h200", code="lowering")
    loads = sum(row.op.startswith("LDC") for row in found.prepared.program.instructions)
    (bound,) = (one for one in found.bounds if one.name == "constants")
    cycles = 2 * loads * found.device.interval_cycles.adu
    assert loads >= 1
    assert bound.time_us == pytest.approx(cycles / found.device.gpu.sm_clock_mhz)


@pytest.mark.parametrize(("n", "part"), [(2**22, 0.0), (2**24, 1.0)])
def test_a_warm_l2_has_arrays_that_fit_and_nothing_of_those_that_do_not(
    n: int, part: float
) -> None:
    """16 MiB are a quarter of an H200's L2, 64 MiB more than all of it."""
    cold, warm = (predicted("kernel4", n, 256, l2=l2) for l2 in ("cold", "warm"))
    dram = [next(b.time_us for b in found.bounds if b.name == "DRAM") for found in (cold, warm)]
    assert dram[1] == pytest.approx(part * dram[0], rel=0.01)
    if part:
        assert warm.time_us == pytest.approx(cold.time_us, rel=0.02)
    else:
        assert warm.time_us < 0.8 * cold.time_us


@cuda.jit
def doubled(values, out):
    i = cuda.grid(1)
    out[i] = values[i] + values[i]


def test_a_launch_ends_with_the_sm_that_begins_last() -> None:
    """Waiting for DRAM spreads SMs further than that; for a warm L2 it does not."""
    gpu, specs = device.load("h200"), (array_spec(2**16, "float32"), array_spec(2**16, "float32"))

    def cycles(last: float, l2: str) -> float:
        latency = replace(gpu.latency_cycles, launch_last=last)
        one = replace(gpu, latency_cycles=latency)
        return predict(doubled[256, 256], *specs, device=one, l2=l2).cycles

    assert cycles(300, "warm") - cycles(200, "warm") == pytest.approx(100)
    assert cycles(300, "cold") == cycles(200, "cold")


def test_atomics_on_a_large_array_take_less_than_those_on_one_word() -> None:
    @cuda.jit
    def kernel(out, n):
        cuda.atomic.add(out, cuda.grid(1) % n, 1)

    one, many = (predict(kernel[4096, 256], array_spec(n, "int32"), n) for n in (1, 2**20))
    assert many.time_us < one.time_us / 2


def dram_bound_us(kernel: Kernel, n: int, arrays: int) -> float:
    found = predict(kernel[n // 512, 512], *(array_spec(n, "float32") for _ in range(arrays)))
    return next(bound.time_us for bound in found.bounds if bound.name == "DRAM")


def test_what_is_written_goes_on_to_dram_but_for_what_the_l2_keeps() -> None:
    """Of an H200's L2 0.625 are 39 MB, half of them stored: of 4 MB all, of 134 a seventh."""

    @cuda.jit
    def copy(a, out):
        i = cuda.grid(1)
        out[i] = a[i]

    gpu = device.load("h200")
    rate = gpu.bandwidth.dram_gbps * 1000
    assert dram_bound_us(copy, 2**19, 2) == pytest.approx(4 * 2**19 / rate)
    kept = 0.625 * gpu.capacity.l2_bytes / (8 * 2**25)
    back = (1 - kept) * gpu.bandwidth.dram_write_factor
    assert dram_bound_us(copy, 2**25, 2) == pytest.approx(4 * 2**25 * (1 + back) / rate, rel=0.03)


def test_a_kernel_that_writes_alone_takes_as_long_as_dram_needs() -> None:
    @cuda.jit
    def fill(out):
        out[cuda.grid(1)] = 1

    found = predict(fill[2**28 // 1024, 1024], array_spec(2**28, "float32"))
    assert found.time_us >= found.limiter.time_us


@pytest.mark.parametrize("mechanism", sorted(device.ABLATIONS))
@pytest.mark.parametrize("name", ["reduce2", "reduce3"])
def test_a_device_without_a_mechanism_is_not_slower(name: str, mechanism: str) -> None:
    with_it = predicted(name, 2**22, 256)
    without = predicted(name, 2**22, 256, device=device.load("h200").without(mechanism))
    assert without.time_us <= with_it.time_us * 1.02  # other warps may be served first


def test_a_huge_grid_costs_about_what_a_large_one_does() -> None:
    predicted("reduce3", 2**24, 256)
    start = time.process_time()
    small = predicted("reduce3", 2**25, 256)
    middle = time.process_time()
    large = predicted("reduce3", 2**30, 256)
    end = time.process_time()
    assert large.extent.extrapolated > large.extent.simulated
    assert large.cycles == pytest.approx(32 * small.cycles, rel=0.05)
    assert end - middle < 3 * (middle - start)


@pytest.mark.parametrize("block", [64, 256, 1024])
@pytest.mark.parametrize("name", ["reduce1", "reduce3", "reduce7"])
def test_a_grid_played_in_part_takes_as_long_as_one_played_in_full(name: str, block: int) -> None:
    setup = catalogue.find(name).setup(2**25 + block, block=block)
    part = predict(setup.configured, *setup.specs)
    whole = in_full(setup.configured, *setup.specs)
    assert part.extent.simulated < part.extent.blocks_on_sm
    # Whole waves are extrapolated: the tail is simulated.
    assert part.extent.extrapolated % part.occupancy.blocks == 0
    assert whole.extent.extrapolated == 0
    assert part.cycles == pytest.approx(whole.cycles, rel=0.02)


@pytest.mark.parametrize("name", ["reduce1", "reduce7"])
def test_long_blocks_are_played_in_fewer_waves_and_take_as_long(name: str) -> None:
    setup, gpu = catalogue.find(name).setup(2**25, block=256), device.load("h200")
    prepared = prepare(setup.configured, setup.specs, gpu.cc)
    usual = predict_prepared(prepared, gpu)
    few = predict_prepared(prepared, gpu, budget=Budget(instructions=1_000))
    assert few.extent.simulated // few.occupancy.blocks == 4
    assert usual.extent.simulated // few.occupancy.blocks == 16
    assert few.cycles == pytest.approx(usual.cycles, rel=0.03)


def test_blocks_that_differ_are_all_played_in_their_proportions() -> None:
    @cuda.jit
    def kernel(a, out, n):
        i = cuda.grid(1)
        total = 0
        if cuda.blockIdx.x < n:
            for k in range(20):
                total += a[(i + 64 * k) % 64]
        out[i] = total

    arguments = array_spec(64, "int32"), array_spec(64 * 150_000, "int32"), 50_000
    part = predict(kernel[150_000, 64], *arguments)
    whole = in_full(kernel[150_000, 64], *arguments)
    assert part.extent.extrapolated > 0 == whole.extent.extrapolated
    assert part.cycles == pytest.approx(whole.cycles, rel=0.05)


def test_the_same_prediction_comes_out_twice() -> None:
    assert predicted("reduce2", 2**22, 128).to_dict() == predicted("reduce2", 2**22, 128).to_dict()


@pytest.mark.parametrize("goes_wrong", [False, True])
def test_garbage_is_looked_for_again_after_a_simulation(goes_wrong: bool) -> None:
    """Not meanwhile: its objects stay in use. An observer that fails ends it, too."""
    heard: list[bool] = []

    class Listener(SpanObserver):
        def begin(self, blocks: int) -> None:
            heard.append(gc.isenabled())
            if goes_wrong:
                raise RuntimeError("enough")

    call = catalogue.find("reduce1").call(np.ones(256, np.int32), block=64)
    with pytest.raises(RuntimeError) if goes_wrong else nullcontext():
        predict(call.configured, *call.arguments, observers=[Listener()])
    assert heard
    assert not any(heard)
    assert gc.isenabled()


def test_a_warm_cache_is_not_slower_than_a_cold_one() -> None:
    cold, warm = (predicted("reduce6", 2**22, 256, l2=state) for state in ("cold", "warm"))
    assert warm.time_us < cold.time_us
    with pytest.raises(InputError, match="cold, warm or dirty"):
        predicted("reduce6", 2**22, 256, l2="lukewarm")


def test_passes_share_one_launch_overhead_and_pay_gaps() -> None:
    one = predicted("reduce3", 2**20, 256)
    host = one.device.host
    expected = 2 * one.time_us - host.launch_overhead_us + host.pass_gap_us
    assert total_time_us([one, one]) == pytest.approx(expected)
    assert total_time_us([]) == 0


@pytest.mark.usefixtures("both_evaluators")
@pytest.mark.parametrize("name", device.names())
def test_every_device_predicts_a_simple_reduction(name: str) -> None:
    found = predicted("reduction3", 2**14, 256, device=name)
    assert found.time_us > 0


def test_without_divergence_a_warp_pays_for_its_longest_side_alone() -> None:
    @cuda.jit
    def kernel(out, n):
        t = cuda.threadIdx.x
        total = 0
        if t % 2 == 0:
            for i in range(n):
                total += i ^ t
        else:
            for i in range(n):
                total += i & t
        out[t] = total

    arguments = (array_spec(32, "int32"), 200)
    whole = predict(kernel[1, 32], *arguments, level="O0")
    free = predict(
        kernel[1, 32], *arguments, level="O0", device=device.load("h200").without("divergence")
    )
    assert 0.45 < free.cycles / whole.cycles < 0.65
