"""Sweeps: rows for whatever is asked, the same from any number of workers, and no row lost."""

from __future__ import annotations

import csv
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from strategies import ENTRIES

from gpusim.catalogue import Request, find
from gpusim.cli.app import main
from gpusim.errors import InputError
from gpusim.host import journal as journals
from gpusim.host.files import write_whole
from gpusim.host.journal import Journal, line, opened
from gpusim.prediction.clock import program_steps
from gpusim.prediction.locality import patterns
from gpusim.prediction.streams import classification
from gpusim.prediction.sweeps import sweep as sweeps
from gpusim.prediction.sweeps.jobs import catalogue_job
from gpusim.prediction.sweeps.sweep import Case, crossed, row_of, sweep
from gpusim.prediction.sweeps.tables import COLUMNS, Row, table
from gpusim.reports.plots.sweep import plot_sweep

ROOT = Path(__file__).parents[2]
SMALL = crossed([Request("reduce3"), Request("reduce6")], [64, 128], [2**12, 2**14], ["h200"])


@pytest.fixture
def calls() -> list[Case]:
    """The cases that a sweep predicts in this process."""
    return []


def journal_of(output: Path) -> Path:
    return output.with_name(output.name + sweeps.JOURNAL_SUFFIX)


def test_combinations_come_in_order_and_once() -> None:
    cases = crossed([Request("a"), Request("b"), Request("a")], [64], [1, 2], ["x", "y"])
    assert [(c.device, c.request.n, c.request.block, c.request.kernel) for c in cases] == [
        ("x", 1, 64, "a"), ("x", 1, 64, "b"), ("x", 2, 64, "a"), ("x", 2, 64, "b"),
        ("y", 1, 64, "a"), ("y", 1, 64, "b"), ("y", 2, 64, "a"), ("y", 2, 64, "b"),
    ]  # fmt: skip


def test_a_row_is_what_predict_says() -> None:
    request = Request("reduce3", 2**16, block=128, passes="all")
    row = row_of(Case(request, "h200", without=("barriers",)))
    whole = row_of(Case(request, "h200"))
    forecast = catalogue_job(request).on("h200")
    assert tuple(row) == COLUMNS
    assert whole["time_us"] == forecast.time_us
    assert whole["gbps"] == forecast.gbps
    assert whole["launches"] == len(forecast.predictions)
    assert whole["limiter"] == forecast.first.limiter.name
    assert sum(whole[c] for c in COLUMNS if c.startswith("stall_")) == pytest.approx(1)
    assert (whole["without"], row["without"], whole["reason"]) == ("", "barriers", None)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case(Request("reduce3", 4096, 1024), "8800gtx"), "at most 512 threads"),
        (Case(Request("reduce3", 4096, 96), "h200"), "power of two"),
        (Case(Request("naive_scan", 64, 64, passes="all"), "h200"), "leaves more than one value"),
        (Case(Request("naive_scan", 64, 64, operation="max"), "h200"), "does not do 'max'"),
    ],
)
def test_what_cannot_run_is_a_row_with_its_reason(case: Case, reason: str) -> None:
    row = row_of(case)
    assert tuple(row) == COLUMNS
    assert reason in row["reason"]
    assert "\n" not in row["reason"]
    assert row["time_us"] is None


def test_any_number_of_workers_writes_the_same_bytes(tmp_path: Path) -> None:
    cases = [*SMALL, Case(Request("reduce3", 4096, 96), "h200")]
    one, two = (tmp_path / f"{workers}.csv" for workers in (1, 2))
    for workers, output in enumerate((one, two), 1):
        sweep(cases, output, workers=workers)
        assert not journal_of(output).exists()
    assert one.read_bytes() == two.read_bytes()


