"""A command starts fast: what it does not need, it does not import."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from gpusim.sass import wheels

TRACE = ["trace", "reduce2", "--block", "128", "--code", "lowering"]
PREDICT = ["predict", "reduce3", "-n", "2^24", "--block", "512"]
ATTEMPTS = 10  # a neighbour on the machine makes a process slower, never faster

# What other commands are for; numpy.ma comes with np.unique, 20 ms for the pc of a barrier.
UNNEEDED = (
    "matplotlib", "jinja2", "simpy", "numpy.ma", "numpy.random",
    "gpusim.checking", "gpusim.prediction", "gpusim.sass", "gpusim.gpu.device",
    "gpusim.compiler.undefined_behaviour", "gpusim.lowering.stages",
    "gpusim.reports.page", "gpusim.reports.plots", "gpusim.reports.prediction",
    "gpusim.cli.plot", "gpusim.cli.predict", "gpusim.cli.report", "gpusim.cli.sweep",
)  # fmt: skip


def loaded(arguments: list[str]) -> list[str]:
    """Return the modules that a command has imported when it ends."""
    script = "import sys; from gpusim.cli.app import main; main(sys.argv[1:]); print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()[-1].split()


@pytest.mark.parametrize("name", ["check", "sweep", "tune"])
def test_the_help_of_a_command_imports_no_numbers(name: str) -> None:
    assert not {"numpy", "rich"} & set(loaded([name, "--help"]))


def test_a_trace_imports_no_other_command_and_nothing_that_draws_or_predicts() -> None:
    modules = loaded(TRACE)
    below = [name for name in modules if (name + ".").startswith(tuple(f"{n}." for n in UNNEEDED))]
    assert below == []


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_code_of_nvcc_comes_without_the_lowering() -> None:
    modules = loaded(["trace", "reduce2", "--block", "128", "--code", "nvcc"])
    assert "gpusim.sass.translate" in modules
    assert [name for name in modules if name.startswith("gpusim.lowering")] == []


def test_a_prediction_that_is_played_by_the_compiled_clock_comes_without_simpy() -> None:
    modules = loaded(PREDICT)
    assert "gpusim.prediction.compiled.clock" in modules
    unneeded = {
        "simpy",
        "importlib.metadata",
        "gpusim.lowering.lower",
        "gpusim.prediction.spinning",
    }
    assert not unneeded & set(modules)


def test_a_command_imports_no_other_command() -> None:
    commands = [name for name in loaded(["list"]) if name.startswith("gpusim.cli.")]
    assert commands == ["gpusim.cli.output", "gpusim.cli.options", "gpusim.cli.app",
                        "gpusim.cli.references",
                        "gpusim.cli.listing"]  # fmt: skip


@pytest.mark.slow  # on a machine that does nothing else
@pytest.mark.parametrize(("command", "most"), [(TRACE, 0.4), (PREDICT, 0.5)])
def test_a_command_takes_less_than_half_a_second_of_the_processor(
    command: list[str], most: float, tmp_path: Path
) -> None:
    """From the shell to the report, in a process of its own, its modules compiled before."""
    spent = []
    while len(spent) <= ATTEMPTS and (len(spent) < 2 or min(spent) >= most):
        spent.append(cpu_seconds(command, bytecode=tmp_path))
    assert min(spent) < most, spent


def cpu_seconds(arguments: list[str], bytecode: Path) -> float:
    """Return the user and system time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    writing = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(bytecode)}
    subprocess.run(
        [sys.executable, "-m", "gpusim", *arguments],
        stdout=subprocess.DEVNULL, env=os.environ | writing, check=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
