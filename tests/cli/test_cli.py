"""The command line: each command, its JSON, its width, and every kind of bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.cli import app
from gpusim.cli.app import MODULES, command
from gpusim.tracing.counters import COUNTERS

Run = Callable[..., tuple[int, str, str]]

KERNELS = """
import numpy as np
from gpusim import cuda


@cuda.jit
def saxpy(a, x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] += a * x[i]


@cuda.jit
def column(table, out):
    tid = cuda.threadIdx.x
    out[tid] = table[tid, 0]


@cuda.jit
def past_the_end(data):
    data[cuda.grid(1) + 1] = 7


@cuda.jit
def never_met(data):
    if cuda.threadIdx.x < 32:
        return
    while data[0] == 0:
        pass


@cuda.jit
def dynamic(data):
    buffer = cuda.shared.array(0, np.int32)
    tid = cuda.threadIdx.x
    buffer[tid] = data[tid]
    cuda.syncthreads()
    data[tid] = buffer[cuda.blockDim.x - 1 - tid]


@cuda.jit
def half_a_barrier(data):
    if cuda.threadIdx.x < 16:
        cuda.syncthreads()
    data[cuda.threadIdx.x] = 1


def plain(data):
    return data
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(KERNELS)
    return path


def document(run: Run, *arguments: object) -> Any:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def refused(run: Run, *arguments: object, lines: int = 2) -> str:
    """Return the message; nothing is printed to stdout, and the exit code is 2."""
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("gpusim: ")
    assert len(err.splitlines()) <= lines
    assert "Traceback" not in err
    return err


# What works


def test_version_and_help_say_what_there_is(run: Run) -> None:
    assert run("--version") == (0, f"gpusim {gpusim.__version__}\n", "")
    for arguments in ((), ("--help",), ("-h",)):
        code, out, _ = run(*arguments)
        assert code == 0
        unfolded = " ".join(out.split())
        assert all(command(name).summary in unfolded for name in MODULES)
        assert "    validate " in out


@pytest.mark.parametrize("name", MODULES)
def test_a_command_has_help_with_examples_and_prints_json_or_writes_a_file(
    run: Run, name: str
) -> None:
    code, out, _ = run(name, "--help")
    assert code == 0
    assert "examples:" in out
    assert f"  gpusim {name} " in out or f"  gpusim {name}\n" in out
    assert "--json" in out or "--out FILE" in out or "--csv" in out
    assert max(map(len, out.splitlines())) <= 100


def test_list_names_kernels_with_origin_lesson_and_defect(run: Run) -> None:
    code, out, _ = run("list", "--all")
    assert code == 0
    assert "reduce2" in out
    assert "Lecture 29, Optimising Reduction Kernels (Soumyajit Dey, IIT Kharagpur)" in out
    assert ".txt" not in out
    assert "reduction5_fixed" in out
    assert "known defect: " in out
    assert max(map(len, out.splitlines())) <= 100


def test_list_as_json_has_every_kernel(run: Run) -> None:
    kernels = {kernel["name"]: kernel for kernel in document(run, "list")["kernels"]}
    assert kernels["reduction5"]["defect"]
    assert kernels["reduction5"]["fixed_by"] == "reduction5_fixed"
    facts = {"name", "origin", "about", "url", "teaches", "defect", "operations"}
    assert facts <= set(kernels["reduce1"])


def test_run_checks_all_passes_against_numpy(run: Run) -> None:
    found = document(run, "run", "reduce3", "-n", "2^12", "--block", "64")
    assert found["right"]
    assert found["value"] == found["numpy"]
    assert [(p["n"], p["grid"], p["block"]) for p in found["passes"]] == [
        (4096, 64, 64),
        (64, 1, 64),
    ]
    assert found["threads"] == 65 * 64
    code, out, err = run("run", "reduce3", "-n", "2^12", "--block", "64")
    assert (code, err) == (0, "")
    assert "they match" in out
    assert "2 passes: 64 + 1 blocks" in out
    assert "threads/s simulated" in out


