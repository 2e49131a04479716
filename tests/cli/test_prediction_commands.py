"""The commands about time: what they print, their JSON, their width, and every bad input."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, Terminal

from gpusim.catalogue import Request, find
from gpusim.cli.progress import Bar
from gpusim.gpu import device
from gpusim.gpu.device import ABLATIONS, KEYS
from gpusim.prediction.clock.spans import STALLS
from gpusim.prediction.sweeps.jobs import catalogue_job
from gpusim.sass import wheels

KERNELS = """
from gpusim import cuda


@cuda.jit
def saxpy(a, x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] += a * x[i]


@cuda.jit
def until_zero(data, out):
    i = cuda.grid(1)
    while data[i] > 0:
        out[i] += 1
        i += 32
"""

SAXPY = ("--grid", 64, "--block", 256, "--arg", 2.0, "--arg", "n=2^14")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(KERNELS)
    return path


def printed(run: Run, *arguments: object) -> str:
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    assert "\x1b" not in out
    return out


def document(run: Run, *arguments: object) -> Any:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def refused(run: Run, *arguments: object) -> str:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("gpusim: ")
    assert len(err.splitlines()) <= (4 if ", for example" in err else 2)
    assert "Traceback" not in err
    return err


def rows_of(section: str, out: str) -> list[str]:
    """Return the lines of a section of the report."""
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(section)) + 1
    return lines[start : lines.index("", start)]


# predict


def test_predict_says_how_long_why_and_what_would_change_it(run: Run) -> None:
    out = printed(run, "predict", "reduce3", "-n", "2^18", "--block", 256)
    forecast = catalogue_job(Request("reduce3", 2**18, block=256)).on("h200")
    assert "reduce3  sum of 262,144 int32 on H200" in out
    assert f"duration    {forecast.time_us:.2f} us" in out
    assert "of useful bytes: 262,144 x 4 bytes" in out
    assert "of the DRAM's peak, 4,815 GB/s" in out
    assert f"limiter     {forecast.first.limiter.name}: lower bound " in out
    assert "64 of 64 warps on an SM; limited by threads" in out
    assert "less than a full wave" in out
    assert "class of 1,024 blocks" in out
    assert "Findings" in out


def test_the_stalls_that_are_shown_add_up_to_a_hundred(run: Run) -> None:
    out = printed(run, "predict", "reduce2", "-n", "2^18", "--all")
    shares = [float(row.split()[1]) for row in rows_of("Stalls", out)]
    assert round(sum(shares), 1) == 100
    assert shares == sorted(shares, reverse=True)


def test_a_large_grid_says_what_was_simulated_and_what_was_not(run: Run) -> None:
    out = " ".join(printed(run, "predict", "reduce6", "-n", "2^24", "--block", 128).split())
    assert "of one SM's 497 blocks; " in out
    assert "extrapolated, spread" in out
    assert "; tail of " in out


def test_all_passes_are_listed_and_timed_together(run: Run) -> None:
    out = printed(run, "predict", "reduce3", "-n", "2^18", "--block", 256, "--passes", "all")
    assert "for 3 passes" in out
    assert [row.split()[:3] for row in rows_of("Passes", out)[1:]] == [
        ["1", "262,144", "1,024"],
        ["2", "1,024", "4"],
        ["3", "4", "1"],
    ]


def test_a_missing_mechanism_is_timed_beside_the_whole_gpu(run: Run) -> None:
    arguments = ("predict", "reduce2", "-n", "2^16", "--block", 128, "--without", "bank-conflicts")
    out = printed(run, *arguments)
    assert "us without bank-conflicts" in out
    assert "us with bank-conflicts; " in out
    found = document(run, *arguments)
    assert found["without"] == ["bank-conflicts"]
    whole = catalogue_job(Request("reduce2", 2**16, block=128)).on("h200").time_us
    assert found["with_all_mechanisms"]["time_us"] == whole
    assert found["with_all_mechanisms"]["saves"] == pytest.approx(1 - found["time_us"] / whole)


def test_why_plays_it_without_each_mechanism_that_it_meets(run: Run) -> None:
    arguments = ("predict", "reduce2", "-n", "2^16", "--block", 128, "--why")
    out = printed(run, *arguments)
    assert "  without " in out
    assert "bank-conflicts" in out
    found = document(run, *arguments)
    assert {"barriers", "bank-conflicts", "launch-overhead"} <= {
        one["mechanism"] for one in found["ablations"]
    }
    assert all(set(one) == {"mechanism", "time_us", "saves"} for one in found["ablations"])


def test_predict_as_json_has_the_promised_shape(run: Run) -> None:
    found = document(run, "predict", "reduce3", "-n", "2^18", "--block", 256, "--l2", "warm")
    assert (found["kernel"], found["device"], found["device_id"]) == ("reduce3", "H200", "h200")
    assert (found["n"], found["operation"], found["dtype"]) == (2**18, "sum", "int32")
    assert (found["useful_bytes"], found["useful_bytes_are"]) == (2**20, "n elements")
    assert found["gbps"] == pytest.approx(2**20 / found["time_us"] / 1000)
    assert found["peak_fraction"] == pytest.approx(found["gbps"] / 4815)
    (first,) = found["passes"]
    assert first["l2"] == "warm"
    assert set(first["stalls"]) == set(STALLS)
    assert sum(first["stalls"].values()) == pytest.approx(1)
    assert sum(first["lines"].values()) == pytest.approx(1)
    assert first["limiter"] in first["lower_bounds_us"]
    assert {"blocks", "warps", "fraction", "limit"} <= set(first["occupancy"])
    assert {"simulated", "extrapolated", "spread"} <= set(first["simulated"])
    assert sum(one["blocks"] for one in first["classes"]) == 1024


def test_a_wrong_kernel_is_predicted_with_its_known_defect(run: Run) -> None:
    assert "Known defect: " in printed(run, "predict", "reduce5", "-n", "2^14")
    assert document(run, "predict", "reduce5", "-n", "2^14")["defect"]


def test_options_of_the_launch_are_kept_to(run: Run) -> None:
    found = document(
        run, "predict", "kernel1", "-n", "2^16", "--grid", 8, "--block", 128,
        "--op", "max", "--dtype", "float32",
    )  # fmt: skip
    assert found["passes"][0]["grid"] == [8, 1, 1]
    assert (found["operation"], found["dtype"]) == ("max", "float32")


def test_a_kernel_of_the_users_own_needs_no_elements(run: Run, mine: Path) -> None:
    given = (*SAXPY, "--arg", "x=float32[2^14]", "--arg", "y=float32[2^14]")
    found = document(run, "predict", f"{mine}:saxpy", *given)
    assert (found["kernel"], found["n"]) == ("saxpy", None)
    assert found["useful_bytes"] == 3 * 4 * 2**14  # x and y loaded, y stored
    assert found["useful_bytes_are"] == "sectors loaded and stored, each once"
    out = printed(run, "predict", f"{mine}:saxpy", *given)
    assert "of useful bytes: sectors loaded and stored, each once" in out
    assert "y[i] += a * x[i]" in out


def test_a_kernel_that_depends_on_elements_wants_a_filling(run: Run, mine: Path) -> None:
    launch = ("predict", f"{mine}:until_zero", "--grid", 1, "--block", 32, "--arg", "out=int32[32]")
    message = refused(run, *launch, "--arg", "data=int32[64]")
    assert "depend on the arrays' elements: give the elements of data, with" in message
    assert "as in data=TYPE[SHAPE]=random" in message
    assert "time " in printed(run, *launch, "--arg", "data=int32[64]=zeros")


def test_a_users_device_file_works_wherever_a_name_does(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "my-gpu.toml"
    text = (Path(device.__file__).parent / "devices" / "h200.toml").read_text()
    path.write_text(text.replace('"H200"', '"Mine"'))
    found = document(run, "predict", "reduce3", "-n", "2^14", "--device", path)
    assert (found["device"], found["device_id"]) == ("Mine", str(path))
    assert "Mine" in printed(run, "rank", "reduce3", "-n", "2^14", "--device", path)
    assert "Mine" in printed(run, "devices", path)


# rank


def test_rank_orders_kernels_and_explains_each_step(run: Run) -> None:
    names = ("reduce3", "reduce1", "reduce4")
    out = printed(run, "rank", *names, "-n", "2^18", "--block", 256)
    rows = [line.split() for line in out.splitlines() if line.split()[:1] in (["1"], ["2"], ["3"])]
    assert [(row[0], row[1]) for row in rows] == [
        ("3", "reduce1"),
        ("2", "reduce3"),
        ("1", "reduce4"),
    ]
    assert "fewer instructions" in out
    found = document(run, "rank", *names, "-n", "2^18", "--block", 256)
    times = [one["time_us"] for one in found["kernels"]]
    assert times == sorted(times, reverse=True)
    assert [one["rank"] for one in found["kernels"]] == [3, 2, 1]
    assert found["kernels"][0]["step"] is None
    assert found["kernels"][1]["step"] == pytest.approx(times[0] / times[1])
    assert found["kernels"][1]["reasons"]


def test_rank_takes_the_series_with_its_corrections_where_none_is_named(run: Run) -> None:
    found = document(run, "rank", "-n", "2^14", "--device", "k40m", "--passes", "all")
    names = {one["kernel"] for one in found["kernels"]}
    assert names == {*(f"reduce{k}" for k in (1, 2, 3, 4, 6, 7)), "reduce5_fixed"}
    assert [one["kernel"] for one in found["wrong"]] == ["reduce5"]
    assert all(len(one["passes"]) > 1 for one in found["kernels"])
    out = printed(run, "rank", "-n", "2^14")
    assert "not ranked: reduce5" in out
    assert "reduce5_fixed is corrected" in out


def test_rank_names_what_cannot_run_and_goes_on(run: Run) -> None:
    out = printed(run, "rank", "reduce3", "naive_scan", "-n", "2^14", "--passes", "all")
    assert "naive_scan cannot run: naive_scan is a scan" in out
    assert "reduce3" in out


def test_rank_fails_where_nothing_can_run(run: Run) -> None:
    assert "power of two" in refused(run, "rank", "reduce3", "reduce4", "--block", 96)


# devices


def test_a_list_of_devices_in_80_columns_counts_each_kind_of_number(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = printed(run, "devices").splitlines()
    assert lines[0].split()[-3:] == ["measured", "estim.", "unmeas."]
    kinds = [line.split()[-4:] for line in lines[1 : lines.index("")]]
    assert kinds
    assert all(count.isdigit() for counts in kinds for count in counts)


def test_devices_lists_every_gpu_and_every_mechanism(run: Run) -> None:
    out = printed(run, "devices")
    for name in [*device.names(), *ABLATIONS]:
        assert name in out
    found = document(run, "devices")["devices"]
    assert [one["id"] for one in found] == device.names()
    assert {"name", "compute_capability", "sms", "dram_peak_gbps", "kinds"} <= set(found[0])
    assert sum(found[0]["kinds"].values()) == len(KEYS)


@pytest.mark.parametrize("name", device.names())
def test_a_device_shows_every_number_with_unit_kind_and_source(run: Run, name: str) -> None:
    out = printed(run, "devices", name, "--all")
    for dotted in KEYS:
        assert dotted.partition(".")[2] in out
    found = document(run, "devices", name)["facts"]
    assert set(found) == set(KEYS)
    for fact in found.values():
        assert set(fact) == {"value", "unit", "kind", "source", "meaning"}
        assert fact["kind"] in device.KINDS
        assert fact["source"]


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("predict reduse3", "there is no kernel 'reduse3'; did you mean reduce3"),
        ("predict reduce3 --device h20x", "did you mean h200"),
        ("predict reduce3 --device nowhere.toml", "nowhere.toml: there is no such file"),
        ("predict reduce3 -n 0", "n must be at least 1, not 0"),
        ("predict reduce3 -n many", "n is 'many', not a whole number"),
        ("predict reduce3 --block 96", "needs a block that is a power of two"),
        ("predict reduce3 --block 16x16", "has one direction, not 16x16"),
        ("predict reduce3 --block 1024 --device 8800gtx", "at most 512 threads in a block"),
        ("predict reduce3 --l2 lukewarm", "--l2 is cold, warm or dirty, not 'lukewarm'"),
        ("predict reduce3 --passes two", "--passes is one or all, not 'two'"),
        ("predict naive_scan --passes all", "leaves more than one value"),
        ("predict reduce3 --without bank-conflict", "did you mean bank-conflicts?"),
        ("predict reduce3 --op mean", "does not do 'mean'"),
        ("predict reduce3 --dtype flaot32", "did you mean float32"),
        ("predict reduce3 --grid 7 -n 4096", "needs"),
        ("predict reduce3 --arg 4", "--arg cannot be given here"),
        ("predict reduce3 --step-limit few", "the step limit is 'few'"),
        ("predict nowhere.py:f --grid 1 --block 32", "nowhere.py: there is no such file"),
        ("predict", "the following arguments are required: KERNEL; see gpusim predict --help"),
        ("rank reduse3", "did you mean reduce3"),
        ("rank --device h20x", "did you mean h200"),
        ("rank -n x", "n is 'x'"),
        ("rank --block 0", "the block must be at least 1"),
        ("rank --passes some", "--passes is one or all"),
        ("devices rtx4009", "did you mean rtx4090"),
        ("devices h200 k40m", "unrecognized arguments: k40m"),
        ("sweep reduse3", "did you mean reduce3"),
        ("sweep --device ,", "--device is empty"),
        ("sweep --device h200,h20x", "did you mean h200"),
        ("sweep --block 64,x", "a block is 'x'"),
        ("sweep -n 2^60", "a size must be at most"),
        ("sweep --workers 0", "--workers must be at least 1"),
        ("sweep --without speed", "unknown mechanism 'speed' in --without"),
        ("sweep --out table.txt", "ends in .csv or .json or .parquet, not table.txt"),
        ("sweep --out nowhere/table.csv", "there is no directory nowhere"),
        ("sweep --dtype int", "unknown data type 'int'"),
        ("sweep reduce3 --block 33333", "none of the combinations can run: reduce3 needs a block"),
    ],
)
def test_bad_input_is_refused_in_a_line_or_two(run: Run, arguments: str, message: str) -> None:
    assert message in refused(run, *arguments.split())


WHOLE = [word for one in ("x=float32[4]", "y=float32[4]", "n=4") for word in ("--arg", one)]


def test_own_kernels_with_bad_input_are_refused(run: Run, mine: Path) -> None:
    for more, message in [
        (["--grid", 1], "has no launch rule; give --block and --arg for"),
        (
            [*SAXPY, "--arg", "x=float32[4]"],
            "lacks arguments; give --arg for y: array, for example",
        ),
        ([*SAXPY, "--passes", "all"], "--passes all is for reductions of the catalogue"),
        ([*SAXPY, *WHOLE, "-n", 5], "-n is given, but no --arg"),
        (
            [*SAXPY, "--arg", "x=float32[0]", "--arg", "y=float32[4]"],
            "the shape is one to three sizes",
        ),
    ]:
        assert message in refused(run, "predict", f"{mine}:saxpy", *more)


def test_a_mistake_in_a_device_file_names_file_key_and_what_was_expected(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "my-gpu.toml"
    text = (Path(device.__file__).parent / "devices" / "h200.toml").read_text()
    path.write_text(text.replace("sms = { value = 132", "sms = { value = 0"))
    for command in (["predict", "reduce3", "--device"], ["devices"], ["sweep", "--device"]):
        message = refused(run, *command, path)
        for part in (str(path), "gpu.sms", "from 1 to 1,024"):
            assert part in message


# As a process


def test_predict_answers_quickly_from_a_cold_start() -> None:
    root = Path(__file__).parents[2]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "gpusim", "predict", "reduce6", "-n", "2^26", "--block", "256"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "80"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert max(len(line) for line in done.stdout.decode().splitlines()) <= 80
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 10  # CPU time: a second or so


def test_a_terminal_sees_a_bar_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Bar(2, "rows") as bar:
        bar.start()
        bar.advance("one")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("TERM", "xterm")
    with redirect_stderr(Terminal()) as shown, Bar(2, "rows") as bar:
        bar.start(1)
        bar.advance("two")
    assert "rows" in shown.getvalue()
    assert capsys.readouterr() == ("", "")


def test_the_series_that_is_ranked_is_in_the_catalogue() -> None:
    from gpusim.cli.timing import SERIES, with_corrections

    assert [find(name).name for name in SERIES] == list(SERIES)
    assert with_corrections(["reduce5", "reduce5_fixed", "reduce6"]) == [
        "reduce5",
        "reduce5_fixed",
        "reduce6",
    ]


def test_rank_has_what_was_measured_of_the_same_launch_beside_its_predictions(run: Run) -> None:
    words = ("rank", "reduce1", "reduce3", "-n", "2^20", "--block", "256", "--json")
    code, out, _ = run(*words)
    assert code == 0
    measured = {one["kernel"]: one["measured_gbps"] for one in json.loads(out)["kernels"]}
    assert measured["reduce1"] == pytest.approx(295.2, abs=0.1)  # 4 MB in 14.2 us
    assert measured["reduce3"] > measured["reduce1"]
    _, out, _ = run(*words, "--l2", "warm")
    assert {one["measured_gbps"] for one in json.loads(out)["kernels"]} == {None}
    _, text, _ = run(*words[:-1])
    assert "measured" in text
    assert "295.2" in text


ASLEEP, BY_THE_CLOCK = "asleep in __nanosleep", "loops wait for by clock()"
# Bodies of kernels, and what is not in their duration.
WAITS = {
    "__nanosleep(1000000);": {ASLEEP},
    "long long t = clock64(); while (clock64() - t < n) {}": {BY_THE_CLOCK},
    "unsigned t = clock(); while (clock() - t < (unsigned)n) __nanosleep(100);": {
        ASLEEP,
        BY_THE_CLOCK,
    },
    "long long t = clock64(); for (int i = 0; i < 4; i++) x[i] *= 3; x[5] = clock64() - t;": set(),
    "for (int i = 0; i < n; i++) { int t = clock(); x[i] *= 3; x[i + 9] = clock() - t; }": set(),
    "": set(),
}


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_prediction_says_which_waits_are_not_in_its_time(run: Run, tmp_path: Path) -> None:
    file, launch = tmp_path / "waits.cu", "// gpusim: grid=1 block=32 args=int32[32],9\n"
    file.write_text("".join(
        f"{launch}__global__ void k{number}(int *x, int n) {{ {body} x[threadIdx.x] = 1; }}\n"
        for number, body in enumerate(WAITS)
    ))  # fmt: skip
    for number, (body, left_out) in enumerate(WAITS.items()):
        _, out, _ = run("predict", f"{file}:k{number}")
        said = " ".join(out.split())
        assert {one for one in (ASLEEP, BY_THE_CLOCK) if one in said} == left_out, body
        assert ("not in the duration" in said) is bool(left_out), body
