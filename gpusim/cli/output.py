"""The one way to standard output and standard error, either of them possibly full or closed.

Text passes as harmless (`files.harmless`), so that no file or name controls a terminal or a log;
`write_all` and `tell` print colours, documents and the output of kernels as they are.

A reader may leave early, as in `gpusim list | head -1`: the rest is dropped, and the exit code
still says how the work went. If standard output is closed or its disk is full the answer is
lost, an error.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from gpusim.errors import GpusimError, GpusimWarning
from gpusim.host.files import harmless, shown

MOST_LETTERS = 1000  # of a line of an error message, which may repeat input
MOST_LINES = 30
_PACKAGE = str(Path(__file__).parent.parent)


class OutputError(GpusimError):
    """An answer that cannot be printed."""


def prepare() -> None:
    """Let both streams replace characters outside their encoding, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def standard_output() -> TextIO:
    """Return standard output; OutputError where the shell (`>&-`) or a kernel's file shut it."""
    if sys.stdout is None or sys.stdout.closed:
        raise OutputError("standard output is closed; redirect it to a file or a pipe")
    return sys.stdout


def write(*parts: str) -> None:
    """Print texts, all of them before this returns; OutputError where that cannot be."""
    write_all(map(harmless, parts))


def write_all(parts: Iterable[str]) -> None:
    """Print text in parts as it is, since it may be too long to hold at once."""
    stream = standard_output()
    try:
        for part in parts:
            stream.write(part)
        stream.flush()
    except BrokenPipeError:
        _abandon(stream)
    except OSError as error:
        _abandon(stream)
        raise OutputError(f"standard output cannot be written: {error.strerror}") from None


def complain(message: str) -> None:
    """Print a message for the user; nothing if even that is impossible."""
    lines = [shown(line, MOST_LETTERS) for line in message.split("\n")[:MOST_LINES]]
    tell(harmless("gpusim: " + "\n".join(lines) + "\n"))


def complain_notes(error: BaseException) -> None:
    """Print the notes of an exception, as on the launch that it has interrupted."""
    for note in getattr(error, "__notes__", ()):
        complain(note)


def tell(text: str) -> None:
    """Print text to standard error as it is; nothing if even that is impossible."""
    stream = sys.stderr
    if stream is None or stream.closed:
        return
    note_telling()
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        _abandon(stream)


told_at = 0.0  # by the clock of time.monotonic


def note_telling(until: float = 0.0) -> None:
    """Note that the user sees the command running: now, or `until` some time."""
    global told_at
    told_at = max(until, time.monotonic())


def told(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001  warnings go to standard error
    line: str | None = None,  # noqa: ARG001  a line of source is not shown
) -> None:
    """Print gpusim's own warnings and a user's file's, a line each, and no other.

    It replaces `warnings.showwarning`, which would show the line of source as well.
    """
    if issubclass(category, GpusimWarning):
        complain(str(message))
    elif not Path(filename).resolve().is_relative_to(sys.prefix) and _PACKAGE not in filename:
        complain(f"{filename}, line {lineno}: {category.__name__}: {message}")


def has_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def _abandon(stream: TextIO) -> None:
    """Redirect a stream to the null device: its buffer is written when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
