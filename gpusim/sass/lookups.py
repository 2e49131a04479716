"""The files that a compiler's library looks up: found ones and those not there.

NVRTC has no option that lists its dependencies, therefore its calls of the C library go through
here: the addresses of these functions in the library's global offset table are replaced. Part of
the worker's script, without the package.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

ABSENT, PRESENT = "absent", "present"
PIPE = f"no file {stat.S_IFIFO}"
# Parameters of C functions; each one's path is the argument of type char *.
_PATH, _INT, _POINTER = ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p
_STAT = (_INT, _PATH, _POINTER)
FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "fopen": (_POINTER, _PATH, _PATH), "fopen64": (_POINTER, _PATH, _PATH),
    "open": (_INT, _PATH, _INT, _INT), "open64": (_INT, _PATH, _INT, _INT),
    "access": (_INT, _PATH, _INT), "stat": _STAT, "stat64": _STAT,
    "__xstat": (_INT, _INT, _PATH, _POINTER), "__xstat64": (_INT, _INT, _PATH, _POINTER),
}  # fmt: skip
READING = ("fopen", "fopen64", "open", "open64")
# Tags of an ELF file's dynamic section, and relocations that are addresses of functions.
_STRINGS, _SYMBOLS, _PLT_BYTES, _PLT, _END = 5, 6, 2, 23, 0
_JUMP_SLOTS = (7, 1026)  # of x86-64 and of AArch64
_READ_WRITE = 3


def state(path: str, is_read: bool, stamped: Sequence[str] = ()) -> str:
    """Return the state of a path, to detect changes: a digest, or whether anything is there.

    Of a file in the folders `stamped` size and time are enough.
    """
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return f"no file {stat.S_IFMT(found.st_mode)}"
        if not is_read:
            return PRESENT
        if os.path.abspath(path).startswith(tuple(stamped)):
            return f"{found.st_size} {found.st_mtime_ns}"
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, ValueError):
        return ABSENT


def within(folders: Sequence[str]) -> list[str]:
    """Return the prefixes of absolute paths of files in folders."""
    return [os.path.join(os.path.abspath(folder), "") for folder in folders]


class Lookups:
    """Paths that a library asks the C library for, in its order, each with its state by then.

    A path is either read or only asked about: the key's second part. Files by their real paths in
    `replaced` are read with these texts in place of their own, of the same size.
    """

    def __init__(
        self, library: ctypes.CDLL, stamped: Sequence[str], replaced: Mapping[str, str] = {}
    ) -> None:
        self.stamped = within(stamped)
        self._numbers = {
            path: _in_memory(text.encode(errors="surrogateescape"))
            for path, text in replaced.items()
        }
        self.found: dict[tuple[str, bool], str] = {}
        self._kept: list[Any] = []  # callbacks live as long as the table has their addresses
        self.are_seen = bool(self._replaced(library))

    def _replaced(self, library: ctypes.CDLL) -> int:
        """Put callbacks into the library's table; return their number."""
        if sys.platform != "linux" or struct.calcsize("P") != 8:
            return 0
        slots = [(name, slot) for name, slot in _slots(library) if name in FUNCTIONS]
        for name, slot in slots:
            self._replace(name, slot)
        return len(slots)

    def _replace(self, name: str, slot: int) -> None:
        result, *takes = FUNCTIONS[name]
        kind = ctypes.CFUNCTYPE(result, *takes, use_errno=True)
        _writable(slot)
        entry = ctypes.c_void_p.from_address(slot)
        call, place = kind(entry.value or 0), takes.index(_PATH)
        failure = None if result is _POINTER else -1
        callback = kind(self._recorded(call, place, name in READING, failure))
        self._kept.append(callback)
        entry.value = ctypes.cast(callback, ctypes.c_void_p).value

    def _recorded(
        self, call: Callable[..., Any], place: int, is_read: bool, failure: int | None
    ) -> Callable[..., Any]:
        def recorded(*given: Any) -> Any:
            asked = os.fsdecode(given[place] or b""), is_read
            if asked not in self.found:
                self.found[asked] = state(*asked, self.stamped)
            if is_read and self.found[asked] == PIPE:  # without a writer, perhaps for ever
                ctypes.set_errno(errno.ENOENT)
                return failure
            number = self._numbers.get(os.path.realpath(asked[0])) if is_read else None
            if number is not None:
                read = f"/proc/self/fd/{number}".encode()
                return call(*given[:place], read, *given[place + 1 :])
            return call(*given)

        return recorded


def _in_memory(held: bytes) -> int:
    """Return the number of an open file in memory."""
    number = os.memfd_create("header")
    os.write(number, held)
    return number


def _slots(library: ctypes.CDLL) -> Iterator[tuple[str, int]]:
    """Yield the functions that a loaded library calls, with the places of their addresses.

    A handle of dlopen begins with the library's base, its name and its dynamic section.
    """
    base, _, dynamic = (ctypes.c_uint64 * 3).from_address(library._handle)
    tags = dict(_dynamic(dynamic))
    strings, symbols, table = (
        place if place >= base else place + base
        for place in (tags[_STRINGS], tags[_SYMBOLS], tags[_PLT])
    )
    for slot, info, _ in struct.iter_unpack("<QQq", ctypes.string_at(table, tags[_PLT_BYTES])):
        if info & 0xFFFFFFFF in _JUMP_SLOTS:
            name = ctypes.c_uint32.from_address(symbols + 24 * (info >> 32)).value
            yield ctypes.string_at(strings + name).decode(), base + slot


def _dynamic(place: int) -> Iterator[tuple[int, int]]:
    tag, value = (ctypes.c_uint64 * 2).from_address(place)
    while tag != _END:
        yield tag, value
        place += 16
        tag, value = (ctypes.c_uint64 * 2).from_address(place)


def _writable(place: int) -> None:
    """Let a place in memory be written, although the loader has made it read-only."""
    size = os.sysconf("SC_PAGE_SIZE")
    page = place // size * size
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if mprotect(page, size, _READ_WRITE):
        raise OSError(ctypes.get_errno(), "mprotect")
