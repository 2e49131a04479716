"""The machine's instructions: one table of rows in SASS's words, and the flat `Program`.

A row has the unit that serves an instruction, its traits and, where it only computes, its
evaluator, a function of the modules beside this one. Access to memory, work with other threads and
changes of the program counter are the machine's. A `Program` does not know its origin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from gpusim.isa import comparisons, conversions, functions, integers
from gpusim.isa.conversions import convert
from gpusim.isa.fused import fused_multiply_add
from gpusim.isa.lookup_tables import logic
from gpusim.typing import Array, DType
from gpusim.version import __version__

Evaluate = Callable[..., Array | tuple[Array, ...]]

SPACES = ("shared", "local", "generic")
# Where shared and local memory begin among all addresses, as a multiple of 2^32: far above arrays.
SHARED_HIGH, LOCAL_HIGH = 0x7FFF, 0x7FFE
RANK_SHIFT = 24  # of an address of shared memory in a cluster: above is the rank of its block
CONSTANT_BANK = 3  # of variables in constant memory
ANY_ARRAY = ""  # the name of an access by address to any array


@dataclass(frozen=True)
class Memory:
    """The access of a memory instruction: `count` elements of `dtype` a lane.

    They begin `offset` bytes after the address. `space` is "global", "shared", "local", or
    "generic" where the address decides; `name` is the array in the source, `size` its number of
    elements (None for a parameter or dynamic shared memory, sized by the launch) and `base` its
    first byte within the block's or thread's memory. `volatile` accesses are strong: each is made,
    in order; those `of_block` are strong for the threads of their block alone. `relaxed` ones are
    strong by an order of PTX instead of the qualifier; one that `acquires` needs no fence after it,
    and one that `releases` may include stores from before the fence, where the compiler joined
    them. Where it is `by_address`, lanes touch the memory at their addresses, and `name` is the one
    array after these, or ANY_ARRAY: one of `among`, or any where that is empty. `each` are the
    bytes of the array's elements in messages, 0 for those of `dtype`.
    """

    space: str
    name: str
    dtype: DType
    count: int = 1
    offset: int = 0
    base: int = 0
    size: int | None = None
    volatile: bool = False
    by_address: bool = False
    among: frozenset[str] = frozenset()
    of_block: bool = False
    relaxed: bool = False
    acquires: bool = False
    releases: bool = False
    each: int = 0

    @property
    def numbered_bytes(self) -> int:
        """Bytes of the elements that messages count."""
        return self.each or self.dtype.itemsize

    @property
    def width_bytes(self) -> int:
        """Bytes that one lane touches."""
        return self.count * self.dtype.itemsize

    @property
    def is_barrier_word(self) -> bool:
        """Whether it is the word of an mbarrier."""
        return self.space == "shared" and self.volatile and self.of_block

    @property
    def is_word_of_cluster(self) -> bool:
        """Whether it is the word of an mbarrier of any block of the cluster."""
        return self.space == "generic" and self.volatile and self.of_block

    @property
    def place(self) -> str:
        """The memory that is touched: a global array's name, ANY_ARRAY, or else the space."""
        return self.name if self.space == "global" else self.space

    @property
    def places(self) -> frozenset[str]:
        """All the memory that may be touched: `place`, or the arrays that it is among."""
        return self.among or frozenset([self.place])

    def may_touch(self, places: Collection[str]) -> bool:
        """Return whether one of these places may be touched."""
        if not self.places.isdisjoint(places) or "generic" in places:
            return True
        if self.space != "global":
            return self.space == "generic" and bool(places)
        if self.name == ANY_ARRAY and not self.among:
            return any(place not in SPACES for place in places)
        return ANY_ARRAY in places