def test_run_takes_numbers_from_files(run: Run, tmp_path: Path) -> None:
    csv = tmp_path / "numbers.csv"
    csv.write_text("3,-1,4\n1,-5,9\n")
    npy = tmp_path / "numbers.npy"
    np.save(npy, np.array([3, -1, 4, 1, -5, 9], np.int32))
    for path in (csv, npy):
        assert document(run, "run", "reduce1", "--input", path)["value"] == 11
    first = document(run, "run", "reduce1", "--input", csv, "-n", 3, "--dtype", "int64")
    assert (first["value"], first["dtype"], first["n"]) == (6, "int64", 3)


def test_run_finds_a_maximum_of_floats(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("-2.5\n-0.5\n-7\n")
    found = document(run, "run", "reduction3", "--op", "max", "--dtype", "float32", "--input", path)
    assert found["value"] == -0.5


def test_a_wrong_result_is_said_with_its_known_defect_and_exit_code_1(run: Run) -> None:
    code, out, err = run("run", "step2", "-n", 1000)
    assert (code, err) == (1, "")
    assert "WRONG" in out
    assert "Known defect: " in out
    assert "step2_fixed is corrected" in out
    assert run("run", "step2_fixed", "-n", 1000)[0] == 0


def test_run_takes_a_grid_for_grid_stride_kernels(run: Run) -> None:
    found = document(run, "run", "kernel1", "-n", 5000, "--grid", 3)
    assert found["grid"] == 3
    assert found["right"]


def test_trace_works_with_nothing_but_a_name(run: Run) -> None:
    code, out, err = run("trace", "reduce2")
    assert (code, err) == (0, "")
    for part in ("Totals", "Source lines", "Warps of block 0", "Findings"):
        assert part in out
    assert "bank-conflict: line " in out
    assert "wavefronts each (iteration " in out
    assert max(map(len, out.splitlines())) <= 100
    assert "\x1b" not in out


def test_trace_as_json_has_the_promised_shape(run: Run) -> None:
    found = document(run, "trace", "reduce2", "--block", 128, "-n", 1024)
    assert found["kernel"] == "reduce2"
    assert found["grid"] == [8, 1, 1]
    assert found["block"] == [128, 1, 1]
    assert isinstance(found["lowering"], str)
    assert set(found["counters"]) == set(COUNTERS)
    for name, counter in found["counters"].items():
        assert set(counter) == {"value", "unit", "kind", "ncu"}
        assert isinstance(counter["value"], int)
        assert counter["kind"] in ("exact", "model")
        assert counter["value"] == sum(line["counters"][name] for line in found["lines"])
    # 15 conflicts a block among stores, and as many in each of two loads.
    assert found["counters"]["shared_store_bank_conflicts"]["value"] == 15 * 8
    assert found["counters"]["shared_load_bank_conflicts"]["value"] == 30 * 8
    assert {"line", "text", "executions", "active_lanes", "counters"} <= set(found["lines"][0])
    assert [(warp["block"], warp["warp"]) for warp in found["warps"]] == [(0, w) for w in range(4)]
    assert {finding["kind"] for finding in found["findings"]} >= {"bank-conflict"}


def test_trace_shows_another_block(run: Run) -> None:
    found = document(run, "trace", "reduce2", "-n", 1024, "--block", 128, "--block-index", 5)
    assert {warp["block"] for warp in found["warps"]} == {5}
    code, out, _ = run("trace", "reduce2", "-n", 1024, "--block", 128, "--block-index", 5)
    assert code == 0
    assert "Warps of block 5" in out


def conflict_line(run: Run) -> int:
    found = document(run, "trace", "reduce2", "-n", 1024, "--block", 128)
    return next(f["line"] for f in found["findings"] if f["kind"] == "bank-conflict")


def test_trace_draws_a_line(run: Run) -> None:
    line = conflict_line(run)
    code, out, err = run("trace", "reduce2", "-n", 1024, "--block", 128, "--line", line)
    assert (code, err) == (0, "")
    assert f"line {line}  " in out
    assert "lane by lane" in out
    assert "iteration 1: " in out
    assert "32 lanes at stride 4: 4 wavefronts, 3 bank conflicts" in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_drawn_line_as_json_has_its_accesses(run: Run) -> None:
    line = conflict_line(run)
    found = document(
        run, "trace", "reduce2", "-n", 1024, "--block", 128, "--line", line, "--warp", 1
    )
    accesses = [access for access in found["accesses"] if access["addresses"]]
    assert {access["warp"] for access in accesses} == {1}
    assert len(accesses[0]["addresses"]) == 32
    assert accesses[0]["wavefronts"] == 2


def test_compiled_as_by_nvcc_g_nothing_is_guarded(run: Run) -> None:
    optimised = document(run, "trace", "reduce1", "-n", 1024, "--block", 128)
    debug = document(run, "trace", "reduce1", "-n", 1024, "--block", 128, "-O0")
    assert optimised["counters"]["divergent_branches"]["value"] == 0
    assert debug["counters"]["divergent_branches"]["value"] > 0


def test_a_kernel_of_the_users_own_is_traced_with_described_arguments(run: Run, mine: Path) -> None:
    found = document(
        run, "trace", f"{mine}:saxpy", "--grid", 2, "--block", 64,
        "--arg", "float32(2)", "--arg", "x=float32[128]=arange",
        "--arg", "y=float32[128]=ones", "--arg", "n=100",
    )  # fmt: skip
    assert found["kernel"] == "saxpy"
    assert found["counters"]["global_load_requests"]["value"] == 8
    assert found["counters"]["source_divergent_branches"]["value"] == 1


def test_a_column_of_a_table_is_found_uncoalesced(run: Run, mine: Path) -> None:
    code, out, _ = run(
        "trace", f"{mine}:column", "--grid", 1, "--block", 32,
        "--arg", "float32[32,64]=arange", "--arg", "float32[32]",
    )  # fmt: skip
    assert code == 0
    assert "uncoalesced: line " in out
    assert "stride 64 spreads 32 lanes of table over 32 sectors instead of 4" in " ".join(
        out.split()
    )


def test_dynamic_shared_memory_is_given_in_bytes(run: Run, mine: Path) -> None:
    found = document(
        run, "trace", f"{mine}:dynamic", "--grid", 1, "--block", 64,
        "--shared-bytes", 256, "--arg", "int32[64]=arange",
    )  # fmt: skip
    assert found["counters"]["shared_store_instructions"]["value"] == 2


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run reduse3", "there is no kernel 'reduse3'; did you mean reduce3"),
        ("trace redcue2", "did you mean reduce2"),
        ("run reduce3 --block 0", "block"),
        ("run reduce3 --block 96", "needs a block that is a power of two"),
        ("trace reduce2 --block 1025", "1025"),
        ("trace reduce2 --block 2048", "2048"),
        ("trace reduce2 --block many", "the block is 'many'; write one to three sizes"),
        ("trace reduce2 --block 16x16", "has one direction, not 16x16"),
        ("run reduce3 -n 0", "n must be at least 1, not 0"),
        ("run reduce3 -n -4", "n must be at least 1, not -4"),
        ("run reduce3 -n lots", "n is 'lots', not a whole number; write 4096, 2^20 or 1e6"),
        ("run reduce3 -n 1.5", "not a whole number"),
        ("run reduce3 -n 2^60", "n must be at most"),
        ("run reduce3 --op mean", "does not do 'mean'"),
        ("run reduce3 --dtype flaot32", "did you mean float32"),
        ("run reduce3 --grid 7 -n 4096", "needs"),
        ("run reduce3 --coarse 2", "has no coarse factor"),
        ("run reduce3 --input nowhere.npy", "nowhere.npy: there is no such file"),
        ("run reduce3 --step-limit few", "the step limit is 'few'"),
        ("trace reduce2 --cc 4.2", "compute capability '4.2' is not known"),
        ("trace reduce2 -O 2", "-O is 0"),
        ("trace reduce2 --block-index 9999", "there is no block 9999"),
        ("trace reduce2 --block-index x", "the block index is 'x'"),
        ("trace reduce2 --line 1", "line 1 of reduce2 is not executed; the executed ones"),
        ("trace reduce2 --warp 1", "give --line too"),
        ("trace reduce2 --arg 5", "--arg cannot be given here"),
        ("trace nowhere.py:kernel --grid 1 --block 32", "nowhere.py: there is no such file"),
        ("trace", "the following arguments are required: KERNEL; see gpusim trace --help"),
        ("trace reduce2 --blok 4", "unrecognized arguments: --blok 4; did you mean --block"),
        ("tarce reduce2", "invalid choice: 'tarce'"),
        ("run reduce3 -n", "expected one argument"),
    ],
)
def test_bad_input_is_refused_in_a_line_or_two(run: Run, arguments: str, message: str) -> None:
    assert message in refused(run, *arguments.split())


