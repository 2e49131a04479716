"""A module that a program has loaded: its kernels, and its variables in device memory."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path

from gpusim.cuda_cpp.includes import read
from gpusim.cuda_cpp.signature import overloads
from gpusim.driver.arena import OWN, Arena, Region
from gpusim.gpu.device import Device
from gpusim.isa.ops import Program
from gpusim.launch.device_heap import Heap
from gpusim.launch.grid import MAX_THREADS_PER_BLOCK, Dim3
from gpusim.launch.languages import PYTHON, TRITON
from gpusim.sass.bank_words import CONSTANTS
from gpusim.sass.cubin import Cubin, KernelCode
from gpusim.sass.kernels import CodeKernel, CubinFile
from gpusim.sass.links import Links
from gpusim.sass.symbols import cpp_name, language, parameter_types
from gpusim.sass.translate import HEAP_BYTES, Code

_REGISTERS_OF_A_BLOCK, _WARP = 65536, 32
_WITHOUT_ASKING = 49152
# Parameters that Triton adds after those of the source.
SCRATCH = ("global_scratch", "profile_scratch")


class ContextHeap:
    """The heap of malloc in all kernels of a context, made when the first requests it."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self.size = HEAP_BYTES

    @cached_property
    def region(self) -> Region:
        """Its memory."""
        return self._arena.allocate(self.size, OWN)

    @cached_property
    def given(self) -> Heap:
        """The allocations of threads."""
        return Heap(self.region.address, self.region.size)


@dataclass(eq=False)
class Function:
    """A kernel of a module, with its programs by the pointers among the parameters."""

    module: Module
    kernel: CodeKernel
    device: Device
    programs: dict[tuple[object, ...], Program] = field(default_factory=dict)
    declared: Sequence[tuple[str, str]] = ()  # names and types of its first parameters, by Triton

    @cached_property
    def language(self) -> str:
        """The language of its source."""
        found = language(self.symbol)
        is_triton = found != PYTHON and self.source_file.endswith(".py")
        return TRITON if is_triton else found

    @cached_property
    def parameter_types(self) -> list[str]:
        """The types of its parameters, as far as they are known."""
        return [ctype for _, ctype in self.declared] or parameter_types(self.symbol) or []

    @cached_property
    def code(self) -> Code:
        """Its machine code; GpusimError for unsimulated instructions."""
        return self.kernel.code(self.device.cc)

    @property
    def cluster(self) -> Dim3:
        """The size of its clusters, by its code alone."""
        return self._held.cluster

    @cached_property
    def source_file(self) -> str:
        """The file of most of its lines, "" where the module has no lines."""
        files = Counter(row.place.file for row in self.code.section.rows if row.place.line)
        return next((name for name, _ in files.most_common(1) if Path(name).is_file()), "")

    @cached_property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of its parameters: the source's, where one kernel there can be it."""
        count = len(self.code.kernel.parameters)
        if self.declared:
            return (*(name for name, _ in self.declared), *SCRATCH)[:count]
        plain = self.name.partition("(")[0].partition("<")[0].rpartition("::")[2]
        text = read(Path(self.source_file)) if self.source_file else ""
        found = [one for one in overloads(text, plain) if len(one) == count]
        names = tuple(one.name for one in found[0]) if len(found) == 1 else ()
        is_known = len(set(names)) == count and all(names)
        return names if is_known else tuple(f"arg{number}" for number in range(count))

    @property
    def symbol(self) -> str:
        """Its name in the module."""
        return self.kernel.__name__

    @cached_property
    def name(self) -> str:
        """Its name in C++, or as the module has it."""
        return cpp_name(self.symbol)

    @property
    def first(self) -> int:
        """Where in bank 0 its parameters begin."""
        return min((one.offset for one in self._held.parameters), default=0)

    @property
    def bytes(self) -> int:
        """The bytes of its parameters together."""
        return max(0, self._held.parameters_end - self.first)

    @property
    def places(self) -> list[tuple[int, int]]:
        """The offset and size of each parameter."""
        return [(one.offset - self.first, one.size) for one in self._held.parameters]

    @property
    def attributes(self) -> list[int]:
        """The first attributes of a function, by their numbers (CUfunction_attribute)."""
        held, cubin = self._held, self.module.cubin
        registers = max(16, held.registers)
        threads = _REGISTERS_OF_A_BLOCK // registers // _WARP * _WARP
        window = 1024 if cubin.arch >= 90 else 0
        shared = max(0, held.shared_bytes - window)
        return [
            min(
                MAX_THREADS_PER_BLOCK,
                threads,
                *(prod(held.most_threads),) * bool(held.most_threads),
            ),
            shared,
            len(cubin.constants),
            held.local_bytes,
            held.registers,
            cubin.arch,
            cubin.arch,
            0,
            max(0, min(_WITHOUT_ASKING, self.device.sm.shared_bytes) - shared),
            0xFFFFFFFF,  # -1: as the driver likes
        ]

    @cached_property
    def _held(self) -> KernelCode:
        return self.module.cubin.kernels[self.symbol]