@dataclass(frozen=True)
class Instruction:
    """One instruction of a program.

    `dst` and `src` are register numbers; registers that `Program.immediates` names hold
    constants. A lane for which the guard register is false (true, where `negated`) does
    not take part. `dtype` is the type worked in, `detail` the op's
    parameter (see OPS), `target` a pc: where BRA goes, or the BSYNC that ends a BSSY.
    `line` is the line in the source file, `text` a disassembler's, if there was one.
    `stall_cycles` is the stall count that a compiler wrote after it, 0 where none did;
    `bank_reads` how many of its operands come out of each bank of the register file, where
    registers are the hardware's.

    Where there is a `memory`, the first source is the address register: 64-bit addresses of
    global memory, 32-bit ones from the start of the block's shared or the thread's local
    memory, `memory.offset` bytes being added. The values to store follow, or an atomic's
    operands.
    """

    op: str
    dst: tuple[int, ...] = ()
    src: tuple[int, ...] = ()
    dtype: DType | None = None
    detail: Any = None
    guard: int | None = None
    negated: bool = False
    target: int = -1
    memory: Memory | None = None
    line: int = 0
    text: str = ""
    stall_cycles: int = 0
    bank_reads: tuple[int, ...] = ()

    @property
    def is_load(self) -> bool:
        """Whether it loads from memory."""
        return OPS[self.op].kind == "load"

    @property
    def looks_up_constants(self) -> bool:
        """Whether it loads variables in constant memory, at offsets in registers."""
        is_bank = OPS[self.op].kind == "bank" and bool(self.src)
        return is_bank and self.detail[1][0] == CONSTANT_BANK

    @property
    def array_of_constants(self) -> NamedArray | None:
        """The array in constant memory with the bounds of a load, None for all of its bank."""
        return self.detail[2] if self.looks_up_constants and len(self.detail) > 2 else None

    @property
    def may_overhang(self) -> bool:
        """Whether only the first byte has to lie in the memory.

        nvcc loads a `float3` of shared memory in 16 bytes, also at the end of it, and an atomic
        operation on a byte swaps the word around it: a block has whole units of 128 bytes, which no
        aligned access crosses.
        """
        memory, kind = self.memory, OPS[self.op].kind
        is_shared = memory is not None and memory.by_address and memory.space == "shared"
        return is_shared and kind in ("load", "atomic")