def test_a_warp_that_the_block_has_not_is_refused(run: Run) -> None:
    line = conflict_line(run)
    assert "has warps 0 to 3, not 4" in refused(
        run, "trace", "reduce2", "-n", 1024, "--block", 128, "--line", line, "--warp", 4
    )


def test_files_that_do_not_hold_numbers_are_refused(run: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    words = tmp_path / "words.csv"
    words.write_text("1\ntwo\n")
    doubles = tmp_path / "doubles.npy"
    np.save(doubles, np.ones(4))
    table = tmp_path / "table.npy"
    np.save(table, np.ones((2, 2), np.int32))
    for path, more, message in [
        (empty, [], "holds no numbers"),
        (words, [], "line 2: 'two' is not a number"),
        (doubles, ["--dtype", "int32"], "holds float64, but int32 is expected"),
        (table, [], "holds an array of shape (2, 2); give a row of numbers"),
        (tmp_path, [], "is a directory"),
        (doubles, ["-n", "5"], "fewer than n = 5"),
    ]:
        assert message in refused(run, "run", "reduce3", "--input", path, *more)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (["plain", "--grid", 1, "--block", 32], "is a plain function, no kernel"),
        (["sapxy", "--grid", 1, "--block", 32], "did you mean saxpy"),
        (["saxpy"], "has no launch rule; give --grid, --block and --arg for a: number, x: array"),
        (
            ["saxpy", "--grid", 1, "--block", 32, "--arg", 1],
            "lacks arguments; give --arg for x: ar",
        ),
        (["column", "--grid", 1, "--block", 32, "--arg", "z=1"], "has no argument 'z'"),
        (["column", "--grid", 1, "--block", 32, "--arg", "int32[x]"], "the shape is one to three"),
        (["column", "--grid", 0, "--block", 32, "--arg", 1, "--arg", 1], "at least 1"),
        (["column", "--grid", 1, "--block", 1025, "--arg", 1, "--arg", 1], "at most 1024"),
        (
            ["saxpy", "--grid", 1, "--block", 32, "-n", 5, *["--arg", 1] * 4],
            "-n is given, but no --arg",
        ),
    ],
)
def test_own_kernels_with_bad_input_are_refused(
    run: Run, mine: Path, what: list[object], message: str
) -> None:
    lines = 4 if "; give --" in message else 2
    assert message in refused(run, "trace", f"{mine}:{what[0]}", *what[1:], lines=lines)


