"""Kernels in the caches of packages: numba-cuda's index data (`.nbc`), tinygrad's database (`.db`).

Cubins and PTX are found by their first bytes. Nothing is unpickled, as a pickle may run code;
Triton's cache holds plain cubins.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from gpusim.driver.images import assembled
from gpusim.errors import InputError
from gpusim.host import files
from gpusim.launch.grid import ComputeCapability
from gpusim.sass.kernels import MAX_CODE_BYTES, CodeFile, CodeKernel, CubinFile, symbol_of

NUMBA = ".nbc"
_ELF, _PTX, _TARGET = b"\x7fELF", b".version ", b".target sm_"
_CUDA = 190  # e_machine of a cubin
# Of an ELF header: the machine; places, sizes and numbers of segments and sections.
_MACHINE, _TABLES = struct.Struct("<H"), struct.Struct("<QQ4x2xHHHH")
_MACHINE_AT, _TABLES_AT, _HEADER = 18, 32, 64


class CacheFile(CodeFile):
    """The kernels of several cubins, as one file."""

    def __init__(self, file: str, cubins: list[CubinFile]) -> None:
        super().__init__(file)
        self._by_name = {name: one for one in cubins for name in one.names}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return tuple(self._by_name)

    def __getitem__(self, name: str) -> CodeKernel:
        symbol = symbol_of(name, self._by_name, self.file)
        return self._by_name[symbol][symbol]


def cache_file(path: Path) -> CacheFile:
    """Return the kernels of a cache; InputError where it cannot be read, or has none."""
    held = list(_images(path))
    if not held:
        raise InputError(f"{path} holds neither cubins nor PTX")
    return CacheFile(str(path), [CubinFile(one, str(path)) for one in held])


def _images(path: Path) -> Iterator[bytes]:
    """Yield the cubins of a cache, its PTX compiled."""
    for data in _parts(path):
        found = list(_cubins(data))
        yield from found
        if not found and _PTX in data:
            text = data[data.index(_PTX) :].partition(b"\0")[0]
            yield assembled(text[: text.rfind(b"}") + 1], _target(text, path))


def _parts(path: Path) -> Iterator[bytes]:
    if path.suffix == NUMBA:
        yield files.contents(path, MAX_CODE_BYTES, again=True)
        return
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            tables = database.execute("select name from sqlite_master where type = 'table'")
            for (table,) in tables.fetchall():
                quoted = table.replace('"', '""')
                for row in database.execute(f'select * from "{quoted}"'):
                    yield from (one for one in row if isinstance(one, bytes))
    except sqlite3.Error as error:
        raise InputError(f"{path} is not read as a database: {error}") from None


def _cubins(data: bytes) -> Iterator[bytes]:
    begin = data.find(_ELF)
    while begin >= 0:
        end = begin + 1
        if len(data) - begin > _HEADER:
            (machine,) = _MACHINE.unpack_from(data, begin + _MACHINE_AT)
            segments, sections, size, count, each, many = _TABLES.unpack_from(
                data, begin + _TABLES_AT
            )
            length = max(segments + size * count, sections + each * many)
            if machine == _CUDA and begin + length <= len(data):
                end = begin + length
                yield data[begin:end]
        begin = data.find(_ELF, end)


def _target(text: bytes, path: Path) -> ComputeCapability:
    digits = text.partition(_TARGET)[2][:3]
    number = bytes(letter for letter in digits if chr(letter).isdigit()).decode()
    if len(number) < 2:
        raise InputError(f"{path}: PTX without a target")
    return ComputeCapability.parse(f"{number[:-1]}.{number[-1]}")