def test_csv_and_json_hold_the_same_rows(tmp_path: Path) -> None:
    swept = sweep(SMALL[:2], tmp_path / "t.json", workers=1)
    assert json.loads((tmp_path / "t.json").read_text())["rows"] == swept.rows
    write_whole(tmp_path / "t.csv", table(swept.rows, ".csv"))
    with (tmp_path / "t.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert tuple(read[0]) == COLUMNS
    assert [float(row["time_us"]) for row in read] == [row["time_us"] for row in swept.rows]
    assert sweep(SMALL[:2], workers=1).rows == swept.rows


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path: Path, calls: list[Case]) -> None:
    """The sizes of a launch follow each other, launches in the order of their first case."""
    output = tmp_path / "table.csv"

    def stop(case: Case) -> None:
        calls.append(case)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(SMALL, output, workers=1, progress=stop)
    assert not output.exists()
    assert len(journal_of(output).read_bytes().splitlines()) == 4
    begun: list[int] = []
    swept = sweep(SMALL, output, workers=1, progress=calls.append, started=begun.append)
    assert (begun, swept.found) == ([4], 4)
    assert [(c.request.kernel, c.request.block, c.request.n) for c in calls] == [
        ("reduce3", 64, 2**12), ("reduce3", 64, 2**14),
        ("reduce6", 64, 2**12), ("reduce6", 64, 2**14),
        ("reduce3", 128, 2**12), ("reduce3", 128, 2**14),
        ("reduce6", 128, 2**12), ("reduce6", 128, 2**14),
    ]  # fmt: skip
    assert not journal_of(output).exists()
    assert swept.rows == [row_of(case) for case in SMALL]


def test_a_launch_is_worked_out_device_by_device_for_a_compute_capability(
    calls: list[Case],
) -> None:
    cases = crossed([Request("reduce3")], [64], [2**12, 2**14], ["h200", "a100-40gb", "h100"])
    sweep(cases, workers=1, progress=calls.append)
    assert [(case.device, case.request.n) for case in calls] == [
        ("h200", 2**12), ("h200", 2**14), ("h100", 2**12), ("h100", 2**14),
        ("a100-40gb", 2**12), ("a100-40gb", 2**14),
    ]  # fmt: skip


def test_no_piece_of_work_has_more_rows_than_may_be_lost() -> None:
    cases = crossed([Request("reduce3")], [64], [2**k for k in range(10, 15)], ["h200"])
    assert sweeps._pieces(cases, most=3) == [cases[:3], cases[3:]]


DEVICES = ("h200", "rtx3080", "k40m")


def alone(case: Case) -> Row:
    """Return the row of a case from a process of its own state: nothing is kept from others."""
    for kept in (
        sweeps._kept_job,
        classification._kept_classes,
        patterns._kept_linear,
        program_steps.program_steps,
    ):
        kept.cache_clear()
    return row_of(case)


def test_rows_of_a_sweep_are_those_of_single_predictions() -> None:
    names = ("kernel2", "reduce_coarsening_gpu")
    cases = crossed(list(map(Request, names)), [128], [2**12, 2**16], DEVICES)
    rows = sweep(cases, workers=1).rows
    assert not any(row["reason"] for row in rows)
    assert json.dumps(rows) == json.dumps([alone(case) for case in cases])


@pytest.mark.slow
@pytest.mark.parametrize("code", ["nvcc", "lowering"])
@pytest.mark.parametrize("name", [entry.name for entry in ENTRIES])
def test_rows_of_a_sweep_of_the_catalogue_are_those_of_single_predictions(
    name: str, code: str
) -> None:
    kernel = find(name)
    sizes = [1024] if kernel.one_block or name == "naive_scan" else [2**12, 2**16, 2**20]
    cases = [
        one
        for l2 in ("cold", "warm")
        for one in crossed([Request(name)], [64, 256], sizes, DEVICES, code=code, l2=l2)
    ]
    rows = sweep(cases, workers=1).rows
    assert json.dumps(rows) == json.dumps([alone(case) for case in cases])


def test_a_row_that_was_cut_short_is_worked_out_again(tmp_path: Path, calls: list[Case]) -> None:
    output = tmp_path / "table.json"
    with opened(journal_of(output)) as journal:
        for case in SMALL[:2]:
            journal.keep(sweeps._key(case), row_of(case))
    with journal_of(output).open("ab") as file:
        file.write(b'{"key":"half a li')
    swept = sweep(SMALL[:3], output, workers=1, progress=calls.append)
    assert swept.found == 2
    assert calls == [SMALL[2]]


