"""Address lowering: byte addresses out of indices, shared among accesses as compilers do.

Loads, stores and atomics get an address as their first operand and a constant displacement.
Three operations are made for it: `pointer` (where a global array
starts), `shared_base` (where the block's shared memory starts) and `address` (an index, its
base; `detail` is the element's size in bytes).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpusim.compiler.dominators import Dominators, dominators
from gpusim.compiler.ir import INT64, UINT32, Array, Block, Function, Value, constant
from gpusim.lowering.analysis.algebra import power_of_two
from gpusim.lowering.analysis.alias import array_of
from gpusim.lowering.analysis.def_use import users
from gpusim.lowering.analysis.index_sums import IndexSum, Scaled, index_sum, scaled
from gpusim.lowering.analysis.indices import split_constant
from gpusim.lowering.analysis.live_values import live_values
from gpusim.lowering.analysis.loops import Loop, natural_loops
from gpusim.lowering.graph import make_preheader
from gpusim.lowering.passes.dce import remove_dead_values
from gpusim.lowering.passes.gvn import operation_key


@dataclass
class Addresses:
    """The displacement in bytes of each access, and whether its address is a constant.

    `again` are addresses in global memory with an index used by another one, in a block above:
    widened to 64 bits it is at hand there, but too far away to be kept.
    """

    displacement: dict[Value, int] = field(default_factory=dict)
    direct: set[Value] = field(default_factory=set)
    again: set[Value] = field(default_factory=set)


def address_lowering(function: Function, *, share: bool) -> Addresses:
    """Give every access its address; `share` reuses available ones."""
    if share:
        for loop in natural_loops(function):
            make_preheader(function, loop)
    return _Exposer(function, share).run()


def _where(array: Array) -> str:
    """Return the base of addresses: a global array, or a space that arrays share."""
    return array.name if array.space == "global" else array.space


def _arrays_by_index(function: Function) -> dict[Value, set[str]]:
    """Return the global arrays accessed with each index, without its constant part."""
    found: dict[Value, set[str]] = {}
    for value in function.values():
        if value.operation.access and array_of(value).space == "global":
            index, _ = split_constant(value.args[0], "global")
            if index is not None:
                found.setdefault(index, set()).add(array_of(value).name)
    return found


class _Exposer:
    def __init__(self, function: Function, share: bool) -> None:
        self.function = function
        self.share = share
        self.tree: Dominators = dominators(function)
        self.loops: list[Loop] = natural_loops(function, self.tree)
        self.home = {v: b for b in function.blocks for v in (*b.phis, *b.body)}
        self.known: dict[tuple[str, int, Value], list[tuple[Block, Value]]] = {}
        self.widened: dict[Value, list[Block]] = {}
        self.near = NearAddresses(self.tree)
        self.made: dict[Any, list[tuple[Block, Value]]] = {}
        needed = live_values(function)
        self.users = {v: [u for u in some if u in needed] for v, some in users(function).items()}
        self.arrays = _arrays_by_index(function)
        self.found = Addresses()
        self.body: list[Value] = []

    def run(self) -> Addresses:
        common = self._common_places() if self.share else {}
        for block in self.tree.preorder():
            old, self.body = block.body, []
            for value in old:
                if value.operation.access:
                    self._access(block, value)
                self.body.append(value)
                self.home[value] = block
            for access in common.get(block, ()):
                index, _ = split_constant(access.args[0], array_of(access).space)
                if index is not None:
                    self._address(block, array_of(access), index, access.line)
            block.body = self.body
        remove_dead_values(self.function)
        return self.found

    def _access(self, block: Block, access: Value) -> None:
        array = array_of(access)
        size = array.dtype.itemsize
        index, step = split_constant(access.args[0], array.space)
        self.found.displacement[access] = step * size + array.offset
        if index is None:
            self.found.direct.add(access)
            address = self._base(array, access.line)
        else:
            address, more = self._address(block, array, index, access.line)
            self.found.displacement[access] += more * size
        access.args = [address, *access.args[1:]]

    def _common_places(self) -> dict[Block, list[Value]]:
        """Return accesses with an address that others share, by their common dominator block.

        Accesses that come first at every use of the address are left out.
        """
        accesses: dict[tuple[str, int, Value], list[tuple[Block, Value]]] = {}
        for block in self.tree.preorder():
            for value in block.body:
                if value.operation.access:
                    array = array_of(value)
                    index, _ = split_constant(value.args[0], array.space)
                    if index is not None:
                        key = (_where(array), array.dtype.itemsize, index)
                        accesses.setdefault(key, []).append((block, value))
        places: dict[Block, list[Value]] = {}
        for places_of_one in accesses.values():
            above, first = places_of_one[0]
            for block, _ in places_of_one[1:]:
                while not self.tree.dominates(above, block):
                    parent = self.tree.parent[above]
                    assert parent is not None
                    above = parent
            if above is not places_of_one[0][0]:
                places.setdefault(above, []).append(first)
        return places

    def _base(self, array: Array, line: int) -> Value:
        """Return where an array's space starts."""
        if array.space == "global":
            base = Value("pointer", INT64, detail=array.name, line=line)
        elif array.space == "shared":
            base = Value("shared_base", UINT32, line=line)
        else:
            return constant(0, UINT32)
        if not self.share:
            self.body.append(base)
        return base

    def _address(self, block: Block, array: Array, index: Value, line: int) -> tuple[Value, int]:
        """Return an address, and how many elements lie between it and the index."""
        where, size = _where(array), array.dtype.itemsize
        found = self._at_hand(block, where, size, index)
        if found is not None:
            return found, 0
        near = self.near.nearest((where, size), block, index) if self.share else None
        if near is not None and near.term is None:
            return near.address, near.step
        if near is not None and array.space == "global" and self._is_for_accesses(index):
            return self._beside(block, (where, size), index, near), near.step
        whole = scaled(index, size) if self.share else None
        if whole is None or array.space == "local":
            return self._fresh(block, array, index, line), 0
        args = [whole.term, self._base(array, line)]
        return self._place(block, (where, size), index, args, whole), whole.step

    def _fresh(self, block: Block, array: Array, index: Value, line: int) -> Value:
        """Write the address of an index without an available address near it."""
        place = where, size = _where(array), array.dtype.itemsize
        if index.op == "add" and where == "shared" and self.share:
            for near, rest in (index.args, index.args[::-1]):
                at_hand = self._at_hand(block, where, size, near)
                if at_hand is not None and rest.constant is None:
                    return self._place(block, place, index, [rest, at_hand])
        base = self._base(array, line)
        if not self.share or index.dtype != INT64 or len(self.arrays.get(index, ())) < 2:
            return self._place(block, place, index, [index, base])
        return self._note(place, index, self._shifted_sum(block, index, base, size, index.line))

    def _shifted_sum(self, block: Block, index: Value, base: Value, size: int, line: int) -> Value:
        """Write an address as a shift and a sum of 64 bits; others may reuse the shift."""
        shift = constant(size.bit_length() - 1, INT64)
        bytes_between = self._put(block, Value("shl", INT64, [index, shift], line=line))
        return self._put(block, Value("add", INT64, [base, bytes_between], line=line))

    def _at_hand(self, block: Block, where: str, size: int, index: Value) -> Value | None:
        if self.share:
            for home, address in self.known.get((where, size, index), ()):
                if home is block or self.tree.dominates(home, block):
                    return address
        return None

    def _beside(self, block: Block, where: Where, index: Value, near: Near) -> Value:
        """Write an address that is a multiple of a variable away from an available one."""
        assert near.term is not None
        between, size = self._multiple(block, near.term, near.factor, index), where[1]
        if between.dtype == INT64:
            made = self._shifted_sum(block, between, near.address, size, index.line)
        else:
            made = Value("address", INT64, [between, near.address], detail=size, line=index.line)
            made = self._put(block, made)
        return self._note(where, index, made, near.step)

    def _multiple(self, block: Block, term: Value, factor: int, index: Value) -> Value:
        """Return `factor` times a term in an index's type."""
        dtype = index.dtype
        assert dtype is not None
        if term.dtype != dtype:
            term = self._put(block, Value("cast", dtype, [term], line=index.line))
        if factor == 1:
            return term
        shift = power_of_two(factor)
        by = factor if shift is None else shift
        args = [term, constant(by, dtype)]
        return self._put(
            block, Value("mul" if shift is None else "shl", dtype, args, line=index.line)
        )

    def _put(self, block: Block, value: Value) -> Value:
        """Write a value before the access, or before the loops with it as an invariant.

        An equal value available already is reused, with `share`.
        """
        key = operation_key(value)
        for home, made in self.made.get(key, ()) if self.share else ():
            if home is block or self.tree.dominates(home, block):
                return made
        home = block
        if self.share:
            for loop in self.loops:
                if home in loop.blocks and not any(
                    self.home.get(a) in loop.blocks for a in value.args
                ):
                    assert loop.preheader is not None
                    home = loop.preheader
        value.line = value.line or block.line
        (self.body if home is block else home.body).append(value)
        self.home[value] = home
        self.made.setdefault(key, []).append((home, value))
        return value

    def _place(
        self,
        block: Block,
        where: Where,
        index: Value,
        args: list[Value],
        whole: Scaled | None = None,
    ) -> Value:
        """Write the address of an index."""
        dtype = INT64 if args[1].dtype == INT64 else UINT32
        size = where[1] * (whole.factor if whole else 1)
        made = Value("address", dtype, args, detail=size, line=index.line)
        return self._note(where, index, self._put(block, made), whole.step if whole else 0)

    def _note(self, where: Where, index: Value, address: Value, step: int = 0) -> Value:
        """Record an address, `step` elements before that of an index, for other accesses."""
        home = self.home[address]
        if not step:
            self.known.setdefault((*where, index), []).append((home, address))
        if self.share:
            self.near.note(where, home, address, index, step)
            if address.dtype == INT64:
                self._note_widening(address, index, home)
        return address

    def _is_for_accesses(self, index: Value) -> bool:
        """Whether an index is needed for nothing but accesses."""
        return all(user.operation.access for user in self.users.get(index, ()))

    def _note_widening(self, address: Value, index: Value, home: Block) -> None:
        before = self.widened.setdefault(index, [])
        if home not in before and any(self.tree.dominates(b, home) for b in before):
            self.found.again.add(address)
        before.append(home)