class Module:
    """Machine code in the memory of a process."""

    def __init__(self, data: bytes, device: Device, arena: Arena, heap: ContextHeap) -> None:
        self.digest = hashlib.sha256(data).hexdigest()
        self._file = CubinFile(data, f"module {self.digest[:8]}")
        self._device, self._arena, self.heap = device, arena, heap
        self._functions: dict[str, Function] = {}
        self._variables: dict[str, Region] = {}

    @property
    def cubin(self) -> Cubin:
        """The content of the machine code's file."""
        return self._file.held_cubin

    @property
    def names(self) -> tuple[str, ...]:
        """The symbols of its kernels."""
        return self._file.names

    def function(self, symbol: str) -> Function | None:
        """Return a kernel; None where there is none."""
        if symbol not in self.cubin.kernels:
            return None
        if symbol not in self._functions:
            self._functions[symbol] = Function(self, self._file[symbol], self._device)
        return self._functions[symbol]

    def variable(self, name: str) -> tuple[int, int] | None:
        """Return the address and size of a variable; None where there is none."""
        found = self.cubin.variables.get(name)
        if found is None:
            return None
        if found.is_constant:
            return self.constants.address + found.offset, found.size
        return self.memory(name).address, found.size

    @cached_property
    def constants(self) -> Region:
        """The bytes of all constants, bank 3 of the code."""
        held = self.cubin.constants
        made = self._arena.allocate(max(len(held), 8), OWN)
        made.bytes[: len(held)] = bytearray(held)
        for _, link in self._links.of_constants:
            self._point(made, link.offset, link.array, link.added)
        return made

    def memory(self, name: str) -> Region:
        """Return the memory of a `__device__` variable; its initial pointers are resolved."""
        if name not in self._variables:
            one = self.cubin.variables[name]
            made = self._variables[name] = self._arena.allocate(max(one.size, 1), OWN)
            first = self.cubin.globals[one.offset : one.offset + one.size]
            made.bytes[: len(first)] = bytearray(first)
            for link in self._links.by_variable.get(name, ()):
                self._point(made, link.offset, link.array, link.added)
        return self._variables[name]

    def arrays(self, code: Code) -> Mapping[str, Region]:
        """Return the memory of variables that a kernel reaches, by their names."""
        return {name: self.memory(name) for name in code.links.reachable}

    def unload(self) -> None:
        """Give the memory of its variables back."""
        for region in self._variables.values():
            self._arena.free(region.address)
        self._variables.clear()
        constants = self.__dict__.pop("constants", None)
        if constants is not None:
            self._arena.free(constants.address)

    @cached_property
    def _links(self) -> Links:
        return Links(self.cubin)

    def _point(self, held: Region, offset: int, array: str, added: int) -> None:
        target = self.constants if array == CONSTANTS else self.memory(array)
        held.bytes[offset : offset + 8] = bytearray(struct.pack("<Q", target.address + added))