def behind(shared: int) -> int:
    """Return the start of the system's shared memory after a block's own, in bytes."""
    return -(-shared // 16) * 16


class Link(NamedTuple):
    """An address in initial data: at `offset`, the array's address plus `added` bytes."""

    offset: int
    array: str
    added: int


@dataclass(frozen=True, eq=False)
class BankLayout:
    """The contents of the constant banks, as bytes at offsets: filled from the launch.

    Bank 0 has the `words` set by the driver, by offset and meaning; the `parameters`: name, offset
    and size of each; and the barrier's array of a cooperative launch (`grid_barrier`), with the
    offsets of its address's lower and upper half. `fixed` are whole banks that the code brings (a
    memoryview's content when a launch begins), `addresses` the variables with addresses in bank 4,
    by offset, and `functions` the driver's functions. `links` are the addresses within the initial
    values of variables, by the array that holds them, or by the number of a bank. `images` are
    arrays with the bytes of a bank, for loads by generic address: the bank, and where the array
    begins in it; `heap` is malloc's array. A block's own shared memory begins `shared_start` bytes
    after the address of its window, with `reserved_bytes` after it for the system's.
    """

    parameters: tuple[tuple[str, int, int], ...] = ()
    words: Mapping[int, str] = field(default_factory=dict)
    fixed: Mapping[int, bytes | memoryview] = field(default_factory=dict)
    addresses: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    links: Mapping[str | int, tuple[Link, ...]] = field(default_factory=dict)
    images: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    heap: str = ""
    functions: Mapping[int, str] = field(default_factory=dict)
    grid_barrier: tuple[str, int, int] | None = None
    stack_bytes: int = 0
    static_shared_bytes: int = 0
    shared_start: int = 0
    reserved_bytes: int = 0


@dataclass(frozen=True)
class NamedArray:
    """An array in shared or constant memory: its first byte, and its bytes.

    None for dynamic shared memory. `each` are the bytes of an element, 0 where unknown.
    """

    name: str
    first: int
    size: int | None
    each: int = 0

    @property
    def end(self) -> int:
        """Where an array of known size ends."""
        return self.first + (self.size or 0)

    def holds(self, low: int, high: int) -> bool:
        """Return whether it has the bytes at some addresses, from the lowest to the highest."""
        return self.first <= low and (self.size is None or high < self.first + self.size)


@dataclass(frozen=True)
class ConstantIndex:
    """An access to an array at a constant index, `each` bytes an element."""

    line: int
    array: NamedArray
    index: int
    each: int


@dataclass(frozen=True, eq=False)
class Program:
    """A kernel ready to run: instructions, addressed by pc from 0; equal to itself alone.

    `shared_bytes` and `local_bytes` are the static memory of a block and of a thread;
    `registers` counts virtual registers, `barriers` the convergence barriers (BSSY),
    `register_estimate` the 32-bit registers a thread needs on the GPU. Registers among
    `immediates` are never written; registers among `initial` are, and hold a value before.
    Registers among `constants` hold 32-bit words of constant banks, given as bank and offset;
    `layout` has the contents of these. `compiler` names the compiler of this code, empty for a
    lowering's; `most_threads` are those of a block by its launch bounds, or 0. `shared_arrays` are
    known where accesses name no array of shared memory.
    `joining` are the pcs where a compiler lets lanes meet to make one atomic of theirs; `joined`
    has a number for each of these atomics, at the pcs of its meetings, fences and accesses.
    `constant_arrays` are those of `CONSTANT_BANK`; `accessed_arrays` are the arrays in shared and
    constant memory that accesses name, by pc, as far as they are known; `outside` are accesses at
    constant indices that lie outside their array. `masks` are the lanes named by instructions that
    have no mask as an operand, `mask_registers` the registers that hold those computed at run time;
    `lost_masks` are the pcs whose masks are not known. With `clusters` its blocks are launched in
    thread block clusters.
    """

    name: str
    instructions: tuple[Instruction, ...]
    registers: int
    immediates: Mapping[int, np.generic] = field(default_factory=dict)
    initial: Mapping[int, np.generic] = field(default_factory=dict)
    barriers: int = 0
    shared_bytes: int = 0
    local_bytes: int = 0
    register_estimate: int = 16
    lowering: str = ""
    constants: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    layout: BankLayout | None = None
    compiler: str = ""
    most_threads: int = 0
    shared_arrays: tuple[NamedArray, ...] = ()
    joining: frozenset[int] = frozenset()
    joined: Mapping[int, int] = field(default_factory=dict)
    constant_arrays: tuple[NamedArray, ...] = ()
    accessed_arrays: Mapping[int, NamedArray] = field(default_factory=dict)
    outside: tuple[ConstantIndex, ...] = ()
    masks: Mapping[int, int] = field(default_factory=dict)
    mask_registers: Mapping[int, int] = field(default_factory=dict)
    lost_masks: frozenset[int] = frozenset()
    clusters: bool = False

    def shared_array(self, memory: Memory, touched: Sequence[int]) -> tuple[str, int]:
        """Return the array of an access that lanes make at some addresses, and its first byte."""
        known = self.shared_arrays
        if len(known) > 1 and len(touched):
            low, high = min(touched), max(touched)
            known = tuple(one for one in known if one.holds(low, high))
        return (known[0].name, known[0].first) if len(known) == 1 else (memory.name, memory.base)

    def addressable_shared(self, dynamic: int) -> int:
        """Return the bytes of a block's shared memory that its code may address."""
        own = self.shared_bytes + dynamic
        reserved = 0 if self.layout is None else self.layout.reserved_bytes
        return behind(own) + reserved if reserved else own

    @property
    def generator(self) -> str:
        """The code generator with its version: "NVRTC 13.5", or gpusim for the lowering."""
        return self.compiler or f"gpusim {__version__}"


# Points where bulk copies complete: before a test of a phase, and after a wait for groups.
LAND, AWAIT_BULK = ".LAND", ".AWAIT_BULK"
BULK_LOAD, BULK_STORE, PEER_COPY = "UBLKCP.LOAD", "UBLKCP.STORE", "UBLKCP.PEER"
WARPGROUP_WAIT, WARPGROUP_COMMIT = "WARPGROUP.DEPBAR", ".WARPGROUP_COMMIT"
# Adds one in shared memory without a result: all lanes of one word at once.
COUNT_UP = "ATOMS.POPC.INC.32"
# Swaps in shared memory if the word is unchanged: tried for one lane of each word, in a loop until
# all lanes have succeeded.
SPIN = "ATOMS.CAST.SPIN"


@dataclass(frozen=True)
class Op:
    """A row of OPS: the unit that serves it, its evaluator, kind and traits.

    `evaluate(instruction, *sources)` returns the destination's values, a tuple where there are
    several. `kind` is "compute" where `evaluate` is all there is to do, else the name of the
    machine's handler. `issued` is False for a row that describes the source and costs nothing.
    `timing`: the clock's action for an op without a fixed time, where its unit alone does not say.
    `convergent`: threads take part together, so that it is never guarded nor moved.
    `waits_for_lanes`: it waits for the lanes that its first source, a mask, names. `checks_mask`:
    lanes that take part against that mask are a fault; `is_replayed`: it is issued again for lanes
    that have waited. `orders_lanes`: after it all its lanes see their accesses to memory before it.
    `waits_for_memory`: its warp waits until others have seen its accesses to memory. `when_apart`:
    the instructions before it where lanes of a warp may be apart: "ask" whether they are together,
    or "gather" them. `redirects`: its warp waits after it for the next pc. `is_branch`: it counts
    as a branch instruction. `yields`: it lets other lanes of its warp go on. `multiplied`: nvcc
    gives its work to the multiplier, "always" or, of sums of two, "at times". `uniform_twin`: the
    op of the uniform datapath that does the same. `is_copy`: it only moves a value.
    `sets_predicate`: its result guards others. `affine`: the result's rule of linearity, one of
    AFFINE; "" for none. `by_word`: lanes that name one word are served at once, not one after the
    other. `copies`: its part in copies from global to shared memory that a warp does not wait for:
    it "begins" one, "commits" all since as a group, or "awaits" groups (`detail`: how many of the
    last may be on their way; None where it waits for something else). `asynchronous`: it accesses
    memory at any time until its copy is awaited.
    """

    unit: str
    evaluate: Evaluate | None = None
    kind: str = "compute"
    issued: bool = True
    timing: str = ""
    convergent: bool = False
    waits_for_lanes: bool = False
    checks_mask: bool = False
    is_replayed: bool = False
    orders_lanes: bool = False
    waits_for_memory: bool = False
    when_apart: Literal["", "ask", "gather"] = ""
    redirects: bool = False
    is_branch: bool = False
    yields: bool = False
    multiplied: Literal["", "always", "at times"] = ""
    uniform_twin: str = ""
    is_copy: bool = False
    sets_predicate: bool = False
    affine: str = ""
    by_word: bool = False
    copies: Literal["", "begins", "commits", "awaits"] = ""
    asynchronous: bool = False

    @property
    def action(self) -> str:
        """The clock's action for an op without a fixed time, "" where it has one."""
        return self.timing or ("special" if self.unit == "xu" else "")

    @property
    def access(self) -> str:
        """The kind of access to memory, "" where there is none."""
        return self.kind if self.kind in _ACCESSES else ""

    @property
    def reads_memory(self) -> bool:
        """Whether it reads memory."""
        return self.access in ("load", "atomic")

    @property
    def writes_memory(self) -> bool:
        """Whether it writes memory."""
        return self.access in ("store", "atomic")

    @property
    def gives_value(self) -> bool:
        """Whether the value of a register is its only effect."""
        return self.kind in ("compute", "special", "constant")

    @property
    def is_movable(self) -> bool:
        """Whether it may be reordered with independent instructions."""
        return self.gives_value or self.kind in ("load", "store", "source_branch", "bounds")

    @property
    def is_guardable(self) -> bool:
        """Whether a guard may replace a branch around it."""
        return not self.convergent and self.kind not in ("fence", "atomic")

    @property
    def leaves(self) -> bool:
        """Whether a lane with it on ends or jumps."""
        return self.kind in ("branch", "exit")

    @property
    def leads_elsewhere(self) -> bool:
        """Whether lanes may continue at other places than after it or at a branch's target."""
        return self.kind in ("jump", "branch_if_apart")

    @property
    def is_pure(self) -> bool:
        """Whether it neither accesses memory nor synchronises, except within its split."""
        return self.kind in _LONE

    @property
    def keeps_to_itself(self) -> bool:
        """Whether lanes usually neither wait at it nor release others."""
        return self.kind in _KEPT_TO_ITSELF

    @property
    def has_number(self) -> bool:
        """Whether it uses a numbered barrier: its sources are the number and a thread count."""
        return self.kind in ("named_barrier", "arrive")

    @property
    def is_barrier(self) -> bool:
        """Whether it uses a barrier of the block."""
        return self.kind == "barrier" or self.has_number

    @property
    def is_untimed(self) -> bool:
        """Whether the machine runs it but the clock does not support it."""
        return self.has_number or self.unit == "tex"

    @property
    def only_describes(self) -> bool:
        """Whether its active lanes affect nothing but its own result."""
        return self.kind in ("compute", "source_branch", "bounds")


_ACCESSES = ("load", "store", "atomic")
_LONE = (
    "compute", "special", "constant", "source_branch", "bounds", "branch", "bssy", "bsync", "break",
)  # fmt: skip
_KEPT_TO_ITSELF = (
    "compute", "special", "constant", "bank", "clock", "load", "store", "atomic", "fence",
    "bounds", "source_branch", "shuffle", "vote", "match",
    "elect", "reduce_lanes", "differs", "first_lane", "warpsync", "collect", "bssy",
    "get_token", "set_token", "texture", "surface_load", "surface_store", "matrix_product",
    "warpgroup_product", "warpgroup_commit", "warpgroup_wait", "rows_to_fragments",
    "fragments_to_rows", "transpose",
)  # fmt: skip

AFFINE = ("", "sum", "product", "shift", "select", "first", "high", "comparison")


def plain(function: Callable[..., Array]) -> Evaluate:
    """Return the evaluator of an op that computes from its sources alone."""

    def evaluate(instruction: Any, *sources: Array) -> Array:
        return function(*sources)

    return evaluate


def detailed(function: Callable[..., Array]) -> Evaluate:
    """Return the evaluator of an op with its `detail` as the function's first argument."""

    def evaluate(instruction: Instruction, *sources: Array) -> Array:
        return function(instruction.detail, *sources)

    return evaluate


def _signed_fused(instruction: Instruction, a: Array, b: Array, c: Array) -> Array:
    signs = instruction.detail or "++"
    a = np.negative(a) if signs[0] == "-" else a
    c = np.negative(c) if signs[1] == "-" else c
    return fused_multiply_add(a, b, c)


def _of_type(instruction: Instruction, result: Array) -> Array:
    return result if instruction.dtype is None else result.astype(instruction.dtype, copy=False)


def _absolute(instruction: Instruction, value: Array) -> Array:
    """Magnitudes; the type of the instruction may be unsigned."""
    return _of_type(instruction, integers.absolute(value))


def _library(instruction: Instruction, *sources: Array) -> Array:
    """The value of a function at the end of its sequence of instructions; `detail` names it."""
    return _of_type(instruction, functions.LIBRARY[instruction.detail](*sources))


def _convert(instruction: Instruction, value: Array) -> Array:
    assert instruction.dtype is not None
    return convert(value, instruction.dtype)


def _move(instruction: Any, value: Array) -> Array:
    return value


def as_detail_says(instruction: Instruction, *registers: Array) -> Array | tuple[Array, ...]:
    """Return the results of an instruction's detail: the form of a compiler's own row."""
    results: Array | tuple[Array, ...] = instruction.detail.computed(*registers)
    return results


def _of_lanes(unit: str, kind: str, **traits: Any) -> Op:
    """Return the row of an op among the lanes of a mask, its first source."""
    return _together(unit, kind, waits_for_lanes=True, checks_mask=True, **traits)


def _together(unit: str, kind: str, **traits: Any) -> Op:
    """Return the row of an op of the lanes that take part."""
    return Op(unit, kind=kind, convergent=True, orders_lanes=True, **traits)


# An instruction with neither destination nor sources is a part of another's work:
# the high half of a 64-bit addition, the steps of a library function before its last.
OPS: dict[str, Op] = {
    "MOV": Op("alu", _move, uniform_twin="UMOV", is_copy=True, affine="sum", multiplied="always"),
    "SEL": Op("alu", plain(comparisons.select), uniform_twin="USEL", affine="select"),
    "FSEL": Op("alu", plain(comparisons.select)),
    # detail: a sign per source, "+-"
    "IADD3": Op(
        "alu",
        detailed(integers.signed_sum),
        uniform_twin="UIADD3",
        affine="sum",
        multiplied="at times",
    ),
    "IADD3.X": Op("alu"),
    "IMAD": Op("imad", plain(integers.multiply_add), uniform_twin="UIMAD", affine="product"),
    "IMAD.WIDE": Op("imad_wide", plain(integers.multiply_add_wide), affine="product"),
    "IMAD.HI": Op("imad_wide", plain(integers.multiply_add_high)),
    "IMAD.X": Op("imad"),
    # detail: shift of the first source
    "LEA": Op("alu", detailed(integers.shift_add), uniform_twin="ULEA", affine="sum"),
    "LEA.HI": Op("alu", detailed(integers.high_shift_add)),  # detail: shift of the first source
    "SHF": Op(
        "alu", detailed(integers.shift), uniform_twin="USHF", affine="shift"
    ),  # detail: left, right
    "SHF.L.W": Op("alu", plain(integers.funnel_left)),  # high and low word, count
    # detail: a named function of two inputs, or the look-up table of three
    "LOP3": Op("alu", detailed(logic), uniform_twin="ULOP3"),
    # detail of a comparison: its name, and a logic operation's where a predicate follows
    "ISETP": Op(
        "alu",
        detailed(comparisons.set_predicate),
        uniform_twin="UISETP",
        sets_predicate=True,
        affine="comparison",
    ),
    "ISETP.EX": Op("alu", sets_predicate=True),
    "FSETP": Op("alu", detailed(comparisons.set_predicate), sets_predicate=True),
    "DSETP": Op("fp64", detailed(comparisons.set_predicate), sets_predicate=True),
    "PLOP3": Op("alu", detailed(logic), sets_predicate=True),
    "IMNMX": Op("alu", detailed(comparisons.minimum_maximum)),  # detail: min max
    "FMNMX": Op("alu", detailed(comparisons.minimum_maximum)),
    "DMNMX": Op("fp64", detailed(comparisons.minimum_maximum)),
    "IABS": Op("alu", _absolute),
    "FABS": Op("alu", _absolute),
    "POPC": Op("xu", plain(integers.population_count)),
    "FFS": Op("xu", plain(integers.find_first_set)),
    "FLO": Op("xu", plain(integers.count_leading_zeros)),
    "BREV": Op("xu", plain(integers.reverse_bits)),
    "I2F": Op("xu", _convert),
    "I2F.RP": Op("xu", plain(conversions.to_single_rounded_up)),
    "F2I": Op("xu", _convert),
    "F2I.U32": Op("xu", plain(conversions.truncate_single_bits)),
    "F2F": Op("xu", _convert),
    "I2I": Op("alu", _convert, affine="sum"),
    "FADD": Op("fma", detailed(integers.signed_sum)),  # detail: "+-" subtracts
    "FMUL": Op("fma", plain(np.multiply)),
    "FFMA": Op("fma", _signed_fused),  # detail: signs of product and addend, "+-"
    "DADD": Op("fp64", detailed(integers.signed_sum)),
    "DMUL": Op("fp64", plain(np.multiply)),
    "DFMA": Op("fp64", _signed_fused),
    "MUFU": Op("xu", _library),  # detail: a name of LIBRARY
    "MUFU.RCP": Op("xu", plain(functions.reciprocal_bits)),
    "LIBM": Op("alu", _library),
    "FCHK": Op("alu"),
    "CALL": Op("cbu"),
    "RET": Op("cbu"),
    # Values that the launch knows. detail of S2R: tid.x ... laneid; of LDC: kind and name.
    "S2R": Op("registers", kind="special", uniform_twin="S2UR", timing="special_register"),
    "S2UR": Op("registers", kind="special", timing="special_register"),
    "R2UR": Op("alu"),
    "CS2R": Op("alu", kind="special"),
    "LDC": Op("constants", kind="constant", uniform_twin="ULDC", timing="constant"),
    "ULDC": Op("uniform", kind="constant"),
    # Memory.
    "LDG": Op("lsu", kind="load", timing="global_load"),
    "STG": Op("lsu", kind="store", timing="global_store"),
    "LDS": Op("lsu", kind="load", timing="shared_load"),
    "STS": Op("lsu", kind="store", timing="shared_store"),
    "LDL": Op("lsu", kind="load", timing="global_load"),
    "STL": Op("lsu", kind="store", timing="global_store"),
    # Atomics' detail: add sub min max exch cas and or xor.
    "ATOMG": Op("lsu", kind="atomic", timing="global_atomic"),
    "RED": Op("lsu", kind="atomic", timing="global_atomic"),
    "ATOMS": Op("lsu", kind="atomic", timing="shared_atomic"),
    COUNT_UP: Op("lsu", kind="atomic", timing="shared_atomic", by_word=True),
    SPIN: Op("lsu", kind="atomic", timing="shared_atomic", by_word=True),
    "MEMBAR": Op("lsu", kind="fence", timing="fence", waits_for_memory=True),
    "ERRBAR": Op("lsu", kind="fence"),  # after a MEMBAR of a compiler
    # Lanes of a warp together.
    # Mask, value, lane, limits; detail: idx up down bfly, and the results, value or inside.
    "SHFL": _of_lanes("lsu", "shuffle", when_apart="ask", timing="shuffle"),
    # Mask, predicate; detail: results, names of VOTES.
    "VOTE": _of_lanes("vote", "vote", when_apart="gather"),
    # Mask, value; detail: results, names of MATCHES. Timed as a vote, unmeasured.
    "MATCH": _of_lanes("vote", "match", when_apart="gather"),
    "WARPSYNC": _of_lanes("cbu", "warpsync", when_apart="ask", redirects=True),  # mask
    "ACTIVEMASK": Op("alu", kind="vote", convergent=True),  # a ballot without a predicate
    "WARPSYNC.ALL": Op("cbu", orders_lanes=True),
    # Warps of a block together. detail: sync count and or
    "BAR": Op("adu", kind="barrier", timing="barrier", convergent=True),
    # Control.
    "BRA": Op("cbu", kind="branch", redirects=True, is_branch=True),
    "BRA.DIV": Op("cbu", is_branch=True),  # tests whether lanes are together; never taken
    "EXIT": Op("cbu", kind="exit", redirects=True),
    "BSSY": Op("cbu", kind="bssy"),  # detail: number of the convergence barrier
    "BSYNC": Op("cbu", kind="bsync", redirects=True),
    "BREAK": Op("cbu", kind="break"),
    "NOP": Op("alu", orders_lanes=True),  # a warp's barrier, where its lanes are together
}

# The uniform datapath has one value for the whole warp.
OPS |= {
    op.uniform_twin: replace(op, unit="uniform", uniform_twin="", multiplied="")
    for op in OPS.values()
    if op.uniform_twin and op.kind == "compute"
}
# The op with the result of one of the uniform datapath.
VECTOR_TWINS: Mapping[str, str] = {
    op.uniform_twin: name for name, op in OPS.items() if op.uniform_twin
}

# Never issued: a conditional of the source and its predicate, and operands that are no
# instructions: bits read as another type, a constant bank, a scaled address. A computation
# whose name begins with a dot is made for a conditional of the source alone.
OPS |= {
    f".{name}": replace(op, issued=False, multiplied="", is_branch=False)
    for name, op in OPS.items()
    if op.kind == "compute"
}
OPS |= {
    ".IF": Op("none", kind="source_branch", issued=False),
    ".BOUNDS": Op("none", kind="bounds", issued=False),  # detail: name, space and shape
    ".CHECK": Op("none", kind="source_branch", issued=False),  # detail: the undefined behaviour
    ".CAST": Op("none", _convert, issued=False, affine="sum"),
    ".CONST": Op("none", kind="constant", issued=False),
    ".SCALE": Op("none", detailed(integers.shift_add), issued=False, affine="sum"),
}

# Instructions of a compiler's own code beside these. Mnemonics that only compute have rows of their
# own (`sass/translate.py`), where they are read.
OPS |= {
    ".ADDRESS": Op("none", as_detail_says, issued=False, affine="sum"),
    ".PREDICATE": Op("none", as_detail_says, issued=False),
    "bits.BMOV.32.CLEAR": Op("cbu"),
    "bits.ENDCOLLECTIVE": Op("cbu"),
    ".SAME": Op("none", as_detail_says, issued=False),
    ".S2R": Op("none", kind="special", issued=False),
    ".STS": Op("none", kind="store", issued=False, asynchronous=True),
    ".LDG": Op("none", kind="load", issued=False, asynchronous=True),
    "LDGSTS": Op("lsu", kind="load", timing="global_load", copies="begins", asynchronous=True),
    "LDGDEPBAR": Op("lsu", kind="commit_copies", copies="commits"),
    "DEPBAR": Op("adu", kind="await_copies", copies="awaits"),
    "LD": Op("lsu", kind="load", timing="global_load"),
    "ST": Op("lsu", kind="store", timing="global_store"),
    "ATOM": Op("lsu", kind="atomic", timing="global_atomic"),
    "bits.B2R.RESULT": Op("adu", as_detail_says),
    "QSPC": Op("lsu", as_detail_says),  # the memory of an address; unmeasured
    "MATCH.LANES": _together("vote", "match"),
    "REDUX.LANES": _together("vote", "reduce_lanes"),
    "BRA.APART": Op("cbu", kind="branch_if_apart", redirects=True, is_branch=True),
    "CALL.REL": Op("cbu", kind="branch", redirects=True, is_branch=True),
    "CALL.REG": Op("cbu", kind="jump", redirects=True, is_branch=True),
    "CALL.ABS": Op("cbu", kind="call_driver", redirects=True),
    "BRX": Op("cbu", kind="jump", redirects=True, is_branch=True),
    "RET.REL": Op("cbu", kind="jump", redirects=True, is_branch=True),
    "BPT.TRAP": Op("cbu", kind="trap", redirects=True),
    "WARPSYNC.COLLECTIVE": Op(
        "cbu",
        kind="collect",
        convergent=True,
        waits_for_lanes=True,
        is_replayed=True,
        redirects=True,
    ),
    "R2UR.FIRST": Op("alu", kind="first_lane", convergent=True),
    ".FIRST": Op("none", kind="first_lane", convergent=True, issued=False),
    "R2UR.DIFFERS": Op("alu", kind="differs", convergent=True, sets_predicate=True),
    "WARPSYNC.EXCLUSIVE": Op("cbu", kind="part", redirects=True),
    "CS2R.CLOCK": Op("alu", kind="clock"),
    "TEX": Op("tex", kind="texture"),  # at coordinates, filtered
    "TLD": Op("tex", kind="texture"),  # of an element
    "SULD": Op("tex", kind="surface_load"),
    "SUST": Op("tex", kind="surface_store"),
    "BMOV.GET": Op("cbu", kind="get_token"),
    "BMOV.SET": Op("cbu", kind="set_token"),
    "bits.LEPC": Op("alu", as_detail_says),
    "BAR.SYNC": Op("adu", kind="named_barrier", timing="barrier", redirects=True),
    "BAR.ARV": Op("adu", kind="arrive"),
    # Bulk copies: detail is "load", "multicast", "peer", "store" or, as operation and type, a
    # reduction. They complete where a phase or group is awaited.
    BULK_LOAD: Op("uniform", kind="bulk_copy", timing="bulk_load"),
    PEER_COPY: Op("uniform", kind="bulk_copy", timing="peer_copy"),
    BULK_STORE: Op("uniform", kind="bulk_copy", timing="bulk_store"),
    "UTMACMDFLUSH": Op("uniform", kind="commit_bulk"),
    LAND: Op("none", kind="land_bulk", issued=False),
    AWAIT_BULK: Op("none", kind="await_bulk", issued=False),
    # The barrier of a cluster of several blocks.
    "UCGABAR_ARV": Op("uniform", kind="cluster_arrive"),
    "UCGABAR_WAIT": Op("uniform", kind="cluster_wait", timing="barrier"),
    "WARPSYNC.MASK": Op(
        "cbu",
        kind="warpsync",
        convergent=True,
        waits_for_lanes=True,
        is_replayed=True,
        redirects=True,
    ),
    "LDC.BANK": Op("constants", kind="bank", timing="constant"),
    "ULDC.BANK": Op("uniform", kind="bank"),
    "SHFL.LANES": _together("lsu", "shuffle", timing="shuffle"),
    # 24 cycles on an H200; a shuffle takes 26.
    "MOVM.LANES": _together("lsu", "transpose", timing="shuffle"),
    "ELECT.LANES": _together("vote", "elect"),
    # The tensor cores' instructions: detail is a MatrixProduct.
    **{
        name: Op("tensor", kind="matrix_product", convergent=True)
        for name in ("HMMA", "IMMA", "DMMA", "BMMA", "QMMA")
    },
    # Those of a warpgroup: detail is a WarpgroupProduct.
    **{
        name: Op("tensor", kind="warpgroup_product", convergent=True)
        for name in ("HGMMA", "IGMMA", "QGMMA", "BGMMA")
    },
    "WARPGROUP.ARRIVE": Op("cbu"),
    # Detail: how many groups of products may be in flight.
    WARPGROUP_WAIT: Op("cbu", kind="warpgroup_wait", convergent=True),
    WARPGROUP_COMMIT: Op("none", kind="warpgroup_commit", issued=False, convergent=True),
    # Rows of 16 bytes, and their exchange with fragments, with the number of matrices, and whether
    # they are transposed, as detail.
    "LDSM": Op("lsu", kind="load", timing="shared_load"),
    "STSM": Op("lsu", kind="store", timing="shared_store"),
    ".FRAGMENTS": Op("none", kind="rows_to_fragments", issued=False, convergent=True),
    ".ROWS": Op("none", kind="fragments_to_rows", issued=False, convergent=True),
    ".LANE": Op("none", kind="special", issued=False),
    "VOTE.LANES": _together("vote", "vote"),
    ".VOTE": replace(_together("none", "vote"), issued=False),
}


def disassemble(program: Program) -> str:
    """Return the program as text, one instruction a line, in the manner of nvdisasm."""
    return "\n".join(
        f"{pc:4d} {guard_of(ins):>6} {ins.op:<10} {operands_of(ins, program.immediates)}"
        f"  ; line {ins.line}"
        for pc, ins in enumerate(program.instructions)
    )


def text_of(instruction: Instruction, immediates: Mapping[int, np.generic]) -> str:
    """Return an instruction as text: a disassembler's, else guard, op, operands."""
    if instruction.text:
        return instruction.text
    parts = (guard_of(instruction), instruction.op, operands_of(instruction, immediates))
    return " ".join(part for part in parts if part)


def guard_of(instruction: Instruction) -> str:
    """Return `@R3`, `@!R3`, or nothing."""
    if instruction.guard is None:
        return ""
    return f"@{'!' if instruction.negated else ''}R{instruction.guard}"


def operands_of(instruction: Instruction, immediates: Mapping[int, np.generic]) -> str:
    """Return destinations, sources, memory, detail and target, as far as there are any."""
    parts = [f"R{r}" for r in instruction.dst]
    parts += [str(immediates[r]) if r in immediates else f"R{r}" for r in instruction.src]
    if instruction.memory is not None:
        parts.append(f"[{instruction.memory.name}+{instruction.memory.offset:#x}]")
    if instruction.detail is not None:
        detail = instruction.detail
        parts.append(f"<{' '.join(map(str, detail)) if isinstance(detail, tuple) else detail}>")
    if instruction.target >= 0:
        parts.append(f"-> {instruction.target}")
    return ", ".join(parts)