def test_more_shared_memory_than_a_block_may_have_is_refused(run: Run, mine: Path) -> None:
    message = refused(
        run, "trace", f"{mine}:dynamic", "--grid", 1, "--block", 64,
        "--shared-bytes", 300000, "--arg", "int32[64]",
    )  # fmt: skip
    assert "300000 bytes of shared memory" in message
    assert "at most 232448" in message


def test_a_file_that_does_not_import_is_refused(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import gpusim\n1 / 0\n")
    message = refused(run, "trace", f"{broken}:f", "--grid", 1, "--block", 32)
    assert "line 2 does not import: ZeroDivisionError: division by zero" in message


INTERRUPTED = """
from gpusim.cli import app
def interrupted():
    raise KeyboardInterrupt
app.main = interrupted
from gpusim.__main__ import entry_point
entry_point()
"""


def test_an_interrupt_before_the_command_listens_is_the_users() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (app.INTERRUPTED, "")


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit", "AttributeError"])
def test_an_object_that_has_no_attributes_is_marked_where_it_is_asked(
    run: Run, tmp_path: Path, raised: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from gpusim import cuda\n\n\nclass Nothing:\n    def __getattr__(self, name):\n"
        f"        raise {raised}\n\n\nx = Nothing()\n\n\n@cuda.jit\ndef f(a):\n    a[0] = x.y\n"
    )
    message = refused(
        run, "trace", f"{path}:f", "--grid", 1, "--block", 32, "--arg", "int32[4]", lines=3
    )
    assert "Nothing has no 'y'" in message


def test_what_the_dialect_lacks_is_marked_in_the_users_line(run: Run, tmp_path: Path) -> None:
    lacking = tmp_path / "lacking.py"
    lacking.write_text(
        "from gpusim import cuda\n\n\n@cuda.jit\ndef f(a):\n    b = [x for x in a]\n    a[0] = b\n"
    )
    message = refused(run, "trace", f"{lacking}:f", "--grid", 1, "--block", 32, lines=3)
    assert "lacking.py:6" in message
    assert "    b = [x for x in a]" in message
    assert message.splitlines()[-1].strip() == "^" * len("[x for x in a]")


def test_an_index_out_of_bounds_names_all_there_is_to_know(run: Run, mine: Path) -> None:
    message = refused(
        run, "trace", f"{mine}:past_the_end", "--grid", 2, "--block", 32,
        "--arg", "int32[64]", lines=3,
    )  # fmt: skip
    for part in ("data", "64", "block", "thread", "line"):
        assert part in message


def test_a_kernel_that_makes_no_progress_is_stopped(run: Run, mine: Path) -> None:
    message = refused(
        run, "trace", f"{mine}:never_met", "--grid", 1, "--block", 64,
        "--arg", "int32[1]=0", "--step-limit", 10000,
    )  # fmt: skip
    assert "livelock" in message


def test_a_barrier_that_some_threads_never_reach_is_an_error(run: Run, mine: Path) -> None:
    message = refused(
        run, "trace", f"{mine}:half_a_barrier", "--grid", 1, "--block", 32,
        "--arg", "int32[32]", lines=3,
    )  # fmt: skip
    assert "barrier" in message


# As a process


def process(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), **settings.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "gpusim", *arguments],
        capture_output=True,
        check=False,
        env=environment,
        **settings,
    )


