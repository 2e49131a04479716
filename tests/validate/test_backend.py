"""The backend against a fake driver: what is queued, what is checked, what is told."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from fake_gpu import FakeCompiler, FakeDriver

from gpusim.catalogue import find
from gpusim.host.installation import install
from validate.backend import CudaError, GpuMissingError, PycudaBackend, pycuda_driver
from validate.records import Case

FEW: dict[str, Any] = {"warm_up_us": 1.0, "fewest": 3, "most": 3}


def made(**options: object) -> tuple[PycudaBackend, FakeDriver]:
    driver = FakeDriver(**options)  # type: ignore[arg-type]
    return PycudaBackend(driver, FakeCompiler(), seed=1, **FEW), driver


@pytest.mark.parametrize("name", ["reduce1", "reduce7", "reduction4", "kernel4", "reduce_gpu"])
@pytest.mark.parametrize("scope", ["single", "all"])
def test_a_right_kernel_is_measured_as_right(name: str, scope: str) -> None:
    backend, _ = made()
    entry = find(name)
    got = backend.measure(entry, Case(3000, 64, entry.dtypes[0], scope=scope))
    assert got.wrong == 0
    assert got.results == (
        1 if scope == "all" else Case(3000, 64, entry.dtypes[0]).setups(entry)[0].results
    )


def test_a_wrong_kernel_is_measured_as_wrong() -> None:
    backend, _ = made()
    got = backend.measure(find("step2"), Case(1024, 64, "int32"))
    assert (got.results, got.wrong) == (16, 16)


def test_a_result_that_is_not_written_is_wrong() -> None:
    backend, driver = made()
    entry = find("reduce3")
    driver._kernel = lambda _: lambda *_, **__: None  # type: ignore[method-assign]
    assert backend.measure(entry, Case(256, 64, "int32")).wrong == 4


def test_each_cold_launch_is_queued_behind_the_read_that_empties_the_l2_and_waited_for() -> None:
    backend, driver = made()
    driver.log.clear()
    got = backend.measure(find("reduce3"), Case(256, 64, "int32"))
    checked, timed = driver.log[:2], driver.log[2 + 2 * 5 :]
    assert checked == ["reduce3", "synchronize"]
    assert timed == ["read_all", "event", "reduce3", "event", "synchronize"] * 3
    assert got.time_us == pytest.approx(10.0)
    assert got.repetitions == 3


def test_each_warm_launch_is_queued_behind_the_same_launch_and_a_wait() -> None:
    backend, driver = made()
    driver.log.clear()
    backend.measure(find("reduce3"), Case(256, 64, "int32", l2="warm"))
    assert driver.log[-6:] == ["reduce3", "wait", "event", "reduce3", "event", "synchronize"]


def test_what_a_kernel_overwrites_is_restored_before_the_l2_is_emptied() -> None:
    backend, driver = made()
    driver.log.clear()
    backend.measure(find("reduce_gpu"), Case(256, 64, "float64"))
    queued = ["restore", "read_all", "event", "reduce_gpu", "event"]
    after = driver.log.index("synchronize", 6)
    assert driver.log[after - 5 : after] == queued
    assert set(driver.log[-8:]) == {"restore"}  # every copy, for the next kernel
    assert backend.measure(find("reduce_gpu"), Case(256, 64, "float64")).wrong == 0


def test_a_gpu_has_the_kernels_of_its_generation() -> None:
    backend, _ = made()
    names = "reduce3", "reduce_redux", "reduce_cluster"
    assert [backend.has(find(name)) for name in names] == [True, True, True]
    backend.compute_capability = "8.6"
    assert [backend.has(find(name)) for name in names] == [True, True, False]


@pytest.mark.parametrize("l2", ["cold", "warm"])
def test_flags_are_zero_before_each_launch(l2: str) -> None:
    """The fake GPU refuses others: its blocks would not wait for each other."""
    backend, driver = made()
    got = backend.measure(find("lookback_scan"), Case(500, 64, "int32", l2=l2))
    assert (got.results, got.wrong) == (500, 0)
    assert driver.log.count("lookback_scan") > 3


def test_all_launches_are_timed_together() -> None:
    backend, _ = made()
    got = backend.measure(find("reduce3"), Case(5000, 64, "int32", scope="all"))
    assert got.time_us == pytest.approx(30.0)  # 5000 -> 79 -> 2 -> 1


def test_data_are_kept_for_the_same_input_and_fresh_for_another() -> None:
    backend, _ = made()
    backend.measure(find("reduce3"), Case(256, 64, "int32"))
    first = backend._arrays.data
    backend.measure(find("reduce2"), Case(256, 128, "int32"))
    assert backend._arrays.data is first
    backend.measure(find("reduce2"), Case(512, 128, "int32"))
    backend.measure(find("reduce2"), Case(256, 128, "int32"))
    assert not np.array_equal(backend._arrays.data, first)


def test_launches_take_turns_on_copies_of_the_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, driver = made()
    seen: list[tuple[int, ...]] = []

    def kernel(_: str) -> object:
        return lambda source, output, *_, **__: seen.append((int(source), int(output)))

    monkeypatch.setattr(driver, "_kernel", kernel)
    backend.measure(find("reduce3"), Case(256, 64, "int32"))
    timed = seen[-3:]
    assert len({source for source, _ in timed}) == len({output for _, output in timed}) == 3


def test_an_error_of_the_driver_names_the_kernel() -> None:
    backend, _ = made(faults=("kogge_stone_scan",))
    with pytest.raises(CudaError, match=r"^kogge_stone_scan: .*illegal memory access"):
        backend.measure(find("kogge_stone_scan"), Case(64, 64, "float32"))


def test_a_twin_is_compiled_once() -> None:
    driver, compiler = FakeDriver(), FakeCompiler()
    backend = PycudaBackend(driver, compiler, **FEW)
    for size in (256, 512):
        backend.measure(find("reduce3"), Case(size, 64, "int32"))
    assert len(compiler.compiled) == len(set(compiler.compiled))


def test_the_computer_is_recorded() -> None:
    backend, _ = made()
    machine = backend.machine("h200", "2026-01-31")
    assert (machine.gpu, machine.compute_capability) == ("Fake GPU", "9.0")
    assert (machine.cuda, machine.compiler, machine.date) == ("13.0", "fake 1.0", "2026-01-31")
    assert machine.sm_clock_mhz == 1000.0


def test_without_pycuda_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pycuda.driver", None)
    with pytest.raises(GpuMissingError, match=re.escape(install("gpu")) + "$"):
        pycuda_driver()
