"""Structures that kernels take by value: their members in the source, and the members' offsets.

A member is a number, a pointer, a vector such as `float4` or a structure again; structures with
others (templates, base classes, bit fields, long arrays) are not analysed, and passed as bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpusim.cuda_cpp.signature import Declared, type_of
from gpusim.cuda_cpp.source_text import closings, parts, plain_text

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
    "unsigned long long int": np.uint64, "short int": np.int16, "unsigned short int": np.uint16,
    "int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16, "uint16_t": np.uint16,
    "int32_t": np.int32, "uint32_t": np.uint32, "int64_t": np.int64, "uint64_t": np.uint64,
    "float": np.float32, "double": np.float64, "half": np.float16, "__half": np.float16,
}  # fmt: skip
# Built-in vectors: x, y, z, w of a type, aligned to their size, three to that of one.
_VECTORS: Mapping[str, str] = {
    "char": "char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short",
    "int": "int", "uint": "unsigned", "long": "long", "ulong": "unsigned long",
    "longlong": "long long", "ulonglong": "unsigned long long", "float": "float",
    "double": "double",
}  # fmt: skip
# Bytes of the types of CUDA's libraries that kernels take by pointer: sizeof by NVRTC 13.5.
_OF_LIBRARIES: Mapping[str, int] = {
    "curandState": 48, "curandStateXORWOW": 48, "curandStateMRG32k3a": 48,
    "curandStatePhilox4_32_10": 64, "curandStateSobol32": 140, "curandStateSobol64": 536,
    "curandStateScrambledSobol32": 140, "curandStateScrambledSobol64": 536,
    "cuComplex": 8, "cuFloatComplex": 8, "cuDoubleComplex": 16,
}  # fmt: skip
_VECTOR = re.compile(rf"({'|'.join(_VECTORS)})([1-4])$")
_ALIGN = r"(?:__align__|__builtin_align__|alignas)\s*\(\s*(?P<align>\d+)\s*\)\s*"
_STRUCT = re.compile(rf"\b(?:struct|class)\s+(?:{_ALIGN})?(?P<name>\w+)?\s*\{{")
_LABEL = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
_NAMED_BEHIND = re.compile(r"\s*(\w+)\s*;")  # typedef struct { ... } name;
_NOT_MEMBERS = re.compile(r"(?:static|using|typedef|friend|template)\b|.*\boperator\b", re.DOTALL)
_OF_KIND = re.compile(r"(?:struct|class|union|enum(?:\s+(?:struct|class))?)\b\s*")
_TYPE_HEAD = re.compile(
    rf"{_OF_KIND.pattern}(?:{_ALIGN})?(?P<name>\w*)\s*(?:final\b\s*)?(?::.*)?$", re.DOTALL
)
_GOES_ON = re.compile(r"\s*[,{]")  # after a member's initialiser in a constructor
_PARENTHESES = re.compile(r"\([^()]*\)")
_FUNCTION = re.compile(
    r"\w\s*\(\)\s*(?:(?:const|volatile|override|final|&|noexcept(?:\s*\(\))?|->[^()]*)\s*)*$"
)
_MARK = re.compile(r"[{;]")
_LONGEST_STATEMENT = 500
_UNKNOWN = Declared("", "?")
_LONGEST_ARRAY = 16
_MOST_VECTOR_BYTES = 16
_MOST_DEPTH = 16  # of structures in structures
_MOST_BYTES = 1 << 15  # of a kernel's parameters, and more than any compiler takes


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
    """A structure's declarations in a source text, and its least alignment."""

    fields: tuple[Declared, ...]
    alignment: int = 1


Structures = Mapping[str, Structure]
# Its contents are the driver's own: here an address, and words (`launch.tensor_maps`).
_WORDS = (Declared(f"word{number}", "unsigned long long") for number in range(1, 16))
TENSOR_MAP: Structures = {"CUtensorMap": Structure((Declared("data", "void*"), *_WORDS), 64)}


def structures(text: str) -> dict[str, Structure]:
    """Return the structures that a source text defines, by name."""
    plain = plain_text(text)
    closing = closings(plain, "{}")
    found = {}
    for match in _STRUCT.finditer(plain):
        end = closing.get(match.end() - 1, len(plain))
        named = _NAMED_BEHIND.match(plain, end)
        name = match["name"] or (named[1] if named else "")
        if name:
            fields = tuple(_members(plain, match.end(), end - 1, closing))
            found[name] = Structure(fields, int(match["align"] or 1))
    return found


def _members(text: str, begin: int, end: int, closing: Mapping[int, int]) -> Iterator[Declared]:
    for statement in _statements(text, begin, end, closing):
        if not _NOT_MEMBERS.match(statement):
            yield from _declared(statement)


