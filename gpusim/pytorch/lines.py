"""The line table of Triton's PTX."""

from __future__ import annotations

import re

_ASSEMBLY = re.compile(r"// begin inline asm.*?// end inline asm", re.DOTALL)
_LINE = re.compile(r"^\t\.loc\t.*\n", re.MULTILINE)


def with_true_lines(ptx: str) -> str:
    """Return PTX with one line for each block of inline assembly.

    LLVM counts one up for each instruction in a block: a load after four moves, as Triton writes
    one, is four lines too far down.
    """

    def once(block: re.Match[str]) -> str:
        first = _LINE.search(block[0])
        if first is None:
            return block[0]
        return block[0][: first.end()] + _LINE.sub("", block[0][first.end() :])

    return _ASSEMBLY.sub(once, ptx)
