"""Jobs without data: launches by the launch rule, all passes, and what each mechanism costs."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import catalogue, cuda
from gpusim.advice.launch import forecast_advice
from gpusim.advice.stalls import STALLS
from gpusim.catalogue import Request
from gpusim.errors import InputError, LaunchError
from gpusim.gpu import device
from gpusim.launch.arguments import ArraySpec, array_spec
from gpusim.prediction.clock.spans import STALLS as REASONS
from gpusim.prediction.sweeps import ablation
from gpusim.prediction.sweeps.jobs import catalogue_job, own_job
from gpusim.reports.changes import changes
from gpusim.reports.prediction import Answer, prediction_report
from gpusim.reports.quantities import bar, duration, interval, percent, rate, tenths_of_a_percent


def test_the_public_names_are_there() -> None:
    assert gpusim.array_spec(4, "int32") == array_spec(4, "int32")
    assert callable(gpusim.predict)
    assert gpusim.Prediction.__name__ == "Prediction"


@pytest.mark.parametrize("name", [entry.name for entry in catalogue.entries()])
def test_arguments_without_elements_are_those_of_a_call(name: str) -> None:
    entry = catalogue.find(name)
    setup = entry.setup()
    call = setup.call(catalogue.sample(setup.n, setup.dtype))
    for spec, value in zip(setup.specs, call.arguments, strict=True):
        if isinstance(spec, ArraySpec):
            assert (spec.shape, spec.dtype) == (value.shape, value.dtype)
        else:
            assert (type(spec), spec) == (type(value), value)


def test_one_pass_is_one_launch_and_all_are_as_many_as_it_takes() -> None:
    one = catalogue_job(Request("reduce3", 2**16, block=256))
    whole = catalogue_job(Request("reduce3", 2**16, block=256, passes="all"))
    assert [launch.configured.launch.blocks for launch in one.launches] == [256]
    assert [launch.configured.launch.blocks for launch in whole.launches] == [256, 1]
    assert one.elements_bytes == whole.elements_bytes == 4 * 2**16


def test_later_passes_find_what_was_just_written_in_the_cache() -> None:
    forecast = catalogue_job(Request("reduce3", 2**16, block=256, passes="all")).on("h200")
    assert [prediction.l2 for prediction in forecast.predictions] == ["cold", "warm"]
    host = forecast.device.host
    kernels = sum(p.time_us - host.launch_overhead_us for p in forecast.predictions)
    expected = kernels + host.launch_overhead_us + host.pass_gap_us
    assert forecast.time_us == pytest.approx(expected)


def test_useful_bytes_of_any_other_kernel_are_those_of_sectors_that_it_loads_and_stores() -> None:
    """Of 128 elements each, 4 bytes and 8; of the 1,000 that the second array has no others."""

    @cuda.jit
    def copy(a, b):
        i = cuda.grid(1)
        b[i] = a[i]

    job = own_job(copy[4, 32], (array_spec(128, "float32"), np.zeros(1000, np.float64)))
    forecast = job.on("h200")
    assert forecast.useful_bytes == 128 * 4 + 128 * 8
    assert forecast.gbps == pytest.approx(forecast.useful_bytes / forecast.time_us / 1000)
    assert forecast.to_dict()["useful_bytes_are"] == "sectors loaded and stored, each once"


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(InputError, match="one or all"):
        catalogue_job(Request("reduce3", passes="some"))
    with pytest.raises(InputError, match="leaves more than one value"):
        catalogue_job(Request("naive_scan", passes="all"))
    with pytest.raises(LaunchError, match="power of two"):
        catalogue_job(Request("reduce3", block=96))
    with pytest.raises(LaunchError, match="has at most 512 threads"):
        catalogue_job(Request("reduce3", 2**12, block=1024)).on("8800gtx")


def test_suspects_are_the_mechanisms_that_a_kernel_meets() -> None:
    strided = ablation.suspects(catalogue_job(Request("reduce2", 2**18, block=128)).on("h200"))
    sequential = ablation.suspects(catalogue_job(Request("reduce3", 2**18, block=128)).on("h200"))
    assert "bank-conflicts" in strided
    assert "bank-conflicts" not in sequential
    for found in (strided, sequential):
        assert {"barriers", "bandwidth", "block-launch", "launch-overhead"} <= set(found)
        assert "atomics" not in found
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_a_device_without_a_mechanism_has_no_suspicion_of_it() -> None:
    gpu = device.load("h200").without("barriers")
    assert "barriers" not in ablation.suspects(catalogue_job(Request("reduce3", 2**14)).on(gpu))


def test_conflicts_are_the_wavefronts_beyond_the_least() -> None:
    # 15 conflicts a block among stores, and as many in each of two loads.
    forecast = catalogue_job(Request("reduce2", 2**10, block=128)).on("h200")
    assert ablation.conflict_wavefronts(forecast.first) == 45 * 8


def test_ablations_are_the_times_without_each_mechanism() -> None:
    job = catalogue_job(Request("reduce2", 2**16, block=128))
    forecast = job.on("h200")
    told: list[str] = []
    found = {
        one.mechanism: one
        for one in ablation.ablations(
            forecast, ["barriers", "launch-overhead"], progress=told.append
        )
    }
    assert told == ["barriers", "launch-overhead"]
    assert found["barriers"].time_us == job.on(device.load("h200").without("barriers")).time_us
    overhead = forecast.device.host.launch_overhead_us
    assert found["launch-overhead"].time_us == pytest.approx(forecast.time_us - overhead)
    assert found["launch-overhead"].saves == pytest.approx(overhead / forecast.time_us)


@pytest.mark.parametrize(
    ("name", "n", "grid", "sentence"),
    [
        ("kernel1", 2**16, 4, "Small grid: 4 blocks leave 128 of 132 SMs idle."),
        ("kernel1", 2**16, 528, "Small grid: 50 % of a wave; a full one has 1,056 blocks."),
        ("kernel1", 2**16, 1584, "The last wave leaves 25 % of the block slots idle"),
    ],
)
def test_a_grid_that_leaves_places_empty_is_told(
    name: str, n: int, grid: int | None, sentence: str
) -> None:
    forecast = catalogue_job(Request(name, n, block=256, grid=grid)).on("h200")
    assert any(sentence in one.message for one in forecast_advice(forecast))


def test_a_grid_that_follows_from_n_is_not_told_to_be_larger() -> None:
    """A kernel of the catalogue for few elements has few blocks; others have the grid given."""
    found = forecast_advice(catalogue_job(Request("reduce3", 2**10, block=256)).on("h200"))
    assert "few-blocks" not in [one.kind for one in found]


def test_blocks_that_wait_for_each_other_are_told_to_do_so_sooner_and_nothing_else() -> None:
    """More blocks would wait as well; stalls are those of warps that do not wait for others."""

    @cuda.jit
    def chain(flags):
        raised, b = cuda.volatile(flags), cuda.blockIdx.x
        while b > 0 and raised[b - 1] == 0:
            pass
        raised[b] = 1

    made = own_job(chain[256, 32], (np.zeros(256, np.int32),)).on("h200")
    (found,) = forecast_advice(made)
    sentence = found.message
    assert "a shorter path from acquire to release in each block" in sentence
    text = " ".join(str(line).strip() for line in prediction_report(Answer(made), 100))
    assert "warp cycles without spinning on other blocks" in text
    assert "The 256 blocks wait for each other;" in text
    assert "standard error" not in text


@pytest.mark.parametrize(("size", "is_said"), [(2**21, True), (2**26, False)])
def test_more_useful_bytes_than_dram_can_move_are_said_not_to_be_moved(
    size: int, is_said: bool
) -> None:
    """An RTX 4090's L2 has room for two arrays of 8 MB and keeps what is stored; not for 256 MB."""

    @cuda.jit
    def copy(a, b):
        i = cuda.grid(1)
        b[i] = a[i]

    given = array_spec(size, "float32"), array_spec(size, "float32")
    made = own_job(copy[size // 256, 256], given).on("rtx4090")
    text = " ".join(str(line) for line in prediction_report(Answer(made), 100))
    assert ("the L2 serves part of them" in text) == is_said


def test_where_atomics_take_the_time_fewer_of_them_are_advised() -> None:
    @cuda.jit
    def add_up(numbers, out):
        cuda.atomic.add(out, 0, numbers[cuda.grid(1)])

    given = array_spec(2**14, "float32"), array_spec(1, "float32")
    made = own_job(add_up[64, 256], given).on("h200")
    found = forecast_advice(made)
    limit, atomics, *_ = found
    assert (limit.kind, atomics.kind) == ("limit", "atomics")
    assert "fewer atomics, or atomics on more addresses" in limit.message
    assert not {"latency", "long-scoreboard"} & {one.kind for one in found}


def test_every_stall_that_the_clock_knows_has_a_meaning_and_no_other() -> None:
    assert list(STALLS) == list(REASONS)


def test_steps_are_explained_by_what_changed() -> None:
    two, three, four = (
        catalogue_job(Request(name, 2**18, block=128)).on("h200")
        for name in ("reduce2", "reduce3", "reduce4")
    )
    assert "22 % fewer instructions" in changes(two.first, three.first)
    assert "no bank conflicts" in changes(two.first, three.first)
    assert "new bank conflicts" in changes(three.first, two.first)
    assert "half the blocks" in changes(three.first, four.first)
    assert changes(three.first, three.first) == []


def test_quantities_are_written_with_their_units() -> None:
    times = [duration(us) for us in (3.345, 27.66, 999.9, 1234.5, 2.5e6)]
    assert times == ["3.35 us", "27.7 us", "999.9 us", "1.23 ms", "2.50 s"]
    assert interval(84.2, 50.6) == "84.2 to 50.6 us"
    assert interval(1200, 650) == "1.20 ms to 650.0 us"
    assert [rate(12.34), rate(4815.0)] == ["12.3 GB/s", "4,815 GB/s"]
    assert [percent(0.1234), percent(0.0001), percent(0.0), percent(0.456, 0)] == [
        "12.3 %", "< 0.1 %", "0.0 %", "46 %",
    ]  # fmt: skip


def test_rounded_shares_still_add_up_to_a_hundred() -> None:
    shares = tenths_of_a_percent({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    assert shares == {"a": 33.4, "b": 33.3, "c": 33.3}
    assert tenths_of_a_percent({"a": 0.0}) == {"a": 0.0}


def test_bars_are_as_long_as_their_shares() -> None:
    bars = [bar(share, 8, "utf-8") for share in (0, 0.5, 1, 2)]
    assert bars == ["", "████", "█" * 8, "█" * 8]
    assert bar(0.25 + 1 / 64, 8, "utf-8") == "██▏"
    assert bar(0.5, 8, "ascii") == "####"
