"""The end of a program by a signal to gpusim: its processes end first, within half a second."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

from gpusim.driver.server import Server
from gpusim.host.processes import descendants, end

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
