# PYTHON_ARGCOMPLETE_OK
"""`python -m gpusim` is `gpusim`."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from types import FrameType

ENDING = ("SIGTERM", "SIGHUP")  # signals that ask a process to end


class _EndedError(BaseException):
    """A signal asked the process to end; raised so that temporary files are removed."""


def entry_point() -> None:
    """Run the command and leave with its exit code.

    While modules are imported, and while the interpreter ends, an interrupt ends the process as
    it would any other: there is nothing yet, or nothing more, to say.
    """
    handler = signal.getsignal(signal.SIGINT)
    _interrupts_as(handler, signal.SIG_DFL)
    # Imports make thousands of objects that stay; looking for garbage among them takes 45 ms.
    gc.set_threshold(200_000)
    from gpusim.cli.app import INTERRUPTED, main
    from gpusim.cli.output import told

    warnings.showwarning = told
    try:
        with _cleared_when_ended():
            _interrupts_as(handler, signal.default_int_handler)
            code = main()
            _interrupts_as(handler, signal.SIG_DFL)
    except KeyboardInterrupt:  # just before main has begun to listen, or just after
        code = INTERRUPTED
    gc.freeze()  # a final collection of all objects would take 50 ms
    sys.exit(code)


@contextlib.contextmanager
def _cleared_when_ended() -> Iterator[None]:
    """Let a signal that ends the process unwind it before: temporary files and processes go."""
    numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    asked: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        for one in numbers:
            signal.signal(one, signal.SIG_IGN)
        asked.append(number)
        raise _EndedError

    for one in numbers:
        if signal.getsignal(one) is signal.SIG_DFL:
            signal.signal(one, end)
    try:
        yield
    except BaseException:
        if not asked:
            raise
    for one in numbers:
        if asked or signal.getsignal(one) is end:
            signal.signal(one, signal.SIG_DFL)
    if asked:
        os.kill(os.getpid(), asked[0])


def _interrupts_as(before: object, handler: signal._HANDLER) -> None:
    """Set the handler of SIGINT, unless the parent process has SIGINT ignored."""
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)


if __name__ == "__main__":
    entry_point()
