"""Programs that cannot run, and programs that end badly, each with a sentence that says why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run
from driver.host import PROLOGUE, Host, needs_compilers
from fuzzing.signals import ROOT

from gpusim.cli.app import main
from gpusim.driver import shared_objects

pytestmark = needs_compilers

# The first question of a static CUDA runtime, before cuInit.
ASKS_FOR_TABLES = """
import ctypes as C, sys
cuda = C.CDLL("libcuda.so.1")
version = C.c_int()
cuda.cuDriverGetVersion(C.byref(version))
cuda.cuGetExportTable(C.byref(C.c_void_p()), bytes(16))
sys.exit(int(sys.argv[1]))
"""
ALLOCATES = "print(take(64).value > 0)\n"


@pytest.fixture
def host(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, capfd)


@pytest.mark.parametrize("code", [0, 1])
def test_a_program_with_a_static_runtime_is_told_why_it_cannot_run(
    run: Run, tmp_path: Path, code: int
) -> None:
    """Its own exit code, of an error or of a run on the processor, is not the last word."""
    program = tmp_path / "program.py"
    program.write_text(ASKS_FOR_TABLES)
    ended, _, err = run("run", "--", sys.executable, "-S", program, code)
    assert ended == 2
    assert "gpusim: this program cannot run here: its CUDA runtime is linked statically" in err


def test_a_copy_from_or_to_a_null_pointer_of_the_host_is_an_invalid_value(host: Host) -> None:
    ran = host.run(
        """
x = take(64)
for name, *given in (
    ("cuMemcpyHtoD_v2", x, None), ("cuMemcpyDtoH_v2", None, x), ("cuMemcpyHtoDAsync_v2", x, None),
    ("cuMemcpy", C.c_uint64(0), x), ("cuMemcpyHtoD_v2", x, C.c_void_p(64)),
):
    call(name, *given, C.c_size_t(64), *([None] if "Async" in name else []))
print(call("cuMemcpyHtoD_v2", x, None, C.c_size_t(0)))
"""
    )
    names = ["HtoD_v2", "DtoH_v2", "HtoDAsync_v2", "", "HtoD_v2"]
    assert ran.out == [*(f"cuMemcpy{name} 1" for name in names), "0"]
    assert ran.code == 0


def test_results_of_the_runtime_that_go_nowhere_are_an_invalid_value(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = """
runtime = C.CDLL("libcudart.so.13")
for name, count in (
    ("cudaGetDeviceCount", 1), ("cudaGetDevice", 1), ("cudaRuntimeGetVersion", 1),
    ("cudaDeviceGetAttribute", 3), ("cudaGetDeviceProperties", 2), ("cudaMallocPitch", 4),
    ("cudaMemGetInfo", 2), ("cudaStreamCreate", 1), ("cudaEventCreate", 1), ("cudaMemcpy3D", 1),
    ("cudaPointerGetAttributes", 2),
):
    print(getattr(runtime, name)(*[None] * count))
"""
    assert Host(tmp_path, capfd).run(program).out == ["1"] * 11


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGSEGV, "SIGSEGV (Segmentation fault): exit code 139"),
        (signal.SIGKILL, "SIGKILL (Killed), perhaps out of memory: exit code 137"),
        (signal.SIGABRT, "SIGABRT (Aborted): exit code 134"),
    ],
)
def test_a_program_that_dies_by_a_signal_says_so(
    run: Run, number: signal.Signals, said: str
) -> None:
    program = f"import os; os.kill(os.getpid(), {int(number)})"
    code, _, err = run("run", "--", sys.executable, "-S", "-c", program)
    assert code == 128 + number
    assert f"gpusim: the program ended by signal {said}\n" in err


@pytest.mark.parametrize(
    ("flag", "what"), [("-v 4000000", "address space"), ("-f 1000", "the size of files")]
)
def test_limits_of_the_shell_are_named(tmp_path: Path, flag: str, what: str) -> None:
    shared_objects.folder()  # a compiler may need more
    command = f"ulimit {flag}; exec {sys.executable} -m gpusim run -- true"
    ran = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ran.returncode == 2
    assert f"gpusim: {what} is limited to " in ran.stderr
    assert f"(ulimit {flag[:2]})" in ran.stderr


def test_a_limit_of_the_program_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = PROLOGUE.partition('call("cuInit"')[0] + 'call("cuInit", 0)\n'
    (tmp_path / "program.py").write_text(program)
    command = f"ulimit -v 4000000; {sys.executable} -S {tmp_path}/program.py"
    main(["run", "--", "bash", "-c", command])
    printed = capfd.readouterr()
    assert "cuInit 2" in printed.out
    assert "bytes of addresses, more than a limit of the program's (ulimit -v)" in printed.err


def test_times_of_the_program_are_said_not_to_be_predictions(host: Host) -> None:
    launches = 'x = take(400)\nlaunch("scale", 1, 32, x, x, C.c_int(32))\n'
    said = "times that the program measures, by events or the host's clock,"
    assert said in host.run(launches).err
    assert said not in host.run(launches, "predict").err
    assert said not in host.run(ALLOCATES).err


def test_the_nvcc_of_a_configured_build_is_there_later(run: Run, tmp_path: Path) -> None:
    """CMake writes the compiler's path down when it configures, and calls it when it builds."""
    written = tmp_path / "compiler"
    assert run("run", "--", "sh", "-c", f"command -v nvcc > {written}")[0] == 0
    nvcc = Path(written.read_text().strip())
    assert nvcc.is_file()
    assert os.access(nvcc, os.X_OK)
    assert nvcc.read_text().endswith('-m gpusim.driver.nvcc "$@"\n')
