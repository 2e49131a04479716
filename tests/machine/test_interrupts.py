"""Signals end compiled code at once, and only then are their handlers called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from gpusim import cuda, machine
from gpusim.codegen.programs import prepare
from gpusim.host import interrupts
from gpusim.host.interrupts import stopped_by_signals

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")


@cuda.jit
def spins(out, n):
    s = np.float32(0)
    for _ in range(n):
        s = s * s + np.float32(0.1)
    out[cuda.threadIdx.x] = s


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def after(seconds: float, number: int) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()


def test_a_launch_in_compiled_code_is_interrupted_at_once_and_named() -> None:
    out = np.zeros(32, np.float32)
    sent: list[float] = []

    def interrupt_compiled_code() -> None:
        while not interrupts._running:
            time.sleep(0.01)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_compiled_code).start()
    with pytest.raises(KeyboardInterrupt) as interrupt:
        machine.run(prepare(spins[1, 32], (out, 10**9), machine.DEFAULT_CC), step_limit=1 << 62)
    assert time.monotonic() - sent[0] < 5
    assert interrupt.value.__notes__ == ["interrupted in the launch of spins, grid 1, block 32"]
    machine.run(prepare(spins[1, 32], (out, 100_000), machine.DEFAULT_CC))
    assert (out == out[0]).all()
    assert abs(out[0] - (1 - 0.6**0.5) / 2) < 1e-3  # where s = s * s + 0.1


def test_code_is_stopped_and_the_handler_called_once_behind_it() -> None:
    stopped, events = threading.Event(), []
    before = signal.signal(signal.SIGTERM, lambda *_: events.append("handler"))
    try:
        after(0.1, signal.SIGTERM)
        with stopped_by_signals(stopped.set):
            assert stopped.wait(10)
            events.append("code")
        assert events == ["code", "handler"]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_interrupt_before_the_code_begins_leaves_nothing_to_be_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the next launches of the process are stopped as well."""

    def interrupted(*_: object, **options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(signal, "set_wakeup_fd", interrupted)
    with pytest.raises(KeyboardInterrupt), stopped_by_signals(lambda: None):
        pytest.fail("the code has begun")
    assert not interrupts._running


def test_handlers_and_the_descriptor_of_signals_are_as_before() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    before = signal.set_wakeup_fd(theirs)
    try:
        stopped = threading.Event()
        after(0.1, signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), stopped_by_signals(stopped.set):
            assert stopped.wait(10)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert os.read(ours, 1) == bytes([signal.SIGINT])
    finally:
        assert signal.set_wakeup_fd(before) == theirs
        os.close(ours)
        os.close(theirs)


def test_code_in_another_thread_is_left_alone() -> None:
    seen: list[object] = []

    def run() -> None:
        with stopped_by_signals(lambda: seen.append("stopped")):
            seen.append(threading.current_thread() is threading.main_thread())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False]


def test_an_interrupt_that_an_import_takes_for_its_own_error_ends_the_command() -> None:
    """Modules in C, as NumPy's, say that they cannot be imported when an interrupt comes then."""
    text = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import gpusim.__main__
from gpusim.cli import app
def main():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("numpy failed")
app.main = main
gpusim.__main__.entry_point()
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (130, "")


def test_an_interrupt_finds_few_modules_loaded_before_it_is_handled() -> None:
    """Until then it would show a traceback of an import."""
    text = "import sys; before = {*sys.modules}; import gpusim.__main__;"
    text += "print(*{*sys.modules} - before)"
    ran = subprocess.run([sys.executable, "-S", "-c", text], capture_output=True, text=True)
    loaded = {*ran.stdout.split()}
    assert {"gpusim", "gpusim.__main__"} <= loaded
    assert loaded.isdisjoint({"contextlib", "enum", "functools", "threading", "typing"})
