"""Files of measurements: all that come with the package load, and anything else is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpusim.cli.app import main
from validate import cases, files
from validate.files import MeasurementsError
from validate.records import Case, Counts, Machine, Measurement, Measurements

MADE = Measurements(
    Machine("a GPU", "h200", "made by hand", sm_clock_mhz=1980.0),
    (
        Measurement("reduce1", Case(1024, 128, "int32"), 10.5, 10.0, 11.0, 15, 8, 0),
        Measurement("reduce1", Case(1024, 64, "int32", grid=4), fault="an illegal address"),
    ),
    (Counts("reduce1", Case(1024, 128, "int32"), {"smsp__inst_executed.sum": 1234}),),
)
Tree = dict[str, Any]

REDUCTIONS = ["rtx2060", "rtx3060", "rtx3060ti", "rtx3070ti", "rtx3080"]
NAMES = ["gtx1650", "h200", "h200-hopper", "h200-tuning", "k40m", *REDUCTIONS]


@pytest.mark.parametrize("name", NAMES)
def test_measurements_that_come_with_the_package_load(name: str) -> None:
    found = files.load(name)
    assert found.times
    assert found.machine.source
    assert name in files.names()


def test_there_are_no_other_measurements() -> None:
    assert files.names() == NAMES


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    files.write(path, MADE)
    assert files.load(path) == files.load(str(path)) == MADE


def test_newer_measurements_replace_the_same_case_and_keep_the_others() -> None:
    again = Measurement("reduce1", Case(1024, 128, "int32"), 9.0, 9.0, 9.0, 15, 8, 0)
    joined = MADE.joined_by(Measurements(Machine("a GPU", "h200", "later"), (again,)))
    assert joined.machine.source == "later"
    assert joined.times == (again, MADE.times[1])
    assert joined.counters == MADE.counters


def test_the_h200_was_measured_with_every_case_that_there_is() -> None:
    """All kernels, blocks 64 to 1024, 2^20 to 2^28 elements; times and counters."""
    found = files.load("h200")
    later = set(cases.later_times())
    assert {(e.name, case) for e, case in cases.all_times() if (e, case) not in later} == {
        (one.kernel, one.case) for one in found.times
    }
    counted = {(one.kernel, one.case) for one in found.counters}
    wanted = {(e.name, case) for e, case in cases.all_counters()}
    assert {pair for pair in wanted - counted if pair[0] != "kogge_stone_scan"} == set()


def test_the_h200_was_measured_with_every_later_case_and_all_results_were_right() -> None:
    found = files.load("h200-hopper").times
    assert {(e.name, case) for e, case in cases.later_times()} == {
        (o.kernel, o.case) for o in found
    }
    assert all(one.is_right for one in found)


def test_the_cases_cover_blocks_and_sizes() -> None:
    chosen = {
        (case.block, case.n) for kernel, case in cases.all_times() if kernel.name == "reduce1"
    }
    assert chosen >= {(b, 2**k) for b in (64, 128, 256, 512, 1024) for k in (20, 22, 24, 26, 28)}


# -- what is refused ------------------------------------------------------------------------------


def set_in(*keys: Any, to: Any) -> Callable[[Tree], None]:
    def change(tree: Tree) -> None:
        place: Any = tree
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return change


ROW = ("times", "rows", 0)
DAMAGES: dict[str, tuple[Callable[[Tree], Any], str]] = {
    "another format": (
        set_in("format", to="gpusim measurements 9"),
        "is not a file of measurements: no format 'gpusim measurements 1'",
    ),
    "an unknown key": (set_in("extra", to=1), "extra: is not a known key"),
    "no machine": (lambda tree: tree.pop("machine"), "machine is missing"),
    "no GPU": (set_in("machine", "gpu", to=""), "machine.gpu is missing"),
    "an unknown fact": (set_in("machine", "owner", to="me"), "machine.owner is not a known key"),
    "a clock as text": (
        set_in("machine", "sm_clock_mhz", to="fast"),
        "machine.sm_clock_mhz must be a number, or null, not 'fast'",
    ),
    "a date as number": (
        set_in("machine", "date", to=2026),
        "machine.date must be a text on one line, not 2026",
    ),
    "no times": (lambda tree: tree.pop("times"), "times must have columns and rows, each a list"),
    "rows as text": (
        set_in("counters", "rows", to="none"),
        "counters must have columns and rows, each a list",
    ),
    "another column": (
        set_in("times", "columns", 1, to="size"),
        "times.columns must begin with kernel, n, block, dtype",
    ),
    "a column too many": (
        lambda tree: tree["times"]["columns"].append("more"),
        "times.columns holds a column too many",
    ),
    "a short row": (
        lambda tree: tree["times"]["rows"][1].pop(),
        "times, row 2: expected 16 values",
    ),
    "an unknown kernel": (
        set_in(*ROW, 0, to="reduce99"),
        "times, row 1: kernel must be a kernel of the catalogue, not 'reduce99'",
    ),
    "a list as kernel": (
        set_in(*ROW, 0, to=[]),
        "times, row 1: kernel must be a kernel of the catalogue, not []",
    ),
    "n as text": (
        set_in(*ROW, 1, to="1024"),
        "times, row 1: n must be a whole number from 1 to 2,147,483,647, not '1024'",
    ),
    "an n beyond all": (
        set_in(*ROW, 1, to=2**31),
        "times, row 1: n must be a whole number from 1 to 2,147,483,647, not 2147483648",
    ),
    "a time that rounds to nothing": (
        set_in(*ROW, 10, to=1e-300),
        "times, row 1: low_us must be at least 0.0001, or null, not 1e-300",
    ),
    "n as truth": (
        set_in(*ROW, 1, to=True),
        "times, row 1: n must be a whole number from 1 to 2,147,483,647, not True",
    ),
    "an unknown type": (set_in(*ROW, 3, to="int128"), "times, row 1: dtype must be one of int32"),
    "an unknown scope": (set_in(*ROW, 8, to="some"), "times, row 1: scope must be one of single"),
    "no time": (
        set_in(*ROW, 9, to=0),
        "times, row 1: time_us must be at least 0.0001, or null, not 0",
    ),
    "neither time nor fault": (
        set_in(*ROW, 9, to=None),
        "times, row 1: expected either time_us or a fault",
    ),
    "a negative count": (
        set_in("counters", "rows", 0, 9, to=-1),
        "counters, row 1: smsp__inst_executed.sum must be a number of at least 0, or null, not -1",
    ),
    "a case twice": (
        lambda tree: tree["times"]["rows"].append(tree["times"]["rows"][0]),
        "times, row 3: is measured in row 1 already",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_with_the_place(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    files.write(path, MADE)
    tree = json.loads(path.read_text(encoding="utf-8"))
    change, told = DAMAGES[damage]
    change(tree)
    path.write_text(json.dumps(tree), encoding="utf-8")
    with pytest.raises(MeasurementsError) as refused:
        files.load(path)
    assert str(refused.value).startswith(f"{path}: {told}")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "line 1, column 1: is not JSON: Expecting value"),
        (b'{"format": "gpusim measurements 1",\n"machine": {', "line 2, column 13: is not JSON"),
        (b"[1, 2, 3]", "is not a file of measurements"),
        (b"[" * 100_000, "is nested deeper than 16 levels"),
        (b'{"times": 1' + b"0" * 400 + b"}", "holds a number of more than 64 bits"),
        (b'{"times": NaN}', "is not a file of measurements"),
        (b"\xff\xfe\x00", "is not a text file in UTF-8"),
    ],
)
def test_a_foreign_file_is_refused(content: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(content)
    with pytest.raises(MeasurementsError) as refused:
        files.load(path)
    assert str(refused.value).startswith(f"{path}: {told}")


@pytest.mark.parametrize("parts", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_refused(parts: float, tmp_path: Path) -> None:
    whole = (files.FOLDER / "h200.json").read_text(encoding="utf-8")
    path = tmp_path / "mine.json"
    path.write_text(whole[: int(parts * len(whole))], encoding="utf-8")
    with pytest.raises(MeasurementsError, match=r"line \d+, column \d+: is not JSON"):
        files.load(path)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasurementsError, match="is a directory, not a file"):
        files.read(tmp_path)
    with pytest.raises(MeasurementsError, match="there is no such file"):
        files.load(tmp_path / "none.json")


def test_the_command_tells_the_place_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.json"
    path.write_text("{", encoding="utf-8")
    assert main(["validate", "compare", "--against", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"gpusim: {path}: line 1, column 2: is not JSON")
