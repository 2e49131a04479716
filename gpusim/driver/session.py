"""A program from its start to its end: its environment, its processes and its exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from gpusim.driver import arena, nvcc, shared_objects
from gpusim.driver.execution import Execution
from gpusim.driver.server import Server
from gpusim.errors import InputError
from gpusim.gpu.device import Device
from gpusim.host import temporary
from gpusim.host.files import shown
from gpusim.host.processes import descendants, end
from gpusim.sass import wheels

_BY_SIGNAL = 128
_LIMITS = (("RLIMIT_AS", "address space", "-v"), ("RLIMIT_FSIZE", "the size of files", "-f"))
_REASONS = {
    "SIGKILL": ", perhaps out of memory",
    "SIGXFSZ": ", a limit on the size of files (ulimit -f)",
    "SIGXCPU": ", a limit on processor time (ulimit -t)",
}
_PREPARES = Path(__file__).parents[1] / "pytorch" / "start"
_PATIENCE_S = 10.0  # with processes that outlive the program


def run(command: Sequence[str], device: Device, execution: Execution, name: str = "run") -> int:
    """Run a program with the simulator in place of CUDA's driver; return its exit code.

    `name` is that of gpusim's command, which packages that run in the program request. InputError
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


_NUMBERS = [getattr(signal, one) for one in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, one)]
_OWN_S = 0.1  # in which a program ends by an interrupt of its own
_GRACE_S = 0.4  # in which a program may tidy up


class Ending:
    """Takes signals that end the process, and calls their handlers when the program has ended.

    An interrupt from the terminal reaches the program as well; while no launch runs, what it does
    about it is left to the program.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._asked: list[tuple[int, FrameType | None]] = []
        self._server: Server | None = None
        self.interrupted = ""  # the launch that ran, in words
        self._is_over = threading.Event()

    def __enter__(self) -> Ending:
        for number in _NUMBERS:
            if callable(signal.getsignal(number)):
                self._handlers[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        if self._asked:
            end(descendants(os.getpid()))
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if self._asked:
            number, frame = self._asked[0]
            self._handlers[number](number, frame)

    @property
    def is_asked(self) -> bool:
        """Whether a signal asked the process to end."""
        return bool(self._asked)

    def begins(self, server: Server) -> None:
        """Take note of the server of a program that begins."""
        self._server = server

    def _hear(self, number: int, frame: FrameType | None) -> None:
        running = "" if self._server is None else self._server.execution.running
        if self._asked or (number == signal.SIGINT and not running and _is_in_foreground()):
            return
        self._asked.append((number, frame))
        self.interrupted = running
        threading.Thread(target=self._end_program, args=(number,), daemon=True).start()

    def _end_program(self, number: int) -> None:
        known = descendants(os.getpid())
        if self._is_over.wait(_OWN_S if number == signal.SIGINT else 0.0):
            return
        end(known, number)
        if self._server is not None:
            self._server.hang_up()
        self._is_over.wait(_GRACE_S)
        end({*known, *descendants(os.getpid())})


def _is_in_foreground() -> bool:
    """Return whether the terminal's interrupts go to this process and its children."""
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp()  # type: ignore[union-attr]
    except (OSError, AttributeError, ValueError):  # no terminal
        return False