def test_rows_of_another_model_or_device_are_not_taken_over(tmp_path: Path) -> None:
    before = sweeps._key(SMALL[0])
    assert before == sweeps._key(SMALL[0])
    assert before != sweeps._key(SMALL[1])
    assert before != sweeps._key(SMALL[0], "another")
    source = (ROOT / "gpusim" / "gpu" / "devices" / "h200.toml").read_text()
    keys = []
    for clock in (1980, 1755):
        path = tmp_path / "gpu.toml"
        path.write_text(source.replace("value = 1980", f"value = {clock}"))
        sweeps._numbers.cache_clear()
        keys.append(sweeps._key(Case(Request("reduce3", 64, 64), str(path))))
    assert keys[0] != keys[1]


def test_a_failure_leaves_the_old_output_and_the_finished_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "table.csv"
    output.write_text("old")

    def broken(path: Path, content: str) -> None:
        raise InputError("no room")

    monkeypatch.setattr(sweeps, "write_whole", broken)
    with pytest.raises(InputError, match="no room"):
        sweep(SMALL[:2], output, workers=1, overwrite=True)
    assert output.read_text() == "old"
    monkeypatch.undo()
    assert sweep(SMALL[:2], output, workers=1, overwrite=True).found == 2
    assert output.read_text() != "old"


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_a_finished_sweep_is_not_done_again(tmp_path: Path, calls: list[Case], suffix: str) -> None:
    output = tmp_path / f"table{suffix}"
    cases = [*SMALL[:2], Case(Request("reduce3", 4096, 96), "h200")]
    first = sweep(cases, output, workers=1, progress=calls.append)
    again = sweep(cases, output, workers=1, progress=calls.append)
    assert (again.was_complete, again.rows) == (True, first.rows)
    assert calls == cases
    assert [path.name for path in tmp_path.iterdir()] == [output.name]
    assert not sweep(cases, output, workers=1, progress=calls.append, overwrite=True).was_complete
    assert calls == cases * 2


@pytest.mark.parametrize("suffix", [".csv", ".json"])
@pytest.mark.parametrize("what", ["other cases", "another model", "a row more", "notes"])
def test_another_output_is_not_written_over(tmp_path: Path, suffix: str, what: str) -> None:
    output = tmp_path / f"table{suffix}"
    cases = SMALL[:2]
    sweep(cases, output, workers=1)
    if what == "other cases":
        cases = SMALL[1:3]
    elif what == "another model":
        digest = sweeps._key(cases[0])[: sweeps.DIGITS]
        another = sweeps._key(cases[0], "another")[: sweeps.DIGITS]
        output.write_text(output.read_text().replace(digest, another))
    elif what == "a row more":
        output.write_text(output.read_text()[:-3] + "\n1,2,3")
    else:
        output.write_text("notes")
    before = output.read_bytes()
    with pytest.raises(InputError, match=r"has other content than .* give --overwrite"):
        sweep(cases, output, workers=1)
    assert output.read_bytes() == before
    assert len(sweep(cases, output, workers=1, overwrite=True).rows) == 2


def test_an_empty_output_has_nothing_to_lose(tmp_path: Path) -> None:
    output = tmp_path / "table.csv"
    output.touch()
    assert len(sweep(SMALL[:1], output, workers=1).rows) == 1


# Damaged journals


def stopped(output: Path) -> list[Row]:
    """Leave the journal of a sweep of SMALL that was stopped after six rows; return all rows."""
    rows = [row_of(case) for case in SMALL]
    with opened(journal_of(output)) as journal:
        for case, row in zip(SMALL[:6], rows[:6], strict=True):
            journal.keep(sweeps._key(case), row)
    return rows


def test_a_damaged_line_is_set_aside_and_worked_out_again(
    tmp_path: Path, calls: list[Case]
) -> None:
    output = tmp_path / "table.json"
    rows = stopped(output)
    journal = journal_of(output)
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"grid":', b'"grid":1', 1)
    lines[4] = b"\xff\n"
    journal.write_bytes(b"".join(lines))
    remarks: list[str] = []
    swept = sweep(SMALL, output, workers=1, progress=calls.append, remark=remarks.append)
    assert (swept.rows, swept.found) == (rows, 4)
    assert calls == [SMALL[1], SMALL[4], SMALL[6], SMALL[7]]
    assert remarks == [
        f"{journal}: 2 damaged lines set aside in table.json.journal.damaged; "
        "lost results are computed again"
    ]
    aside = tmp_path / "table.json.journal.damaged"
    assert aside.read_bytes() == lines[1] + lines[4]
    assert sorted(tmp_path.iterdir()) == [output, aside]


