"""The errors that a user's input can cause, all of one base class.

Each message says the value given, the values expected and the next step. The
command line turns any of them into a line on stderr and exit code 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

MOST_NEAR = 6  # names that begin alike
MOST_COMPARED = 100  # letters of the given name: comparing takes their square


class GpusimError(Exception):
    """Base of every error that a user's input can cause."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" with names of the same beginning, else the nearest, or ""."""
    from difflib import get_close_matches  # only a mistake needs it, and it is slow to import

    names = list(known)
    near = [other for other in names if name and other.startswith(name)][:MOST_NEAR]
    near = near or get_close_matches(name[:MOST_COMPARED], names, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def shown_at_the_call(function: Callable[P, R]) -> Callable[P, R]:
    """Let a user's errors leave a public function without the frames below it.

    An uncaught error then prints the user's own line and the message.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except GpusimError as error:
            raise error.with_traceback(None) from None

    return call


class GpusimWarning(RuntimeWarning):
    """A remark of gpusim's own, as that a slower evaluator runs."""


class InputError(GpusimError):
    """A value, file or option that cannot be used as given."""


class MissingElementsError(InputError):
    """A launch whose course depends on elements of arrays that are given without any."""


class LaunchError(GpusimError):
    """A grid, block, shared-memory size or argument list that no GPU would launch."""


@dataclass(frozen=True)
class SourceLocation:
    """A place in the user's source: file, line (from 1), its text and the columns to mark."""

    file: str
    line: int
    text: str
    column: int
    end_column: int

    def caret(self) -> str:
        """Return the line with carets under the marked columns."""
        indent = len(self.text) - len(self.text.lstrip())
        width = max(1, min(self.end_column, len(self.text)) - self.column)
        marks = " " * max(0, self.column - indent) + "^" * width
        return f"    {self.text.strip()}\n    {marks}"


class KernelSourceError(GpusimError):
    """A construct in a kernel that the dialect does not have, or has no type for."""

    def __init__(self, message: str, location: SourceLocation | None = None) -> None:
        self.message = message
        self.location = location
        super().__init__(message)

    def __str__(self) -> str:
        if self.location is None:
            return self.message
        where = f"{self.location.file}:{self.location.line}"
        return f"{where}: {self.message}\n{self.location.caret()}"


@dataclass(frozen=True)
class FaultPlace:
    """The place of a fault: line, block and thread by linear number, array and index.

    `lanes` is how many threads did the same in that instruction, `remedy` what to do about it where
    that is known.
    """

    line: int
    block: int | None = None
    thread: int | None = None
    array: str = ""
    index: int | None = None
    lanes: int = 1
    remedy: str = ""


class KernelFault(GpusimError):
    """A running kernel met undefined behaviour of a GPU; `place` says where, if known."""

    def __init__(self, message: str, place: FaultPlace | None = None) -> None:
        super().__init__(message)
        self.place = place


class AssertionFault(KernelFault):
    """A failed assertion of a kernel: its expression and file, "" where not known.

    `threads` are the linear numbers of block and thread of all that fail in the instruction.
    """

    expression: str = ""
    file: str = ""
    threads: tuple[tuple[int, int], ...] = ()


class OutOfBoundsError(KernelFault):
    """An index outside its array; names array, index, size, block, thread and line."""


class MisalignedError(KernelFault):
    """A vector access at an address that is not a multiple of its width."""


class ReadOnlyError(KernelFault):
    """A store to an array that may not be written."""


class BarrierError(KernelFault):
    """A barrier, or a warp-wide operation, that some of its threads never reach."""


class LaneMaskError(KernelFault):
    """A shuffle, vote or warp barrier with a mask other than its participating lanes."""


class NoProgressError(KernelFault):
    """The step limit was reached: a deadlock or an infinite loop."""
