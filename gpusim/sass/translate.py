"""From a kernel's listing to a `Program`, independent of its origin in machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from gpusim.errors import LaunchError
from gpusim.isa.lines import Call, SourceLine
from gpusim.isa.ops import (
    AWAIT_BULK,
    LAND,
    OPS,
    BankLayout,
    Instruction,
    NamedArray,
    Op,
    Program,
    as_detail_says,
)
from gpusim.launch.grid import Dim3
from gpusim.sass import bank_words
from gpusim.sass.accessed_arrays import accessed_arrays, constant_indices
from gpusim.sass.bank_words import CONSTANTS, ON_DEMAND, PARAMETERS
from gpusim.sass.cubin import ADDRESS_BANK, Cubin, KernelCode
from gpusim.sass.decoding import BankWord, Context, Micro, Source, decoded
from gpusim.sass.decoding.addresses import of_own_memory
from gpusim.sass.flow import edges
from gpusim.sass.links import Links
from gpusim.sass.listing import BYTES_PER_ROW, Place, Row, Section, without_padding
from gpusim.sass.masks import masks
from gpusim.sass.memory_order import joins_atomics, ordered
from gpusim.sass.provenance import named
from gpusim.sass.ptx import Ptx
from gpusim.sass.register_banks import bank_reads
from gpusim.sass.shared_arrays import shared_arrays, source_name
from gpusim.sass.symbols import function_name, python_function
from gpusim.sass.table import MNEMONICS, Mnemonic
from gpusim.sass.webs import Webs, is_predicate


def _op(found: Mnemonic) -> Op:
    """Return a mnemonic as a row of the machine's instructions, over untyped registers."""
    return replace(
        found.shares,
        evaluate=as_detail_says if found.evaluate is not None else None,
        uniform_twin="",
        multiplied="",
        sets_predicate=found.results.startswith("p"),
        affine=found.affine,
    )


# Mnemonics that only compute, as rows of the machine's instructions: their forms have the details.
OPS |= {
    f"bits.{name}": _op(found)
    for name, found in MNEMONICS.items()
    if (found.kind == "compute" or found.evaluate is not None) and not found.op
}

# Shared memory that the system keeps at the start of a block's, from compute capability 9.0 on.
RESERVED_BYTES = 1024
LEAST_REGISTERS = 16
GRID_BARRIER, HEAP = "grid barrier", "device heap"  # the arrays' names in messages
HEAP_BYTES = 8 << 20  # cudaLimitMallocHeapSize as it is at first
FIRST_ARCH_WITH_RESERVE = 90


