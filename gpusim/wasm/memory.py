"""Records in linear memory: integers of 8 to 64 bits and references at an address.

Translated code reads and writes the memory of its module. Interpreted code does so in a buffer,
the one that was last given to `use`.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin, get_type_hints

from gpusim.wasm.value_types import Integer

u8 = Annotated[int, Integer(1, signed=False)]
u16 = Annotated[int, Integer(2, signed=False)]
u32 = Annotated[int, Integer(4, signed=False)]
i8 = Annotated[int, Integer(1, signed=True)]
i16 = Annotated[int, Integer(2, signed=True)]
i32 = Annotated[int, Integer(4, signed=True)]
i64 = Annotated[int, Integer(8, signed=True)]

REFERENCE = Integer(4, signed=False)
_buffer: Any = memoryview(bytearray())


class TrapError(Exception):
    """A run cannot continue; in compiled code it is a trap."""


def use(buffer: Any) -> None:
    """Let interpreted code run in a buffer of bytes that can be written to."""
    global _buffer
    _buffer = memoryview(buffer).cast("B")


def held() -> Any:
    """Return the buffer in which interpreted code runs."""
    return _buffer


def copy(to: int, source: int, count: int) -> None:
    """Copy bytes from one address to another; both places may overlap."""
    _buffer[to : to + count] = bytes(_buffer[source : source + count])


def fill(at: int, byte: int, count: int) -> None:
    """Set bytes from an address on."""
    _buffer[at : at + count] = bytes([byte & 255]) * count


class Record:
    """Annotated fields, one after the other without gaps, from an address on.

    A field is an integer of this module, or the address of another record. Stored values are cut to
    the field's size.
    """

    address: int

    def __init__(self, address: int) -> None:
        self.__dict__["address"] = address

    def __getattr__(self, name: str) -> Any:
        offset, kind, cls = _field(type(self), name)
        at = self.address + offset
        value = int.from_bytes(_buffer[at : at + kind.bytes], "little", signed=kind.signed)
        return value if cls is None else cls(value)

    def __setattr__(self, name: str, value: Any) -> None:
        offset, kind, cls = _field(type(self), name)
        if cls is not None:
            value = value.address
        at = self.address + offset
        _buffer[at : at + kind.bytes] = (int(value) & kind.bits).to_bytes(kind.bytes, "little")


Fields = dict[str, tuple[int, Integer, type[Record] | None]]
_known: dict[type[Record], Fields] = {}


def fields_of(cls: type[Record]) -> Fields:
    """Return the fields of a record: offset, form in memory, and the class of a reference."""
    if cls not in _known:
        _known[cls] = _fields(cls)
    return _known[cls]


def _fields(cls: type[Record]) -> Fields:
    found: Fields = {}
    offset = 0
    for name, annotation in get_type_hints(cls, include_extras=True).items():
        if name != "address":
            is_integer = get_origin(annotation) is Annotated
            kind = get_args(annotation)[1] if is_integer else REFERENCE
            found[name] = offset, kind, None if is_integer else annotation
            offset += kind.bytes
    return found


def size(cls: type[Record]) -> int:
    """Return the size of a record in bytes."""
    return sum(kind.bytes for _, kind, _ in fields_of(cls).values())


def offset(cls: type[Record], name: str) -> int:
    """Return the offset of a record's field in bytes."""
    return _field(cls, name)[0]


def packed(cls: type[Record], **values: int) -> bytes:
    """Return a record with these values, field by field, in bytes."""
    fields = fields_of(cls)
    assert values.keys() == fields.keys()
    cut = ((int(values[name]) & kind.bits, kind.bytes) for name, (_, kind, _) in fields.items())
    return b"".join(value.to_bytes(length, "little") for value, length in cut)


def _field(cls: type[Record], name: str) -> tuple[int, Integer, type[Record] | None]:
    found = fields_of(cls).get(name)
    if found is None:
        raise AttributeError(f"{cls.__name__} has no field {name}")
    return found
