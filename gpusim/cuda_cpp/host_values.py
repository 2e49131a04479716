"""Values of host code, and the operators on them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from gpusim.cuda_cpp import structures
from gpusim.cuda_cpp.host_numbers import Number, operation
from gpusim.cuda_cpp.structures import Structures

UNKNOWN_BYTES = 4
WHOLE = re.compile(r"\b(?:int|unsigned|size_t|long|short|u?int\d+_t|auto|const|constexpr|bool)\b")


@dataclass(eq=False)
class Pointer:
    """Memory that host code allocates, with its size in bytes; an `alias` is another's memory."""

    ctype: str = ""
    bytes: Number | None = None


@dataclass(frozen=True)
class HostArray:
    """An array of Python that host code makes, with the sizes of its dimensions."""

    dtype: str
    shape: tuple[Number, ...]


@dataclass(frozen=True)
class Dim3:
    """A grid or a block."""

    x: Number
    y: Number = field(default_factory=lambda: Number.of(1))
    z: Number = field(default_factory=lambda: Number.of(1))

    @property
    def sizes(self) -> list[Number]:
        """The sizes, without trailing ones."""
        made = [self.x, self.y, self.z]
        while len(made) > 1 and made[-1].value == 1 and not made[-1].text:
            made.pop()
        return made


class Host(Protocol):
    """Host code as its operators see it, with the structures that its file defines."""

    structures: Structures

    def value(self, node: Any, env: dict[str, Any]) -> Any:
        """Return the value of an expression, None for an unknown one."""


def literal(host: Host, node: Any, env: dict[str, Any]) -> Any:
    """Return a number; None for another literal."""
    text = text_of(node).replace("'", "")
    plain = text if text.lower().startswith("0x") else text.rstrip("fFlL")
    try:
        return Number.of(int(plain.rstrip("uUlL"), 0), is_literal=True)
    except ValueError:
        pass
    try:
        return Number.of(float(plain), is_literal=True)
    except (ValueError, OverflowError):
        return None


def binary(host: Host, node: Any, env: dict[str, Any]) -> Any:
    """Return the result of an operator on two values."""
    a, b = (host.value(node.child_by_field_name(one), env) for one in ("left", "right"))
    operator = text_of(node.child_by_field_name("operator"))
    if isinstance(a, Pointer):
        return a
    if not isinstance(a, Number) or not isinstance(b, Number):
        return None
    is_whole = not _is_of_floats(node) and a.value.denominator == b.value.denominator == 1
    made = operation(operator, a, b, is_whole=is_whole)
    is_literal = a.is_literal and b.is_literal
    return None if made is None else replace(made, is_literal=is_literal)


def assignment(host: Host, node: Any, env: dict[str, Any]) -> Any:
    """Set a variable, and return its value."""
    left, right = (node.child_by_field_name(one) for one in ("left", "right"))
    name, made = text_of(left), host.value(right, env)
    operator = text_of(node.child_by_field_name("operator"))
    before = env.get(name)
    if operator != "=":
        if isinstance(before, Number) and isinstance(made, Number):
            made = operation(operator[:-1], before, made, is_whole=True)
        else:
            return before
    if made is None or left.type == "subscript_expression":
        return before
    if isinstance(made, Pointer) and isinstance(before, Pointer):
        made.ctype = made.ctype or before.ctype
    env[name] = made.copied() if isinstance(made, Number) else made
    return env[name]


def update(host: Host, node: Any, env: dict[str, Any]) -> Any:
    """Count a variable up or down."""
    name = text_of(node.child_by_field_name("argument"))
    before = env.get(name)
    if isinstance(before, Number):
        operator = text_of(node.child_by_field_name("operator"))[:1]
        env[name] = operation(operator, before, Number.of(1), is_whole=True)
    return before


