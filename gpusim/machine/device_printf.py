"""The output of printf in a kernel: a format with the arguments of a lane, as C's printf has it.

Arguments follow each other in a buffer, each at a multiple of its size: 4 bytes for int and char, 8
for long, pointers and floating point (CUDA C++ Programming Guide, "Formatted output").
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

_CONVERSION = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    rb"(?P<size>hh?|ll?|[Lqjzt])?(?P<kind>.)",
    re.DOTALL,
)
_FLOATS, _SIGNED, _UNSIGNED = b"aAeEfFgG", b"di", b"ouxX"
_LONG, _NARROW = (b"l", b"ll", b"q", b"j", b"z", b"t"), {b"h": 16, b"hh": 8}
MOST_LETTERS = 1 << 16  # of a string, and of a width

Bytes = Callable[[int, int], bytes]  # the buffer's bytes from a place on, that many
Text = Callable[[int], bytes]  # the string at an address


class _Found(NamedTuple):
    flags: bytes
    width: bytes
    precision: bytes | None
    size: bytes
    kind: bytes


class _Arguments:
    """Reads arguments in order."""

    def __init__(self, held: Bytes) -> None:
        self._held, self._place = held, 0

    def next(self, form: str) -> int | float:
        size = struct.calcsize(form)
        self._place = -(-self._place // size) * size
        (value,) = struct.unpack(f"<{form}", self._held(self._place, size))
        self._place += size
        return value  # type: ignore[no-any-return]


def formatted(text: bytes, held: Bytes, text_at: Text) -> bytes:
    """Return a format with its arguments; unknown conversions are unchanged."""
    return b"".join(_parts(text, _Arguments(held), text_at))


def _parts(text: bytes, arguments: _Arguments, text_at: Text) -> Iterator[bytes]:
    begin = 0
    for match in _CONVERSION.finditer(text):
        yield text[begin : match.start()]
        begin = match.end()
        found = _Found(
            match["flags"], match["width"] or b"", match["precision"], match["size"] or b"",
            match["kind"],
        )  # fmt: skip
        yield b"%" if found.kind == b"%" else _converted(found, arguments, text_at, match[0])
    yield text[begin:]


def _converted(found: _Found, arguments: _Arguments, text_at: Text, whole: bytes) -> bytes:
    flags, width = found.flags.decode(), found.width.decode()
    if width == "*":
        width = str(min(int(arguments.next("i")), MOST_LETTERS))
    precision = found.precision
    if precision == b"*":
        precision = str(int(arguments.next("i"))).encode()
    dot = "" if precision is None else f".{precision.decode()}"
    form, kind = f"%{flags}{width}{dot}", found.kind
    if kind in _FLOATS:
        value = arguments.next("d")
        if kind in b"aA":
            shown = float(value).hex()
            return (
                f"%{flags}{width}s".encode() % (shown.upper() if kind == b"A" else shown).encode()
            )
        return f"{form}{kind.decode()}".encode() % value
    if kind in _SIGNED or kind in _UNSIGNED:
        return _whole_number(form, found, arguments)
    if kind == b"c":
        return f"%{flags}{width}s".encode() % bytes([int(arguments.next("I")) & 0xFF])
    if kind == b"p":
        address = int(arguments.next("Q"))
        shown = hex(address) if address else "(nil)"
        return f"%{flags}{width}s".encode() % shown.encode()
    if kind == b"s":
        address = int(arguments.next("Q"))
        return f"{form}s".encode() % (text_at(address) if address else b"(null)")
    return whole


def _whole_number(form: str, found: _Found, arguments: _Arguments) -> bytes:
    is_signed = found.kind in _SIGNED
    letter = "q" if found.size in _LONG else "i"
    value = int(arguments.next(letter if is_signed else letter.upper()))
    bits = _NARROW.get(found.size)
    if bits is not None:
        value &= (1 << bits) - 1
        if is_signed and value >> (bits - 1):
            value -= 1 << bits
    kind = "d" if found.kind in b"diu" else found.kind.decode()
    shown = f"{form}{kind}" % value
    # Python writes 0o17 where C has 017.
    return shown.replace("0o", "0").encode() if kind == "o" else shown.encode()
