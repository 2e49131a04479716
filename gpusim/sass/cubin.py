"""A cubin, the compiler's machine code in an ELF file: kernels, their parameters and memory.

Other formats, damaged and truncated files are refused, never guessed at.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import NamedTuple

from gpusim.errors import InputError
from gpusim.launch.grid import NO_CLUSTER, Dim3

MOST_BYTES = 256 << 20
MOST_GLOBAL_BYTES = 1 << 38  # of variables: more than the memory of any GPU
ADDRESS_BANK, ADDRESS_BYTES = 4, 8  # the bank of variables' addresses, and the size of each
_MAGIC, _MACHINE = b"\x7fELF", 190
_SYMBOLS, _WITH_ADDENDS, _RELOCATIONS = 2, 4, (4, 9)
# Kinds of sections without bytes in the file; unlinked: global, local, shared memory.
_NO_BITS = (8, 0x70000007, 0x70000009, 0x7000000A)
_WHOLE_ADDRESSES = (2, 4)  # forms of relocation: 64 bits of an address, of a generic one
_OBJECTS, _FUNCTION = (1, 13), 2  # the second of objects before linking

# Attributes of a kernel, by number, that are read here.
_PARAMETER_BANK, _PARAMETER, _STACK, _REGISTERS, _CLUSTER = 0x0A, 0x17, 0x23, 0x2F, 0x3D
_MOST_THREADS, _LARGE_PARAMETER = 0x05, 0x45  # the latter where they have more than 4,096 bytes
# Of the warp operations with a mask in CUDA: their addresses, and the register that holds it.
_MASK_PLACES, _MASK_REGISTERS, _IN_REGISTER = 0x28, 0x29, 0x05
# Exceptions while reading damaged bytes.
_DAMAGE = (struct.error, IndexError, KeyError, ValueError, OverflowError, StopIteration)
# More than any GPU has, of a block and of a thread; and how long a bank of constants is.
_MOST_SHARED, _MOST_LOCAL, _BANK_BYTES = 1 << 20, 1 << 20, 1 << 16
_UNKNOWN = 0xFFFFFFFF  # the size of a stack that functions calling themselves may need
STACK_BYTES = 1024  # the driver's default for a thread's stack then (cudaLimitStackSize)
_STACK_UNIT = 16  # alignment of a stack: objects in it are aligned to their width
_STALL_COUNT = 41  # bits above the lower half of an instruction
_SIZED = 4  # the format of an attribute that says how many bytes follow


class ElfSection(NamedTuple):
    """A section of the file."""

    name: str
    kind: int
    info: int
    link: int
    data: bytes
    size: int
    flags: int


class Symbol(NamedTuple):
    """A name for a place in a section."""

    name: str
    section: int
    offset: int
    size: int
    kind: int


@dataclass(frozen=True)
class Parameter:
    """A parameter: where it lies in bank 0, and how many bytes it has."""

    offset: int
    size: int


@dataclass(frozen=True)
class Variable:
    """A `__device__` or `__constant__` variable: its first bytes, and the rest zeros.

    `offset` is where it lies in bank 3 for a constant, in the module's global memory else.
    """

    name: str
    size: int
    offset: int
    is_constant: bool


class Link(NamedTuple):
    """An address in initial values: its offset, its variable, and the distance from its start.

    `variable` is empty where the address is in a form that is not known.
    """

    offset: int
    variable: str
    added: int


@dataclass(frozen=True)
class KernelCode:
    """A kernel's attributes in a cubin; sizes in bytes.

    `constants` are the compiler's constants of the kernel, in bank 2, `text` are its instructions,
    `cluster` is the size of its clusters in blocks, (1, 1, 1) without any. `masks` are the
    registers that hold the masks of warp operations, by address; None for those that the compiler
    does not say.
    """

    name: str
    registers: int
    parameters: tuple[Parameter, ...]
    shared_bytes: int
    local_bytes: int
    constants: bytes = b""
    text: bytes = b""
    cluster: Dim3 = NO_CLUSTER
    most_threads: tuple[int, ...] = ()  # of a block, by its launch bounds
    masks: Mapping[int, int | None] = field(default_factory=dict)

    @property
    def is_in_clusters(self) -> bool:
        """Whether several blocks are a cluster."""
        return self.cluster != NO_CLUSTER

    @property
    def parameters_end(self) -> int:
        """Where in bank 0 the last parameter ends."""
        return max((one.offset + one.size for one in self.parameters), default=0)

    def stall_count(self, address: int) -> int:
        """Return the cycles that a warp waits after an instruction: bits 105 to 108 of its 128."""
        high = self.text[address + 8 : address + 16]
        return int.from_bytes(high, "little") >> _STALL_COUNT & 15


@dataclass(frozen=True)
class Cubin:
    """A cubin's kernels and memory.

    `globals` are the first bytes of the variables in global memory, followed by zeros.
    `addresses` gives the variables with addresses in bank 4, by offset, `functions` the
    driver's functions, such as printf, with addresses there. The `links` are the addresses among
    `globals`, the `constant_links` the addresses among `constants`. `ptx` is the text that the
    code was made from, where the compiler keeps it.
    """

    arch: int
    kernels: Mapping[str, KernelCode]
    variables: Mapping[str, Variable]
    constants: bytes
    globals: bytes
    addresses: Mapping[int, tuple[str, int]]
    functions: Mapping[int, str]
    links: tuple[Link, ...] = ()
    constant_links: tuple[Link, ...] = ()
    ptx: str = field(default="", repr=False)


def read(data: bytes, name: str, most_bytes: int = MOST_BYTES) -> Cubin:
    """Return the content of a cubin; InputError, with the file's `name`, if it is not one."""
    if len(data) > most_bytes:
        raise InputError(f"{name} has {len(data):,} bytes; a cubin has at most {most_bytes:,}")
    try:
        return _Reader(data).cubin()
    except _DAMAGE as error:
        raise InputError(f"{name} is not a cubin, or is damaged ({error})") from None


