"""A signal to gpusim ends the program too, within a second, and nothing stays."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest
from driver.host import PROLOGUE, needs_compilers
from fuzzing.signals import SAID, ended_by, started

from gpusim.sass import compiler

pytestmark = needs_compilers

KERNEL = """
extern "C" __global__ void spins(float *o, int n) {
    float s = o[0];
    for (int i = 0; i < n; i++) s = s * s + 1e-3f;
    o[0] = s;
}
"""
LAUNCHES = """
x = take(4)
launch("spins", 1, 32, x, C.c_int(10))
print("begun", flush=True)
launch("spins", 2, 64, x, C.c_int(1 << 30))
print("behind", flush=True)
"""
KILLED = f"import threading, os\nthreading.Timer(1, os.kill, (os.getpid(), 9)).start()\n{LAUNCHES}"


@pytest.fixture
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for temporary files, with a name short enough for a socket in it."""
    return tmp_path_factory.mktemp("room")


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """Return the command line of a program with a long launch behind the word begun."""
    (tmp_path / "kernels.cubin").write_bytes(
        compiler.compiled(KERNEL, "kernels.cu", [], "sm_90").cubin
    )
    (tmp_path / "program.py").write_text(PROLOGUE + LAUNCHES)
    (tmp_path / "killed.py").write_text(PROLOGUE + KILLED)
    return ["run", "--", sys.executable, "-S", "program.py", "kernels.cubin"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("is_group", [False, True])
def test_a_signal_ends_the_program_and_names_its_launch(
    program: list[str], tmp_path: Path, room: Path, number: signal.Signals, is_group: bool
) -> None:
    with started(program, tmp_path, room) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.2)
        said = ended_by(process, number, is_group=is_group, folder=room, unsaid=SAID[1:])
    assert "gpusim: interrupted in launch 2, spins, grid 2, block 64\n" in said


def test_the_processes_of_a_program_end_too(program: list[str], tmp_path: Path, room: Path) -> None:
    command = " ".join(program[2:])
    with started(["run", "--", "sh", "-c", f"{command}; true"], tmp_path, room) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        ended_by(process, signal.SIGTERM, is_group=False, folder=room, unsaid=SAID[1:])


def test_a_launch_of_a_process_that_is_killed_is_not_waited_for(
    program: list[str], tmp_path: Path, room: Path
) -> None:
    command = ["killed.py" if one == "program.py" else one for one in program]
    begun = time.monotonic()
    with started(command, tmp_path, room) as process:
        _out, said = process.communicate(timeout=60)
    assert process.returncode == 128 + 9, said
    assert "segfault" not in said
    assert time.monotonic() - begun < 20
    assert not list(room.iterdir())
