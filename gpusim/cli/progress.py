"""Progress on stderr: a bar on a terminal for work in pieces, a word for any long command."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from gpusim.cli import output
from gpusim.cli.output import complain, has_terminal
from gpusim.host.files import printable, shown

SWITCH = "GPUSIM_PROGRESS"
FIRST_S = 4.0  # without a word
PATIENCE_S = 20.0  # with a launch, where commands say nothing else


class Bar:
    """Counts finished pieces of `total`, and names the last; nothing without a terminal."""

    def __init__(self, total: int, noun: str) -> None:
        self._total = total
        self._noun = noun
        self._done = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, done: int = 0) -> None:
        """Show the bar, with the pieces that are there already."""
        self._done = done
        if has_terminal() and done < self._total and self._bar is None:
            self._show()

    def restart(self, total: int) -> None:
        """Count other pieces, from none of `total`."""
        self._total, self._done = total, 0
        if self._bar is not None:
            self._bar.update(self._task, total=total, completed=0)

    def advance(self, what: str = "") -> None:
        """Record that a piece is finished; `what` is shown beside the bar."""
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, what=printable(what))

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn(self._noun),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[what]}", style="dim", markup=False),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._task = self._bar.add_task(
            self._noun, total=self._total, completed=self._done, what=""
        )
        self._bar.start()
        output.note_telling(math.inf)


class Word:
    """Reports once on standard error that a command is running, after some seconds without output.

    `running` tells what runs, in words. GPUSIM_PROGRESS=0 in the environment switches it off.
    """

    running: Callable[[], str] = str

    def __init__(self, command: Sequence[str], first_s: float = FIRST_S) -> None:
        self._command, self._first_s = " ".join(command), first_s
        self._is_over = threading.Event()

    def __enter__(self) -> Word:
        if _is_wanted():
            threading.Thread(target=self._say, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()

    def _say(self) -> None:
        begun = time.monotonic()
        left = self._first_s
        while not self._is_over.wait(left):
            now = time.monotonic()
            left = max(begun, output.told_at) + self._first_s - now
            if left <= 0:
                what = Word.running() or f"gpusim {shown(self._command)}"
                complain(f"{what} has been running for {now - begun:.0f} s; Ctrl-C ends it")
                return
            left = min(left, self._first_s)


class Patience:
    """Reports once, for a long launch, the progress and the remaining time."""

    def __init__(self, blocks: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._blocks, self._clock = blocks, clock
        self._patience_s = FIRST_S - 0.5 if _is_wanted() else PATIENCE_S
        self._started = clock()
        self._has_said = False

    def __call__(self, finished: int) -> None:
        """Record the number of finished blocks."""
        seconds = self._clock() - self._started
        if self._has_said or seconds < self._patience_s or finished >= self._blocks:
            return
        self._has_said = True
        rest = seconds * (self._blocks - finished) / finished
        complain(
            f"{finished:,} of {self._blocks:,} blocks have run in {seconds:.0f} s; the rest will "
            f"take {_duration(rest)}; a smaller grid takes less, gpusim predict runs only a sample"
        )


def _is_wanted() -> bool:
    return os.environ.get(SWITCH) != "0"


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"about {seconds / length:,.0f} {unit}"
    return f"about {seconds:.0f} seconds"
