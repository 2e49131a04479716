"""The line table of Triton's PTX."""

from __future__ import annotations

import re

_ASSEMBLY = re.compile(r"// begin inline asm.*?// end inline asm", re.DOTALL)
_LINE = re.compile(r"^\t\.loc\t.*\n", re.MULTILINE)
_FILE = re.compile(r'^\t\.file\t(\d+) "(?:.*/)?([^"/]*)"', re.MULTILINE)
# A line of a function with its calls in a comment alone, the outermost last.
_CALLED = re.compile(r"^\t\.loc\t(\d+) \d+ \d+\s*//.* @\[ (\S+):(\d+):(\d+)[ \]]*$", re.MULTILINE)


def with_true_lines(ptx: str) -> str:
    """Return PTX with one line for each block of inline assembly, and none of Triton's library.

    LLVM counts one up for each instruction in a block: a load behind four moves, as Triton writes
    one, is four lines too far down. Triton 3.6 has lines of its library without their calls: the
    outermost one is in the kernel.
    """
    numbers = {name: number for number, name in _FILE.findall(ptx)}

    def of_call(line: re.Match[str]) -> str:
        number = numbers.get(line[2], line[1])
        return line[0] if number == line[1] else f"\t.loc\t{number} {line[3]} {line[4]}"

    def once(block: re.Match[str]) -> str:
        first = _LINE.search(block[0])
        if first is None:
            return block[0]
        return block[0][: first.end()] + _LINE.sub("", block[0][first.end() :])

    return _ASSEMBLY.sub(once, _CALLED.sub(of_call, ptx))
