"""Machine code that becomes a `Program`, as text: a line a row, each with its source line."""

from __future__ import annotations

from gpusim.compiler.dump import Line, Names, heading
from gpusim.compiler.ir import Block
from gpusim.isa.ops import text_of
from gpusim.lowering.code import Code


def listing(code: Code, names: Names) -> list[Line]:
    """Return the code's lines: each block's heading, rows and terminator."""
    lines = []
    for block in code.function.blocks:
        lines.append((0, heading(block, names)))
        for phi in code.phis.get(block, ()):
            sources = ", ".join(f"R{register}" for register in phi.src)
            lines.append((phi.line, f"  R{phi.dst} = phi {sources}"))
        for row in code.rows[block]:
            lines.append((row.line, f"  {text_of(row.instruction(), code.immediates)}"))
        lines.append((block.line, f"  {_terminator(code, block, names)}"))
    return lines


def _terminator(code: Code, block: Block, names: Names) -> str:
    targets = [names.block(target) for target in block.targets]
    if len(targets) == 2:
        return f"branch R{code.condition[block]} ? {targets[0]} : {targets[1]}"
    return f"jump {targets[0]}" if targets else "exit"