def shell(command: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of the shell, in which `gpusim` is this gpusim."""
    root = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    gpusim = f'gpusim() {{ "{sys.executable}" -m gpusim "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", gpusim + command], capture_output=True, check=False, env=environment
    )


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("gpusim list | head -1; exit ${PIPESTATUS[0]}", 0),
        ("gpusim list --json | head -1; exit ${PIPESTATUS[0]}", 0),
        ("gpusim --help | true; exit ${PIPESTATUS[0]}", 0),
        ("gpusim run reduce6_published -n 4096 --block 1024 | true; exit ${PIPESTATUS[0]}", 1),
    ],
)
def test_a_reader_who_leaves_early_has_what_it_wanted(command: str, code: int) -> None:
    done = shell(command)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.parametrize(
    ("redirection", "said"),
    [
        (">/dev/full", b"gpusim: standard output cannot be written: No space left on device\n"),
        (
            ">&-",
            b"gpusim: standard output is closed; redirect it to a file or a pipe\n",
        ),
        (">&- 2>&-", b""),
        (">/dev/full 2>/dev/full", b""),
    ],
)
@pytest.mark.parametrize("command", ["list", "list --json", "--help"])
def test_an_answer_that_cannot_be_printed_is_an_error(
    command: str, redirection: str, said: bytes
) -> None:
    done = shell(f"gpusim {command} {redirection}")
    assert (done.returncode, done.stderr) == (2, said)


def test_what_a_kernels_file_prints_is_printed_too(tmp_path: Path) -> None:
    talks = tmp_path / "talks.py"
    talks.write_text('print("hello")\n')
    done = shell(f"gpusim trace {talks} --grid 1 --block 32 >/dev/full")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_a_kernels_file_that_shuts_standard_output_is_answered(tmp_path: Path) -> None:
    shuts = tmp_path / "shuts.py"
    shuts.write_text("import sys\nsys.stdout.close()\n")
    done = shell(f"gpusim trace {shuts} --grid 1 --block 32")
    assert (done.returncode, done.stderr[:7]) == (2, b"gpusim:")
    assert b"Traceback" not in done.stderr


def test_a_mistake_that_nobody_can_be_told_of_has_its_exit_code() -> None:
    assert shell("gpusim trace nothing 2>/dev/full").returncode == 2
    assert shell("gpusim trace nothing 2>&-").returncode == 2


def test_a_terminal_that_knows_only_ascii_gets_a_report() -> None:
    done = process("list", env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_report_keeps_to_the_columns_it_is_given() -> None:
    done = process("trace", "reduce2", "-n", "1024", env={"COLUMNS": "80"})
    assert done.returncode == 0
    assert max(len(line) for line in done.stdout.decode().splitlines()) <= 80