@pytest.mark.parametrize(
    "change",
    [
        {"block": 1024},
        {"kernel": "reduce4"},
        {"digest": "0" * 16},
        {"time_us": "fast"},
        {"time_us": float("nan")},
        {"time_us": True},
        {"time_us": 10**400},
        {"limiter": 3},
        {"more": 1},
    ],
)
def test_a_row_that_is_none_of_its_case_is_damage_too(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    """Its checksum may be right: whoever wrote it was not this sweep."""
    output = tmp_path / "table.csv"
    row = row_of(SMALL[0])
    with opened(journal_of(output)) as journal:
        journal.keep(sweeps._key(SMALL[0]), row | change)
    swept = sweep(SMALL[:1], output, workers=1)
    assert (swept.rows, swept.found) == ([row], 0)


def test_lines_twice_or_in_another_order_change_nothing(tmp_path: Path, calls: list[Case]) -> None:
    output = tmp_path / "table.csv"
    rows = stopped(output)
    lines = journal_of(output).read_bytes().splitlines(keepends=True)
    journal_of(output).write_bytes(b"".join(lines[::-1] + lines))
    swept = sweep(SMALL, output, workers=1, progress=calls.append)
    assert (swept.rows, swept.found, calls) == (rows, 6, SMALL[6:])


def test_a_journal_removed_before_it_could_be_locked_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another sweep to the same output ends between our opening its journal and our lock."""
    path = tmp_path / "table.csv.journal"
    lock = journals._lock
    locked: list[int] = []

    def late(file: BinaryIO, at: Path) -> None:
        if not locked:
            path.unlink()
        lock(file, at)
        locked.append(os.fstat(file.fileno()).st_ino)

    monkeypatch.setattr(journals, "_lock", late)
    with opened(path) as journal:
        assert len(locked) == 2
        assert path.stat().st_ino == locked[1]
        journal.keep("key", {"row": 1})
        assert path.stat().st_size > 0


def test_a_journal_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal").symlink_to("/dev/full")
    with pytest.raises(InputError, match="is a device, not a file"), opened(tmp_path / "journal"):
        pass


def test_a_full_disk_is_a_sentence_and_loses_no_row(tmp_path: Path) -> None:
    """The limit on a file's size stands for a disk: the fifth row does not fit."""
    output = tmp_path / "table.csv"
    rows = stopped(output)
    journal_of(output).unlink()
    options = ["reduce3", "reduce6", "--block", "64,128", "-n", "2^12,2^14"]
    firsts = [0, 4, 1, 5]  # the sizes of a launch follow each other
    lines = [line(sweeps._key(SMALL[k]), rows[k]) for k in firsts]
    limit = len(b"".join(lines)) + 100
    whole = command(*options, "--workers", "1", "--no-cache", "--out", output)
    done = subprocess.run(
        whole,
        env={**environment(), "PYTHONDONTWRITEBYTECODE": "1"},  # it would be cut off as well
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"gpusim: {journal_of(output)}: cannot be written: File too large\n"
    kept = journal_of(output).read_bytes()
    assert kept == b"".join(lines)
    swept = sweep(SMALL, output, workers=1)
    assert swept.found == 4


def test_two_sweeps_do_not_share_a_journal(tmp_path: Path) -> None:
    output = tmp_path / "table.csv"
    with opened(journal_of(output)) as journal:
        assert isinstance(journal, Journal)
        with pytest.raises(InputError, match="another sweep is running"):
            sweep(SMALL[:1], output, workers=1)
    assert not journal_of(output).exists()


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ends in"):
        sweep(SMALL, tmp_path, workers=1)
    taken = tmp_path / "table.csv.journal"
    taken.mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        sweep(SMALL, tmp_path / "table.csv", workers=1)


# The command


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "gpusim", "sweep", *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def children_of(pid: int) -> list[int]:
    """Return the processes whose parent is `pid`."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(status.parent.name))
    return found


def until(condition: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_killed_sweep_loses_nothing_and_leaves_no_process(tmp_path: Path) -> None:
    output = tmp_path / "table.csv"
    kernels, blocks, sizes = [f"reduce{k}" for k in (1, 2, 3, 4)], [64, 128, 256], [2**18]
    options = [*kernels, "--block", ",".join(map(str, blocks))]
    options += ["-n", "2^18", "--workers", "2", "--no-cache", "--out"]
    started = subprocess.Popen(command(*options, output), env=environment())
    journal = journal_of(output)
    until(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 3)
    workers = children_of(started.pid)
    os.kill(started.pid, signal.SIGKILL)
    assert started.wait() == -signal.SIGKILL
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    kept = journal.read_bytes()
    rows = kept.count(b"\n")
    assert 3 <= rows < 12
    assert not output.exists()

    done = subprocess.run(
        command(*options, output), env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{rows} of them from an interrupted sweep" in done.stdout
    assert not journal.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv"]
    whole = tmp_path / "whole.csv"
    cases = crossed([Request(name) for name in kernels], blocks, sizes, ["h200"])
    sweep(cases, whole, workers=1)
    assert output.read_bytes() == whole.read_bytes()


def test_workers_that_cannot_be_started_are_a_sentence(tmp_path: Path) -> None:
    options = ["reduce3", "--block", "64,128", "-n", "2^12", "--workers", "2"]
    options.append("--no-cache")
    done = subprocess.run(
        command(*options, "--out", tmp_path / "table.csv"),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)),
    )
    assert done.returncode == 2
    assert done.stderr == "gpusim: no worker process can be started: Too many open files\n"


def test_the_command_prints_a_table_or_json_where_no_file_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["sweep", "reduce3", "--block", "64,96", "-n", "2^12"]
    assert main([*arguments, "--workers", "1"]) == 0
    out = capsys.readouterr().out
    assert "power of two" in out
    assert max(map(len, out.splitlines())) <= 100
    assert main([*arguments, "--workers", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [set(row) for row in rows] == [set(COLUMNS)] * 2
    assert [row["reason"] is None for row in rows] == [True, False]


def test_the_command_says_what_became_of_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "table.json"
    options = ["reduce3", "--block", "64,96", "-n", "2^12", "--workers", "1"]
    assert main(["sweep", *options, "--out", str(output)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "2 rows, 1 predicted, 1 cannot run (column reason)" in out
    assert len(json.loads(output.read_text())["rows"]) == 2


def test_commas_separate_alternatives_of_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", "reduce3", "reduce6", "--block", "64,128", "-n", "2^10", "--workers", "1"]
    given = ["--dtype", "int32,float32", "--op", "sum,max", "--l2", "cold,warm"]
    assert main([*words, *given, "--json", "--no-cache"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    facts = ("kernel", "block", "dtype", "operation", "l2")
    assert len({tuple(row[name] for name in facts) for row in rows}) == len(rows) == 2**5
    assert main([*words, "--l2", "cold,hot"]) == 2
    assert "cold, warm or dirty, not 'hot'" in capsys.readouterr().err


def test_a_table_in_parquet_has_the_same_rows_and_is_known_again(
    tmp_path: Path, calls: list[Case]
) -> None:
    pytest.importorskip("pyarrow")
    made = sweep(SMALL, tmp_path / "table.parquet", workers=1, progress=calls.append)
    assert sweep(SMALL, tmp_path / "table.parquet", workers=1, progress=calls.append).was_complete
    assert sweep(SMALL, tmp_path / "table.json", workers=1, progress=calls.append).rows == made.rows
    assert len(calls) == 2 * len(SMALL)


def test_a_table_in_parquet_needs_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match="pip install pyarrow"):
        sweep(SMALL, tmp_path / "table.parquet", workers=1)


def test_times_are_drawn_by_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "times.svg"
    words = ["sweep", "reduce3", "--block", "64,128", "-n", "2^10,2^12", "--workers", "1"]
    assert main([*words, "--device", "h200,k40m", "--plot", str(picture)]) == 0
    text = picture.read_text()
    assert all(f">{label}<" in text for label in ("64", "128", "h200", "k40m", "elements n"))
    assert main([*words, "--plot", str(tmp_path / "times.txt")]) == 2
    assert "a picture is a file that ends in" in capsys.readouterr().err


def test_more_lines_than_can_be_told_apart_are_refused() -> None:
    row = row_of(SMALL[0])
    with pytest.raises(InputError, match="29 lines are too many"):
        plot_sweep([row | {"kernel": f"k{number}"} for number in range(29)])
    with pytest.raises(InputError, match="no row has a time"):
        plot_sweep([row | {"reason": "none"}])
