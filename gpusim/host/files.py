"""Files that a user names: read within bounds, written whole, and every failure a sentence.

A path may lead to a directory, to a device that never ends, to text in another encoding; a
document may hold numbers of a thousand digits or a thousand brackets. Errors in the meaning of a
file's content are raised by its reader.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import linecache
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from gpusim.errors import InputError

Refusal = type[InputError]

MAX_TOML_BYTES = 2**20  # forty times the largest device file; a second to read
MAX_PYTHON_BYTES = 2**22  # hundreds of times the size of usual files
MAX_JSON_BYTES = 2**24  # sixty times the largest file of measurements; a second to read
MAX_DEPTH = 16  # device files and measurements nest to a depth of 4
MAX_BITS = 64  # of a whole number: no quantity of a GPU needs more
WRITER_SECONDS = 10  # that a pipe may be without a writer
MAX_SHOWN = 200  # characters of input repeated in a message


def shown(given: str | os.PathLike[str], most: int = MAX_SHOWN) -> str:
    """Return a user's input as a message may repeat it: on one line of limited length."""
    text = str(given).replace("\t", " ")
    if len(text) > most:
        text = f"{text[: most // 2]}...{text[-most // 2 :]}"
    return printable(text)


def printable(text: str, kept: str = "") -> str:
    """Return text with "?" for characters that a terminal obeys instead of showing them.

    Spaces of any width stay, and characters in `kept`.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in kept or unicodedata.category(one) == "Zs" else "?"
        for one in text
    )


def harmless(text: str) -> str:
    """Return lines of text, as long as before, that neither a terminal nor GitHub Actions obeys.

    The log of a job takes a line that begins with "::", or has "##[" in it, for a command.
    """
    text = printable(text, "\n\t")
    if "::" in text or "##[" in text:
        text = _COMMAND.sub(r"\1?:", text).replace("##[", "#?[")
    return text


_COMMAND = re.compile(r"^(\s*)::", re.MULTILINE)


@contextlib.contextmanager
def opened(
    path: Path,
    refuse: Refusal = InputError,
    *,
    again: bool = False,
    writer_s: float = WRITER_SECONDS,
) -> Iterator[BinaryIO]:
    """Open a file or a pipe for reading; errors of the system are raised as `refuse`.

    Refused too are a pipe without a writer for `writer_s` seconds, and any pipe that is to be read
    `again`: its content can be read only once.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise refuse(f"{shown(path)}: there is no such file") from None
    except (OSError, ValueError) as error:  # a ValueError for a name that holds a null
        raise refuse(f"{shown(path)}: cannot be read: {_reason(error)}") from None
    for is_one, what in (*_NOT_FILES, (stat.S_ISFIFO, "a pipe")) if again else _NOT_FILES:
        if is_one(mode):
            raise refuse(f"{shown(path)}: is {what}, not a file")
    try:
        with _pipe(path, refuse, writer_s) if stat.S_ISFIFO(mode) else path.open("rb") as file:
            yield file
    except OSError as error:
        raise refuse(f"{shown(path)}: cannot be read: {_reason(error)}") from None


def _pipe(path: Path, refuse: Refusal, writer_s: float) -> BinaryIO:
    """Open a pipe once it has a writer; waits if another process holds it open.

    A plain open blocks until another process opens the pipe.
    """
    import select  # few inputs are pipes

    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    file = os.fdopen(number, "rb")
    poll = select.poll()
    poll.register(number, select.POLLIN | select.POLLHUP)
    if not poll.poll(writer_s * 1000) and not _has_writer(number):
        file.close()
        raise refuse(f"{shown(path)}: is a pipe without a writer")
    os.set_blocking(number, True)
    return file


def _has_writer(number: int) -> bool:
    """Return whether an empty pipe has a writer: else reading finds its end."""
    try:
        os.read(number, 1)
    except BlockingIOError:
        return True
    return False


_NOT_FILES = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def contents(path: Path, most: int, refuse: Refusal = InputError, *, again: bool = False) -> bytes:
    """Return the content of a file of at most `most` bytes."""
    with opened(path, refuse, again=again) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise refuse(f"{shown(path)}: is longer than {most:,} bytes")
    return content


