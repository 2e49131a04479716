"""Structures that kernels take by value: which members the source gives them, and where they lie.

A member is a number, a pointer, a vector such as `float4` or a structure again; what else there may
be (templates, base classes, bit fields, long arrays) is not looked into, and passed as bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from gpusim.sass.signature import Declared, behind, parts, plain_text, type_of

POINTER_BYTES = 8
TYPES: Mapping[str, type[np.generic]] = {
    "bool": np.bool_,
    "char": np.int8, "signed char": np.int8, "unsigned char": np.uint8,
    "short": np.int16, "unsigned short": np.uint16,
    "int": np.int32, "signed": np.int32, "unsigned": np.uint32, "unsigned int": np.uint32,
    "uint": np.uint32, "uchar": np.uint8, "ushort": np.uint16, "ulong": np.uint64,
    "long": np.int64, "unsigned long": np.uint64, "size_t": np.uint64, "ptrdiff_t": np.int64,
    "long long": np.int64, "unsigned long long": np.uint64,
    "long int": np.int64, "unsigned long int": np.uint64, "long long int": np.int64,
    "int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16, "uint16_t": np.uint16,
    "int32_t": np.int32, "uint32_t": np.uint32, "int64_t": np.int64, "uint64_t": np.uint64,
    "float": np.float32, "double": np.float64, "half": np.float16, "__half": np.float16,
}  # fmt: skip
# Built-in vectors: x, y, z, w of a type, aligned to all of them unless they are three.
_VECTORS: Mapping[str, str] = {
    "char": "char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short",
    "int": "int", "uint": "unsigned", "long": "long", "ulong": "unsigned long",
    "longlong": "long long", "ulonglong": "unsigned long long", "float": "float",
    "double": "double",
}  # fmt: skip
_VECTOR = re.compile(rf"({'|'.join(_VECTORS)})([1-4])$")
_ALIGN = r"(?:__align__|__builtin_align__|alignas)\s*\(\s*(?P<align>\d+)\s*\)\s*"
_STRUCT = re.compile(rf"\b(?:struct|class)\s+(?:{_ALIGN})?(?P<name>\w+)?\s*\{{")
_LABEL = re.compile(r"\b(?:public|private|protected)\s*:")
_NOT_MEMBERS = re.compile(r"^(?:static|using|typedef|friend|template|enum|struct|class|union)\b")
_LONGEST_ARRAY = 16
_MOST_VECTOR_BYTES = 16


class Member(NamedTuple):
    """A number or pointer in a parameter, by its name, with its place in bytes."""

    declared: Declared
    offset: int
    size: int


class _Shape(NamedTuple):
    """A type's members with their places, its size and its alignment."""

    members: tuple[Member, ...]
    size: int
    alignment: int


class Structure(NamedTuple):
    """What a source text declares in a structure, and the least alignment that it asks for."""

    fields: tuple[Declared, ...]
    alignment: int = 1


Structures = Mapping[str, Structure]


def structures(text: str) -> dict[str, Structure]:
    """Return the structures that a source text defines, by name."""
    plain = plain_text(text)
    found = {}
    for match in _STRUCT.finditer(plain):
        end = behind(plain, match.end(), "{", "}")
        named = re.match(r"\s*(\w+)\s*;", plain[end:])  # typedef struct { ... } name;
        name = match["name"] or (named[1] if named else "")
        if name:
            fields = tuple(_members(plain[match.end() : end - 1]))
            found[name] = Structure(fields, int(match["align"] or 1))
    return found


def _members(body: str) -> Iterator[Declared]:
    for statement in _statements(_LABEL.sub(" ", body)):
        if "(" in statement or _NOT_MEMBERS.match(statement):
            continue  # functions, and what belongs to the type
        first, *others = parts(statement)
        declared = type_of(first.partition("=")[0], 0)
        yield declared
        base = declared.ctype.rstrip("*[] ")
        for text in others:
            yield type_of(f"{base} {text.partition('=')[0]}", 0)


def _statements(body: str) -> Iterator[str]:
    """Yield what semicolons end in a body, without the bodies of functions."""
    begin, place = 0, 0
    while place < len(body):
        if body[place] == "{":
            place = behind(body, place + 1, "{", "}")
            begin = place
        elif body[place] == ";":
            if body[begin:place].strip():
                yield " ".join(body[begin:place].split())
            begin = place + 1
        place += 1


def members(
    declared: Declared, known: Structures, size: int | None = None
) -> tuple[Member, ...] | None:
    """Return the members of a parameter; None where it is no structure that is known.

    A structure that has not the `size` that the machine code says is not known.
    """
    if declared.is_pointer or declared.ctype in TYPES:
        return None
    shape = _shape(declared.name, declared.ctype.removeprefix("struct "), known)
    return shape.members if shape is not None and size in (None, shape.size) else None


def _shape(name: str, ctype: str, known: Structures) -> _Shape | None:
    if ctype.endswith("*"):
        return _single(name, ctype, POINTER_BYTES)
    if ctype in TYPES:
        return _single(name, ctype, np.dtype(TYPES[ctype]).itemsize)
    if match := _VECTOR.match("uint3" if ctype == "dim3" else ctype):
        count = int(match[2])
        fields = [Declared(axis, _VECTORS[match[1]]) for axis in "xyzw"[:count]]
        shape = _laid_out(name, fields, known)
        if shape is None or count == 3:
            return shape
        return shape._replace(alignment=min(shape.size, _MOST_VECTOR_BYTES))
    if ctype in known:
        return _laid_out(name, known[ctype].fields, known, known[ctype].alignment)
    return None


def _single(name: str, ctype: str, size: int) -> _Shape:
    return _Shape((Member(Declared(name, ctype), 0, size),), size, size)


def _laid_out(
    name: str,
    fields: list[Declared] | tuple[Declared, ...],
    known: Structures,
    alignment: int = 1,
) -> _Shape | None:
    """Return members one after the other, each at a multiple of its alignment."""
    made: list[Member] = []
    end = 0
    for field in fields:
        shape = _field(f"{name}.{field.name}", field, known)
        if shape is None:
            return None
        begin = -(-end // shape.alignment) * shape.alignment
        made += [one._replace(offset=begin + one.offset) for one in shape.members]
        end, alignment = begin + shape.size, max(alignment, shape.alignment)
    return _Shape(tuple(made), -(-end // alignment) * alignment, alignment)


def _field(name: str, field: Declared, known: Structures) -> _Shape | None:
    if not field.length:
        return _shape(name, field.ctype, known)
    if not 0 < field.length <= _LONGEST_ARRAY:
        return None
    each = [Declared(str(number), field.ctype) for number in range(field.length)]
    return _laid_out(name, each, known)
