"""Single operations of the language: their operands, their records, and an H200's results."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpusim.cli.app import main
from gpusim.errors import InputError
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.machine import run
from gpusim.sass import wheels
from gpusim.sass.kernels import CubinFile
from validate.operations import record, recording, running
from validate.operations.operands import edges, operands
from validate.operations.operation import THREADS, TYPES, Operation
from validate.operations.record import Record
from validate.operations.rooms import ROOMS, room
from validate.operations.verdict import difference

SUM = Operation("sum", "int", ("int", "int"), "a + b", exact=True)
ROOT = Operation("root", "float", ("float",), "rsqrtf(a)", ulps=2)
needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)


def known(operation: Operation, results: np.ndarray[Any, Any], *special: str) -> Record:
    checksums = {operation.name: record.checksum([results])} if operation.exact else {}
    values = {} if operation.exact else {operation.name: record.kept_values(operation, results)}
    return Record("a GPU", "1", "NVRTC 13.5", "2026-01-01", special, checksums, values)


def test_the_operands_cross_the_edges_of_both_types() -> None:
    pairs = set(zip(*(one.tolist() for one in operands(SUM)), strict=True))
    assert {(2**31 - 1, 1), (-(2**31), -(2**31)), (0, 2**31 - 1), (1, 0)} <= pairs
    assert all(len(one) == THREADS for one in operands(SUM))


@pytest.mark.parametrize("kind", ["float", "double", "half", "bf16"])
def test_the_edges_hold_zeros_subnormals_infinities_and_both_kinds_of_nan(kind: str) -> None:
    size = np.dtype(TYPES[kind][0]).itemsize
    ones = {"float": 0x7F800000, "double": 0x7FF << 52, "half": 0x7C00, "bf16": 0x7F80}[kind]
    held = {int(one) for one in edges(kind).view(f"u{size}")}
    top = 1 << (8 * size - 1)
    assert {0, top, 1, top | 1, ones, top | ones, 2 * top - 1} <= held
    quiet = (ones >> 1) & ~ones | ones
    assert quiet in held


def test_operands_are_the_same_everywhere() -> None:
    assert record.checksum(operands(SUM))[:12] == "cvIIgJsKM4nH"


def test_a_wrong_result_is_found_within_its_32_threads() -> None:
    results = np.arange(THREADS, dtype=np.int32)
    of_gpu = known(SUM, results)
    assert difference(SUM, [results], of_gpu, "NVRTC 13.5") == ""
    off = results.copy()
    off[77] += 1
    assert "threads 64 to 95" in difference(SUM, [off], of_gpu, "NVRTC 13.5")


def test_an_approximation_may_be_off_by_its_units_in_the_last_place() -> None:
    results = np.linspace(1, 2, THREADS, dtype=np.float32)
    of_gpu = known(ROOT, results, "root")
    near = (results.view(np.uint32) + np.uint32(2)).view(np.float32)
    far = (results.view(np.uint32) + np.uint32(3)).view(np.float32)
    assert difference(ROOT, [near], of_gpu, "NVRTC 13.5") == ""
    assert "256 of 256 differ" in difference(ROOT, [far], of_gpu, "NVRTC 13.5")


def test_without_special_functions_the_same_code_gives_the_same_bits() -> None:
    results = np.linspace(1, 2, THREADS, dtype=np.float32)
    near = np.nextafter(results, np.float32(9))
    assert difference(ROOT, [near], known(ROOT, results), "NVRTC 13.5")
    assert difference(ROOT, [near], known(ROOT, results), "NVRTC 13.6") == ""


def test_what_is_no_number_has_the_same_bits() -> None:
    results = np.full(THREADS, np.nan, np.float32)
    of_gpu = known(ROOT, results, "root")
    other = (results.view(np.uint32) | np.uint32(1)).view(np.float32)
    assert difference(ROOT, [other], of_gpu, "NVRTC 13.5")


@pytest.mark.parametrize("name", list(ROOMS))
def test_each_room_has_a_result_for_each_of_its_operations(name: str) -> None:
    held = record.load("h200", name)
    exact = {one.name for one in room(name) if one.exact}
    assert set(held.checksums) == exact
    assert set(held.values) == {one.name for one in room(name)} - exact


@needs_compiler
@pytest.mark.parametrize(
    "words",
    [
        ("--rooms", "integer,warp", "--every", "47"),
        pytest.param(("--every", "149"), marks=pytest.mark.slow),
    ],
    ids=len,
)
def test_a_sample_of_operations_is_right_as_on_an_h200(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["validate", "operations", *words, "--json"])
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert [one for one in verdicts if one["state"] not in ("right", "unavailable")] == []
    assert [one["state"] for one in verdicts].count("right") >= 3
    assert code == 0


@needs_compiler
def test_operations_whose_headers_are_not_here_are_counted_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wheels, "headers", lambda: [wheels.OWN_HEADERS])
    assert main(["validate", "operations", "--rooms", "conversion", "--every", "100"]) == 0
    printed = capsys.readouterr().out
    assert "cuda_fp16.h is not here; it comes with pip install nvidia-cuda-runtime" in printed
    right, refused, wrong, unavailable = map(int, printed.splitlines()[1].split()[1:])
    assert right > 0
    assert unavailable > 0
    assert refused == wrong == 0


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("name", list(ROOMS))
def test_no_operation_is_wrong_and_hardly_one_refused(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["validate", "operations", "--rooms", name, "--json"])
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert [one for one in verdicts if one["state"] == "wrong"] == []
    refused = [one for one in verdicts if one["state"] == "refused"]
    assert len(refused) <= 0.02 * len(verdicts), refused


class FakeGpu:
    """Stands in for `pycuda.driver`: runs a cubin's kernels in the simulator."""

    Context = SimpleNamespace(synchronize=lambda: None)

    def __init__(self) -> None:
        self.freed = 0

    def module_from_buffer(self, data: bytes) -> Any:
        file = CubinFile(data, "operations.cubin")

        def function(name: str) -> Any:
            def launch(*held: Any, grid: Any, block: Any, shared: int) -> None:
                arrays = [one.array for one in held]
                configured = Launch.of(grid[0], block[0], shared)
                run(file[name].prepare(configured, arrays, ComputeCapability(9, 0)))

            return launch

        return SimpleNamespace(get_function=function)

    def to_device(self, array: np.ndarray[Any, Any]) -> Any:
        def free() -> None:
            self.freed += 1

        return SimpleNamespace(array=array.copy(), free=free)

    def from_device(self, held: Any, shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
        return np.asarray(held.array)


@needs_compiler
def test_packed_code_is_run_and_recorded_where_a_gpu_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = (SUM, Operation("root", "float", ("float",), "rsqrtf(fabsf(a))"))
    monkeypatch.setitem(ROOMS, "few", lambda: iter(few))
    running.pack(["few"], tmp_path)
    gpu = FakeGpu()
    machine = ("a GPU", "1", "2026-01-01")
    recording.record_all(["few"], tmp_path, gpu, machine, tmp_path / "made", lambda *_: None)
    made = record.read(tmp_path / "made" / "few.json")
    a, b = operands(SUM)
    assert made.checksums["sum"] == record.checksum([a + b, a, b])
    assert made.special == ("root",)
    assert gpu.freed == 5


def test_a_room_or_a_record_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no room 'kitchen'"):
        room("kitchen")
    with pytest.raises(InputError, match="there are results of h200"):
        record.load("abacus", "single")
    (tmp_path / "a.json").write_text('{"format": "something else"}')
    with pytest.raises(InputError, match="no results of operations"):
        record.read(tmp_path / "a.json")


def test_packed_code_needs_a_place_for_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "operations", "--packed", "somewhere"]) == 2
    assert "go together" in capsys.readouterr().err
