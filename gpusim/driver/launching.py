"""A launch as the machine runs it: parameters as bytes, and all of device memory by address.

A word of the parameters that is an address in an allocation is a pointer to it, in structures too;
everything else is passed on as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.cuda_cpp.structures import TYPES
from gpusim.driver.arena import Arena, Region
from gpusim.driver.module import Function
from gpusim.isa.ops import CONSTANT_BANK, Program
from gpusim.launch.grid import Launch
from gpusim.launch.prepared import Place, Prepared
from gpusim.launch.textures import TEXTURES, Texture
from gpusim.sass.arguments import Given
from gpusim.sass.bank_words import CONSTANTS
from gpusim.sass.initial_memory import InitialMemory
from gpusim.sass.kernels import GRID_BARRIER_WORDS, translated
from gpusim.sass.translate import Code
from gpusim.typing import Array

_POINTER = struct.Struct("<Q")


class _Bound:
    """Arguments by name, and the addresses of the arrays among them."""

    def __init__(self) -> None:
        self.arguments: dict[str, Any] = {}
        self.places: dict[str, Place] = {}

    def add(self, name: str, array: Array, address: int, start: int) -> None:
        self.arguments[name] = array
        self.places[name] = Place(address, start)

    def add_region(self, name: str, region: Region) -> None:
        self.add(name, region.bytes, region.address, region.address)


def prepared(
    function: Function,
    launch: Launch,
    held: bytes,
    arena: Arena,
    textures: Mapping[int, Texture],
    *,
    cooperative: bool = False,
) -> Prepared:
    """Return a launch with parameters of these bytes; GpusimError for unsimulated instructions.

    A launch that is not `cooperative` has no workspace for barriers of the whole grid.
    """
    code, module, bound = function.code.in_clusters(launch.cluster), function.module, _Bound()
    given = list(_given(function, held, arena, bound))
    variables = module.arrays(code)
    for name, region in variables.items():
        bound.add_region(name, region)
    if CONSTANTS in code.images:
        bound.add_region(CONSTANTS, module.constants)
    for name, (bank, begin) in code.images.items():
        if not bank:
            size = code.kernel.parameters_end - begin
            bound.arguments[name] = np.zeros(max(size, 1), np.uint8)
    if code.heap:
        bound.add_region(code.heap, module.heap.region)
    if textures:
        bound.arguments[TEXTURES] = dict(textures)
    if cooperative and code.grid_barrier is not None:
        bound.arguments[code.grid_barrier[0]] = np.zeros(GRID_BARRIER_WORDS, np.uint32)
    known = {place.start for place in bound.places.values()}
    for region in arena.regions:
        if region.address not in known:
            bound.add_region(f"memory at {region.address:#x}", region)
    cc = function.device.cc
    made = program(function, code, given)
    layout = made.layout
    if not cooperative and layout is not None and layout.grid_barrier is not None:
        made = replace(made, layout=replace(layout, grid_barrier=None))
    heap = module.heap.given if code.heap else None
    file = function.source_file
    return Prepared(
        made,
        launch,
        bound.arguments,
        cc,
        file,
        places=bound.places,
        heap=heap,
        language=function.language,
    )


def program(function: Function, code: Code, given: list[Given]) -> Program:
    """Return the kernel as a program; its bank of constants is the module's memory."""
    parameters = tuple(
        (one.name, one.offset, one.size, isinstance(one.value, np.ndarray)) for one in given
    )
    key = code.kernel.is_in_clusters, parameters
    made = function.programs.get(key)
    if made is None:
        made = translated(code, given, InitialMemory({}, b"", {}))
        layout = made.layout
        if layout is not None and function.module.cubin.constants:
            constants = function.module.constants.bytes.data
            fixed = {**layout.fixed, CONSTANT_BANK: constants}
            made = replace(made, layout=replace(layout, fixed=fixed))
        function.programs[key] = made
    return made


def _given(function: Function, held: bytes, arena: Arena, bound: _Bound) -> Iterator[Given]:
    """Yield the parameters: pointers as arrays, all between as bytes."""
    types = function.parameter_types
    parameters = function.code.kernel.parameters
    for number, parameter in enumerate(parameters):
        begin = parameter.offset - function.first
        raw = held[begin : begin + parameter.size]
        name = function.parameter_names[number]
        if name in function.module.cubin.variables:
            name = f"{name} (argument)"
        ctype = types[number] if number < len(types) else ""
        for offset, part, region in _parts(raw, arena):
            whole = len(part) == parameter.size
            own = name if whole else f"{name}+{offset}"
            value: Any = np.void(part)
            if region is not None:
                (address,) = _POINTER.unpack(part)
                value = _typed(region.bytes, ctype if whole else "", address - region.address)
                bound.add(own, value, address, region.address)
            else:
                bound.arguments[own] = value
            yield Given(own, parameter.offset + offset, len(part), value)


def _parts(raw: bytes, arena: Arena) -> Iterator[tuple[int, bytes, Region | None]]:
    """Yield a parameter in parts: addresses, and the bytes between them."""
    begin = 0
    for offset in range(0, len(raw) - 7, 8):
        region = arena.at(_POINTER.unpack_from(raw, offset)[0])
        if region is not None:
            if offset > begin:
                yield begin, raw[begin:offset], None
            yield offset, raw[offset : offset + 8], region
            begin = offset + 8
    if begin < len(raw):
        yield begin, raw[begin:], None


def _typed(held: Array, ctype: str, offset: int) -> Array:
    """Return memory as elements of the type that a pointer points to, where it is made of some."""
    pointed = ctype.removesuffix("*").replace("const", "").replace("volatile", "").strip()
    dtype = np.dtype(TYPES.get(pointed, np.uint8))
    fits = ctype.endswith("*") and held.size % dtype.itemsize == 0 and offset % dtype.itemsize == 0
    return held.view(dtype) if fits else held
