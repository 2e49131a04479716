"""The compiler's words about source that does not compile, without contents of foreign files.

An `#include` may lead anywhere. Lines of files outside of the source's folder and of the folders
of headers are left out of messages: they give only the place and kind of an error there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_HEAD = re.compile(r"(?P<file>\S.*?)\((?P<line>\d+)\): (?P<words>.*)")
_QUOTED = re.compile(r'(?<!source file )"[^"]*"')  # but for a header that is not there
_DIRECTIVE = re.compile(r"(#error directive).*")
HIDDEN = "  (a line of a file outside of the source's folder; -I FOLDER, includes=, has it shown)"


def without_foreign_lines(words: str, file: str, folders: Sequence[str | Path]) -> str:
    """Return the words about `file` without lines of files that lie in none of the folders."""
    own = [Path(folder).resolve() for folder in folders]
    return "\n".join(_kept(words.split("\n"), file, own))


def _kept(lines: Sequence[str], file: str, own: Sequence[Path]) -> Iterator[str]:
    is_foreign = False
    for line in lines:
        if match := _HEAD.match(line):
            is_foreign = match["file"] != file and not _lies_in(match["file"], own)
            yield _masked(match) if is_foreign else line
            if is_foreign:
                yield HIDDEN
        elif not line.startswith(" ") or not is_foreign:
            is_foreign = is_foreign and bool(line)
            yield line


def _lies_in(file: str, own: Sequence[Path]) -> bool:
    try:
        path = Path(file).resolve()
    except (OSError, ValueError, RuntimeError):
        return False
    return any(path.is_relative_to(folder) for folder in own)


def _masked(head: re.Match[str]) -> str:
    words = _DIRECTIVE.sub(r"\1", _QUOTED.sub('"..."', head["words"]))
    return f"{head['file']}({head['line']}): {words}"