class _Reader:
    """Reads one file."""

    def __init__(self, data: bytes) -> None:
        if data[:4] != _MAGIC:
            raise ValueError("it does not begin as an ELF file does")
        machine, flags = (
            struct.unpack_from("<H", data, 18)[0],
            struct.unpack_from("<I", data, 48)[0],
        )
        if machine != _MACHINE or data[4] != 2:
            raise ValueError("its code is for another machine than NVIDIA's GPUs")
        # From 13.0 on the compute capability stands in the second byte of the flags.
        self.arch = flags >> 8 & 0xFF if data[7] == 0x41 else flags & 0xFF
        self.data = data
        self.sections = self._sections()
        self.by_name = {section.name: section for section in reversed(self.sections)}
        self.symbols = self._symbols()

    def _sections(self) -> list[ElfSection]:
        start = struct.unpack_from("<Q", self.data, 40)[0]
        each, count, names = struct.unpack_from("<HHH", self.data, 58)
        heads = [
            struct.unpack_from("<IIQQQQIIQQ", self.data, start + each * k) for k in range(count)
        ]
        text = self._bytes(heads[names][4], heads[names][5])
        made = []
        for name, kind, flags, _, offset, size, link, info, _, _ in heads:
            body = b"" if kind in _NO_BITS else self._bytes(offset, size)
            made.append(ElfSection(_text(text, name), kind, info, link, body, size, flags))
        return made

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset + size > len(self.data):
            raise ValueError("it is cut short")
        return self.data[offset : offset + size]

    def _symbols(self) -> list[Symbol]:
        table = next(section for section in self.sections if section.kind == _SYMBOLS)
        names = self.sections[table.link].data
        return _told_apart(
            [
                Symbol(_text(names, name), section, offset, size, info & 15)
                for name, info, _, section, offset, size in struct.iter_unpack(
                    "<IBBHQQ", table.data
                )
            ]
        )

    def cubin(self) -> Cubin:
        """Return all of it."""
        registers = {
            self.symbols[number].name: count
            for number, count in self._pairs(".nv.info", _REGISTERS)
        }
        kernels = {}
        for section in self.sections:
            name = section.name.removeprefix(".nv.info.")
            if name != section.name:
                kernels[name] = self._kernel(name, registers.get(name, 0))
        constants = self._named(".nv.constant3")
        initial = self._named(".nv.global.init")
        rest = self._named(".nv.global")
        if rest is not None and rest.size > MOST_GLOBAL_BYTES:
            raise ValueError(f"it has {rest.size:,} bytes of variables, too many")
        return Cubin(
            arch=self.arch,
            kernels=kernels,
            variables=self._variables(len(initial.data) if initial else 0),
            constants=constants.data if constants else b"",
            globals=initial.data if initial else b"",
            addresses={o: (s.name, added) for o, s, added in self._addresses() if _is_data(s)},
            functions={o: s.name for o, s, _ in self._addresses() if not _is_data(s)},
            links=tuple(self._links(".nv.global.init")),
            constant_links=tuple(self._links(".nv.constant3")),
            ptx=self._ptx(),
        )

    def _ptx(self) -> str:
        found = self._named(".nv_debug_ptx_txt")
        return found.data.decode(errors="replace").replace("\0", "\n") if found else ""

    def _named(self, name: str) -> ElfSection | None:
        return self.by_name.get(name)

    def _kernel(self, name: str, registers: int) -> KernelCode:
        parameters = []
        base = 0
        cluster = NO_CLUSTER
        most_threads: tuple[int, ...] = ()
        places, held = list[int](), list[int]()
        for attribute, value in self._attributes(f".nv.info.{name}"):
            if attribute == _PARAMETER:
                _, ordinal, offset, packed = struct.unpack("<IHHI", value)
                parameters.append((ordinal, offset, packed >> 18))
            elif attribute == _LARGE_PARAMETER:
                _, ordinal, offset, size = struct.unpack("<IHHI", value)
                parameters.append((ordinal, offset, size))
            elif attribute == _PARAMETER_BANK:
                base = struct.unpack_from("<IH", value)[1]
            elif attribute == _MOST_THREADS:
                most_threads = struct.unpack("<III", value)
            elif attribute == _CLUSTER:
                x, y, z = struct.unpack("<III", value)
                cluster = (x, y, z)
            elif attribute == _MASK_PLACES:
                places += _words(value)
            elif attribute == _MASK_REGISTERS:
                held += _words(value)
        shared = self._named(f".nv.shared.{name}")
        own, text = self._named(f".nv.constant2.{name}"), self._named(f".text.{name}")
        local = self._stack(name)
        end = base + max((offset + size for _, offset, size in parameters), default=0)
        if (shared and shared.size > _MOST_SHARED) or local > _MOST_LOCAL or end > _BANK_BYTES:
            raise ValueError(f"{name} declares more memory than there is")
        return KernelCode(
            name=name,
            registers=registers,
            parameters=tuple(Parameter(base + o, size) for _, o, size in sorted(parameters)),
            shared_bytes=shared.size if shared else 0,
            local_bytes=local,
            constants=own.data if own else b"",
            text=text.data if text else b"",
            cluster=cluster,
            most_threads=most_threads,
            masks=dict(zip(places, map(_register, held), strict=False)),
        )

    @cached_property
    def _stacks(self) -> dict[str, int]:
        """The bytes of each function's stack: the most where several are given."""
        sizes = dict(self._pairs(".nv.info", _STACK)) | dict(self._pairs(".nv.info", 0x12))
        found: dict[str, int] = {}
        for number, size in sizes.items():
            name = self.symbols[number].name
            found[name] = max(size, found.get(name, 0))
        return found

    def _stack(self, name: str) -> int:
        size = self._stacks.get(name, 0)
        size = STACK_BYTES if size == _UNKNOWN else size
        return -(-size // _STACK_UNIT) * _STACK_UNIT

    def _attributes(self, section: str) -> Iterator[tuple[int, bytes]]:
        found = self._named(section)
        data, place = (found.data if found else b""), 0
        while place + 4 <= len(data):
            form, attribute, value = struct.unpack_from("<BBH", data, place)
            place += 4
            if form == _SIZED:
                yield attribute, data[place : place + value]
                place += value
            else:
                yield attribute, struct.pack("<H", value)

    def _pairs(self, section: str, wanted: int) -> Iterator[tuple[int, int]]:
        for attribute, value in self._attributes(section):
            if attribute == wanted and len(value) == 8:
                yield struct.unpack("<II", value)

    def _variables(self, initial_bytes: int) -> dict[str, Variable]:
        made = {}
        for symbol in self.symbols:
            if (
                symbol.kind not in _OBJECTS
                or not symbol.name
                or symbol.section >= len(self.sections)
            ):
                continue
            section = self.sections[symbol.section].name
            if section in (".nv.constant3", ".nv.global.init", ".nv.global"):
                offset = symbol.offset + (initial_bytes if section == ".nv.global" else 0)
                is_constant = section == ".nv.constant3"
                if symbol.offset + symbol.size > self.sections[symbol.section].size:
                    raise ValueError(f"{symbol.name} is outside of its section")
                made[symbol.name] = Variable(symbol.name, symbol.size, offset, is_constant)
        return made

    def _addresses(self) -> Iterator[tuple[int, Symbol, int]]:
        """Yield the addresses in bank 4: offset, symbol, and distance in bytes from the symbol."""
        for offset, symbol, _, added in self._relocations(".nv.constant4"):
            yield offset, symbol, added or 0

    def _links(self, section: str) -> Iterator[Link]:
        """Yield the addresses in a section's data; without an addend, it stands in their place."""
        found = self._named(section)
        for offset, symbol, form, added in self._relocations(section):
            if added is None and found is not None:
                added = struct.unpack_from("<q", found.data, offset)[0]
            known = form in _WHOLE_ADDRESSES and symbol.kind in _OBJECTS
            yield Link(offset, symbol.name if known else "", added or 0)

    def _relocations(self, section: str) -> Iterator[tuple[int, Symbol, int, int | None]]:
        """Yield the relocations of a section: offset, symbol, form and addend."""
        for found in self.sections:
            if found.kind not in _RELOCATIONS or not found.name.endswith(section):
                continue
            form = "<QQq" if found.kind == _WITH_ADDENDS else "<QQ"
            for offset, info, *added in struct.iter_unpack(form, found.data):
                symbol = self.symbols[info >> 32]
                yield offset, symbol, info & 0xFFFFFFFF, added[0] if added else None


def _told_apart(symbols: list[Symbol]) -> list[Symbol]:
    """Return symbols with unique names, as in the disassembler's listing.

    Files that were linked have local variables of one name, such as the texts `$str` of printf. All
    but the first of a name have a number after it there, which counts on through all names.
    """
    known: set[str] = set()
    numbers = count()
    made = []
    for one in symbols:
        is_again = one.kind in _OBJECTS and one.name in known
        made.append(one._replace(name=f"{one.name}__{next(numbers)}") if is_again else one)
        known.add(one.name)
    return made


def _is_data(symbol: Symbol) -> bool:
    return bool(symbol.section) and symbol.kind != _FUNCTION


def _words(value: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(value) // 4}I", value)


def _register(word: int) -> int | None:
    """Return the number of the register that an attribute names, None where it names none."""
    return word & 0xFFFFFF if word >> 24 == _IN_REGISTER else None


def _text(table: bytes, start: int) -> str:
    return table[start : table.index(b"\0", start)].decode()
