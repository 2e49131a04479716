"""Headers that a source text includes, as far as they can be found without the compiler.

Includes under any condition count. The compiler alone knows all of its files (lookups.py);
this is for declarations in headers, and where the compiler's lookups cannot be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Literals, free of comments, and comments; an unclosed one goes to the end.
_LITERAL = (
    r'R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z)'
    r'|"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'"
)  # fmt: skip
_COMMENT = re.compile(rf"(?P<kept>{_LITERAL})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*include(?:_next)?\b[ \t]*(.*?)[ \t\r]*$", re.M)
_DEFINE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*define[ \t]+(\w+)[ \t]+(.*?)[ \t\r]*$", re.M)
_HAS = re.compile(r'\b__has_include(?:_next)?\b(?:[ \t]*\([ \t]*("[^"\n]+"|<[^>\n]+>))?')
_HEADER = re.compile(r'"([^"\n]+)"|<([^>\n]+)>')
_WORD = re.compile(r"[A-Za-z_]\w*$")


def read(path: Path) -> str:
    """Return the text of a source file or a header."""
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def plain(text: str) -> str:
    """Return a text as the preprocessor reads it: continued lines joined, comments blank."""
    joined = _CONTINUED.sub("", text)
    return _COMMENT.sub(lambda match: (match["kept"] or " ").replace("\n", " "), joined)


def included(clean: str) -> Iterator[str]:
    """Yield the names of headers in the directives of a plain text."""
    for operand in _DIRECTIVE.findall(clean):
        if match := _HEADER.match(operand):
            yield match[1] or match[2]


@dataclass
class Includes:
    """The headers found from a text on, and the paths requested.

    `is_complete` if every name of a header is known: names by macros may not be.
    """

    folders: Sequence[str]
    found: list[Path] = field(default_factory=list)
    asked: dict[str, None] = field(default_factory=dict)
    is_complete: bool = True
    _seen: set[Path] = field(default_factory=set)
    _macros: dict[str, set[str]] = field(default_factory=dict)
    _waiting: list[tuple[str, Path | None]] = field(default_factory=list)

    def follow(self, text: str) -> None:
        """Look at a text, and at all headers from it on."""
        self._look(text, None)
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            left = [one for one in waiting if not self._follow(*one)]
            if len(left) == len(waiting) and not self._waiting:
                self.is_complete = False
                return
            self._waiting += left

    def define(self, definitions: Iterable[str]) -> None:
        """Record macros such as NAME=VALUE."""
        for definition in definitions:
            name, _, value = definition.partition("=")
            self._macros.setdefault(name, set()).add(value)

    def _look(self, text: str, folder: Path | None) -> None:
        clean = plain(text)
        self.define("=".join(match) for match in _DEFINE.findall(clean))
        self._waiting += [(operand, folder) for operand in _DIRECTIVE.findall(clean)]
        for header in _HAS.findall(clean):
            self._ask(header, folder)

    def _follow(self, operand: str, folder: Path | None) -> bool:
        """Return whether a directive's header is known; its text is looked at then."""
        headers = list(self._headers(operand, set()))
        for header in headers:
            for path in self._ask(header, folder):
                self._enter(path)
        return bool(headers)

    def _enter(self, path: Path) -> None:
        real = path.resolve()
        if real not in self._seen:
            self._seen.add(real)
            self.found.append(path)
            self._look(read(path), path.parent)

    def _headers(self, operand: str, seen: set[str]) -> Iterator[str]:
        """Yield "file" or <file> of an operand, possibly by way of macros."""
        if match := _HEADER.match(operand):
            yield match[0]
        elif _WORD.match(operand) and operand not in seen:
            for meaning in sorted(self._macros.get(operand, ())):
                yield from self._headers(meaning, seen | {operand})

    def _ask(self, header: str, folder: Path | None) -> list[Path]:
        """Return the files that a header's name may denote: within "", the one beside the file."""
        match = _HEADER.match(header)
        if match is None:
            self.is_complete = False
            return []
        beside = [str(folder)] if folder is not None and match[1] else []
        paths = [Path(one) / (match[1] or match[2]) for one in [*beside, *self.folders]]
        self.asked.update(dict.fromkeys(map(str, paths)))
        return [path for path in paths if path.is_file()]


def includes(text: str, folders: Sequence[str], definitions: Iterable[str] = ()) -> Includes:
    """Return the user's own headers that a source includes, directly and indirectly."""
    made = Includes(folders)
    made.define(definitions)
    made.follow(text)
    return made
