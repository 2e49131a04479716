"""The commands that measure, against a fake GPU and a fake profiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpusim.cli.app import main
from validate import commands, counters, files
from validate.cases import Pair, all_times
from validate.documents import DOCUMENTS
from validate.measure import Listener, median_of
from validate.records import Machine, Measurement, Measurements

MACHINE = Machine("a GPU", "h200", "made by hand")


@pytest.fixture
def _quick_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every launch takes 10 us and is right."""

    def measure_all(pairs: list[Pair], device: str, listen: Listener) -> Measurements:
        times = tuple(
            Measurement(kernel.name, case, 10.0, 9.0, 11.0, 15, 1, 0) for kernel, case in pairs
        )
        for count in range(1, len(times) + 1):
            listen(Measurements(MACHINE, times[:count]))
        return Measurements(MACHINE, times)

    monkeypatch.setattr(commands, "measure_all", measure_all)


@pytest.mark.usefixtures("_quick_gpu")
def test_run_measures_what_is_chosen_and_keeps_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.json"
    words = ["validate", "run", "--out", str(path), "-n", "2^20"]
    assert main([*words, "--kernel", "reduce1"]) == 0
    assert main([*words, "--kernel", "reduce2,reduce3"]) == 0
    assert {one.kernel for one in files.read(path).times} == {"reduce1", "reduce2", "reduce3"}
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "[1/3: 1/15] reduce1 int32 64 n=1048576 cold single: 10.00 us"
    assert len(told) == 3 * (15 + 30)
    assert main([*words, "--kernel", "reduce1", "--rounds", "1"]) == 0
    assert {one.repetitions for one in files.read(path).times} == {15, 45}


def test_the_median_of_rounds_counts_but_a_fault_in_any_of_them_too() -> None:
    kernel, case = next(iter(all_times()))

    def measured(time_us: float | None, wrong: int = 0, fault: str | None = None) -> Measurements:
        one = Measurement(kernel.name, case, time_us, time_us, time_us, 15, 4, wrong, fault)
        return Measurements(MACHINE, (one,))

    (middle,) = median_of([measured(12.0), measured(10.0, wrong=2), measured(11.0)]).times
    assert (middle.time_us, middle.repetitions, middle.wrong) == (11.0, 45, 2)
    (faulty,) = median_of([measured(12.0), measured(None, fault="an illegal address")]).times
    assert (faulty.time_us, faulty.fault) == (None, "an illegal address")


@pytest.mark.parametrize("command", ["run", "counters"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--device", "nope"], "there is no device 'nope'"),
        (["--kernel", "nope"], "there is no kernel 'nope'"),
        (["-n", "17"], "nothing is measured: no launch has these kernels and sizes"),
        (["--out", "/nowhere/x.json"], "/nowhere/x.json: cannot be written"),
    ],
)
def test_what_cannot_be_measured_is_told_before_anything_is(
    command: str, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", command, *words]) == 2
    assert capsys.readouterr().err.startswith(f"gpusim: {told}")


def test_without_the_profiler_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["validate", "counters"]) == 2
    told = capsys.readouterr().err
    assert told == f"gpusim: reading hardware counters needs ncu: {counters.INSTALL}\n"


def test_a_table_of_the_profiler_is_read_behind_what_else_it_prints() -> None:
    printed = (
        "==PROF== Connected to process 7\n"
        '"ID","Kernel Name","smsp__inst_executed.sum"\n'
        '"","","inst"\n'
        '"0","void reduce1<int>(int)","1,234"\n'
    )
    (row,) = counters.table(printed)
    assert row["smsp__inst_executed.sum"] == "1,234"
    assert counters._values(row, "reduce1") == {"smsp__inst_executed.sum": 1234}
    with pytest.raises(counters.ProfilerError, match=r"ncu counted void reduce1.* where reduce2"):
        counters._values(row, "reduce2")


FAKE_NCU = """#!/bin/sh
case "$*" in
  *sm__cycles_active*) echo "==ERROR== Failed to find metric sm__cycles_active.avg"; exit 1 ;;
esac
echo '"ID","Kernel Name","smsp__inst_executed.sum"'
echo '"","","inst"'
echo '"0","void reduce1<int>(int)","77"'
"""


def test_metrics_that_the_profiler_does_not_know_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ncu = tmp_path / "ncu"
    ncu.write_text(FAKE_NCU, encoding="utf-8")
    ncu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    kernel, case = next((k, c) for k, c in commands.cases.all_counters() if k.name == "reduce1")
    (found,) = counters.collect([(kernel, case)], ["true"])
    assert (found.kernel, found.values) == ("reduce1", {"smsp__inst_executed.sum": 77})


@pytest.mark.parametrize("command", ["", "run", "counters", "calibrate", "compare"])
def test_every_command_has_help_with_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", *([command] if command else []), "--help"]) == 0
    told = capsys.readouterr().out
    assert "examples:" in told
    assert f"  gpusim validate {command}".rstrip() in told


def test_the_commands_do_without_the_data_set_of_a_source_checkout() -> None:
    """An installed package has no `validate.others`."""
    code = "import sys; sys.modules['validate.others'] = None; import validate.commands"
    root = Path(commands.__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_command_with_json_has_a_document() -> None:
    (below,) = (one for one in commands.parser()._actions if one.dest == "command")
    assert isinstance(below.choices, dict)
    with_json = {
        f"validate {name}"
        for name, command in below.choices.items()
        if any(option.dest == "json" for option in command._actions)
    }
    assert with_json == DOCUMENTS.keys()
