"""A launch kept beside its kernel: `// gpusim: grid=ceil(n/256) block=256 args=float32[n],n`.

The comment stands before the kernel, or names it with `kernel=NAME`. Options of the command line
take precedence, each for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gpusim.cli.references import Reference
from gpusim.cuda_cpp.host_numbers import Root
from gpusim.errors import InputError, did_you_mean
from gpusim.host import files
from gpusim.host.files import shown
from gpusim.launch.description import Origin

# Keys of the comment, by the destination of the option with that meaning.
KEYS = {
    "grid": "grid", "block": "block", "n": "n", "shared-bytes": "shared_bytes", "args": "arg",
    "kernel": "kernel",
}  # fmt: skip
MOST_BYTES = 1 << 26
_COMMENT = re.compile(r"^[ \t]*(?://|#)[ \t]*gpusim:[ \t]*(\S.*)$", re.MULTILINE)
_NEXT_KERNEL = re.compile(
    r"__global__[^;{}]*?\b(?!__launch_bounds__|void\b)(\w+)\s*\((?!\s*\d)|^[ \t]*def[ \t]+(\w+)",
    re.MULTILINE,
)


class FileLaunch(NamedTuple):
    """A launch that a file has for a kernel: options by destination, origin, and line.

    `size` is the constant of the source that `n` replaces, None without one; `block_sizes` are
    those that another block replaces, axis by axis.
    """

    options: Mapping[str, str | list[str]]
    origin: Origin
    line: int
    size: Root | None = None
    block_sizes: tuple[Root | None, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """The arguments, in the kernel's order or by name."""
        return list(self.options.get("arg", ()))


def kept_launch(reference: Reference) -> FileLaunch | None:
    """Return the launch that the comment in a file keeps for a kernel; the first one's, None else.

    Without a kernel's name the file's first launch is taken.
    """
    path = reference.path
    if not path.is_file() or reference.is_binary:
        return None
    text = files.source(path, MOST_BYTES, again=True)
    for line, words, following in _comments(text):
        found = _options(words, path, line)
        named = str(found.pop("kernel", following))
        if not reference.kernel or named == reference.plain_kernel:
            return FileLaunch(found, Origin.COMMENT, line)
    return None


def _comments(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield each comment with its line and the name of the kernel behind it."""
    for match in _COMMENT.finditer(text):
        behind = _NEXT_KERNEL.search(text, match.end())
        name = (behind[1] or behind[2]) if behind is not None else ""
        yield text.count("\n", 0, match.start()) + 1, match[1], name


def _options(words: str, path: Path, line: int) -> dict[str, str | list[str]]:
    made: dict[str, str | list[str]] = {}
    for word in words.split():
        key, equals, value = word.partition("=")
        if key not in KEYS or not equals or not value:
            raise InputError(
                f"{path}, line {line}: {shown(word)!r} in a launch is not understood"
                f"{did_you_mean(key, KEYS)}; write grid=64 block=256 args=float32[4096],4096 "
                f"(keys: {', '.join(KEYS)})"
            )
        made[KEYS[key]] = list(_arguments(value)) if key == "args" else value
    return made


def _arguments(text: str) -> Iterator[str]:
    """Yield arguments between commas, except those within brackets."""
    begin = depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            yield text[begin:place]
            begin = place + 1
    yield text[begin:]
