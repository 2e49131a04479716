"""The linker's part of a kernel's code: functions in sections of their own, and addresses.

With -G each function has a section, called by its address, and addresses of variables are numbers
in instructions. A kernel's section gets the functions that it reaches after its own rows, where
calls and returns are as within one section; the address of one is its place there, and that of
none is 0, where the kernel begins. Addresses of variables become words of bank 4, as in optimised
code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from gpusim.sass import compiler, cubin, listing
from gpusim.sass.compiler import Options
from gpusim.sass.cubin import ADDRESS_BANK, ADDRESS_BYTES, Cubin, KernelCode
from gpusim.sass.listing import Row, Section
from gpusim.sass.operands import Operand

FUNCTION = "$"  # begins the labels of functions with addresses in registers
_ADDRESS = re.compile(
    r"32@(lo|hi)\((?:fun@fdesc\(([^\s()]+)\)|\((\S+) \+ (0x[0-9a-f]+)\)|([^\s()]+))\)$"
)


@dataclass(frozen=True)
class Linked:
    """A kernel with its functions, and the cubin with the addresses that they request."""

    kernel: KernelCode
    cubin: Cubin
    section: Section


def linked(
    kernel: KernelCode, held: Cubin, section: Section, text: str, files: Sequence[str]
) -> Linked:
    """Return a kernel's code with the functions of the listing `text` that it calls."""
    parts, found = [kernel.text], [section]
    known = {kernel.name}
    for part in found:
        for name in (*_called(part.rows), *_addressed(part.rows)):
            if name in known:
                continue
            begin = sum(map(len, parts))
            called = _function(name, held, text, files, begin)
            if called is not None:
                code, its = called
                known.add(name)
                parts.append(code.text)
                found.append(replace(its, labels={**its.labels, name: begin}))
    labels = {name: place for part in found for name, place in part.labels.items()}
    reached = known - {kernel.name}
    pointers = {name: labels[name] for part in found for name in _addressed(part.rows) & reached}
    labels |= {f"{FUNCTION}{name}": place for name, place in pointers.items()}
    addresses = _Addresses(held, pointers)
    rows = [
        addresses.resolved(_within(row, known, has_pointers=bool(pointers)))
        for part in found
        for row in part.rows
    ]
    whole = kernel if len(found) == 1 else replace(kernel, text=b"".join(parts))
    return Linked(whole, addresses.cubin, Section(section.name, rows, labels))


def _function(
    name: str, held: Cubin, text: str, files: Sequence[str], begin: int
) -> tuple[KernelCode, Section] | None:
    """Return a function at an address: of the file, or one that the driver brings."""
    code = held.kernels.get(name)
    if code is None:
        return function(name, held.arch, begin)
    found = listing.section(text, name, files, code.text, begin)
    return None if found is None else (code, found)


