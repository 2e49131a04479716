"""The machine's instructions: one table of rows in SASS's words, and the flat `Program`.

A row says which unit serves an instruction, what is true of it and, where it only computes, how.
What touches memory, works with other threads or changes the program counter is done by the machine.
A `Program` does not know what it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from gpusim.isa import floats
from gpusim.isa.fused import fused_multiply_add
from gpusim.isa.lookup_tables import looked_up
from gpusim.version import __version__

DType = np.dtype[Any]
Array = np.ndarray[Any, Any]


SPACES = ("shared", "local", "generic")
# Where shared and local memory begin among all addresses, as a multiple of 2^32: far above arrays.
SHARED_HIGH, LOCAL_HIGH = 0x7FFF, 0x7FFE
ANY_ARRAY = ""  # the name of what an access by address touches that may mean any array


@dataclass(frozen=True)
class Memory:
    """What a memory instruction touches: `count` elements of `dtype` a lane.

    They begin `offset` bytes after the address. `space` is "global", "shared", "local", or
    "generic" where the address says which of them;
    `name` is the array in the source, `size` its number of elements (None for a parameter or
    dynamic shared memory, whose size the launch knows) and `base` its first byte within the
    block's or thread's memory. Of `volatile` accesses each is made, in order; those `of_block`
    are strong for the threads of their block alone.
    Where it is `by_address`, lanes touch whatever lies at their addresses, and `name` is the one
    array that these were made from, or ANY_ARRAY: one of `among`, or any where that is empty.
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

    @property
    def width_bytes(self) -> int:
        """Bytes that one lane touches."""
        return self.count * self.dtype.itemsize

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
    not take part. `dtype` is the type worked in, `detail` what the op needs
    (OPS says what), `target` a pc: where BRA goes, or the BSYNC that ends a BSSY.
    `line` is the line in the source file, `text` what a disassembler writes, if one did.
    `stall_cycles` is the stall count that a compiler wrote behind it, 0 where none did;
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


