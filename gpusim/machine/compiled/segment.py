"""Straight-line code: instructions that only compute, as one loop over the lanes, four at a time.

Values stay in local variables within a segment. Registers that are read after it go to the
warp's memory, and operands of the next instruction to their fixed places.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpusim.machine.compiled.symbols import Graph, NotDerivedError, Symbol
from gpusim.machine.compiled.vectors import Vectors, is_wide, masks
from gpusim.typing import DType

_LANE_BITS = "(v128.const i32x4 1 2 4 8)"
# What a loop counts beside the first of its four lanes, $g: bytes of words from a warp or 0 on.
_COUNTERS = (
    ("o", "(i32.const 0)", 16),
    ("r", "(local.get $W)", 16),
    ("d", "(local.get $W)", 32),
)


def lane_masks(bits: str) -> str:
    """Return the masks of the loop's four lanes from 32 bits."""
    return (
        f"(i32x4.ne (v128.and (i32x4.splat (i32.shr_u {bits} (local.get $g))) {_LANE_BITS})"
        " (v128.const i32x4 0 0 0 0))"
    )


class Place(NamedTuple):
    """Memory of a value: at an offset from a warp, or an absolute address; or one for all lanes."""

    offset: int
    dtype: DType
    base: str = "warp"  # warp, absolute, "of warp" for all its lanes, or cell for all of a launch

    @property
    def bytes(self) -> int:
        """The bytes of a register."""
        return 16 if self.dtype.kind == "b" else 256 if is_wide(self.dtype) else 128


class Operand(NamedTuple):
    """A value that the instruction after a segment reads from a fixed address."""

    address: int
    value: Any


class Segment:
    """A graph of instructions in a row, between a warp's registers."""

    def __init__(self, place: Callable[[int], Place], fixed: Callable[[int], Any]) -> None:
        self.graph = Graph()
        self.values: dict[int, Any] = {}
        self._place = place
        self._fixed = fixed
        self._sums: list[tuple[Any, bool, str]] = []
        self._trial = Vectors("$")
        self._tried = 0

    def read(self, register: int) -> Any:
        """Return a register's value: a symbol, or a NumPy scalar."""
        found = self.values.get(register)
        if found is None:
            found = self._fixed(register)
            if isinstance(found, Place):
                found = self.leaf(found)
            elif found is None:
                found = self.leaf(self._place(register))
        return found

    def leaf(self, place: Place) -> Symbol:
        """Return the value at a place before the segment."""
        return self.graph.node("leaf", place.dtype, place)

    def write(self, register: int, value: Any, dtype: DType, guard: Any, negated: bool) -> None:
        """Set a register in the lanes of a guard, or in all."""
        if not isinstance(value, Symbol):
            value = np.asarray(value).reshape(-1)[0].astype(dtype)
        elif value.dtype != dtype:
            value = value.astype(dtype)
        if guard is not None:
            old = self.read(register)
            if not isinstance(guard, Symbol):
                value = value if bool(guard) != negated else old
            else:
                both: tuple[Any, ...] = (old, value) if negated else (value, old)
                if not isinstance(old, Symbol):
                    both = tuple(
                        x if isinstance(x, Symbol) else np.asarray(x).astype(dtype)[()]
                        for x in both
                    )
                value = self.graph.node("where", dtype, guard, *both)
        self.values[register] = value

    def has_code(self, results: Iterable[Any]) -> bool:
        """Return whether results are constants, or nodes with vector code."""
        nodes = self.graph.nodes
        for node in nodes[self._tried :]:
            if node.operation == "leaf":
                self._trial.define(node, ["0"] * (2 if is_wide(node.dtype) else 1))
                continue
            with contextlib.suppress(NotDerivedError, KeyError):
                self._trial.add(node)
        self._tried = len(nodes)
        return all(self._trial.is_defined(x) for x in results if isinstance(x, Symbol))

    def count(self, guard: Any, negated: bool, add: str) -> None:
        """Add the number of lanes with a true guard to a sum: `add` has a hole for it."""
        self._sums.append((guard, negated, add))

    def text(
        self,
        outputs: Iterable[int],
        operands: Sequence[Operand] = (),
        bits: Sequence[Any] = (),
    ) -> tuple[str, list[str], list[str]]:
        """Return the code, the expressions of some predicates as 32 bits, and the variables.

        Variables of all segments are the same.
        """
        written = [(r, self.values[r]) for r in outputs if r in self.values]
        writer = _Writer(self.graph)
        flags = [g for g, _, _ in self._sums] + list(bits)
        flags += [o.value for o in operands if _type(o.value).kind == "b"]
        flags += [v for r, v in written if self._place(r).dtype.kind == "b"]
        roots = [v for _, v in written] + flags + [o.value for o in operands]
        writer.compute(roots)
        after = []
        for operand in operands:
            if _type(operand.value).kind == "b":
                after.append(
                    f"(i32.store (i32.const {operand.address}) {writer.bits(operand.value)})"
                )
            else:
                kind = _type(operand.value)
                writer.put(Place(operand.address, kind, "absolute"), operand.value)
        for guard, negated, add in self._sums:
            lanes = writer.bits(guard)
            lanes = f"(i32.xor {lanes} (i32.const -1))" if negated else lanes
            after.append(add.format(f"(i32.and (local.get $M) {lanes})"))
        for register, value in written:
            place = self._place(register)
            if place.dtype.kind == "b" and place.base == "absolute":
                after.append(f"(i32.store (i32.const {place.offset}) {writer.bits(value)})")
            elif place.dtype.kind == "b":
                at = f"(i32.load offset={place.offset} (local.get $W))"
                after.append(
                    f"(i32.store offset={place.offset} (local.get $W) (i32.or"
                    f" (i32.and {writer.bits(value)} (local.get $M))"
                    f" (i32.and {at} (i32.xor (local.get $M) (i32.const -1)))))"
                )
            elif place.base == "absolute":
                writer.put(place, value)
            else:
                writer.store(place, value)
        results = [writer.bits(value) for value in bits]
        return writer.text(after), results, writer.variables