def _called(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the names of functions that rows call by their addresses."""
    for row in rows:
        if _is_call(row):
            yield row.operands[0].name


def _addressed(rows: Sequence[Row]) -> set[str]:
    """Return the names with addresses in rows: of functions, and of variables."""
    operands = (one for row in rows for one in row.operands if one.kind == "X")
    return {found[5] for one in operands if (found := _ADDRESS.match(one.name)) and found[5]}


def _is_call(row: Row) -> bool:
    return row.name.startswith("CALL.ABS") and [one.kind for one in row.operands] == ["L"]


def _within(row: Row, known: set[str], *, has_pointers: bool) -> Row:
    """Return a call of a known function, or by a pointer, or a return, as within a section."""
    modifiers = ("REL", *row.modifiers[1:])
    if _is_call(row) and row.operands[0].name in known:
        return replace(row, modifiers=modifiers)
    is_by_pointer = has_pointers and row.name.startswith("CALL.ABS") and not _is_call(row)
    if is_by_pointer or (row.name.startswith("RET.ABS") and len(row.operands) == 1):
        register, _, _ = row.operands[0].name.partition(" ")
        return replace(row, modifiers=modifiers, operands=(Operand("R", register), Operand("L")))
    return row


@dataclass
class _Addresses:
    """Words of bank 4 for addresses in instructions; `cubin` has those requested so far.

    `pointers` are the places of the kernel's own functions, whose addresses are numbers.
    """

    cubin: Cubin
    pointers: Mapping[str, int]
    _words: dict[tuple[str, int], int] = field(default_factory=dict)

    def resolved(self, row: Row) -> Row:
        """Return a row with words of bank 4 in place of addresses."""
        if _is_call(row):
            word = self._word(row.operands[0].name, 0)
            return replace(row, operands=(Operand("C", bank=ADDRESS_BANK, number=word),))
        if not any(one.kind == "X" and _ADDRESS.match(one.name) for one in row.operands):
            return row
        operands = tuple(map(self._resolved, row.operands))
        whole = replace(row, operands=operands)
        places = [
            int(new.number)
            for one, new in zip(row.operands, operands, strict=True)
            if one.kind == "X" and new.kind == "I"
        ]
        return whole.with_immediate(places[0]) if places else whole

    def _resolved(self, operand: Operand) -> Operand:
        found = _ADDRESS.match(operand.name) if operand.kind == "X" else None
        if found is None:
            return operand
        half, kernel, name, added, plain = found.groups()
        if plain in self.pointers:
            number = self.pointers[plain] if half == "lo" else 0
            return Operand("I", hex(number), number)
        word = self._word(kernel or name or plain, int(added or "0", 16))
        return Operand("C", bank=ADDRESS_BANK, number=word + (4 if half == "hi" else 0))

    def _word(self, name: str, added: int) -> int:
        """Return the offset of an address in bank 4, after those that the file has there."""
        if (name, added) not in self._words:
            held = self.cubin
            end = max((*held.addresses, *held.functions), default=-ADDRESS_BYTES) + ADDRESS_BYTES
            if name in held.variables:
                found = replace(held, addresses={**held.addresses, end: (name, added)})
            else:
                found = replace(held, functions={**held.functions, end: name})
            self.cubin, self._words[name, added] = found, end
        return self._words[name, added]


# `cudaCGGetIntrinsicHandle`, `cudaCGSynchronize` and the like come with the toolkit, for the
# linker; what they call is left to the driver. Here it is CUDA C++, compiled for the kernel's GPU:
# a counter in the workspace of a cooperative launch, whose highest bit turns when all blocks have
# arrived.
PREFIX = "__cuda_syscall_CGS_"
# %envreg1 and 2 hold the workspace's address, 0 in a launch that is not cooperative. With the
# lowest of the flags the caller has synchronised its block and calls from one thread.
_SOURCE = r"""
extern "C" __device__ unsigned long long __cuda_syscall_CGS_get_intrinsic_handle(unsigned) {
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    return (unsigned long long)high << 32 | low;
}
extern "C" __device__ int __cuda_syscall_CGS_sync(unsigned long long handle, unsigned flags) {
    bool is_alone = flags & 1;
    if (!is_alone) __syncthreads();
    if (is_alone || !(threadIdx.x | threadIdx.y | threadIdx.z)) {
        unsigned long long counter = handle + 4;
        bool is_first = !(blockIdx.x | blockIdx.y | blockIdx.z);
        unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
        unsigned added = is_first ? 0x80000000u - (blocks - 1) : 1, before, now;
        __threadfence();
        asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                     : "=r"(before) : "l"(counter), "r"(added) : "memory");
        do
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
        while (!((before ^ now) >> 31));
    }
    if (!is_alone) __syncthreads();
    return 0;
}
extern "C" __device__ int __cuda_syscall_CGS_get_size(
    unsigned* threads, unsigned* grids, unsigned long long) {
    unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    if (threads) *threads = blocks * (blockDim.x * blockDim.y * blockDim.z);
    if (grids) *grids = 1;
    return 0;
}
extern "C" __device__ int __cuda_syscall_CGS_get_rank(
    unsigned* thread, unsigned* grid, unsigned long long) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned within = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    if (thread) *thread = block * (blockDim.x * blockDim.y * blockDim.z) + within;
    if (grid) *grid = 0;
    return 0;
}
"""
_FILE = "the driver's functions"


@cache
def _made(arch: str) -> tuple[cubin.Cubin, str]:
    made = compiler.compiled(_SOURCE, _FILE, [], arch, Options(relocatable=True))
    # Labels are numbered in each listing: these must not be assumed to be the kernel's.
    return cubin.read(made.cubin, _FILE), made.listing.replace(".L_", ".L_driver_")


def function(name: str, arch: int, begin: int) -> tuple[KernelCode, Section] | None:
    """Return the code of one of these functions, at an address; None for other names."""
    if not name.startswith(PREFIX):
        return None
    held, text = _made(f"sm_{arch}")
    code = held.kernels.get(name)
    found = None if code is None else listing.section(text, name, (), code.text, begin)
    if code is None or found is None:
        return None
    # Lines of this text are none of the kernel's.
    rows = [replace(row, place=listing.NOWHERE) for row in found.rows]
    return code, replace(found, rows=rows)