def behind(shared: int) -> int:
    """Return where memory that the system keeps begins behind so many bytes of a block's own."""
    return -(-shared // 16) * 16


class Link(NamedTuple):
    """At an `offset`, the address of an array and so many bytes more."""

    offset: int
    array: str
    added: int


@dataclass(frozen=True)
class BankLayout:
    """What lies in the constant banks, as bytes at offsets: filled from the launch.

    In bank 0 stand `words` that the driver sets, by offset and meaning; the `parameters`: name,
    offset and size of each; and the array at which a cooperative launch's blocks meet
    (`grid_barrier`), with the offsets of its address's lower and upper half. `fixed` are whole
    banks that the code brings, `addresses` the variables whose addresses stand in bank 4, by
    offset, and `functions` those of the driver's. `links` are the addresses within the initial
    values of variables, by the array that holds them; those within a bank go by its number.
    `images` are arrays with the bytes of a bank, for who reads it by generic address: the bank,
    and where the array begins in it; `heap` is the array from which malloc gives memory. A block's
    own shared memory begins `shared_start` bytes behind the address that its window has;
    `reserved_bytes` more stand behind it where code asks for what the system keeps for it.
    """

    parameters: tuple[tuple[str, int, int], ...] = ()
    words: Mapping[int, str] = field(default_factory=dict)
    fixed: Mapping[int, bytes] = field(default_factory=dict)
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
class Program:
    """A kernel ready to run: instructions, addressed by pc from 0.

    `shared_bytes` and `local_bytes` are the static memory of a block and of a thread;
    `registers` counts virtual registers, `barriers` the convergence barriers (BSSY),
    `register_estimate` the 32-bit registers a thread needs on the GPU. Registers among
    `immediates` are never written; those among `initial` are, and hold a value before. Registers
    among `constants` hold 32-bit words of constant banks, given as bank and offset; `layout` says
    what lies in these. `compiler` names the one whose own code this is, empty for a lowering's.
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

    def addressable_shared(self, dynamic: int) -> int:
        """Return the bytes of a block's shared memory that its code may address."""
        own = self.shared_bytes + dynamic
        reserved = 0 if self.layout is None else self.layout.reserved_bytes
        return behind(own) + reserved if reserved else own

    @property
    def generator(self) -> str:
        """Who made it, with the version: "NVRTC 13.5", or gpusim for a lowering's."""
        return self.compiler or f"gpusim {__version__}"


# Adds one in shared memory and gives nothing back: all lanes of one word at once.
COUNT_UP = "ATOMS.POPC.INC.32"
# Swaps in shared memory if nothing has come between: tried for one lane of each word, which code
# goes round for until all lanes are through.
SPIN = "ATOMS.CAST.SPIN"


@dataclass(frozen=True)
class Op:
    """A row of OPS: the unit that serves it, how it computes, what it counts as, and its traits.

    `evaluate(instruction, *sources)` returns the destination's values, a tuple where there are
    several. `kind` is "compute" where `evaluate` is all there is to do, else the name of what the
    machine does.
    `issued` is False for a row that describes the source and costs nothing.
    `action`: what the clock makes of it that takes no fixed time ("" where nothing does).
    `convergent`: threads take part together, so that it is never guarded nor moved.
    `waits_for_lanes`: it waits for the lanes that its first source, a mask, names.
    `orders_lanes`: what its lanes did to memory before it, all of them see behind it.
    `waits_for_memory`: its warp waits until others have seen what it did to memory before.
    `when_apart`: what stands before it where lanes of a warp may be apart: "ask" whether they are
    together, or "gather" them.
    `redirects`: its warp waits behind it for where it goes on.
    `uniform_twin`: the op of the uniform datapath that does the same.
    `is_copy`: it only moves a value. `sets_predicate`: its result guards others.
    `affine`: of which sources the result is a linear function; a name of AFFINE, "" for none.
    `widens`: its result may have more bits than its sources.
    `by_word`: lanes that name one word are served at once, not one after the other.
    `copies`: its part in copies from global to shared memory that a warp does not wait for: it
    "begins" one, "commits" those since as a group, or "awaits" groups (`detail`: how many of the
    last may be on their way; None where it waits for something else). `asynchronous`: it accesses
    memory at any time until its copy is awaited.
    `typed(instruction, *sources)` returns what untyped registers are taken for, operand by operand.
    """

    unit: str
    evaluate: Callable[..., Array | tuple[Array, ...]] | None = None
    kind: str = "compute"
    issued: bool = True
    action: str = ""
    convergent: bool = False
    waits_for_lanes: bool = False
    orders_lanes: bool = False
    waits_for_memory: bool = False
    when_apart: Literal["", "ask", "gather"] = ""
    redirects: bool = False
    uniform_twin: str = ""
    is_copy: bool = False
    sets_predicate: bool = False
    affine: str = ""
    widens: bool = False
    by_word: bool = False
    copies: Literal["", "begins", "commits", "awaits"] = ""
    asynchronous: bool = False
    typed: Callable[..., Sequence[Array]] | None = None

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
        """Whether nothing comes of it but the value of a register."""
        return self.kind in ("compute", "special", "constant")

    @property
    def is_movable(self) -> bool:
        """Whether it may change places with others that it does not depend on."""
        return self.gives_value or self.kind in ("load", "store", "source_branch", "bounds")

    @property
    def is_guardable(self) -> bool:
        """Whether a guard may stand for a branch around it."""
        return not self.convergent and self.kind not in ("fence", "atomic")

    @property
    def leaves(self) -> bool:
        """Whether a lane for which it is on does not go on behind it."""
        return self.kind in ("branch", "exit")

    @property
    def leads_elsewhere(self) -> bool:
        """Whether lanes may go on elsewhere than behind it or at a branch's target."""
        return self.kind in ("jump", "branch_if_apart")

    @property
    def is_pure(self) -> bool:
        """Whether it neither touches memory nor meets lanes but those that parted with it."""
        return self.kind in _LONE

    @property
    def keeps_to_itself(self) -> bool:
        """Whether the lanes that run it mostly neither stop at it nor let others go on."""
        return self.kind in _KEPT_TO_ITSELF

    @property
    def has_number(self) -> bool:
        """Whether it is of a barrier with a number: its sources are that, and how many threads."""
        return self.kind in ("named_barrier", "arrive")

    @property
    def is_untimed(self) -> bool:
        """Whether the machine runs it and the clock does not have it."""
        return self.has_number

    @property
    def only_describes(self) -> bool:
        """Whether nothing else changes with the lanes that take part."""
        return self.kind in ("compute", "source_branch", "bounds")


_ACCESSES = ("load", "store", "atomic")
_LONE = (
    "compute", "special", "constant", "source_branch", "bounds", "branch", "bssy", "bsync", "break",
)  # fmt: skip
_KEPT_TO_ITSELF = (
    "compute", "special", "constant", "bank", "clock", "load", "store", "atomic", "fence",
    "bounds", "source_branch", "shuffle", "vote", "match", "activemask", "exchange", "poll",
    "elect", "same_lanes", "reduce_lanes", "agrees", "warpsync", "gather", "collect", "bssy",
    "get_token", "set_token",
)  # fmt: skip

# Of which sources, by position, that move by the same step each time the result does so too, given
# which of them move.
AFFINE: Mapping[str, Callable[[Instruction, Sequence[bool]], bool]] = {
    "": lambda _, moving: False,
    "sum": lambda _, moving: True,
    "product": lambda _, moving: not (moving[0] and moving[1]),
    "shift": lambda instruction, moving: instruction.detail == "left" and not moving[1],
    "select": lambda _, moving: not moving[2],
    "first": lambda _, moving: not any(moving[1:]),
    "high": lambda _, moving: False,
    "comparison": lambda _, moving: False,
}


COMPARISONS: Mapping[str, Callable[..., Array]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def _signed_sum(instruction: Instruction, *terms: Array) -> Array:
    signs = instruction.detail or "+" * len(terms)
    total = terms[0] if signs[0] == "+" else np.negative(terms[0])
    for sign, term in zip(signs[1:], terms[1:], strict=True):
        total = total + term if sign == "+" else total - term
    return total


def _multiply_add(instruction: Instruction, a: Array, b: Array, c: Array) -> Array:
    return (a * b).astype(c.dtype, copy=False) + c


def _multiply_add_wide(instruction: Instruction, a: Array, b: Array, c: Array) -> Array:
    return (a.astype(np.int64) * b.astype(np.int64)).astype(c.dtype, copy=False) + c


def _multiply_add_high(instruction: Instruction, a: Array, b: Array, c: Array) -> Array:
    """(a * b + c) >> 32, where c is the 64-bit addend that holds the third source on top."""
    wide = np.dtype(f"{a.dtype.kind}8").type
    product = a.astype(wide) * b.astype(wide)
    high: Array = (product >> wide(32)).astype(a.dtype)
    return high + c


def _fused_multiply_add(instruction: Instruction, a: Array, b: Array, c: Array) -> Array:
    signs = instruction.detail or "++"
    a = np.negative(a) if signs[0] == "-" else a
    c = np.negative(c) if signs[1] == "-" else c
    return fused_multiply_add(a, b, c)


def _shift(instruction: Instruction, value: Array, count: Array) -> Array:
    """Shift by `count`; a count of the width or more shifts everything out."""
    bits = value.dtype.itemsize * 8
    amount = count.astype(value.dtype)
    over = (amount < 0) | (amount >= bits)
    if instruction.detail == "left":
        shifted = np.left_shift(value, np.where(over, 0, amount).astype(value.dtype))
        return np.asarray(np.where(over, value.dtype.type(0), shifted))
    shifted = np.right_shift(value, np.where(over, bits - 1, amount).astype(value.dtype))
    return np.asarray(np.where(over & (value.dtype.kind == "u"), value.dtype.type(0), shifted))


def _funnel_shift(instruction: Instruction, high: Array, low: Array, count: Array) -> Array:
    """The upper of two 32-bit words that are shifted left together."""
    rest = high.dtype.type(32) - count
    return np.asarray(np.left_shift(high, count) | np.right_shift(low, rest))


def _shift_add(instruction: Instruction, a: Array, b: Array) -> Array:
    shift = instruction.detail
    total: Array = np.left_shift(a, a.dtype.type(shift)).astype(b.dtype) + b
    return total


LOGIC: Mapping[str, Callable[..., Array]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": lambda a: np.bitwise_not(a),
    "andn": lambda a, b: np.bitwise_and(a, np.bitwise_not(b)),
}


def _high_shift_add(instruction: Instruction, a: Array, b: Array) -> Array:
    """The bits of `a` that a left shift by `detail` moves out at the top, added to `b`."""
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    bits = unsigned.itemsize * 8 - instruction.detail
    high: Array = np.right_shift(a.view(unsigned), unsigned.type(bits)).astype(b.dtype)
    return high + b


def _logic(instruction: Instruction, *sources: Array) -> Array:
    if isinstance(instruction.detail, int):
        return looked_up(instruction.detail, *sources)
    return LOGIC[instruction.detail](*sources)


def _set_predicate(instruction: Instruction, a: Array, b: Array, *also: Array) -> Array:
    """Compare; `detail` is (comparison,) or (comparison, "and" | "or") with a third source."""
    result = COMPARISONS[instruction.detail[0]](a, b)
    for predicate in also:
        result = LOGIC[instruction.detail[1]](result, predicate)
    return result


def _minimum_maximum(instruction: Instruction, a: Array, b: Array) -> Array:
    """CUDA's min and max: a NaN loses against a number, and -0 is less than +0."""
    if a.dtype.kind == "f":
        return (floats.minimum if instruction.detail == "min" else floats.maximum)(a, b)
    return np.minimum(a, b) if instruction.detail == "min" else np.maximum(a, b)


def convert(value: Array, dtype: DType) -> Array:
    """Convert as C does on CUDA: floats to integers truncate and saturate, NaN gives 0."""
    if dtype.kind in "iu" and value.dtype.kind == "f":
        info = np.iinfo(dtype)
        whole = np.nan_to_num(np.trunc(value.astype(np.float64)), nan=0.0)
        low = whole <= float(info.min)
        high = whole >= float(info.max)
        inside = np.where(low | high, 0.0, whole).astype(dtype)
        return np.where(low, dtype.type(info.min), np.where(high, dtype.type(info.max), inside))
    return value.astype(dtype)


def _convert(instruction: Instruction, value: Array) -> Array:
    assert instruction.dtype is not None
    return convert(value, instruction.dtype)


def _to_float_rounded_up(instruction: Instruction, value: Array) -> Array:
    exact = value.astype(np.float64)
    near = exact.astype(np.float32)
    up = np.nextafter(near, np.float32(np.inf))
    return np.where(near < exact, up, near)


def _truncate_bits(instruction: Instruction, value: Array) -> Array:
    """F2I.U32 of float bits held in an unsigned register."""
    return convert(value.astype(np.uint32).view(np.float32), np.dtype(np.uint32))


def _reciprocal_bits(instruction: Instruction, value: Array) -> Array:
    """MUFU.RCP whose result is read as bits, in an unsigned register."""
    with np.errstate(divide="ignore"):
        return (np.float32(1) / value).view(np.uint32)


def _population_count(instruction: Instruction, value: Array) -> Array:
    unsigned = value.view(np.dtype(f"u{value.dtype.itemsize}"))
    return np.asarray(np.bitwise_count(unsigned), dtype=np.int32)


def _find_first_set(instruction: Instruction, value: Array) -> Array:
    """Position of the lowest set bit from 1, 0 where there is none."""
    lowest = value & (np.bitwise_not(value) + value.dtype.type(1))
    unsigned = np.dtype(f"u{value.dtype.itemsize}")
    below = np.bitwise_count(lowest.view(unsigned) - unsigned.type(1)).astype(np.int32)
    return np.where(value == 0, np.int32(0), below + np.int32(1))


def _reverse_bits(value: Array) -> Array:
    unsigned = np.dtype(f"u{value.dtype.itemsize}")
    bits = value.view(unsigned)
    out = np.zeros_like(bits)
    one = unsigned.type(1)
    for _ in range(unsigned.itemsize * 8):
        out = (out << one) | (bits & one)
        bits = bits >> one
    return out.view(value.dtype)


def _count_leading_zeros(instruction: Instruction, value: Array) -> Array:
    unsigned = np.dtype(f"u{value.dtype.itemsize}")
    bits = value.view(unsigned).copy()
    for step in (1, 2, 4, 8, 16, 32)[: unsigned.itemsize.bit_length() + 2]:
        bits |= bits >> unsigned.type(step)
    zeros: Array = np.bitwise_count(np.bitwise_not(bits)).astype(np.int32)
    return zeros


def _predicate_logic(instruction: Instruction, *sources: Array) -> Array:
    if instruction.detail == "not":
        return np.logical_not(sources[0])
    table = LOGIC if instruction.detail in LOGIC else COMPARISONS
    return table[instruction.detail](*sources)


MATH: Mapping[str, Callable[..., Array]] = {
    "div": np.divide,
    "idiv": lambda a, b: _truncated_division(a, b),
    "rem": lambda a, b: _truncated_remainder(a, b),
    "ipow": lambda a, b: _integer_power(a, b),
    "floordiv": np.floor_divide,
    "floormod": np.remainder,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "fabs": np.abs,
    "fmod": np.fmod,
    "pow": floats.power,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}


def _truncated_division(a: Array, b: Array) -> Array:
    """C's integer division; by zero all bits are set, as the hardware's sequence leaves them."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // safe
    else:
        quotient = np.floor_divide(a, safe)
        quotient = quotient + ((a - quotient * safe != 0) & (quotient < 0)).astype(a.dtype)
    return np.where(b == 0, np.bitwise_not(b), quotient)


def _truncated_remainder(a: Array, b: Array) -> Array:
    """C's remainder, with the sign of `a`; by zero all bits are set."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    remainder = a - _truncated_division(a, safe) * safe
    return np.where(b == 0, np.bitwise_not(b), remainder)


def _integer_power(base: Array, exponent: Array) -> Array:
    """Return a power that wraps around; 1 / base**n, toward zero, where the exponent is -n."""
    base, exponent = np.broadcast_arrays(base, exponent)
    negative, odd = exponent < 0, (exponent & 1) == 1
    left = np.where(negative, 0, exponent).astype(exponent.dtype)
    result, square = np.ones_like(base), base
    while left.any():
        result = np.where((left & 1) == 1, result * square, result)
        square = square * square
        left = left >> 1
    reciprocal = np.where(np.abs(base) == 1, np.where(odd, base, np.ones_like(base)), 0)
    return np.where(negative, reciprocal.astype(base.dtype), result)


def _math(instruction: Instruction, *sources: Array) -> Array:
    """The value of a function whose sequence of instructions ends here; `detail` names it."""
    result = MATH[instruction.detail](*sources)
    return result if instruction.dtype is None else result.astype(instruction.dtype, copy=False)


def _move(instruction: Instruction, value: Array) -> Array:
    return value


def _absolute(instruction: Instruction, value: Array) -> Array:
    return np.abs(value).astype(instruction.dtype or value.dtype, copy=False)


def _select(instruction: Instruction, a: Array, b: Array, predicate: Array) -> Array:
    return np.where(predicate, a, b)


def _float_multiply(instruction: Instruction, a: Array, b: Array) -> Array:
    return a * b


def _float_sum(instruction: Instruction, a: Array, *b: Array) -> Array:
    if instruction.detail == "-":
        return np.negative(a)
    return a - b[0] if instruction.detail == "+-" else a + b[0]


def as_detail_says(instruction: Instruction, *registers: Array) -> Array | tuple[Array, ...]:
    """Return what an instruction's detail computes: the form of a compiler's own row."""
    results: Array | tuple[Array, ...] = instruction.detail.computed(*registers)
    return results


def _of_lanes(unit: str, kind: str, **traits: Any) -> Op:
    """Return the row of what the lanes do together that a mask, its first source, names."""
    return Op(unit, kind=kind, convergent=True, waits_for_lanes=True, orders_lanes=True, **traits)


# An instruction with neither destination nor sources stands for work whose value another gives:
# the high half of a 64-bit addition, the steps of a library function before its last.
OPS: dict[str, Op] = {
    "MOV": Op("alu", _move, uniform_twin="UMOV", is_copy=True, affine="sum"),
    "SEL": Op("alu", _select, uniform_twin="USEL", affine="select"),
    "FSEL": Op("alu", _select),
    "IADD3": Op(
        "alu", _signed_sum, uniform_twin="UIADD3", affine="sum"
    ),  # detail: a sign per source, "+-"
    "IADD3.X": Op("alu"),
    "IMAD": Op("imad", _multiply_add, uniform_twin="UIMAD", affine="product"),
    "IMAD.WIDE": Op("imad_wide", _multiply_add_wide, affine="product", widens=True),
    "IMAD.HI": Op("imad_wide", _multiply_add_high),
    "IMAD.X": Op("imad"),
    "LEA": Op(
        "alu", _shift_add, uniform_twin="ULEA", affine="sum"
    ),  # detail: shift of the first source
    "LEA.HI": Op("alu", _high_shift_add),  # detail: shift of the first source
    "SHF": Op("alu", _shift, uniform_twin="USHF", affine="shift"),  # detail: left, right
    "SHF.L.W": Op("alu", _funnel_shift),  # high and low word, count
    "LOP3": Op(
        "alu", _logic, uniform_twin="ULOP3"
    ),  # detail: and or xor not andn, or the table of three
    "ISETP": Op(
        "alu", _set_predicate, uniform_twin="UISETP", sets_predicate=True, affine="comparison"
    ),
    "ISETP.EX": Op("alu", sets_predicate=True),
    "FSETP": Op("alu", _set_predicate, sets_predicate=True),
    "DSETP": Op("fp64", _set_predicate, sets_predicate=True),
    "PLOP3": Op("alu", _predicate_logic, sets_predicate=True),
    "IMNMX": Op("alu", _minimum_maximum),  # detail: min max
    "FMNMX": Op("alu", _minimum_maximum),
    "DMNMX": Op("fp64", _minimum_maximum),
    "IABS": Op("alu", _absolute),
    "FABS": Op("alu", _absolute),
    "POPC": Op("xu", _population_count, action="special"),
    "FFS": Op("xu", _find_first_set, action="special"),
    "FLO": Op("xu", _count_leading_zeros, action="special"),
    "BREV": Op("xu", lambda instruction, value: _reverse_bits(value), action="special"),
    "I2F": Op("xu", _convert, action="special"),
    "I2F.RP": Op("xu", _to_float_rounded_up, action="special"),
    "F2I": Op("xu", _convert, action="special"),
    "F2I.U32": Op("xu", _truncate_bits, action="special"),  # of a float's bits
    "F2F": Op("xu", _convert, action="special"),
    "I2I": Op("alu", _convert, affine="sum", widens=True),
    "FADD": Op("fma", _float_sum),  # detail: "+-" subtracts
    "FMUL": Op("fma", _float_multiply),
    "FFMA": Op("fma", _fused_multiply_add),  # detail: signs of product and addend, "+-"
    "DADD": Op("fp64", _float_sum),
    "DMUL": Op("fp64", _float_multiply),
    "DFMA": Op("fp64", _fused_multiply_add),
    "MUFU": Op("xu", _math, action="special"),  # detail: a name of MATH
    "MUFU.RCP": Op("xu", _reciprocal_bits, action="special"),
    "LIBM": Op("alu", _math),
    "FCHK": Op("alu"),
    "CALL": Op("cbu"),
    "RET": Op("cbu"),
    # The uniform datapath: one value for the whole warp.
    "UMOV": Op("uniform", _move, is_copy=True, affine="sum"),
    "UIADD3": Op("uniform", _signed_sum, affine="sum"),
    "UIMAD": Op("uniform", _multiply_add, affine="product"),
    "ULEA": Op("uniform", _shift_add, affine="sum"),
    "USHF": Op("uniform", _shift, affine="shift"),
    "ULOP3": Op("uniform", _logic),
    "UISETP": Op("uniform", _set_predicate, sets_predicate=True, affine="comparison"),
    "USEL": Op("uniform", _select, affine="select"),
    # Values that the launch knows. detail of S2R: tid.x ... laneid; of LDC: what lies there.
    "S2R": Op("registers", kind="special", uniform_twin="S2UR", action="special_register"),
    "S2UR": Op("registers", kind="special", action="special_register"),
    "R2UR": Op("alu"),
    "CS2R": Op("alu", kind="special"),
    "LDC": Op("constants", kind="constant", uniform_twin="ULDC", action="constant"),
    "ULDC": Op("uniform", kind="constant"),
    # Memory.
    "LDG": Op("lsu", kind="load", action="global_load"),
    "STG": Op("lsu", kind="store", action="global_store"),
    "LDS": Op("lsu", kind="load", action="shared_load"),
    "STS": Op("lsu", kind="store", action="shared_store"),
    "LDL": Op("lsu", kind="load", action="global_load"),
    "STL": Op("lsu", kind="store", action="global_store"),
    # Atomics' detail: add sub min max exch cas and or xor.
    "ATOMG": Op("lsu", kind="atomic", action="global_atomic"),
    "RED": Op("lsu", kind="atomic", action="global_atomic"),
    "ATOMS": Op("lsu", kind="atomic", action="shared_atomic"),
    COUNT_UP: Op("lsu", kind="atomic", action="shared_atomic", by_word=True),
    SPIN: Op("lsu", kind="atomic", action="shared_atomic", by_word=True),
    "MEMBAR": Op("lsu", kind="fence", action="fence", waits_for_memory=True),
    "ERRBAR": Op("lsu", kind="fence"),  # what a compiler writes behind a MEMBAR
    # Lanes of a warp together.
    # Mask, value, lane, width; detail: idx up down bfly.
    "SHFL": _of_lanes("lsu", "shuffle", when_apart="ask", action="shuffle"),
    # Mask, predicate; detail: all any ballot.
    "VOTE": _of_lanes("vote", "vote", when_apart="gather"),
    # Mask, value; detail: any all, which has a predicate as second result. Timed as a vote, which
    # nobody has measured.
    "MATCH": _of_lanes("vote", "match", when_apart="gather"),
    "WARPSYNC": _of_lanes("cbu", "warpsync", when_apart="ask", redirects=True),  # mask
    "ACTIVEMASK": Op("alu", kind="activemask", convergent=True),
    "WARPSYNC.ALL": Op("cbu", orders_lanes=True),
    # Warps of a block together. detail: sync count and or
    "BAR": Op("adu", kind="barrier", action="barrier", convergent=True),
    # Control.
    "BRA": Op("cbu", kind="branch", redirects=True),
    "BRA.DIV": Op("cbu"),  # asks whether lanes are together; taken by none
    "EXIT": Op("cbu", kind="exit", redirects=True),
    "BSSY": Op("cbu", kind="bssy"),  # detail: number of the convergence barrier
    "BSYNC": Op("cbu", kind="bsync", redirects=True),
    "BREAK": Op("cbu", kind="break"),
    "NOP": Op("alu", orders_lanes=True),  # a warp's barrier, where its lanes are together
}

# The op that does what one of the uniform datapath does.
VECTOR_TWINS: Mapping[str, str] = {
    op.uniform_twin: name for name, op in OPS.items() if op.uniform_twin
}

# Never issued: a conditional of the source and its predicate, and what is an operand rather than
# an instruction: bits read as another type, a constant bank, a scaled address. A computation
# whose name begins with a dot is made for a conditional of the source alone.
OPS |= {f".{name}": replace(op, issued=False) for name, op in OPS.items() if op.kind == "compute"}
OPS |= {
    ".IF": Op("none", kind="source_branch", issued=False),
    ".BOUNDS": Op("none", kind="bounds", issued=False),  # detail: name, space and shape
    ".CHECK": Op("none", kind="source_branch", issued=False),  # detail: what is undefined
    ".CAST": Op("none", _convert, issued=False, affine="sum", widens=True),
    ".CONST": Op("none", kind="constant", issued=False),
    ".SCALE": Op("none", _shift_add, issued=False, affine="sum"),
}

# What a compiler's own code has beside these. Mnemonics that only compute have rows of their own
# (`sass/translate.py`), where they are read.
OPS |= {
    ".ADDRESS": Op("none", as_detail_says, issued=False, affine="sum", widens=True),
    ".PREDICATE": Op("none", as_detail_says, issued=False),
    "bits.BMOV.32.CLEAR": Op("cbu"),
    "bits.ENDCOLLECTIVE": Op("cbu"),
    ".SAME": Op("none", as_detail_says, issued=False),
    ".STS": Op("none", kind="store", issued=False, asynchronous=True),
    ".LDG": Op("none", kind="load", issued=False, asynchronous=True),
    "LDGSTS": Op("lsu", kind="load", action="global_load", copies="begins", asynchronous=True),
    "LDGDEPBAR": Op("lsu", copies="commits"),
    "DEPBAR": Op("adu", copies="awaits"),
    "LD": Op("lsu", kind="load", action="global_load"),
    "ST": Op("lsu", kind="store", action="global_store"),
    "ATOM": Op("lsu", kind="atomic", action="global_atomic"),
    "bits.B2R.RESULT": Op("adu", as_detail_says),
    "QSPC": Op("lsu", as_detail_says),  # which memory an address means; nobody has measured it
    "MATCH.LANES": Op("vote", kind="same_lanes", convergent=True, orders_lanes=True),
    "REDUX.LANES": Op("vote", kind="reduce_lanes", convergent=True, orders_lanes=True),
    "BRA.APART": Op("cbu", kind="branch_if_apart", redirects=True),
    "CALL.REL": Op("cbu", kind="branch", redirects=True),
    "CALL.REG": Op("cbu", kind="jump", redirects=True),
    "CALL.ABS": Op("cbu", kind="call_driver", redirects=True),
    "BRX": Op("cbu", kind="jump", redirects=True),
    "RET.REL": Op("cbu", kind="jump", redirects=True),
    "BPT.TRAP": Op("cbu", kind="trap"),
    "WARPSYNC.COLLECTIVE": Op(
        "cbu", kind="collect", convergent=True, waits_for_lanes=True, redirects=True
    ),
    "R2UR.AGREES": Op("alu", kind="agrees", convergent=True, sets_predicate=True),
    "WARPSYNC.EXCLUSIVE": Op("cbu", kind="part", redirects=True),
    "CS2R.CLOCK": Op("alu", kind="clock"),
    "BMOV.GET": Op("cbu", kind="get_token"),
    "BMOV.SET": Op("cbu", kind="set_token"),
    "bits.LEPC": Op("alu", as_detail_says),
    "BAR.SYNC": Op("adu", kind="named_barrier", action="barrier", redirects=True),
    "BAR.ARV": Op("adu", kind="arrive"),
    "WARPSYNC.MASK": Op(
        "cbu", kind="gather", convergent=True, waits_for_lanes=True, redirects=True
    ),
    "LDC.BANK": Op("constants", kind="bank", action="constant"),
    "ULDC.BANK": Op("uniform", kind="bank"),
    "SHFL.LANES": Op("lsu", kind="exchange", action="shuffle", convergent=True, orders_lanes=True),
    "ELECT.LANES": Op("vote", kind="elect", convergent=True, orders_lanes=True),
    "VOTE.LANES": Op("vote", kind="poll", convergent=True, orders_lanes=True),
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
