"""Signals while compiled code runs: the code ends at once, then their handlers are called.

Python calls handlers between two instructions of the main thread, not within compiled code, and an
exception of theirs would be lost in a function that compiled code calls. So they are called after
it, and a thread that receives signal numbers by a pipe stops the code.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes enumerations: 15 us a launch
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType

# SIGINT is the last: its handler is Python's own, in all programs, and raises an exception.
_NUMBERS = [
    int(getattr(signal, one)) for one in ("SIGHUP", "SIGTERM", "SIGINT") if hasattr(signal, one)
]
_PAUSE_S = 0.02

Stop = Callable[[], object]
_running: dict[object, Stop] = {}  # of the code in the main thread


@contextmanager
def stopped_by_signals(stop: Stop) -> Iterator[None]:
    """Call `stop` when a signal comes, again and again until the block has ended, then its handler.

    `stop` is called from another thread. In threads other than the main one, nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: dict[int, FrameType | None] = {}
    handlers = {one: handler for one in _NUMBERS if callable(handler := _signal.getsignal(one))}
    block, before = object(), None
    try:  # until the handlers are ours, an interrupt may be raised between any two lines
        _running[block] = stop
        before = signal.set_wakeup_fd(_watched(os.getpid()), warn_on_full_buffer=False)
        for number in handlers:
            _signal.signal(number, came.__setitem__)
        yield
    finally:
        _running.pop(block, None)
        if before is not None:
            signal.set_wakeup_fd(before, warn_on_full_buffer=before != -1)
        for number, handler in handlers.items():
            _signal.signal(number, handler)
        for number, frame in came.items():
            if before is not None and before != -1:
                os.write(before, bytes([number]))
            handlers[number](number, frame)


@cache
def _watched(_: int) -> int:
    """Return the end of a pipe for the numbers of signals, with a thread at the other end.

    There is one for each process: threads do not survive a fork.
    """
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    threading.Thread(target=_watch, args=(ours,), daemon=True).start()
    return theirs


def _watch(pipe: int) -> None:
    while os.read(pipe, 1):
        stops = dict(_running)
        while any(one in _running for one in stops):
            for stop in stops.values():
                stop()
            time.sleep(_PAUSE_S)