def text(path: Path, most: int, refuse: Refusal = InputError, *, again: bool = False) -> str:
    """Return the text of a file of at most `most` bytes in UTF-8, without a byte-order mark."""
    try:
        return contents(path, most, refuse, again=again).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refuse(f"{shown(path)}: is not a text file in UTF-8") from None


def source(path: Path, most: int, *, again: bool = True) -> str:
    """Return a source text as compilers take it: UTF-16 by its mark, else bytes as they are.

    Bytes that are no UTF-8, as of Latin-1 or GBK, are surrogates (`to_bytes`); reports show "?".
    """
    content = contents(path, most, again=again)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            text = content.decode("utf-16")
        except UnicodeDecodeError:
            raise InputError(f"{shown(path)}: is damaged UTF-16") from None
    else:
        text = content.decode("utf-8-sig", "surrogateescape")
    if not content.isascii():
        show_as(path, text)
    return text


def show_as(path: Path, text: str) -> None:
    """Let reports show these lines of a file."""
    lines = [f"{printable(one)}\n" for one in text.split("\n")]
    linecache.cache[str(path)] = len(text), None, lines, str(path)


def to_bytes(text: str) -> bytes:
    """Return a source text as a compiler reads it: in UTF-8, or in the file's own bytes."""
    return text.encode("utf-8", "surrogateescape")


def toml(path: Path, refuse: Refusal = InputError) -> dict[str, Any]:
    """Return the content of a TOML file, its depth and its numbers within bounds."""
    import tomllib  # listing devices needs no parser

    content = text(path, MAX_TOML_BYTES, refuse)
    with _parsed(path, refuse):
        try:
            tree = tomllib.loads(content)
        except tomllib.TOMLDecodeError as error:
            raise refuse(f"{shown(path)}: is not TOML: {shown(str(error))}") from None
        _check_bounds(tree)
    return tree


def parsed_json(path: Path, refuse: Refusal = InputError) -> Any:
    """Return the content of a JSON file, its depth and its numbers within bounds, no key twice."""
    content = text(path, MAX_JSON_BYTES, refuse)
    with _parsed(path, refuse):
        try:
            tree = json.loads(content, object_pairs_hook=_without_repetition)
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            raise refuse(f"{shown(path)}: {place}: is not JSON: {error.msg}") from None
        _check_bounds(tree)
    return tree


class _BeyondBoundsError(Exception):
    """A document exceeds the limits of any legitimate one."""


@contextlib.contextmanager
def _parsed(path: Path, refuse: Refusal) -> Iterator[None]:
    """Turn a parser's errors about documents that are too deep or too long into `refuse`."""
    try:
        yield
    except _BeyondBoundsError as error:
        raise refuse(f"{shown(path)}: {error}") from None
    except RecursionError:
        raise refuse(f"{shown(path)}: is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError:  # Python turns 4,300 digits and more into no number
        raise refuse(f"{shown(path)}: holds a number of thousands of digits") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _BeyondBoundsError(f"holds the key {shown(twice)!r} twice")
    return found


def _check_bounds(tree: Any) -> None:
    """Raise _BeyondBoundsError for a depth or a number beyond the limits."""
    level = [tree]
    for _ in range(MAX_DEPTH):
        for value in level:
            if isinstance(value, int) and value.bit_length() > MAX_BITS:
                raise _BeyondBoundsError(f"holds a number of more than {MAX_BITS} bits")
        level = [inner for value in level for inner in _within(value)]
        if not level:
            return
    raise _BeyondBoundsError(f"is nested deeper than {MAX_DEPTH} levels")


def _within(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file atomically: a kill at any time leaves its old or its new content."""
    with refusing(path):
        held = content.encode() if isinstance(content, str) else content
        if path.exists() and not path.is_file():  # a pipe or a device has no old content
            path.write_bytes(held)
            return
        target = path.resolve()  # a link keeps its target
        beside = target.with_name(f".{target.name}.part")
        try:
            with beside.open("wb") as file:
                file.write(held)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Turn the system's errors about writing a file into an InputError."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"{shown(path)}: cannot be written: {_reason(error)}") from None


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