# LLVM does this in three passes: a constant goes into the access (separation of constant offsets),
# a product with one factor more than another is added to that (straight-line strength reduction),
# and so is the difference of two indices (n-ary reassociation).
# An access adds 24 bits to its address, with a sign.
LARGEST_DISPLACEMENT = 1 << 23

Where = tuple[str, int]  # the base of addresses, and the bytes of an element


@dataclass(frozen=True)
class _Known:
    """An address computed in a block, and its index."""

    home: Block
    address: Value
    total: IndexSum


@dataclass(frozen=True)
class Near:
    """An available address, and the elements between: `factor` times `term`, and `step`."""

    address: Value
    step: int
    term: Value | None = None
    factor: int = 0


@dataclass
class NearAddresses:
    """The addresses made so far, the latest last."""

    tree: Dominators
    known: dict[Where, list[_Known]] = field(default_factory=dict)

    def note(self, where: Where, home: Block, address: Value, index: Value, step: int) -> None:
        """Record an address that is `step` elements before that of an index."""
        made = _Known(home, address, index_sum(index).plus(IndexSum(-step)))
        self.known.setdefault(where, []).append(made)

    def nearest(self, where: Where, block: Block, index: Value) -> Near | None:
        """Return the available address nearest to an index in `block`, None if none is near."""
        total, size = index_sum(index), where[1]
        found: Near | None = None
        for known in reversed(self.known.get(where, ())):
            if known.home is not block and not self.tree.dominates(known.home, block):
                continue
            apart = total.plus(known.total, -1)
            if abs(apart.constant) * size >= LARGEST_DISPLACEMENT:
                continue
            if not apart.factors:
                return Near(known.address, apart.constant)
            found = found or _one_term_away(known.address, apart)
        return found


def _one_term_away(address: Value, apart: IndexSum) -> Near | None:
    """Return an address plus a multiple of one value, if `apart` is one."""
    if len(apart.factors) != 1:
        return None
    ((product, factor),) = apart.factors.items()
    return Near(address, apart.constant, product[0], factor) if len(product) == 1 else None
