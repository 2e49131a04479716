"""Textures and surfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpusim.sass.decoding.sources import expect, number_of, registers_of
from gpusim.sass.decoding.steps import REFUSED, Context, Decode, Micro, RefusedError, several
from gpusim.sass.listing import Row
from gpusim.sass.operands import Operand
from gpusim.sass.table import Mnemonic

_AXES_OF_TEXTURES = {
    "1D": (1, False), "2D": (2, False), "3D": (3, False),
    "ARRAY_1D": (1, True), "ARRAY_2D": (2, True),
}  # fmt: skip


def _texture(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Fetch channels: the first two come to one pair of registers, the others to another."""
    registers = [one for one in row.operands if one.kind == "R"]
    where = next(number for number, one in enumerate(row.operands) if one.kind == "X")
    kind = row.operands[where].name
    if kind not in _AXES_OF_TEXTURES or registers[-1].name[0] != "U":
        raise RefusedError(REFUSED[row.mnemonic])
    axes, has_layer = _AXES_OF_TEXTURES[kind]
    upper, lower, coordinates, *_, handle = registers
    mask = [number_of(one) for one in row.operands[where + 1 :]] or [0xF]
    channels = tuple(number for number in range(4) if mask[0] >> number & 1)
    names = [*several(lower.name, 2), *several(upper.name, 2)][: len(channels)]
    expect(not any(name.endswith("Z") for name in names), row)
    sources = (handle.name, *registers_of(coordinates, axes + has_layer))
    form = (axes, has_layer, row.mnemonic == "TLD", channels)
    yield Micro(row.mnemonic, place, form, sources, tuple(names), row.guard)


_WIDTHS_OF_SURFACES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


def _surface(row: Row, place: int, address: Operand, handle: Operand) -> tuple[Any, Any]:
    """Return the form of an access to a surface, and the registers of handle and coordinates."""
    said = set(row.modifiers)
    kind = next((one for one in row.modifiers if one[0] in "123" and one[1:2] == "D"), "")
    signed = {"S8", "S16"} & said and row.mnemonic == "SULD"
    if not kind or handle.name[0] != "U" or signed:
        raise RefusedError(REFUSED[row.mnemonic])
    width = next((_WIDTHS_OF_SURFACES[one] for one in said & _WIDTHS_OF_SURFACES.keys()), 4)
    boundary = "trap" if "TRAP" in said else "zero" if "IGN" in said else "clamp"
    axes, has_layer = int(kind[0]), kind.endswith("ARRAY")
    expect(len(address.terms) == 1 and not address.number, row)
    first = Operand("R", address.terms[0].register)
    sources = (handle.name, *registers_of(first, axes + has_layer))
    return (axes, has_layer, width, boundary), sources


def _surface_load(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    result, address, handle = row.operands[:3]
    form, sources = _surface(row, place, address, handle)
    results = () if result.is_zero else several(result.name, -(-form[2] // 4))
    yield Micro("SULD", place, form, sources, results, row.guard)


def _surface_store(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    address, value, handle = row.operands[:3]
    form, sources = _surface(row, place, address, handle)
    sources = (*sources, *registers_of(value, -(-form[2] // 4)))
    yield Micro("SUST", place, form, sources, (), row.guard)


DECODERS: Mapping[str, Decode] = {
    "texture": _texture,
    "surface_load": _surface_load,
    "surface_store": _surface_store,
}
