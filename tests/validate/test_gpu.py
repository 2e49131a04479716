"""On real hardware: `pytest -m gpu`, with an NVIDIA GPU, PyCUDA and a compiler for CUDA C++."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusim.catalogue import Entry, find
from gpusim.cli.app import main
from validate import counters, files
from validate.backend import GpuMissingError, PycudaBackend
from validate.bench import Bench
from validate.compilers import quick
from validate.counted import compare_all
from validate.counters import ProfilerError
from validate.measure import measure_all
from validate.nvrtc import NvrtcMissingError
from validate.probes.pipes import latency
from validate.records import Case
from validate.twins import twinned

pytestmark = pytest.mark.gpu

RIGHT = [entry for entry in twinned() if not entry.defect]
FAULTS = "kogge_stone_scan"
WRONG = [entry for entry in twinned() if entry.defect and entry.name != FAULTS]


@pytest.fixture(scope="module")
def backend() -> Iterator[PycudaBackend]:
    try:
        made = PycudaBackend(compiler=quick())
    except (GpuMissingError, NvrtcMissingError) as error:
        pytest.skip(str(error))
    yield made
    made.close()


def case_of(entry: Entry, n: int, **settings: str) -> Case:
    """A launch of 1024 threads a block: of n elements, or of as many as one block scans."""
    count = 1024 if entry.one_block else n
    return Case(count, 1024, entry.dtypes[0], **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("entry", RIGHT, ids=lambda entry: entry.name)
@pytest.mark.parametrize("scope", ["single", "all"])
def test_a_right_kernel_is_measured_as_right(
    entry: Entry, scope: str, backend: PycudaBackend
) -> None:
    got = backend.measure(entry, case_of(entry, 2**16 + 8, scope=scope))
    assert got.wrong == 0
    assert got.low_us is not None
    assert got.time_us is not None
    assert got.high_us is not None
    assert 0 < got.low_us <= got.time_us <= got.high_us < 1e6


@pytest.mark.parametrize("entry", WRONG, ids=lambda entry: entry.name)
def test_a_kernel_that_is_wrong_as_published_is_wrong(entry: Entry, backend: PycudaBackend) -> None:
    """With 1024 threads a block and 2^22 elements races show too."""
    assert backend.measure(entry, case_of(entry, 2**22)).wrong


def test_a_fault_is_told_and_does_not_end_the_measuring(backend: PycudaBackend) -> None:
    pairs = [(find(name), Case(64, 64, "float32")) for name in (FAULTS, "kogge_stone_scan_fixed")]
    told: list[int] = []
    faulted, right = measure_all(pairs, "h200", lambda so_far: told.append(len(so_far.times))).times
    assert faulted.fault is not None
    assert "illegal memory access" in faulted.fault
    assert right.wrong == 0
    assert told == [1, 2]


def test_a_warm_l2_is_faster_than_a_cold_one(backend: PycudaBackend) -> None:
    entry = find("reduce6")
    times = {
        l2: backend.measure(entry, Case(2**20, 256, "int32", l2=l2)).time_us
        for l2 in ("cold", "warm")
    }
    assert times["warm"] is not None
    assert times["cold"] is not None
    assert times["warm"] < times["cold"]


def test_an_alu_result_is_there_after_four_cycles(backend: PycudaBackend) -> None:
    """So it is from Volta to Hopper (arXiv 2208.11174)."""
    assert next(iter(latency(Bench(backend)))) == pytest.approx(4, abs=0.5)


def test_counters_read_by_nsight_compute_equal_gpusims(
    backend: PycudaBackend, tmp_path: Path
) -> None:
    try:
        counters.program()
    except ProfilerError as error:
        pytest.skip(str(error))
    path = tmp_path / "counted.json"
    words = ["--kernel", "reduce1", "--out", str(path)]
    assert main(["validate", "counters", *words]) == 0
    counted = compare_all(files.read(path).counters, workers=1)
    assert len(counted.launches) == 5
    assert counted.misses() == []