def _declared(statement: str) -> Iterator[Declared]:
    """Yield the declarations of a statement; one of an unknown type if in doubt."""
    plain = statement
    while plain != (plain := _PARENTHESES.sub("\f", plain)):
        pass
    plain = plain.replace("\f", "()")
    first, *others = parts(plain)
    if "(" in first.partition("=")[0]:
        if not _FUNCTION.search(plain.partition("=")[0]):
            yield _UNKNOWN
        return
    elaborated = _OF_KIND.match(first)
    first = _OF_KIND.sub("", first, count=1) if elaborated else first
    if elaborated and len(first.split()) < 2:
        return  # the declaration of a type
    declared = type_of(first.partition("=")[0].strip(), 0)
    yield declared
    base = declared.ctype.rstrip("*[] ")
    for other in others:
        yield type_of(f"{base} {other.partition('=')[0].strip()}", 0)


def _statements(text: str, begin: int, end: int, closing: Mapping[int, int]) -> Iterator[str]:
    """Yield the statements of a body, without bodies of functions and initialisers.

    A type definition is replaced by an unknown type.
    """
    said = ""
    while match := _MARK.search(text, begin, end):
        said = " ".join(_LABEL.sub(" ", said + text[begin : match.start()]).split())
        begin = match.end()
        if match[0] == "{":
            begin = closing.get(match.start(), end)
            said = _before(said, is_over=not _GOES_ON.match(text, begin))
        elif said:
            yield said
            said = ""


def _before(said: str, *, is_over: bool) -> str:
    """Return a statement's text so far, with a pair of braces after it."""
    if kind := _TYPE_HEAD.match(said):
        is_anonymous = not kind["name"] and not said.startswith("enum")
        return "? " if is_anonymous else "struct ? "
    if "(" in said and is_over:
        return ""
    return said if len(said) < _LONGEST_STATEMENT else "? "


def members(
    declared: Declared, known: Structures, size: int | None = None
) -> tuple[Member, ...] | None:
    """Return the members of a parameter; None where it is no structure that is known.

    Also None if its size differs from `size`, the machine code's.
    """
    if declared.is_pointer or declared.ctype in TYPES:
        return None
    ctype = declared.ctype.removeprefix("struct ")
    shape = _shape(declared.name, ctype, known, _MOST_DEPTH)
    if shape is None or size not in (None, shape.size):
        return None
    return shape.members or None


def size_of(ctype: str, known: Structures) -> int:
    """Return the bytes of a type, 0 where they are not known."""
    shape = _shape("", ctype.removeprefix("struct "), known, _MOST_DEPTH)
    return _OF_LIBRARIES.get(ctype.removesuffix("_t"), 0) if shape is None else shape.size


def _shape(name: str, ctype: str, known: Structures, depth: int) -> _Shape | None:
    """Return a type's shape; None where it is not known, or has more than `depth` levels."""
    if ctype.endswith("*"):
        return _single(name, ctype, POINTER_BYTES)
    if ctype in TYPES:
        return _single(name, ctype, np.dtype(TYPES[ctype]).itemsize)
    if not depth:
        return None
    if match := _VECTOR.match("uint3" if ctype == "dim3" else ctype):
        count = int(match[2])
        fields = [Declared(axis, _VECTORS[match[1]]) for axis in "xyzw"[:count]]
        shape = _laid_out(name, fields, known, depth)
        if shape is None or count == 3:
            return shape
        return shape._replace(alignment=min(shape.size, _MOST_VECTOR_BYTES))
    if ctype in known:
        return _laid_out(name, known[ctype].fields, known, depth, known[ctype].alignment)
    return None


def _single(name: str, ctype: str, size: int) -> _Shape:
    return _Shape((Member(Declared(name, ctype), 0, size),), size, size)


def _laid_out(
    name: str, fields: Sequence[Declared], known: Structures, depth: int, alignment: int = 1
) -> _Shape | None:
    """Return members one after the other, each at a multiple of its alignment.

    Without members it takes one byte.
    """
    made: list[Member] = []
    end = 0
    for field in fields:
        shape = _field(f"{name}.{field.name}", field, known, depth - 1)
        if shape is None:
            return None
        begin = -(-end // shape.alignment) * shape.alignment
        made += [one._replace(offset=begin + one.offset) for one in shape.members]
        end, alignment = begin + shape.size, max(alignment, shape.alignment)
        if end > _MOST_BYTES:
            return None
    return _Shape(tuple(made), -(-max(end, 1) // alignment) * alignment, alignment)


def _field(name: str, field: Declared, known: Structures, depth: int) -> _Shape | None:
    if not field.length:
        return _shape(name, field.ctype, known, depth)
    if not 0 < field.length <= _LONGEST_ARRAY:
        return None
    each = [Declared(str(number), field.ctype) for number in range(field.length)]
    return _laid_out(name, each, known, depth)
