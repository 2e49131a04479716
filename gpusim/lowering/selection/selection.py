"""State of instruction selection: the function, its code, the registers of its values."""

from __future__ import annotations

from functools import cached_property

from gpusim.compiler.dominators import Dominators, dominators
from gpusim.compiler.ir import INT32, UINT32, Block, Function, Value
from gpusim.compiler.operations import SPECIAL_REGISTERS
from gpusim.isa.ops import OPS
from gpusim.launch.grid import ComputeCapability
from gpusim.lowering.analysis.def_use import definitions, users
from gpusim.lowering.analysis.divergence import Divergence
from gpusim.lowering.analysis.live_values import live_values
from gpusim.lowering.analysis.loops import Loop, natural_loops
from gpusim.lowering.code import Code
from gpusim.lowering.passes.address_lowering import Addresses
from gpusim.lowering.selection.division import Emitter, Reciprocal

REGISTER_BYTES = 4
WIDE = 8


class Selection:
    """The function, its machine code, and the registers of its values.

    `users` are the operations that use a value, `branches` the number of branches that do;
    `of_source` are operands of conditionals of the source. `absorbed` gives the operands absorbed
    by an operation, `inside` all absorbed values, `logic` the inputs of an operation that absorbed
    other logic.
    """

    def __init__(
        self,
        function: Function,
        cc: ComputeCapability,
        divergence: Divergence,
        addresses: Addresses,
        fuse: bool,
    ) -> None:
        self.function = function
        self.cc = cc
        self.apart = divergence.apart
        self.fuse = fuse
        self.addresses = addresses
        self.code = Code(function, divergent=set(divergence.branches))
        self.emit = Emitter(self.code, [])
        self.registers: dict[Value, int] = {}
        self.vectors: dict[Value, list[int]] = {}
        self.uniform = uniform_values(function, divergence) if fuse and cc.major >= 8 else set()
        self.block = function.entry
        self.constants: dict[int, int] = {}
        self.users: dict[Value, list[Value]] = {}
        self.branches: dict[Value, int] = {}
        self.reciprocals: dict[tuple[Block, int], Reciprocal] = {}
        self.of_source: set[Value] = set()
        self.absorbed: dict[Value, Value] = {}
        self.inside: set[Value] = set()
        self.logic: dict[Value, tuple[Value, ...]] = {}
        self.live = live_values(function)
        self._count_uses()

    def _count_uses(self) -> None:
        for value in self.function.values():
            if value not in self.live:
                self.of_source.update(value.args)
            else:
                for arg in value.args:
                    self.users.setdefault(arg, []).append(value)
        for block in self.function.blocks:
            if block.condition is not None:
                self.branches[block.condition] = self.branches.get(block.condition, 0) + 1

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
            op = OPS[op].uniform_twin or op
        self.emit.row(op, value.dtype, *src, detail=detail, dst=self.register(value))

    @cached_property
    def tree(self) -> Dominators:
        """The dominator tree."""
        return dominators(self.function)

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops, inner ones first."""
        return natural_loops(self.function, self.tree)

    @cached_property
    def home(self) -> dict[Value, Block]:
        """The block of each value."""
        return definitions(self.function)


def uniform_values(function: Function, divergence: Divergence) -> set[Value]:
    """Return the values that a compiler keeps in uniform registers.

    They are 32-bit integers that all lanes agree on, computed where all lanes run, from the
    launch's constants; and every reader can take a uniform register where it needs it.
    """
    found: set[Value] = set()
    for block in function.blocks:
        if block not in divergence.apart:
            for value in (*block.phis, *block.body):
                launch = value.op == "sreg" and SPECIAL_REGISTERS[value.detail].is_of_launch
                computed = (
                    value.operation.uniform == "computes" and value not in divergence.divergent
                )
                if value.dtype in (INT32, UINT32) and (launch or computed):
                    found.add(value)
    needed = live_values(function)
    readers = {v: [u for u in some if u in needed] for v, some in users(function).items()}
    changed = True
    while changed:
        changed = False
        for value in [v for v in function.values() if v in found]:
            fed = all(a.op == "const" or a in found for a in value.args)
            if not fed or not all(_takes(user, value, found) for user in readers.get(value, [])):
                found.remove(value)
                changed = True
    return found


def _takes(user: Value, value: Value, found: set[Value]) -> bool:
    if user in found:
        return True
    if user.operation.scales:
        return user.args[0] is not value
    if user.operation.is_comparison:
        other = user.args[1] if user.args[0] is value else user.args[0]
        return other.constant is None or other.constant == 0
    return bool(user.operation.uniform)
