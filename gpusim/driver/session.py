"""A program from its start to its end: its environment, its processes and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpusim.driver import nvcc, shared_objects
from gpusim.driver.ending import Ending
from gpusim.driver.execution import Execution
from gpusim.driver.server import Server
from gpusim.errors import InputError
from gpusim.gpu.device import Device
from gpusim.host import temporary
from gpusim.host.files import shown
from gpusim.sass import wheels

_BY_SIGNAL = 128
_PATIENCE_S = 10.0  # with processes that outlive the program


def run(command: Sequence[str], device: Device, execution: Execution) -> int:
    """Run a program that finds the simulator where CUDA's driver would be; return its exit code.

    InputError where the program cannot be started, or the driver not be compiled. A signal that
    ends the process ends the program first.
    """
    folder = shared_objects.folder()
    with Ending() as ending:
        with temporary.folder() as place:
            server = Server(Path(place), device, execution)
            try:
                variables = environment(os.environ, folder, server.path)
                for name, more in _for_builds(Path(place), folder).items():
                    before = variables.get(name)
                    variables[name] = f"{more}{os.pathsep}{before}" if before else more
                variables[nvcc.ARCHITECTURE] = f"sm_{device.cc.major}{device.cc.minor}"
                code = _run(command, variables, ending, server)
            finally:
                server.close(0.0 if ending.is_asked else _PATIENCE_S)
        if ending.interrupted:
            execution.told(f"interrupted in {ending.interrupted}")
    return code


def _for_builds(place: Path, runtime: Path) -> dict[str, str]:
    """Return what a program that compiles others, such as make, finds first, by variables.

    An nvcc; and for compilers of C++ CUDA's headers, where they are, and the runtime to link with.
    """
    made = {"PATH": str(_builds(place)), "LIBRARY_PATH": str(runtime)}
    headers = [str(one) for one in wheels.folders("include") if (one / "cuda_runtime.h").is_file()]
    return made | ({"CPATH": os.pathsep.join(headers)} if headers else {})


def _builds(place: Path) -> Path:
    """Return a folder with an nvcc."""
    folder = place / "bin"
    folder.mkdir()
    script = folder / "nvcc"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {nvcc.__name__} "$@"\n')
    script.chmod(0o755)
    return folder


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
    code = process.wait()
    return _BY_SIGNAL - code if code < 0 else code
