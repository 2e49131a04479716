"""Calibration against a fake driver: every probe runs, and the device file can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_gpu import FakeCompiler, FakeDriver

from gpusim.cli.app import main
from gpusim.gpu import device as devices
from gpusim.gpu.device import KEYS
from validate import backend as backends
from validate import calibrate as calibration
from validate import compilers
from validate.backend import CudaError, PycudaBackend
from validate.bench import Bench
from validate.calibrate import Calibration, calibrate, device_file
from validate.probes import PROBES, Probe
from validate.probes.l2 import found_again
from validate.probes.launching import beside_blocks
from validate.probes.memory import growth, growth_by_writes, write_factor
from validate.probes.probing import in_order, line, waiting_when_held_up
from validate.records import Machine


@pytest.fixture
def backend() -> PycudaBackend:
    return PycudaBackend(FakeDriver(), FakeCompiler(), warm_up_us=1.0)


def test_every_probe_runs_and_says_how_it_measures(backend: PycudaBackend) -> None:
    found = calibrate(backend, devices.load("h200"))
    assert found.failed == {}
    assert set(found.values) == {key for probe in PROBES for key in probe.keys}
    assert all(found.methods[key] for key in found.values)


def test_a_probe_that_fails_is_reported_and_left_out(
    backend: PycudaBackend, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> list[float]:
        raise backend.driver.Error("out of memory")

    broken = Probe("dram", ("latency_cycles.dram",), "a method", refuse)
    found = calibrate(backend, devices.load("h200"), [broken, PROBES[0]])
    assert found.failed == {"dram": "dram: out of memory"}
    assert set(found.values) == set(PROBES[0].keys)
    assert capsys.readouterr().err == "gpusim: dram: dram: out of memory\n"


def test_probes_run_by_name_with_what_they_need_from_a_file_of_the_same_gpu(
    backend: PycudaBackend, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = devices.load("h200")
    probes = calibration.chosen_probes(["spread_of_latency"])
    assert calibrate(backend, pattern, probes).failed == {
        "spread_of_latency": "latency_cycles.dram, which it needs, was not measured"
    }
    backend.gpu_name = "NVIDIA H200"
    found = calibrate(backend, pattern, probes)
    assert set(found.values) == {"latency_cycles.dram_least"}
    assert capsys.readouterr().out.endswith(" (before: 492)\n")


def test_an_unknown_probe_offers_the_nearest(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--probes", "latency,fenecs"]) == 2
    assert "fenecs is not a probe; did you mean fences or" in capsys.readouterr().err


def test_probes_measure_keys_of_device_files_once_each() -> None:
    keys = [key for probe in PROBES for key in probe.keys]
    assert set(keys) <= set(KEYS)
    assert len(keys) == len(set(keys))


def written(found: Calibration, tmp_path: Path) -> devices.Device:
    path = tmp_path / "mine.toml"
    path.write_text(device_file(found, devices.load("h200")), encoding="utf-8")
    return devices.load(path)


def h200(**values: float) -> Calibration:
    named = {f"{group}.{key}": v for name, v in values.items() for group, key in [name.split("__")]}
    machine = Machine("NVIDIA H200", "h200", "test", date="2026-01-31")
    return Calibration(machine, named, {"gpu.name": "H200"}, dict.fromkeys(named, "one warp"))


def test_a_device_file_holds_what_was_measured_and_keeps_the_rest(tmp_path: Path) -> None:
    pattern = devices.load("h200")
    device = written(h200(latency_cycles__alu=4.25, queue__lsu_depth=6.0), tmp_path)
    assert (device.latency_cycles.alu, device.queue.lsu_depth) == (4.25, 6)
    fact = device.facts["latency_cycles.alu"]
    assert fact.kind == "measured"
    assert fact.source == "gpusim validate calibrate, NVIDIA H200, 2026-01-31: one warp"
    kept = set(KEYS) - {"latency_cycles.alu", "queue.lsu_depth"}
    assert {key: device.facts[key] for key in kept} == {key: pattern.facts[key] for key in kept}


def test_a_key_that_has_a_rule_follows_what_was_measured(tmp_path: Path) -> None:
    device = written(h200(latency_cycles__barrier_per_warp=3.0), tmp_path)
    assert device.latency_cycles.barrier_per_queued_warp == 1.5
    device = written(h200(latency_cycles__barrier_per_queued_warp=1.25), tmp_path)
    assert device.latency_cycles.barrier_per_queued_warp == 1.25
    assert device.facts["latency_cycles.barrier_per_queued_warp"].kind == "measured"


@pytest.mark.parametrize(("measured", "given"), [(3.9988, 4.0), (4.2549, 4.25), (648.428, 648.0)])
def test_a_device_file_gives_three_digits(measured: float, given: float, tmp_path: Path) -> None:
    assert written(h200(latency_cycles__fp64=measured), tmp_path).latency_cycles.fp64 == given


def test_what_cannot_be_is_not_written(tmp_path: Path) -> None:
    pattern = devices.load("h200")
    device = written(h200(latency_cycles__alu=-1.0), tmp_path)
    assert device.latency_cycles.alu == pattern.latency_cycles.alu


def test_an_effect_smaller_than_the_noise_is_told_and_not_written(tmp_path: Path) -> None:
    """No launch ends with its last store; an L2 may have one part."""
    found = h200(latency_cycles__last_store=0.0, latency_cycles__l2_far=0.001)
    assert found.refused() == {
        "latency_cycles.last_store": "measured as 0: the effect was smaller than the noise"
    }
    device = written(found, tmp_path)
    assert device.latency_cycles.last_store == devices.load("h200").latency_cycles.last_store
    assert device.latency_cycles.l2_far == 0
    far = h200(latency_cycles__alu=-1.0).refused()["latency_cycles.alu"]
    assert far.startswith("measured as -1; expected a number from 1 to 100,000")


def test_of_another_gpu_the_driver_tells_and_the_pattern_is_unmeasured(tmp_path: Path) -> None:
    machine = Machine("Fake GPU", "h200", "test", sm_clock_mhz=1234.5, date="2026-01-31")
    reported = {"gpu.name": "Fake GPU", "gpu.sms": 4, "sm.max_threads": 1536}
    device = written(Calibration(machine, reported=dict(reported)), tmp_path)
    assert (device.name, device.gpu.sms, device.sm.max_threads) == ("Fake GPU", 4, 1536)
    assert device.gpu.sm_clock_mhz == 1234.5
    assert device.facts["gpu.sms"].source.endswith("2026-01-31: reported by the CUDA driver")
    kept = device.facts["latency_cycles.xu"]
    assert kept.kind == "unmeasured"
    assert kept.source.startswith("no microbenchmark on this GPU; as the H200: ")


def test_the_driver_is_asked_what_it_knows(backend: PycudaBackend) -> None:
    """The fake driver lacks some names, as an older one does."""
    assert calibration.reported_by_driver(backend) == {
        "gpu.name": "Fake GPU",
        "gpu.compute_capability": "9.0",
        "gpu.memory_bytes": 2**30,
        "gpu.sms": 4,
        "sm.max_threads": 1536,
        "capacity.l2_bytes": 4096,
        "capacity.l1_caches_global": True,
    }


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(backends, "pycuda_driver", FakeDriver)
    monkeypatch.setattr(compilers, "quick", FakeCompiler)
    output, notes = str(tmp_path / "mine.toml"), str(tmp_path / "mine.json")
    return ["validate", "calibrate", "--out", output, "--json", notes]


def test_calibrate_writes_a_device_file_that_can_be_used(
    command: list[str], tmp_path: Path
) -> None:
    assert main([*command, "--probes", "latency"]) == 0
    device = devices.load(tmp_path / "mine.toml")
    assert device.name == "Fake GPU"
    assert device.facts["latency_cycles.alu"].kind == "measured"
    written = json.loads((tmp_path / "mine.json").read_text(encoding="utf-8"))
    assert written["reported"]["gpu.sms"] == 4
    assert written["failed"] == {}


def test_numbers_that_no_gpu_can_have_together_are_told(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """On the fake GPU DRAM answers before the L2 does."""
    assert main(command) == 2
    assert "latency_cycles.l2 = " in capsys.readouterr().err


def test_a_line_through_points_on_a_line_is_that_line() -> None:
    assert line([(1, 5), (2, 7), (4, 11)]) == pytest.approx((3, 2))


def test_what_a_cache_keeps_is_where_the_line_between_all_and_nothing_meets_them() -> None:
    """Half is found at 100 and a quarter at 110: all up to 80, none from 120 on."""
    sizes = (60.0, 80.0, 100.0, 110.0, 120.0, 140.0)
    found = (1.0, 1.0, 0.5, 0.25, 0.0, 0.0)
    assert in_order(list(zip(sizes, found, strict=True))) == pytest.approx([80, 120])


def test_what_launches_find_again_lies_between_the_lines_of_all_and_of_nothing() -> None:
    """A sixtieth takes 0.1 us of what is found and 0.3 us of what is not; 2 us are beside."""
    part_found = {p: max(0.0, min(1.0, (51 - p) / 18)) for p in (12, 18, 24, 33, 51, 80, 100, 120)}
    times = {p: 2 + p * (0.3 - 0.2 * found) for p, found in part_found.items()}
    assert found_again(times) == pytest.approx([33 / 60, 51 / 60])


def test_growth_is_read_off_below_saturation() -> None:
    """Idle 600; half again as long at 0.8 of the highest rate; what saturates is left out."""
    points = [(1.0, 600.0), (80.0, 600 * (1 + 1.5 * 0.8**3)), (99.0, 3000.0), (100.0, 9000.0)]
    assert growth(points) == pytest.approx(1.5, rel=1e-3)


def test_what_writing_costs_is_read_off_the_highest_rates() -> None:
    """Reading 300 takes as long as reading 100 and writing 100."""
    assert write_factor([(10, 600), (300, 900)], [(10, 600), (200, 3000)]) == pytest.approx(2)


def test_what_a_launch_takes_is_the_mean_of_what_its_blocks_leave() -> None:
    """A block takes 0.1 us, each further one of an SM 0.2: 2.6, 2.8 and 2.7 are left."""
    times = [(1, 2.7), (1, 2.9), (8, 4.2)]
    assert beside_blocks(times, 0.1, 0.2) == pytest.approx(2.7)


def test_growth_by_writes_is_what_growth_leaves_below_saturation() -> None:
    """Writes that cost twice are two thirds of the use: a third longer by 0.5 of them at 0.75."""
    longer = 1 + 1.5 * 0.75**3 + 0.6 * 0.5
    points = [(1.0, 600.0), (75.0, 600 * longer), (95.0, 3000.0), (100.0, 9000.0)]
    assert growth_by_writes(points, 2.0, 1.5) == pytest.approx(0.6)


def test_a_number_that_others_need_is_missed_by_name(backend: PycudaBackend) -> None:
    bench = Bench(backend)
    bench.values = {"latency_cycles.alu": 4.0, "latency_cycles.fma": 3.0}
    assert bench.known("latency_cycles.alu", "latency_cycles.fma") == 7.0
    with pytest.raises(CudaError, match=r"latency_cycles\.dram, which it needs, was not measured"):
        bench.known("latency_cycles.alu", "latency_cycles.dram")


def test_what_waits_is_what_was_issued_less_what_was_served() -> None:
    """Issued every 10 cycles, served every 64: held up at 310 cycles, when 4 have been served."""
    quick = [10.0 * k for k in range(1, 33)]
    held_up = [quick[-1] + 64.0 * k for k in range(1, 49)]
    found = waiting_when_held_up([*quick, *held_up])
    assert found == pytest.approx(32 - 310 / 64)
