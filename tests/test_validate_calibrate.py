"""Calibration against a fake driver: every probe runs, and the device file can be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_gpu import FakeCompiler, FakeDriver

from gpusim import device as devices
from gpusim.device import KEYS
from validate import backend as backends
from validate.backend import PycudaBackend
from validate.calibrate import Calibration, calibrate, device_file
from validate.probes import PROBES, line
from validate.records import Machine


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> PycudaBackend:
    monkeypatch.setattr(backends, "WARM_UP_US", 1.0)
    return PycudaBackend(FakeDriver(), FakeCompiler())


def test_every_probe_runs_and_says_how_it_measures(backend: PycudaBackend) -> None:
    found = calibrate(backend, "h200")
    assert found.failed == {}
    assert set(found.values) == {key for probe in PROBES for key in probe.keys}
    assert all(found.methods[key] for key in found.values)


def test_probes_measure_keys_of_device_files() -> None:
    assert {key for probe in PROBES for key in probe.keys} <= set(KEYS)


def test_a_device_file_holds_what_was_measured_and_keeps_the_rest(tmp_path: Path) -> None:
    pattern = devices.load("h200")
    machine = Machine("Fake GPU", "h200", "test", date="2026-01-31")
    found = Calibration(
        machine,
        {"latency_cycles.alu": 4.25, "queue.lsu_depth": 6.0},
        {"latency_cycles.alu": "one warp", "queue.lsu_depth": "slow stores"},
    )
    path = tmp_path / "mine.toml"
    path.write_text(device_file(found, pattern), encoding="utf-8")
    device = devices.load(path)
    assert (device.latency_cycles.alu, device.queue.lsu_depth) == (4.25, 6)
    fact = device.facts["latency_cycles.alu"]
    assert fact.kind == "measured"
    assert fact.source == "gpusim validate calibrate, Fake GPU, 2026-01-31: one warp"
    assert device.facts["latency_cycles.l2"] == pattern.facts["latency_cycles.l2"]


def test_what_cannot_be_is_not_written(tmp_path: Path) -> None:
    pattern = devices.load("h200")
    machine = Machine("Fake GPU", "h200", "test")
    found = Calibration(machine, {"latency_cycles.alu": -1.0}, {"latency_cycles.alu": "broken"})
    path = tmp_path / "mine.toml"
    path.write_text(device_file(found, pattern), encoding="utf-8")
    assert devices.load(path).latency_cycles.alu == pattern.latency_cycles.alu


def test_a_line_through_points_on_a_line_is_that_line() -> None:
    assert line([(1, 5), (2, 7), (4, 11)]) == pytest.approx((3, 2))
