"""Choose instructions for operations: a table, and what several operations become together."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from gpusim.compiler.ir import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    UINT32,
    Array,
    Block,
    DType,
    Function,
    Value,
)
from gpusim.isa import Memory
from gpusim.launch import ComputeCapability
from gpusim.lowering.addresses import ACCESSES, Addresses, array_of
from gpusim.lowering.code import Code, Phi, Row
from gpusim.lowering.division import Emitter, Reciprocal, divide, reciprocal_before
from gpusim.lowering.graph import Dominators, Loop, definitions, dominators, natural_loops
from gpusim.lowering.needed import needed_values
from gpusim.lowering.rows import CHOICES, SEQUENCES, type_class
from gpusim.lowering.uniform import COMPARES, Uniformity, uniform_values

UNIFORM_TWINS = {
    "MOV": "UMOV", "IADD3": "UIADD3", "IMAD": "UIMAD", "LEA": "ULEA", "SHF": "USHF",
    "LOP3": "ULOP3", "LDC": "ULDC", "S2R": "S2UR",
}  # fmt: skip
LOADS = {"global": "LDG", "shared": "LDS", "local": "LDL"}
STORES = {"global": "STG", "shared": "STS", "local": "STL"}
FULL_MASK = 0xFFFFFFFF
REGISTER_BYTES = 4
WIDE = 8


def select(
    function: Function,
    cc: ComputeCapability,
    uniformity: Uniformity,
    addresses: Addresses,
    *,
    fuse: bool,
) -> Code:
    """Return the function as rows; its blocks keep the control flow and lose their bodies.

    `fuse` joins operations into one instruction where the machine has one for them.
    """
    return _Selector(function, cc, uniformity, addresses, fuse).run()


class _Selector:
    def __init__(
        self,
        function: Function,
        cc: ComputeCapability,
        uniformity: Uniformity,
        addresses: Addresses,
        fuse: bool,
    ) -> None:
        self.function = function
        self.cc = cc
        self.apart = uniformity.apart
        self.fuse = fuse
        self.addresses = addresses
        self.code = Code(function, divergent=set(uniformity.branches))
        self.emit = Emitter(self.code, [])
        self.registers: dict[Value, int] = {}
        self.vectors: dict[Value, list[int]] = {}
        self.uniform = uniform_values(function, uniformity) if fuse and cc.major >= 8 else set()
        self.block = function.entry
        self.constants: dict[int, int] = {}
        self.users: dict[Value, list[Value]] = {}
        self.branches: dict[Value, int] = {}
        self.reciprocals: dict[tuple[Block, int], Reciprocal] = {}
        self.of_source: set[Value] = set()
        self.absorbed: dict[Value, Value] = {}
        self.inside: set[Value] = set()
        self.needed = needed_values(function)
        self._count_uses()
        if fuse:
            for block in function.blocks:
                self._absorb(block)

    def _count_uses(self) -> None:
        for value in self.function.values():
            if value not in self.needed:
                self.of_source.update(value.args)
            else:
                for arg in value.args:
                    self.users.setdefault(arg, []).append(value)
        for block in self.function.blocks:
            if block.condition is not None:
                self.branches[block.condition] = self.branches.get(block.condition, 0) + 1

    # -- several operations in one instruction ---------------------------------------------

    def _absorb(self, block: Block) -> None:
        """Find the operations of a block that become part of the one that uses them."""
        here = set(block.body)

        def take(user: Value, *ops: str) -> bool:
            for arg in user.args:
                once = len(self.users.get(arg, ())) == 1 and arg not in self.branches
                if arg in here and arg.op in ops and once and arg not in self.absorbed:
                    if arg.op == "shl" and arg.args[1].constant is None:
                        continue
                    if arg.op == "mul" and user.op == "sub" and user.dtype.kind in "iu":  # type: ignore[union-attr]
                        continue
                    if arg.op == "shl" and user.op == "sub":
                        continue
                    if arg in self.uniform and user not in self.uniform:
                        continue
                    self.absorbed[user] = arg
                    self.inside.add(arg)
                    return True
            return False

        for value in block.body:
            if value.dtype is None or value.op not in ("add", "sub", "and", "or"):
                continue
            kind = type_class(value.dtype)
            if kind == "p" and value.op in ("and", "or"):
                take(value, *COMPARES)
            elif value.op in ("add", "sub"):
                if kind == "i":
                    take(value, "mul", "shl") or take(value, "add", "sub")
                elif kind in "fd":
                    take(value, "mul")

    # -- blocks ----------------------------------------------------------------------------

    def run(self) -> Code:
        """Select every block's rows."""
        for block in self.function.blocks:
            self.code.phis[block] = [Phi(self.register(v), [], v.line) for v in block.phis]
        for block in self.function.blocks:
            self.block = block
            self.constants = {}
            self.emit = Emitter(self.code, [])
            self.code.rows[block] = self.emit.rows
            if block is self.function.entry:
                self._prologue()
            for value in block.body:
                if value.op == "const":
                    continue
                alone = value in self.inside or value not in self.needed
                if not alone or value in self.of_source or value.op == "source_branch":
                    self.emit.line = value.line
                    self.emit.shadow = alone
                    self._value(value)
                    self.emit.shadow = False
            self._end(block)
        for block in self.function.blocks:
            for phi, value in zip(self.code.phis[block], block.phis, strict=True):
                phi.src = [self.register(a) for a in value.args]
            block.body = []
        return self.code

    def _prologue(self) -> None:
        """Set up the stack pointer and, where there is one, the descriptor of global memory."""
        self.emit.line = self.function.entry.line
        stack = "LDC" if self.cc.major >= 9 else "MOV"
        self.emit.rows.append(Row(stack, detail=("stack",), line=self.emit.line))
        touches = any(
            v.op in ACCESSES and array_of(v).space == "global" for v in self.function.values()
        )
        if touches and self.cc.major >= 8:
            self.emit.rows.append(Row("ULDC", detail=("descriptor",), line=self.emit.line))

    def _end(self, block: Block) -> None:
        condition = block.condition
        if condition is None:
            return
        while condition.op == "not":
            condition = condition.args[0]
            block.targets = block.targets[::-1]
        self.code.condition[block] = self.register(condition)

    def register(self, value: Value) -> int:
        """Return the register that holds a value; constants have one too."""
        if value.constant is not None:
            return self.code.immediate(value.constant)
        if value not in self.registers:
            assert value.dtype is not None
            self.registers[value] = self.code.register(value.dtype)
            if value in self.uniform:
                self.code.uniform.add(self.registers[value])
        return self.registers[value]

    def sources(self, value: Value) -> tuple[int, ...]:
        """Return the registers of a value's operands."""
        return tuple(self.register(a) for a in value.args)

    def in_register(self, value: Value) -> int:
        """Return a value as instructions need it that take no immediate: 0 is always there."""
        register = self.register(value)
        if value.constant is None or self.code.is_zero(register):
            return register
        if register not in self.constants:
            assert value.dtype is not None
            if value.dtype.itemsize == WIDE:
                self.emit.blank("MOV")
            self.constants[register] = self.emit.row("MOV", value.dtype, register)
        return self.constants[register]

    def write(self, value: Value, op: str, *src: int, detail: object = None) -> None:
        """Write the row that computes a value."""
        if value in self.uniform:
            op = UNIFORM_TWINS.get(op, op)
        self.emit.row(op, value.dtype, *src, detail=detail, dst=self.register(value))

    # -- values ----------------------------------------------------------------------------

    def _value(self, value: Value) -> None:
        handler = HANDLERS.get(value.op)
        if handler is not None:
            handler(self, value)
        elif value in self.absorbed and not self.emit.shadow:
            self._joined(value, self.absorbed[value])
        elif value.op == "not" and value.dtype == BOOL and not self.users.get(value):
            self.emit.shadow = True
            if value in self.of_source:
                self._plain(value)
        else:
            self._plain(value)

    def _plain(self, value: Value) -> None:
        """Write the table's row for an operation."""
        assert value.dtype is not None
        works_in = value.args[0].dtype if value.op not in ("select",) else value.dtype
        assert works_in is not None
        choice = CHOICES[value.op, type_class(works_in)]
        self.emit.blank(choice.before)
        src = self.sources(value)
        if choice.zero:
            src = (*src, self.emit.number(0, works_in))
        self.write(value, choice.op, *src, detail=choice.detail)

    def _joined(self, value: Value, part: Value) -> None:
        """Write one row for an operation and the one that it has absorbed."""
        assert value.dtype is not None
        kind = type_class(value.dtype)
        first = value.args[0] is part
        other = self.register(value.args[1] if first else value.args[0])
        a, b = self.sources(part)[:2]
        if kind == "p":
            assert part.args[0].dtype is not None
            choice = CHOICES[part.op, type_class(part.args[0].dtype)]
            self.emit.blank(choice.before)
            self.write(value, choice.op, a, b, other, detail=(part.op, value.op))
        elif kind in "fd":
            signs = "++" if value.op == "add" else "+-" if first else "-+"
            op = "FFMA" if kind == "f" else "DFMA"
            self.write(value, op, a, b, other, detail=signs)
        elif part.op == "mul":
            self.write(value, "IMAD", a, b, other)
        elif part.op == "shl":
            self.write(value, "LEA", a, other, detail=int(part.args[1].constant))
        else:
            inner = "++" if part.op == "add" else "+-"
            if value.op == "sub" and not first:
                inner = "-" + ("-" if part.op == "add" else "+")
            outer = "-" if value.op == "sub" and first else "+"
            self.write(value, "IADD3", a, b, other, detail=inner + outer)

    def _select(self, value: Value) -> None:
        condition, yes, no = value.args
        assert value.dtype is not None
        choice = CHOICES["select", type_class(value.dtype)]
        self.emit.blank(choice.before)
        one = self.register(yes)
        if yes.constant is not None and no.constant is not None and value.dtype != BOOL:
            one = one if not np.any(no.constant) else self.in_register(yes)
        self.write(value, choice.op, one, self.register(no), self.register(condition))

    def _cast(self, value: Value) -> None:
        source, target = value.args[0].dtype, value.dtype
        assert source is not None
        assert target is not None
        register = self.register(value.args[0])
        if value in self.registers and self.registers[value] == register:
            return
        if source == target:
            self.registers[value] = register
        elif source == BOOL:
            op = "FSEL" if target.kind == "f" else "SEL"
            if target.itemsize == 8:
                self.emit.blank(op)
            one, zero = self.emit.number(1, target), self.emit.number(0, target)
            self.write(value, op, one, zero, register)
        elif target == BOOL:
            choice = CHOICES["ne", type_class(source)]
            self.emit.blank(choice.before)
            self.write(value, choice.op, register, self.emit.number(0, source), detail=("ne",))
        elif "f" in (source.kind, target.kind):
            op = "F2F" if source.kind == target.kind else "I2F" if target.kind == "f" else "F2I"
            self.write(value, op, register)
        elif target.itemsize < REGISTER_BYTES <= source.itemsize and not self._only_stored(value):
            self.write(value, "I2I", register)
        else:
            if source.kind == "i" and source.itemsize <= 4 and target.itemsize == 8:
                self.emit.blank("SHF")
            self.write(value, ".CAST", register)
            if register in self.code.fixed:
                self.code.fixed.add(self.register(value))

    def _only_stored(self, value: Value) -> bool:
        return all(u.op in ("store", "store_vector") for u in self.users.get(value, ()))

    def _held(self, value: Value) -> None:
        assert value.dtype is not None
        register = self.register(value.args[0])
        if value.dtype.itemsize == WIDE and not self.code.is_zero(register):
            self.emit.blank("MOV")
        self.write(value, "MOV", register)

    def _division(self, value: Value) -> None:
        assert value.dtype is not None
        a, b = self.sources(value)
        known = self._before_loop(value)
        divide(self.emit, value.op, a, b, value.dtype, self.register(value), known)

    def _before_loop(self, value: Value) -> Reciprocal | None:
        """Write before the loop around what a division need not compute in it."""
        assert value.dtype is not None
        dividend, divisor = value.args
        wide = value.dtype.itemsize == WIDE
        if not self.fuse or self.emit.shadow or wide or divisor.constant is not None:
            return None
        before = self._preheader(divisor)
        if before is None:
            first = self._preheader(dividend)
            if first is not None and value.dtype.kind == "i" and dividend.constant is None:
                # ptxas takes the absolute value there, and a second time in the loop.
                Emitter(self.code, self.code.rows[first], value.line).blank("IABS")
            return None
        key = (before, self.register(divisor))
        if key not in self.reciprocals:
            emit = Emitter(self.code, self.code.rows[before], value.line)
            self.reciprocals[key] = reciprocal_before(emit, key[1], value.dtype)
        return self.reciprocals[key]

    def _preheader(self, operand: Value) -> Block | None:
        """Return the block before the loops in which an operand is fixed.

        Only those count that come to the present block in every turn.
        """
        found = None
        for loop in self.loops:
            if self.block in loop.blocks:
                always = all(self.tree.dominates(self.block, latch) for latch in loop.latches)
                if self.home.get(operand) in loop.blocks or not always or loop.preheader is None:
                    break
                found = loop.preheader
        return found

    @cached_property
    def tree(self) -> Dominators:
        return dominators(self.function)

    @cached_property
    def loops(self) -> list[Loop]:
        return natural_loops(self.function, self.tree)

    @cached_property
    def home(self) -> dict[Value, Block]:
        return definitions(self.function)

    def _math(self, value: Value) -> None:
        dtype = value.args[0].dtype
        assert dtype is not None
        if value.detail == "fma":
            self.write(value, "FFMA" if dtype == FLOAT32 else "DFMA", *self.sources(value))
            return
        if value.detail in SEQUENCES:
            self.emit.blank(SEQUENCES[value.detail]["d" if dtype == FLOAT64 else "f"])
        self.write(value, "LIBM", *self.sources(value), detail=value.detail)

    # -- what the launch knows -------------------------------------------------------------

    def _fetch(self, value: Value) -> None:
        """Read constant memory: an instruction from 9.0 on, an operand before."""
        kind, what = value.op, value.detail
        detail = ("launch", what) if kind == "sreg" else (kind, what)
        op = "LDC" if self.cc.major >= 9 and not self.emit.shadow else ".CONST"
        self.write(value, op, detail=detail)
        self.code.fixed.add(self.register(value))

    def _special(self, value: Value) -> None:
        if str(value.detail).startswith(("ntid", "nctaid")):
            self._fetch(value)
        else:
            self._read_special(value)

    def _read_special(self, value: Value) -> None:
        """Read what a thread is, at once in the type that all its uses ask for."""
        users = self.users.get(value, [])
        casts = {u.dtype for u in users if u.op == "cast"}
        if users and len(casts) == 1 and all(u.op == "cast" for u in users):
            (dtype,) = casts
            if dtype in (INT32, UINT32):
                register = self.emit.row("S2R", dtype, detail=value.detail)
                for user in users:
                    self.registers[user] = register
                self.registers[value] = register
                return
        self.write(value, "S2R", detail=value.detail)

    def _undefined(self, value: Value) -> None:
        self.code.undefined.add(self.register(value))

    def _shared_base(self, value: Value) -> None:
        """The window of shared memory within the cluster's, from 9.0 on; 0 in our addresses."""
        if self.cc.major < 9:
            self.registers[value] = self.emit.number(0, UINT32)
            return
        apart = self.block in self.apart
        special, move, add = ("S2R", "MOV", "LEA") if apart else ("S2UR", "UMOV", "ULEA")
        block = self.emit.row(special, UINT32, detail="cga")
        window = self.emit.row(move, UINT32, self.emit.number(0, UINT32))
        self.emit.row(add, UINT32, block, window, detail=24, dst=self.register(value))
        if not apart:
            self.code.uniform.update((block, window, self.register(value)))

    # -- memory ----------------------------------------------------------------------------

    def _address(self, value: Value) -> None:
        index, base = value.args
        assert index.dtype is not None
        size = int(value.detail)
        shift = size.bit_length() - 1
        register = self.register(index)
        if base.dtype == INT64:
            if index.dtype.itemsize == 8:
                self.emit.blank("LEA.HI")
                self.write(value, "LEA", register, self.register(base), detail=shift)
                return
            if self.cc.major < 9:
                self.emit.blank("MOV")
            width = self.emit.number(size, INT32)
            self.write(value, "IMAD.WIDE", register, width, self.register(base))
            return
        origin = self.register(base)
        scaled = origin in self.code.immediates
        if scaled and all(u.op in ACCESSES for u in self.users.get(value, ())):
            self.write(value, ".SCALE", register, origin, detail=shift)
        elif scaled and size == 1:
            self.write(value, ".CAST", register)
        else:
            self.write(value, "LEA", register, origin, detail=shift)

    def _memory(self, value: Value, count: int = 1) -> Memory:
        array = array_of(value)
        own = array.space != "global"
        elements = math.prod(array.shape) if own and array.shape else 0
        return Memory(
            array.space,
            array.name,
            array.dtype,
            count,
            self.addresses.displacement[value],
            array.offset if own else 0,
            elements or None,
        )

    def _access(self, op: str, value: Value, dst: tuple[int, ...], src: tuple[int, ...]) -> None:
        detail = value.detail
        count = max(len(dst), len(src)) if value.op.endswith("_vector") else 1
        row = Row(op, dst, (self.register(value.args[0]), *src), array_of(value).dtype)
        row.detail = detail[1] if value.op == "atomic" else None
        row.memory = self._memory(value, count)
        row.line = value.line
        self.emit.rows.append(row)

    def _load(self, value: Value) -> None:
        array: Array = value.detail
        users = self.users.get(value, [])
        types: set[DType | None] = {u.dtype for u in users if u.op == "cast"}
        narrow = array.dtype.kind in "iu" and array.dtype.itemsize < REGISTER_BYTES
        dtype = array.dtype
        if narrow and len(types) == 1 and all(u.op == "cast" for u in users):
            (wide,) = types
            if wide in (INT32, UINT32):
                dtype = wide
        register = self.register(value)
        if dtype != array.dtype:
            register = self.code.register(dtype)
            self.registers[value] = register
            for user in users:
                self.registers[user] = register
        self._access(LOADS[array.space], value, (register,), ())
        self.emit.rows[-1].dtype = dtype

    def _load_vector(self, value: Value) -> None:
        array, count = value.detail
        self.vectors[value] = [self.code.register(array.dtype) for _ in range(count)]
        self._access(LOADS[array.space], value, tuple(self.vectors[value]), ())

    def _element(self, value: Value) -> None:
        self.registers[value] = self.vectors[value.args[0]][int(value.detail)]

    def _store(self, value: Value) -> None:
        stored = tuple(self.in_register(a) for a in value.args[1:])
        self._access(STORES[array_of(value).space], value, (), stored)

    def _atomic(self, value: Value) -> None:
        space = array_of(value).space
        used = bool(self.users.get(value))
        operands = tuple(self.in_register(a) for a in value.args[1:])
        op = "ATOMS" if space == "shared" else "ATOMG" if used else "RED"
        self._access(op, value, (self.register(value),) if used else (), operands)

    # -- threads together ------------------------------------------------------------------

    def _barrier(self, value: Value) -> None:
        dst = () if value.dtype is None else (self.register(value),)
        row = Row("BAR", dst, self.sources(value), value.dtype, value.detail, line=value.line)
        self.emit.rows.append(row)

    def _syncwarp(self, value: Value) -> None:
        mask = value.args[0].constant
        if mask is not None and int(mask) & FULL_MASK == FULL_MASK and self.block not in self.apart:
            self.emit.blank("NOP")
        else:
            self.emit.rows.append(Row("WARPSYNC", (), self.sources(value), line=value.line))

    def _shuffle(self, value: Value) -> None:
        assert value.dtype is not None
        if value.dtype.itemsize == 8:
            src = self.sources(value)
            self.emit.rows.append(Row("SHFL", (), src, value.dtype, value.detail, line=value.line))
        self.write(value, "SHFL", *self.sources(value), detail=value.detail)

    def _vote(self, value: Value) -> None:
        self.write(value, "VOTE", *self.sources(value), detail=value.detail)

    def _activemask(self, value: Value) -> None:
        self.write(value, "ACTIVEMASK")

    def _fence(self, value: Value) -> None:
        self.emit.rows.append(Row("MEMBAR", detail=value.detail, line=value.line))

    def _source_branch(self, value: Value) -> None:
        self.emit.rows.append(Row(".IF", (), self.sources(value), line=value.line))


HANDLERS: dict[str, Callable[[_Selector, Value], None]] = {
    "undef": _Selector._undefined,
    "select": _Selector._select,
    "cast": _Selector._cast,
    "held": _Selector._held,
    "idiv": _Selector._division,
    "rem": _Selector._division,
    "math": _Selector._math,
    "param": _Selector._fetch,
    "length": _Selector._fetch,
    "pointer": _Selector._fetch,
    "sreg": _Selector._special,
    "shared_base": _Selector._shared_base,
    "address": _Selector._address,
    "load": _Selector._load,
    "load_vector": _Selector._load_vector,
    "element": _Selector._element,
    "store": _Selector._store,
    "store_vector": _Selector._store,
    "atomic": _Selector._atomic,
    "barrier": _Selector._barrier,
    "syncwarp": _Selector._syncwarp,
    "shuffle": _Selector._shuffle,
    "vote": _Selector._vote,
    "activemask": _Selector._activemask,
    "fence": _Selector._fence,
    "source_branch": _Selector._source_branch,
}
