"""Fetches from textures, and loads and stores of surfaces.

As the CUDA C++ programming guide has it ("Texture fetching"): the nearest element is that of the
coordinate rounded down; between elements, weights have 8 bits of fraction. How they are rounded was
measured on an H200 (driver 580.159.04, CUDA 13.0, 2026-11-23) by `validate/textures/fetches.cu`. A
surface's first coordinate counts bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gpusim.errors import OutOfBoundsError
from gpusim.gpu.memory import WORD_BYTES
from gpusim.isa.ops import Instruction
from gpusim.launch.textures import BORDER, MIRROR, TEXTURES, WRAP, Texture
from gpusim.machine import generic_addressing
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.typing import Array

WEIGHTS = 256  # steps of a weight


class Fetch(NamedTuple):
    """A fetch's axes, whether a layer comes first, and its channels; `by_index` without filters."""

    axes: int
    has_layer: bool
    by_index: bool
    channels: tuple[int, ...]


class Access(NamedTuple):
    """A surface access's axes, whether a layer comes last, its bytes, and its boundary mode."""

    axes: int
    has_layer: bool
    width_bytes: int
    boundary: str  # "trap", "clamp" or "zero"


def fetch(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set each destination to a channel of the texture at the coordinates."""
    form = Fetch(*instruction.detail)
    handles, *coordinates = (group.read(one, np.uint32) for one in instruction.src)
    shape = np.broadcast_shapes(on.shape, handles.shape, *(one.shape for one in coordinates))
    results = [np.zeros(shape, np.uint32) for _ in form.channels]
    for texture, mine in _by_texture(context, group, instruction, handles, on, shape):
        places = [np.broadcast_to(one, shape)[mine] for one in coordinates]
        held = _bytes(context, group, instruction, texture, mine)
        texels = _sampled(texture, form, places, held) if held is not None else None
        for result, channel in zip(results, form.channels, strict=True):
            if texels is not None and channel < texels.shape[1]:
                result[mine] = texels[:, channel]
    for register, result in zip(instruction.dst, results, strict=True):
        group.write(register, result, on)
    context.report(group, instruction, on)


def load(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set the destinations to bytes of a surface."""
    form = Access(*instruction.detail)
    handles, *coordinates = (group.read(one, np.uint32) for one in instruction.src)
    shape = np.broadcast_shapes(on.shape, handles.shape, *(one.shape for one in coordinates))
    words = -(-form.width_bytes // WORD_BYTES)
    results = np.zeros((*shape, words * WORD_BYTES), np.uint8)
    for surface, mine in _by_texture(context, group, instruction, handles, on, shape):
        places = [np.broadcast_to(one, shape)[mine] for one in coordinates]
        held = _bytes(context, group, instruction, surface, mine)
        if held is not None:
            index, inside = _bytes_of(surface, form, places)
            _complain(context, group, instruction, mine, inside, form)
            there = held[np.where(inside, index, 0)[:, None] + np.arange(form.width_bytes)]
            results[mine, : form.width_bytes] = there * inside[:, None]
    loaded = results.view(np.uint32)
    for position, register in enumerate(instruction.dst):
        group.write(register, loaded[..., position], on)
    context.report(group, instruction, on)


def store(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set bytes of a surface to the sources after the coordinates."""
    form = Access(*instruction.detail)
    count = 1 + form.axes + form.has_layer
    handles, *rest = (group.read(one, np.uint32) for one in instruction.src)
    shape = np.broadcast_shapes(on.shape, handles.shape, *(one.shape for one in rest))
    coordinates, values = rest[: count - 1], rest[count - 1 :]
    words = np.stack([np.broadcast_to(one, shape) for one in values], axis=-1)
    stored = np.ascontiguousarray(words).view(np.uint8)
    for surface, mine in _by_texture(context, group, instruction, handles, on, shape):
        places = [np.broadcast_to(one, shape)[mine] for one in coordinates]
        held = _bytes(context, group, instruction, surface, mine)
        if held is not None:
            index, inside = _bytes_of(surface, form, places)
            _complain(context, group, instruction, mine, inside, form)
            where = index[inside][:, None] + np.arange(form.width_bytes)
            held[where] = stored[mine][inside, : form.width_bytes]
            context.changes.count += 1
    context.report(group, instruction, on)


def _by_texture(
    context: Context,
    group: Group,
    instruction: Instruction,
    handles: Array,
    on: Array,
    shape: tuple[int, ...],
) -> Iterator[tuple[Texture, Array]]:
    """Yield the textures that lanes name, and the lanes of each; unknown ones are faults."""
    lanes, named = np.broadcast_to(on, shape), np.broadcast_to(handles, shape)
    known = context.arguments.get(TEXTURES, {})
    for handle in np.unique(named[lanes]):
        mine = lanes & (named == handle)
        texture = known.get(int(handle))
        if texture is None:
            text = f"{handle:#x} is not a texture or surface object"
            _fault(context, group, instruction, mine, text)
        else:
            yield texture, mine


def _bytes(
    context: Context, group: Group, instruction: Instruction, texture: Texture, mine: Array
) -> Array | None:
    """Return the texture's memory; None, with a fault, where it is not allocated any more."""
    for one in context.allocations.values():
        if one.start <= texture.address and texture.address + texture.bytes <= one.stop:
            return one.bytes_at(texture.address - one.start, texture.bytes)
    text = "the memory of a texture or surface is not allocated"
    _fault(context, group, instruction, mine, text)
    return None


def _fault(
    context: Context, group: Group, instruction: Instruction, wrong: Array, text: str
) -> None:
    line = instruction.line
    places = np.zeros(wrong.shape, np.int64)
    lanes = generic_addressing.lanes_of(group)
    block, thread, place = lanes.first(wrong, places, "", line)
    who = f"(block {block}, thread {thread})"
    context.fault(OutOfBoundsError(f"line {line}: {text} {who}", place))


def _complain(
    context: Context,
    group: Group,
    instruction: Instruction,
    mine: Array,
    inside: Array,
    form: Access,
) -> None:
    """Report coordinates outside of a surface, where they are faults."""
    if form.boundary == "trap" and not inside.all():
        wrong = mine.copy()
        wrong[mine] = ~inside
        _fault(context, group, instruction, wrong, "a coordinate is outside of the surface")


# -- surfaces ------------------------------------------------------------------------------


def _bytes_of(surface: Texture, form: Access, places: Sequence[Array]) -> tuple[Array, Array]:
    """Return where each lane's bytes begin, and which lanes have all of them in the surface."""
    sizes = (surface.row_bytes - form.width_bytes + 1, surface.height, surface.depth)
    steps = (1, surface.pitch, surface.slice_pitch)
    axes = [*range(form.axes), *([2] if form.has_layer else [])]
    index = np.zeros(len(places[0]), np.int64)
    inside = np.ones(len(places[0]), bool)
    for axis, place in zip(axes, places, strict=True):
        at, size = place.view(np.int32).astype(np.int64), max(sizes[axis], 1)
        if form.boundary == "clamp":
            at = np.clip(at, 0, size - 1)
        inside &= (at >= 0) & (at < size)
        index += at * steps[axis]
    return index, inside


# -- textures ------------------------------------------------------------------------------


def _sampled(texture: Texture, form: Fetch, places: Sequence[Array], held: Array) -> Array:
    """Return the channels of each place as bits, (places, channels)."""
    coordinates = list(places)
    offset = np.zeros(len(coordinates[0]), np.int64)
    if form.has_layer:
        layer = coordinates.pop(0).astype(np.int64)
        offset = np.clip(layer, 0, max(texture.depth, 1) - 1) * texture.slice_pitch
    # A texture without an axis has one element along it, as a GPU has it (tex1D with a border).
    sizes = (texture.width, max(texture.height, 1), max(texture.depth, 1))
    steps = (texture.element_bytes, texture.pitch, texture.slice_pitch)
    taps = [
        _taps(texture, form, axis, place, sizes[axis]) for axis, place in enumerate(coordinates)
    ]

    def read(corner: Sequence[int]) -> Array:
        """Return the elements at a corner: 0 or 1 along each axis."""
        where, inside = offset, np.ones(len(offset), bool)
        for axis, number in enumerate(corner):
            index = taps[axis].elements[number]
            where, inside = where + np.maximum(index, 0) * steps[axis], inside & (index >= 0)
        parts = held[where[:, None] + np.arange(texture.element_bytes)]
        return _values(texture, np.ascontiguousarray(parts).view(texture.dtype), inside)

    if not texture.is_linear or form.by_index:
        return _bits(read([0] * len(taps)))
    total = np.zeros((len(offset), texture.channels))
    for corner, weight in _weights([one.weight for one in taps]):
        total += weight[:, None] * read(corner)
    return _bits(_filtered(texture, total / WEIGHTS))


class Taps(NamedTuple):
    """The elements along an axis, -1 outside of it, and the weight of the second, of WEIGHTS."""

    elements: tuple[Array, ...]
    weight: Array


def _taps(texture: Texture, form: Fetch, axis: int, place: Array, size: int) -> Taps:
    """Return the elements along an axis that a coordinate stands for."""
    none = np.zeros(len(place))
    if form.by_index:
        index = place.view(np.int32).astype(np.int64)
        return Taps((np.where((index >= 0) & (index < size), index, -1),), none)
    at = np.nan_to_num(place.view(np.float32).astype(np.float64), posinf=2.0**40, neginf=-(2.0**40))
    at = at * size if texture.is_normalized else at
    mode = texture.modes[axis]
    if not texture.is_linear:
        return Taps((_index(np.floor(at), size, mode, texture),), none)
    first = np.floor(at - 0.5)
    both = (_index(first, size, mode, texture), _index(first + 1, size, mode, texture))
    # A clamped coordinate is one element.
    weight = np.where(both[0] == both[1], 0, _rounded((at - 0.5 - first) * WEIGHTS))
    return Taps(both, weight)


def _rounded(value: Array) -> Array:
    return np.floor(value + 0.5)


def _weights(seconds: Sequence[Array]) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield the corners with their weights, whole numbers of WEIGHTS that add up to it.

    An H200 rounds the weight of a plane's far corner, and completes the sums of rows and columns
    with the others. Of a volume it does so with the first and third axis, and splits these weights
    along the second, ties towards the second element where the first axis has its second.
    """
    if len(seconds) == 1:
        yield (0,), WEIGHTS - seconds[0]
        yield (1,), seconds[0]
        return
    x, y = seconds[0], seconds[-1]
    far = _rounded(x * y / WEIGHTS)
    plane = {(0, 0): WEIGHTS - x - y + far, (1, 0): x - far, (0, 1): y - far, (1, 1): far}
    for corner, weight in plane.items():
        if len(seconds) == 2:
            yield corner, weight
        else:
            part = weight * seconds[1] / WEIGHTS
            second = _rounded(part) if corner[0] else np.ceil(part - 0.5)
            yield (corner[0], 0, corner[1]), weight - second
            yield (corner[0], 1, corner[1]), second


def _index(number: Array, size: int, mode: int, texture: Texture) -> Array:
    """Return elements by the address mode; wrapping and mirroring are of normalized coordinates."""
    index = number.astype(np.int64)
    if mode == BORDER:
        return np.where((index >= 0) & (index < size), index, -1)
    if mode == WRAP and texture.is_normalized:
        return index % size
    if mode == MIRROR and texture.is_normalized:
        along = index % (2 * size)
        return np.where(along < size, along, 2 * size - 1 - along)
    return np.clip(index, 0, size - 1)


def _values(texture: Texture, read: Array, inside: Array) -> Array:
    """Return elements as the type that a fetch gives; the border's where they lie outside.

    Interpolated fractions are numbers of 16 bits.
    """
    colours = np.array(texture.border[: texture.channels], np.float32)
    values: Array = read
    border: Array = colours
    if texture.dtype.kind == "f":
        values = read.astype(np.float32)
    elif texture.reads_fractions and texture.is_linear:
        steps = _steps(texture)
        values = np.maximum(read * (steps / np.iinfo(texture.dtype).max), -steps)
        border = colours * np.float64(steps)
    elif texture.reads_fractions:
        largest = np.float32(np.iinfo(texture.dtype).max)
        values = np.maximum(read.astype(np.float32) / largest, np.float32(-1))
    else:
        border = colours.view(np.uint32).astype(np.uint64).astype(texture.dtype)
    return np.where(inside[:, None], values, border)


def _steps(texture: Texture) -> int:
    """Return the steps up to 1 of an interpolated fraction."""
    return 32767 if texture.dtype.kind == "i" else 65535


def _filtered(texture: Texture, sums: Array) -> Array:
    """Return interpolated elements."""
    if texture.reads_fractions and texture.dtype.kind != "f":
        return (_rounded(sums) / _steps(texture)).astype(np.float32)
    return sums.astype(np.float32)


def _bits(values: Array) -> Array:
    if values.dtype.kind == "f":
        return values.astype(np.float32).view(np.uint32)
    wide = values.astype(np.int32 if values.dtype.kind == "i" else np.uint32)
    return wide.view(np.uint32)