def _type(value: Any) -> DType:
    found: DType = value.dtype
    return found


class _Writer:
    """The loop of one segment."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._vectors = Vectors("$v")
        self._before: list[str] = []
        self._uniform: set[int] = set()
        self._bits: dict[int, str] = {}
        self._words: list[str] = []
        self._uses_mask = False

    @property
    def variables(self) -> list[str]:
        """Declarations of local variables."""
        vectors = [f"(local {name} v128)" for name in self._vectors.locals]
        return vectors + [f"(local {name} i32)" for name in self._words]

    def compute(self, roots: Iterable[Any]) -> None:
        """Write the nodes that some values need."""
        needed: set[int] = set()
        operands: set[int] = set()
        waiting = [x for x in roots if isinstance(x, Symbol)]
        while waiting:
            node = waiting.pop()
            if id(node) not in needed:
                needed.add(id(node))
                inner = [x for x in node.operands if isinstance(x, Symbol)]
                operands.update(map(id, inner))
                waiting += inner
        for node in self._graph.nodes:
            if id(node) in needed:
                with self._vectors.writing_to(self._code_of(node)):
                    self._add(node, is_read=id(node) in operands)

    def _code_of(self, node: Symbol) -> list[str]:
        """Return where a node's code goes: before the loop if all lanes have the same value."""
        if node.operation == "leaf":
            is_uniform = node.operands[0].base in ("cell", "of warp")
        else:
            inner = (x for x in node.operands if isinstance(x, Symbol))
            is_uniform = all(id(x) in self._uniform for x in inner)
        if is_uniform:
            self._uniform.add(id(node))
        return self._before if is_uniform else self._vectors.code

    def _add(self, node: Symbol, *, is_read: bool) -> None:
        if node.operation != "leaf":
            self._vectors.add(node)
            return
        loaded = self._loaded(node)
        if node.dtype.kind != "b" or is_read or id(node) not in self._bits:
            self._vectors.define(node, loaded)

    def _loaded(self, node: Symbol) -> list[str]:
        place: Place = node.operands[0]
        if place.base in ("cell", "of warp"):
            load = "v128.load64_splat" if is_wide(place.dtype) else "v128.load32_splat"
            at = f"(i32.const {place.offset})"
            if place.base != "cell":
                at, load = "(local.get $W)", f"{load} offset={place.offset}"
            return [f"({load} {at})"] * (2 if is_wide(place.dtype) else 1)
        if place.dtype.kind == "b":
            base = "(local.get $W)" if place.base == "warp" else "(i32.const 0)"
            name = self._word(f"(i32.load offset={place.offset} {base})")
            self._bits[id(node)] = name
            return [lane_masks(f"(local.get {name})")]
        return [f"(v128.load offset={place.offset + n} {base})" for n, base in _bases(place)]

    def _word(self, expression: str) -> str:
        name = f"$w{len(self._words)}"
        self._words.append(name)
        self._before.append(f"(local.set {name} {expression})")
        return name

    def bits(self, value: Any) -> str:
        """Return a predicate as 32 bits, known after the loop."""
        if not isinstance(value, Symbol):
            return f"(i32.const {-1 if value else 0})"
        name = self._bits.get(id(value))
        if name is None:
            name = self._bits[id(value)] = self._word("(i32.const 0)")
            part = self._vectors.parts(value)[0]
            self._vectors.code.append(
                f"(local.set {name} (i32.or (local.get {name})"
                f" (i32.shl (i32x4.bitmask {part}) (local.get $g))))"
            )
        return f"(local.get {name})"

    def store(self, place: Place, value: Any) -> None:
        """Set a register in the lanes that run."""
        self._uses_mask = True
        lanes = masks("(local.get $mask)", place.dtype)
        for part, mask, (n, base) in zip(
            self._vectors.parts(value), lanes, _bases(place), strict=True
        ):
            at = place.offset + n
            self._vectors.code.append(
                f"(v128.store offset={at} {base} (v128.bitselect {part}"
                f" (v128.load offset={at} {base}) {mask}))"
            )

    def put(self, place: Place, value: Any) -> None:
        """Set a value in all lanes."""
        for part, (n, base) in zip(self._vectors.parts(value), _bases(place), strict=True):
            self._vectors.code.append(f"(v128.store offset={place.offset + n} {base} {part})")

    def text(self, after: Sequence[str]) -> str:
        """Return the code before the loop, the loop, and the code after it."""
        parts = list(self._before)
        if self._vectors.code:
            code = list(self._vectors.code)
            if self._uses_mask:
                code.insert(0, f"(local.set $mask {lane_masks('(local.get $M)')})")
            used = "\n".join(code)
            counters = [(n, *rest) for n, *rest in _COUNTERS if f"(local.get ${n})" in used]
            parts += [f"(local.set ${name} {begin})" for name, begin, _ in counters]
            parts += [
                "(local.set $g (i32.const 0))",
                "(loop $lanes",
                *code,
                *(
                    f"(local.set ${name} (i32.add (local.get ${name}) (i32.const {step})))"
                    for name, _, step in counters
                ),
                "(br_if $lanes (i32.lt_u (local.tee $g"
                " (i32.add (local.get $g) (i32.const 4))) (i32.const 32))))",
            ]
        return "\n".join([*parts, *after])


def _bases(place: Place) -> list[tuple[int, str]]:
    """Return the offsets and pointers of a place's parts in the loop."""
    if place.base == "warp":
        return (
            [(0, "(local.get $d)"), (16, "(local.get $d)")]
            if is_wide(place.dtype)
            else [(0, "(local.get $r)")]
        )
    if is_wide(place.dtype):
        twice = "(i32.shl (local.get $o) (i32.const 1))"
        return [(0, twice), (16, twice)]
    return [(0, "(local.get $o)")]