def member(host: Host, node: Any, env: dict[str, Any]) -> Any:
    """Return a size of a grid or block, or a member."""
    of = host.value(node.child_by_field_name("argument"), env)
    name = text_of(node.child_by_field_name("field"))
    if isinstance(of, Dim3) and name in ("x", "y", "z"):
        return getattr(of, name).copied()
    if isinstance(of, Pointer):
        return of
    return env.get(text_of(node))


def unary(host: Host, node: Any, env: dict[str, Any]) -> Any:
    """Return the result of an operator on one value."""
    made = host.value(node.child_by_field_name("argument"), env)
    operator = text_of(node.children[0])
    if not isinstance(made, Number):
        return made if operator in ("&", "*") else None
    if operator == "&":
        return made
    if operator == "-":
        return replace(Number.of(float(-made.value)), is_literal=made.is_literal)
    return Number.of(not made.value) if operator == "!" else made


def cast(host: Host, node: Any, env: dict[str, Any]) -> Any:
    """Return a value of another type."""
    made = host.value(node.child_by_field_name("value"), env)
    return converted(made, text_of(node.child_by_field_name("type")))


def converted(made: Any, ctype: str) -> Any:
    """Return a value as one of another type."""
    if isinstance(made, Number) and "*" not in ctype and WHOLE.search(ctype):
        return whole(made) if not made.is_literal else made
    return made


def condition(host: Host, node: Any, env: dict[str, Any]) -> Any:
    """Return the value that a condition selects."""
    test = host.value(node.child_by_field_name("condition"), env)
    which = "consequence" if isinstance(test, Number) and test.value else "alternative"
    return host.value(node.child_by_field_name(which), env)


def subscript(host: Host, node: Any, env: dict[str, Any]) -> Any:
    """Return the address of an element, or a known one."""
    made = host.value(node.child_by_field_name("argument"), env)
    parent = node.parent
    is_address = parent is not None and parent.text.startswith(b"&")
    return made if isinstance(made, Pointer) and is_address else env.get(text_of(node))


def new(host: Host, node: Any, env: dict[str, Any]) -> Any:
    """Return the memory that `new` allocates."""
    ctype = text_of(node.child_by_field_name("type"))
    sizes = node.child_by_field_name("declarator")
    given = [] if sizes is None else [host.value(one, env) for one in array_sizes(sizes)]
    return Pointer(ctype, bytes_of(given, ctype, host.structures))


def whole(number: Number) -> Number:
    """Return a number without its fraction."""
    is_whole = number.value.denominator == 1
    return number.copied() if is_whole else Number.of(number.whole)


def bytes_of(sizes: Sequence[Any], ctype: str, known: Structures) -> Number | None:
    """Return the bytes of an array of a type; None if a size is unknown."""
    made: Number | None = Number.of(size_of(ctype, known))
    for one in sizes:
        if made is None or not isinstance(one, Number):
            return None
        made = operation("*", one, made, is_whole=True)
    return made


def text_of(node: Any) -> str:
    """Return the text of a node."""
    return str(node.text.decode(errors="replace")) if node is not None else ""


def array_sizes(node: Any) -> Iterator[Any]:
    """Yield the sizes of an array's dimensions."""
    while node is not None and node.type.endswith(("array_declarator", "new_declarator")):
        size = node.child_by_field_name("size") or node.child_by_field_name("length")
        if size is not None:
            yield size
        node = node.child_by_field_name("declarator")


def _is_of_floats(node: Any) -> bool:
    """Return whether a quotient is one of floating-point numbers."""
    return (
        re.search(rb"\d\.|\(\s*(?:float|double)\s*\)|\b(?:float|double)\s*[(>]", node.text)
        is not None
    )


def size_of(ctype: str, known: Structures) -> int:
    """Return the bytes of a type, 4 for an unknown one."""
    words = re.sub(r"\b(?:const|volatile|struct|static)\b|[&]", " ", ctype).split()
    name = " ".join(words).removeprefix("std::")
    return structures.size_of(name, known) or UNKNOWN_BYTES
