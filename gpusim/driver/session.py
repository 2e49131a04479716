"""A program from its start to its end: its environment, its processes and its exit code."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpusim.driver import arena, nvcc, shared_objects
from gpusim.driver.ending import Ending
from gpusim.driver.execution import Execution
from gpusim.driver.server import Server
from gpusim.errors import InputError
from gpusim.gpu.device import Device
from gpusim.host import temporary
from gpusim.host.files import shown
from gpusim.sass import wheels

_BY_SIGNAL = 128
_LIMITS = (
    ("RLIMIT_AS", "address space", "-v"),
    ("RLIMIT_FSIZE", "the size of files", "-f"),
)
_REASONS = {
    "SIGKILL": ", perhaps out of memory",
    "SIGXFSZ": ", a limit on the size of files (ulimit -f)",
    "SIGXCPU": ", a limit on processor time (ulimit -t)",
}
_PREPARES = Path(__file__).parents[1] / "pytorch" / "start"
_PATIENCE_S = 10.0  # with processes that outlive the program


def run(command: Sequence[str], device: Device, execution: Execution, name: str = "run") -> int:
    """Run a program that finds the simulator where CUDA's driver would be; return its exit code.

    `name` is that of gpusim's command, which packages that run in the program ask for. InputError
    where the program cannot be started, or the driver not be compiled. A signal that ends the
    process ends the program first.
    """
    folder = shared_objects.folder()
    _require_room()
    with Ending() as ending:
        with temporary.folder() as place:
            server = Server(Path(place), device, execution)
            try:
                variables = environment(os.environ, folder, server.path)
                for variable, more in _found_first(folder).items():
                    before = variables.get(variable)
                    variables[variable] = f"{more}{os.pathsep}{before}" if before else more
                variables["GPUSIM_COMMAND"] = name
                variables[nvcc.ARCHITECTURE] = device.cc.target
                code = _run(command, variables, ending, server)
                if code < 0 and not ending.is_asked:
                    execution.told(_ended_by(-code))
            finally:
                server.close(0.0 if ending.is_asked else _PATIENCE_S)
        if ending.interrupted:
            execution.told(f"interrupted in {ending.interrupted}")
    return _BY_SIGNAL - code if code < 0 else code


def _require_room() -> None:
    """Raise InputError for limits of the shell under which device memory cannot be mapped."""
    import resource

    least = arena.SIZES[-1]
    for name, what, flag in _LIMITS:
        limit = resource.getrlimit(getattr(resource, name))[0]
        if limit != resource.RLIM_INFINITY and limit < least:
            raise InputError(
                f"{what} is limited to {limit:,} bytes (ulimit {flag}), and a simulated GPU's "
                f"memory takes {least:,}, of which only the pages in use take memory; "
                f"ulimit {flag} unlimited lifts the limit"
            )


def _ended_by(number: int) -> str:
    """Return the end of a program by a signal in words."""
    name, words = signal.Signals(number).name, signal.strsignal(number)
    reason = _REASONS.get(name, "")
    return f"the program ended by signal {name} ({words}){reason}: exit code {_BY_SIGNAL + number}"


def _found_first(runtime: Path) -> dict[str, str]:
    """Return the folders that a program searches first, by variables.

    For Python programs that of PyTorch's preparation. For programs that compile others, such as
    make, an nvcc; and for compilers of C++ CUDA's headers, where they are, and the runtime.
    """
    made = {
        "PATH": str(runtime / shared_objects.BUILDS),
        "LIBRARY_PATH": str(runtime),
        "PYTHONPATH": str(_PREPARES),
    }
    headers = [str(one) for one in wheels.folders("include") if (one / "cuda_runtime.h").is_file()]
    return made | ({"CPATH": os.pathsep.join(headers)} if headers else {})


def environment(given: Mapping[str, str], folder: Path, path: Path) -> dict[str, str]:
    """Return a program's environment: the driver in `folder` first, and where to ask."""
    found = given.get("LD_LIBRARY_PATH")
    folders = f"{folder}{os.pathsep}{found}" if found else str(folder)
    made = {**given, "LD_LIBRARY_PATH": folders, "GPUSIM_DRIVER": str(path)}
    made.pop("CUDA_VISIBLE_DEVICES", None)
    made.pop("NUMBA_ENABLE_CUDASIM", None)
    return made


def _run(
    command: Sequence[str], variables: Mapping[str, str], ending: Ending, server: Server
) -> int:
    ending.begins(server)
    try:
        process = subprocess.Popen(list(command), env=variables)
    except OSError as error:
        raise InputError(f"{shown(command[0])} cannot be started: {error.strerror}") from None
    return process.wait()
