"""The launches of a program under analysis: by the kernel's name and by number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpusim.errors import InputError
from gpusim.host.files import shown

_RANGE = re.compile(r"(\d{1,12})(?:\.\.(\d{1,12})?)?", re.ASCII)


@dataclass(frozen=True)
class LaunchChoice:
    """Launches of some kernels and numbers; all where none are given."""

    kernels: tuple[str, ...] = ()
    numbers: tuple[tuple[int, int | None], ...] = ()

    @classmethod
    def of(cls, kernels: Sequence[str], numbers: Sequence[str]) -> LaunchChoice:
        """Return the choice of `--kernel` and `--launch`; InputError for a malformed number."""
        parts = [part for text in numbers for part in text.split(",")]
        return cls(tuple(kernels), tuple(map(_range, parts)))

    def takes(self, number: int, kernel: str) -> bool:
        """Return whether a launch is among those chosen."""
        named = any(name in kernel for name in self.kernels)
        counted = any(
            first <= number and (last is None or number <= last) for first, last in self.numbers
        )
        return (named or not self.kernels) and (counted or not self.numbers)


def _range(text: str) -> tuple[int, int | None]:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"--launch is {shown(text)!r}; write a number from 1, 3..5, or 10.. for all from there"
        )
    first = int(match[1])
    if ".." not in text:
        return first, first
    return first, int(match[2]) if match[2] else None
