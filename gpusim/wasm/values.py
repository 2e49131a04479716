"""Values as text of WebAssembly: each text leaves its value on the stack."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpusim.wasm.memory import Record
from gpusim.wasm.value_types import BOOL, FLOAT, INT, NONE, Kind, Reference


@dataclass(frozen=True)
class Value:
    """Text that leaves a value on the stack, and the value's kind.

    `slots` are the texts that read the single slots of a stored tuple, after `before`.
    """

    code: str
    kind: Kind
    slots: tuple[str, ...] = ()
    before: str = ""


def folded(*parts: object) -> str:
    """Return an instruction with its operands before it."""
    return f"({' '.join(map(str, parts))})"


def is_simple(code: str) -> bool:
    """Whether a text reads a variable or a constant: it may be repeated, or stand elsewhere."""
    return code.count("(") == 1 and code.startswith(("(local.get ", "(i32.const ", "(i64.const "))


def wrapped(code: str) -> str:
    """Return the text of the low 32 bits of a text of 64 bits."""
    if _end(code) == len(code) - 1:
        for wide, narrow in _NARROWED:
            if code.startswith(wide):
                return narrow + code[len(wide) :] if narrow else code[len(wide) : -1]
        name, operands = code[5:].split(" ", 1)
        first = _end(operands)
        if name in _OF_LOW_BITS and operands.startswith("(") and operands[first + 1] == " ":
            one, other = operands[: first + 1], operands[first + 2 : -1]
            return folded(f"i32.{name}", wrapped(one), wrapped(other))
    return folded("i32.wrap_i64", code)


def _end(code: str) -> int:
    """Return where the instruction ends with which a text begins."""
    depth = 0
    for place in re.finditer(r"[()]", code):
        depth += 1 if place[0] == "(" else -1
        if not depth:
            return place.start()
    return -1


_OF_LOW_BITS = frozenset(("add", "sub", "mul", "and", "or", "xor"))
# Instructions of 64 bits with a form of 32 bits, or with an operand that is the result.
_NARROWED = (
    ("(i64.extend_i32_u ", ""),
    ("(i64.extend_i32_s ", ""),
    ("(i64.load32_u ", "(i32.load "),
    ("(i64.load32_s ", "(i32.load "),
    ("(i64.const ", "(i32.const "),
)


def constant(value: object) -> Value | None:
    """Return a number, truth value, record or None as a literal, else None."""
    if isinstance(value, bool):
        return Value(f"(i32.const {int(value)})", BOOL)
    if isinstance(value, int):
        return Value(f"(i64.const {int(value)})", INT)
    if isinstance(value, float):
        return Value(f"(f64.const {value.hex()})", FLOAT)
    if isinstance(value, Record):
        return Value(f"(i32.const {value.address})", Reference(type(value)))
    return Value("(i32.const 0)", NONE) if value is None else None
