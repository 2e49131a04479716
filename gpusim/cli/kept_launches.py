"""A launch kept beside its kernel: `// gpusim: grid=ceil(n/256) block=256 args=float32[n],n`.

The comment stands before the kernel, or names it with `kernel=NAME`. Options of the command line
take precedence, each for itself.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from gpusim.cli.code_files import BINARY, parted
from gpusim.errors import InputError, did_you_mean
from gpusim.host import files
from gpusim.host.files import shown

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


def with_kept_launch(chosen: Namespace) -> Namespace:
    """Return options with those that the kernel's file keeps for it; InputError for others there.

    An option that is given stays as it is.
    """
    path, kernel = _file_and_kernel(chosen.kernel)
    if not path.is_file() or path.suffix in BINARY:
        return chosen
    kept = kept_launch(path, kernel)
    given = {name for name, value in vars(chosen).items() if value is not None}
    return Namespace(**{**vars(chosen), **{k: v for k, v in kept.items() if k not in given}})


def kept_launch(path: Path, kernel: str) -> dict[str, str | list[str]]:
    """Return the options that a file keeps for a kernel, by destination; of the first comment.

    Without a `kernel` the file's first launch is taken.
    """
    text = files.text(path, MOST_BYTES, again=True)
    for line, words, following in _comments(text):
        found = _options(words, path, line)
        named = str(found.pop("kernel", following))
        if not kernel or named == kernel.partition("<")[0].rpartition("::")[2]:
            return found
    return {}


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


def _file_and_kernel(text: str) -> tuple[Path, str]:
    path, kernel = parted(text)
    if path:
        return Path(path), kernel
    from gpusim.cli.user_files import python_file

    return python_file(text)