@dataclass(frozen=True)
class Code:
    """A kernel's rows and its facts in the cubin, ready to be made a program.

    `ptx` is what it became of, if that is known. `calls` are those of lines by their files, where
    a text names such. `element_bytes` are those of arrays by their names, where it declares them.
    """

    name: str
    kernel: KernelCode
    cubin: Cubin
    section: Section
    generator: str
    ptx: Ptx | None = None
    calls: Mapping[str, tuple[Call, ...]] = field(default_factory=dict)
    element_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def registers(self) -> int:
        """The registers that a thread is given, at least 16."""
        return max(LEAST_REGISTERS, self.kernel.registers)

    def in_clusters(self, cluster: Dim3) -> Code:
        """Return the code for a launch in clusters of a size that its launch gives.

        LaunchError where its __cluster_dims__ are another size.
        """
        own = self.kernel.cluster
        if cluster == own:
            return self
        if self.kernel.is_in_clusters:
            sizes = [" x ".join(map(str, one)) for one in (own, cluster)]
            raise LaunchError(
                f"{self.name} has __cluster_dims__ of {sizes[0]} blocks; its clusters cannot be "
                f"{sizes[1]}"
            )
        return replace(self, kernel=replace(self.kernel, cluster=cluster))

    @property
    def window(self) -> int:
        """Where a block's own shared memory begins."""
        return RESERVED_BYTES if self.cubin.arch >= FIRST_ARCH_WITH_RESERVE else 0

    @property
    def static_shared_bytes(self) -> int:
        """A block's own shared memory."""
        return max(0, self.kernel.shared_bytes - self.window)

    @cached_property
    def shared_arrays(self) -> dict[str, NamedArray]:
        """The arrays in a block's shared memory by symbol, as far as they are known."""
        size = self.static_shared_bytes
        return self._sized(shared_arrays(self.cubin.ptx, self.kernel.name, size))

    @cached_property
    def constant_arrays(self) -> dict[str, NamedArray]:
        """The variables in constant memory by symbol."""
        found = {
            symbol: NamedArray(source_name(symbol), one.offset, one.size)
            for symbol, one in self.cubin.variables.items()
            if one.is_constant
        }
        return self._sized(found)

    def _sized(self, arrays: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
        """Return arrays with the bytes of an element as declared, where they fill the array."""
        sizes = {symbol: self.element_bytes.get(one.name, 0) for symbol, one in arrays.items()}
        return {
            symbol: replace(one, each=each) if each and not (one.size or 0) % each else one
            for (symbol, one), each in zip(arrays.items(), sizes.values(), strict=True)
        }

    @property
    def grid_barrier(self) -> tuple[str, int, int] | None:
        """The offsets in bank 0 of the halves of the grid barrier's address, if it has one."""
        places = bank_words.grid_barrier(self.cubin.arch)
        return (GRID_BARRIER, *places) if set(places) <= self.bank_offsets else None

    @cached_property
    def bank_offsets(self) -> frozenset[int]:
        """The offsets in bank 0 that its rows name."""
        operands = (one for row in self.section.rows for one in row.operands)
        return frozenset(int(one.number) for one in operands if one.kind == "C" and not one.bank)

    @property
    def heap(self) -> str:
        """The array for malloc's memory, if the code may call it."""
        calls = any(row.mnemonic == "CALL" and "ABS" in row.modifiers for row in self.section.rows)
        return HEAP if calls and {"malloc", "free"} & {*self.cubin.functions.values()} else ""

    @cached_property
    def links(self) -> Links:
        """The addresses in its file's variables, as far as the kernel may reach them."""
        return Links(self.cubin, self._asked)

    @property
    def _asked(self) -> frozenset[int] | None:
        """The bytes of bank 4 that its rows name; None where a row computes which."""
        found: set[int] = set()
        for row in self.section.rows:
            for one in row.operands:
                if one.kind == "C" and one.bank == ADDRESS_BANK:
                    if one.terms:
                        return None
                    words = 4 if "128" in row.modifiers else 2
                    found.update(range(int(one.number), int(one.number) + 4 * words))
        return frozenset(found)

    @property
    def images(self) -> dict[str, tuple[int, int]]:
        """The arrays that stand for banks with a generic address: bank, and where they begin."""
        asked = set(self.words.values()) | ({CONSTANTS} if self.links.reach_constants else set())
        every = {CONSTANTS: (3, 0), PARAMETERS: (0, bank_words.parameters_at(self.cubin.arch))}
        return {name: place for name, place in every.items() if name in asked}

    @property
    def words(self) -> dict[int, str]:
        """The driver's words in bank 0: all but addresses that it does not request."""
        asked = self.bank_offsets
        return {
            offset: meaning
            for offset, (meaning, _) in bank_words.words(self.cubin.arch).items()
            if meaning not in ON_DEMAND or offset in asked
        }


def translate(code: Code, layout: BankLayout, pointers: Mapping[tuple[int, int], str]) -> Program:
    """Return a kernel as a program.

    `pointers` are the names of the arrays that parameters point to, by where these lie in bank
    0. Raises UnknownFormError for an instruction that the table does not know.
    """
    rows = list(without_padding(code.section.rows))
    clusters = code.kernel.is_in_clusters
    context = Context(code.window, code.section.labels, code.cubin.arch, clusters)
    found = list(decoded(rows, context))
    if clusters:
        found = of_own_memory(found, code.window)
    if not any(OPS[micro.op].kind == "bulk_copy" for micro in found):
        found = [micro for micro in found if micro.op not in (LAND, AWAIT_BULK)]
    micros = [
        _settled(bank_words.in_place(micro, code.cubin.arch))
        for micro in ordered(found, rows, code.ptx)
    ]
    known = masks(micros, rows, code.ptx, code.kernel, code.cubin.arch)
    for step, mask in known.items():
        if isinstance(mask, str):
            micros[step] = replace(micros[step], mask=mask)
    barrier = () if code.grid_barrier is None else code.grid_barrier[1:]
    bank_words.check(micros, rows, code.cubin.arch, code.kernel, barrier)
    first = _first_steps(micros, len(rows))
    labels = {
        name: first[address // BYTES_PER_ROW] if address // BYTES_PER_ROW < len(rows) else 0
        for name, address in code.section.labels.items()
    }
    ways = edges(micros, labels)
    made = _Translation(code, rows, micros, labels, first, Webs(micros, ways))
    return made.program(layout, pointers, known)


def _settled(micro: Micro) -> Micro:
    """Return a step without a guard that is always true, or that nothing depends on.

    Nsight Compute counts the lanes of a uniform instruction as on, also where it only waits for a
    product of matrices and is guarded off (seen on an H200).
    """
    guard = micro.guard
    if guard is None or guard.register not in ("PT", "UPT"):
        return micro
    only_waits = guard.register == "UPT" and not micro.results and OPS[micro.op].unit == "uniform"
    return replace(micro, guard=None) if only_waits or not guard.negated else micro


def _first_steps(micros: Sequence[Micro], rows: int) -> list[int]:
    first = [-1] * rows
    for number in range(len(micros) - 1, -1, -1):
        first[micros[number].row] = number
    return first


class _Translation:
    """Gives registers numbers and lays the instructions out."""

    def __init__(
        self,
        code: Code,
        rows: Sequence[Row],
        micros: Sequence[Micro],
        labels: Mapping[str, int],
        first: Sequence[int],
        webs: Webs,
    ) -> None:
        self.code, self.rows, self.micros = code, rows, micros
        self.labels, self.first, self.webs = labels, first, webs
        self.bank_reads = bank_reads(rows, micros)
        self.numbers: dict[Any, int] = {}
        self.immediates: dict[int, np.generic] = {}
        self.constants: dict[int, tuple[int, int]] = {}
        self.lines: dict[tuple[Place, ...], SourceLine] = {}

    def program(
        self,
        layout: BankLayout,
        pointers: Mapping[tuple[int, int], str],
        masks: Mapping[int, int | str | None],
    ) -> Program:
        """Return the program."""
        steps = [self._instruction(step) for step in range(len(self.micros))]
        code, kernel = self.code, self.code.kernel
        instructions = tuple(named(steps, self.constants, pointers))
        arrays = code.shared_arrays | code.constant_arrays
        lines = [self.rows[micro.row].ptx_line for micro in self.micros]
        return Program(
            name=code.name,
            instructions=instructions,
            registers=len(self.numbers),
            immediates=self.immediates,
            initial=self._predicates_at_start(),
            barriers=16,
            shared_bytes=self.code.static_shared_bytes,
            local_bytes=kernel.local_bytes,
            register_estimate=code.registers,
            lowering="O3",
            compiler=code.generator,
            most_threads=prod(kernel.most_threads) if kernel.most_threads else 0,
            shared_arrays=tuple(code.shared_arrays.values()),
            constant_arrays=tuple(code.constant_arrays.values()),
            accessed_arrays=accessed_arrays(code.ptx, instructions, lines, arrays),
            outside=constant_indices(code.ptx, kernel.name, instructions, lines, arrays),
            constants=self.constants,
            layout=layout,
            joining=self._joining(),
            joined=self._joined(),
            masks={step: mask for step, mask in masks.items() if isinstance(mask, int)},
            mask_registers={
                step: self._number(self.webs.read(step, mask))
                for step, mask in masks.items()
                if isinstance(mask, str) and step in self.webs.reached
            },
            lost_masks=frozenset(step for step, mask in masks.items() if mask is None),
            clusters=kernel.is_in_clusters,
        )

    def _joining(self) -> frozenset[int]:
        """Return the steps in which the compiler joins atomics of lanes that want no result.

        A result is shuffled to all lanes, so that each has the old value.
        """
        ptx = self.code.ptx
        if ptx is None:
            return frozenset()
        shared = {row.ptx_line for row in self.rows if row.mnemonic == "SHFL"}
        return frozenset(
            step
            for step, micro in enumerate(self.micros)
            if joins_atomics(micro, self.rows[micro.row], ptx)
            and self.rows[micro.row].ptx_line not in shared
        )

    def _joined(self) -> Mapping[int, int]:
        """Return the line of PTX of each step that lets lanes make one atomic of theirs."""
        ptx, lines = self.code.ptx, [self.rows[micro.row].ptx_line for micro in self.micros]
        if ptx is None:
            return {}
        meetings = (
            line
            for micro, line in zip(self.micros, lines, strict=True)
            if joins_atomics(micro, self.rows[micro.row], ptx)
        )
        joined = frozenset(meetings)
        return {step: line for step, line in enumerate(lines) if line in joined}

    def _predicates_at_start(self) -> dict[int, np.generic]:
        webs = (web for web in self.webs.held_at_start() if is_predicate(web[2]))
        return {self.numbers[web]: np.bool_(False) for web in webs if web in self.numbers}

    def _number(self, key: Any) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def _read(self, step: int, source: Source) -> int:
        if isinstance(source, str):
            return self._number(self.webs.read(step, source))
        if isinstance(source, BankWord):
            number = self._number((source.bank, source.offset))
            self.constants[number] = (source.bank, source.offset)
            return number
        number = self._number((source.dtype.kind, int(source)))
        self.immediates[number] = source
        return number

    def _instruction(self, step: int) -> Instruction:
        micro = self.micros[step]
        if step not in self.webs.reached:
            return Instruction("NOP", line=self._line(self.rows[micro.row]))
        guard, negated = None, False
        if micro.guard is not None and (micro.issued or micro.memory is not None):
            guard, negated = self._guard(step, micro), micro.guard.negated
        results = enumerate(micro.results)
        return Instruction(
            op=micro.op,
            dst=tuple(self._number(self.webs.written(step, k, name)) for k, name in results),
            src=tuple(self._read(step, source) for source in micro.sources),
            dtype=np.dtype(np.uint32),
            detail=self._places(micro.op) if OPS[micro.op].kind == "jump" else micro.detail,
            guard=guard,
            negated=negated,
            target=self.labels[micro.label] if micro.label else -1,
            memory=micro.memory,
            line=self._line(self.rows[micro.row]),
            text=self.rows[micro.row].text if micro.issued else "",
            stall_cycles=self._stall_count(micro) if micro.issued else 0,
            bank_reads=self.bank_reads[micro.row] if micro.issued else (),
        )

    def _line(self, row: Row) -> SourceLine:
        """Return a row's line, with the calls in its file that it was inlined by."""
        ptx = self.code.ptx
        if row.inlined not in self.lines:
            places = [(one.file, one.line) for one in row.inlined]
            functions = [""] * len(places) if ptx is None else ptx.functions(places)
            frames = [
                (python_function(place.file, place.line) or function_name(symbol), place.line)
                for symbol, place in zip(functions, row.inlined, strict=True)
                if place.file == row.place.file
            ]
            calls = [Call(inner[0], outer[1]) for inner, outer in pairwise(frames)]
            calls += self.code.calls.get(row.place.file, ())
            self.lines[row.inlined] = SourceLine(row.place.line, calls)
        return self.lines[row.inlined]

    def _stall_count(self, micro: Micro) -> int:
        return self.code.kernel.stall_count(self.rows[micro.row].address)

    def _guard(self, step: int, micro: Micro) -> int:
        assert micro.guard is not None
        if micro.guard.register in ("PT", "UPT"):
            return self._read(step, np.bool_(True))
        return self._number(self.webs.read(step, micro.guard.register))

    def _places(self, op: str) -> tuple[int, ...]:
        """Return the first step of each row: the target of a jump to its address.

        No function has the address 0: a call by it has no target.
        """
        return (-1, *self.first[1:]) if op == "CALL.REG" else tuple(self.first)
