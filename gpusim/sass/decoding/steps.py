"""Steps of code, and the errors for unsupported rows of machine code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim.errors import GpusimError
from gpusim.isa.ops import Memory
from gpusim.sass.listing import Guard, Row
from gpusim.sass.table import Mnemonic


class UnknownFormError(GpusimError):
    """Machine code in a form outside the table."""


class RefusedError(UnknownFormError):
    """Machine code for a unit of the GPU that is not simulated; its text names the unit."""


# Mnemonics of unsupported units, by the units' usual names.
REFUSED = {
    name: unit
    for unit, names in {
        "textures in this form are": "TEX TLD",
        "surfaces in this form are": "SULD SUST",
        "gathers, gradients and queries of textures are": "TLD4 TXD TXQ TMML",
        "atomics and queries of surfaces are": "SUATOM SURED SUQUERY",
        "tensor cores in this form are": "HMMA IMMA DMMA BMMA QMMA OMMA LDSM STSM",
        "matrix products of warpgroups (wgmma) in this form are": "HGMMA IGMMA QGMMA BGMMA "
        "WARPGROUP WARPGROUPSET",
        "tensor memory and its matrix products (tcgen05) are": "LDT LDTM STT STTM UTCATOMSWS "
        "UTCBAR UTCCP UTCHMMA UTCIMMA UTCLDSWS UTCOMMA UTCQMMA UTCSHIFT UTCSTSWS UVIRTCOUNT",
        "the tensor memory accelerator and its barriers in this form are": "UTMALDG UTMASTG UTMAPF "
        "UTMAREDG UTMACCTL UBLKCP UBLKRED UBLKPF SYNCS",
        "clusters of blocks are": "UCGABAR_GET UCGABAR_SET MAPA STAS",
    }.items()
    for name in names.split()
}


@dataclass(frozen=True)
class BankWord:
    """A register's worth of a constant bank."""

    bank: int
    offset: int


# A source operand: a register by name, a number, a word of a constant bank.
Source = str | np.generic | BankWord


@dataclass(frozen=True)
class Micro:
    """One instruction to be, with the hardware's names for registers.

    `row` is the place of its row in the listing. `targets` are labels, one of
    them the next step. `mask` is the register with its mask, where that is no operand.
    """

    op: str
    row: int
    detail: Any = None
    sources: tuple[Source, ...] = ()
    results: tuple[str, ...] = ()
    guard: Guard | None = None
    memory: Memory | None = None
    label: str = ""
    issued: bool = True
    targets: tuple[str, ...] = ()
    mask: str = ""


ZERO = np.uint32(0)


def pair(name: str) -> tuple[str, str]:
    """Return the names of a register and the one after it."""
    if name.endswith("Z"):
        return name, name
    letters = name.rstrip("0123456789")
    return name, f"{letters}{int(name[len(letters) :]) + 1}"


def several(name: str, count: int) -> tuple[str, ...]:
    """Return the names of `count` consecutive registers."""
    if not name[-1].isdigit():  # zeros, or true
        return (name,) * count
    letters = name.rstrip("0123456789")
    first = int(name[len(letters) :])
    return tuple(f"{letters}{first + number}" for number in range(count))


@dataclass(frozen=True)
class Context:
    """The context of a kernel's rows of machine code.

    `window` is where shared memory begins in addresses, `labels` are addresses in the code,
    `arch` is the compute capability as in sm_90. With `clusters` a block is one of several of a
    cluster: the top byte of an address of shared memory is the rank of its block.
    """

    window: int
    labels: Mapping[str, int] = field(default_factory=dict)
    arch: int = 90
    clusters: bool = False


# Yields the steps of a row, given its place in the listing and its mnemonic in the table.
Decode = Callable[[Context, Row, int, Mnemonic], Iterator[Micro]]
