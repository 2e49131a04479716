"""The words that the driver sets in constant bank 0, by compute capability.

Other words are refused where a kernel reads them: their values on a GPU are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpusim.sass.cubin import KernelCode
from gpusim.sass.decoding import BankWord, Micro, UnknownFormError
from gpusim.sass.listing import Row

# Arrays with the bytes of constant memory and of parameters, for code with their generic address.
CONSTANTS, PARAMETERS = "constant memory", "kernel parameters"
# The address of the last byte of the parameters, for code that tests whether an address is theirs.
PARAMETERS_END = f"end of {PARAMETERS}"
# Shared memory that the system keeps for cooperative groups of several warps: 288 bytes (their
# header). Where it lies is not known; here, after the block's own.
RESERVED, RESERVED_BYTES = "reserved shared memory", 288
ON_DEMAND = (CONSTANTS, PARAMETERS, PARAMETERS_END, RESERVED)

# Sizes are in bytes.
_COMMON = {
    0x00: ("block size", 12),
    0x0C: ("grid size", 12),
    0x18: ("shared window", 8),
    0x20: ("local window", 8),
    0x28: ("stack", 4),
    0x2C: ("dynamic shared bytes", 4),
    0x10C: ("multiprocessors", 4),
}
_75 = _COMMON | {
    0x40: (PARAMETERS, 8),
    0x50: (CONSTANTS, 8),
    0x114: ("last byte of the parameters", 4),
}
_80 = _75 | {
    0x114: ("reserved shared bytes", 4),
    0x118: ("memory descriptor", 8),
    0x124: (RESERVED, 4),
    0x12C: ("last byte of the parameters", 4),
}
_90 = _COMMON | {
    0x68: ("reserved shared end", 4),
    0x6C: (RESERVED, 4),
    0xD0: (CONSTANTS, 8),
    0x114: ("reserved shared bytes", 4),
    0x13C: ("shared bytes with the reserved", 4),
    0x140: ("is in a cluster", 4),
    0x144: ("cluster size", 12),
    0x150: ("cluster size, inverted", 12),
    0x15C: ("clusters", 12),
    0x188: ("blocks of a cluster", 4),
    0x198: (PARAMETERS, 8),
    0x1A0: (PARAMETERS_END, 8),
    0x208: ("memory descriptor", 8),
}
_100 = {
    0x120: (CONSTANTS, 8),
    0x16C: ("reserved shared bytes", 4),
    0x27C: (RESERVED, 4),
    0x2A0: ("cluster size", 12),
    0x2AC: ("dynamic shared bytes", 4),
    0x2B0: ("cluster size, inverted", 12),
    0x2C0: ("clusters", 12),
    0x2CC: ("blocks of a cluster", 4),
    0x2D0: ("multiprocessors", 4),
    0x2F8: ("local window", 8),
    0x348: (PARAMETERS, 8),
    0x350: (PARAMETERS_END, 8),
    0x358: ("memory descriptor", 8),
    0x360: ("block size", 12),
    0x36C: ("is in a cluster", 4),
    0x370: ("grid size", 12),
    0x37C: ("stack", 4),
}
# By the first compute capability: the words, where the parameters begin for their generic address,
# and the halves of the grid barrier's address.
_GENERATIONS = {
    75: (_75, 0, (0x90, 0x8C)),
    80: (_80, 0, (0x90, 0x8C)),
    90: (_90, 0x210, (0x48, 0x44)),
    100: (_100, 0x380, (0x258, 0x254)),
}
_WORD = 4


def _of(arch: int) -> tuple[Mapping[int, tuple[str, int]], int, tuple[int, int]]:
    return _GENERATIONS[max(first for first in _GENERATIONS if first <= max(arch, 75))]


def words(arch: int) -> Mapping[int, tuple[str, int]]:
    """Return name and size of the words before the parameters, by offset."""
    return _of(arch)[0]


def parameters_at(arch: int) -> int:
    """Return where in bank 0 the generic address of the parameters points to."""
    return _of(arch)[1]


def grid_barrier(arch: int) -> tuple[int, int]:
    """Return the offsets in bank 0 of the halves of the grid barrier's address."""
    return _of(arch)[2]


def in_place(micro: Micro, arch: int) -> Micro:
    """Return a load of a word on clusters, chosen by SR_CgaSize, as one at the place for it."""
    is_bank = isinstance(micro.detail, tuple) and micro.detail[:1] == ("bank",)
    if not is_bank or not micro.sources:
        return micro
    bank, offset, *_ = micro.detail[1]
    is_word = bank == 0 and offset < parameters_at(arch)
    return replace(micro, sources=()) if is_word else micro


def read(micros: Sequence[Micro]) -> Iterator[tuple[Micro, int, int]]:
    """Yield the bytes of bank 0 that steps read at places in the code: offset and size."""
    for micro in micros:
        for source in micro.sources:
            if isinstance(source, BankWord) and source.bank == 0:
                yield micro, source.offset, _WORD
        if isinstance(micro.detail, tuple) and micro.detail[:1] == ("bank",) and not micro.sources:
            bank, offset, size, _ = micro.detail[1]
            if bank == 0:
                yield micro, offset, size


def check(
    micros: Sequence[Micro], rows: Sequence[Row], arch: int, kernel: KernelCode, more: Sequence[int]
) -> None:
    """Refuse code that reads unset words of bank 0; `more` are additional words that are set."""
    known = {offset + byte for offset in more for byte in range(_WORD)}
    for offset, (_, size) in words(arch).items():
        known.update(range(offset, offset + size))
    for parameter in kernel.parameters:
        end = parameter.offset + parameter.size
        known.update(range(parameter.offset, -(-end // 16) * 16))
    for micro, offset, size in read(micros):
        if not known.issuperset(range(offset, offset + size)):
            row = rows[micro.row]
            where = f"{row.place.file}, line {row.place.line}" if row.place.line else "its code"
            raise UnknownFormError(
                f"{where}: the driver's word at c[0x0][{offset:#x}] is not simulated: {row.text}"
            )
