"""The SSA form as text: a line an operation, each with the line of the source it comes from."""

from __future__ import annotations

from gpusim.compiler.ir import Array, Block, Function, Value

Line = tuple[int, str]  # in the source, and text


class Names:
    """Names of values and blocks, given when they are first shown and kept from then on."""

    def __init__(self) -> None:
        self._values: dict[Value, int] = {}
        self._blocks: dict[Block, int] = {}

    def value(self, value: Value) -> str:
        """Return `%7`, or the literal of a constant."""
        if value.op == "const":
            return f"{value.detail}"
        return f"%{self._values.setdefault(value, len(self._values))}"

    def block(self, block: Block) -> str:
        """Return `b3`."""
        return f"b{self._blocks.setdefault(block, len(self._blocks))}"


def dump(function: Function) -> str:
    """Return the function as text."""
    return "\n".join(text for _, text in listing(function, Names()))


def listing(function: Function, names: Names) -> list[Line]:
    """Return the function's lines: each block's heading, operations and terminator."""
    lines = []
    for block in function.blocks:
        lines.append((0, heading(block, names)))
        values = (*block.phis, *block.body)
        lines += [(value.line, f"  {_operation(value, names)}") for value in values]
        lines.append((block.line, f"  {_terminator(block, names)}"))
    return lines


def heading(block: Block, names: Names) -> str:
    """Return a block's name and the names of its predecessors."""
    label = f"{names.block(block)}:"
    return f"{label}  ; from {', '.join(map(names.block, block.preds))}" if block.preds else label


def _operation(value: Value, names: Names) -> str:
    if value.op == "const":
        return f"const {value.detail}: {value.dtype}"
    left = "" if value.dtype is None else f"{names.value(value)}: {value.dtype} = "
    words = [value.op, ", ".join(map(names.value, value.args)), _detail(value.detail)]
    return left + " ".join(word for word in words if word)


def _detail(detail: object) -> str:
    parts = detail if isinstance(detail, tuple) else (detail,)
    shown = [part.name if isinstance(part, Array) else str(part) for part in parts]
    return "" if detail is None else f"[{', '.join(shown)}]"


def _terminator(block: Block, names: Names) -> str:
    targets = [names.block(target) for target in block.targets]
    if block.condition is not None:
        return f"branch {names.value(block.condition)} ? {targets[0]} : {targets[1]}"
    return f"jump {targets[0]}" if targets else "return"
