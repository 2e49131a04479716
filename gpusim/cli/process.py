"""The process of a command: its exit code, and signals that end it."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

ENDING = ("SIGTERM", "SIGHUP")  # signals that ask a process to end
_BY_SIGNAL = 128
_LONGEST_S = 0.8  # from a signal to the end
_interrupted: list[int] = []


class _EndedError(BaseException):
    """A signal asked the process to end; raised so that temporary files are removed."""


def run(handler: object) -> None:
    """Run the command and leave with its exit code; `handler` was that of SIGINT.

    While modules are imported, and while the interpreter ends, an interrupt ends the process.
    """
    # Imports make thousands of objects that stay; looking for garbage among them takes 45 ms.
    gc.set_threshold(200_000)
    from gpusim.cli.app import INTERRUPTED, main
    from gpusim.cli.output import told
    from gpusim.cli.progress import Word

    warnings.showwarning = told
    try:
        with _cleared_when_ended():
            _interrupts_as(handler, _interrupt)
            with Word(sys.argv[1:3]):
                code = main()
            _interrupts_as(handler, signal.SIG_DFL)
    except BaseException as error:  # an import may make an error of its own of an interrupt
        if not (_interrupted or isinstance(error, KeyboardInterrupt)):
            raise
        code = INTERRUPTED
    if code == INTERRUPTED or _serves_launches():
        _leave(code)
    gc.freeze()  # a final collection of all objects would take 50 ms
    sys.exit(code)


def _interrupt(number: int, _: FrameType | None) -> None:
    """Raise KeyboardInterrupt, once: a second one would come while files are removed."""
    _interrupted.append(number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_soon(number)
    raise KeyboardInterrupt


@contextlib.contextmanager
def _cleared_when_ended() -> Iterator[None]:
    """Let a signal that ends the process unwind it before: temporary files and processes go."""
    numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    asked: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        for one in (*numbers, signal.SIGINT):
            signal.signal(one, signal.SIG_IGN)
        asked.append(number)
        _end_soon(number)
        raise _EndedError

    for one in numbers:
        if signal.getsignal(one) is signal.SIG_DFL:
            signal.signal(one, end)
    try:
        yield
    except BaseException as error:
        if not asked:
            raise
        from gpusim.cli.output import complain_notes

        complain_notes(error)
    for one in numbers:
        if asked or signal.getsignal(one) is end:
            signal.signal(one, signal.SIG_DFL)
    if asked:
        _remove_temporary()
        os.kill(os.getpid(), asked[0])


def _interrupts_as(before: object, handler: signal._HANDLER) -> None:
    """Set the handler of SIGINT, unless the parent process has SIGINT ignored."""
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)


def _end_soon(number: int) -> None:
    """End the process within a second, also where an exception of its handler is lost."""
    threading.Thread(target=_end_at_last, args=(_BY_SIGNAL + number,), daemon=True).start()


def _end_at_last(code: int) -> None:
    from gpusim.host.processes import descendants, end

    time.sleep(_LONGEST_S)
    end(descendants(os.getpid()))
    _remove_temporary()
    os._exit(code)


def _serves_launches() -> bool:
    """Return whether a launch goes on that nobody waits for: its process has ended."""
    server = sys.modules.get("gpusim.driver.server")
    return server is not None and any(t.name == server.THREAD for t in threading.enumerate())


def _leave(code: int) -> NoReturn:
    """End the process while threads may run compiled code, which the interpreter would free."""
    _remove_temporary()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _remove_temporary() -> None:
    from gpusim.host import temporary

    temporary.remove_all()
