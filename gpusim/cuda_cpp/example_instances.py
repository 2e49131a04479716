"""Examples of a launch's grid and block, and of a template's arguments, by a kernel's text."""

from __future__ import annotations

import re
from collections.abc import Sequence

GRIDS, BLOCKS = ("16", "4x4"), ("256", "16x16")  # in a row, in a square
_OF_TEMPLATE = {"typename": "float", "class": "float", "bool": "true"}
_OF_BLOCK = re.compile(
    r"block|thread|tpb|dim|tile|row|col|size|width|height|^b[mnk]?$", re.IGNORECASE
)
_SMALL = "4"  # of a template, for a number that is none of the block's: elements of a thread
_SQUARE_GRID = re.compile(r"\bblockIdx\s*\.\s*y\b|\bgrid\(\s*2\s*\)")
_SQUARE_BLOCK = re.compile(r"\bthreadIdx\s*\.\s*y\b|\bgrid\(\s*2\s*\)")


def example_instance(name: str, parameters: Sequence[str], text: str) -> str:
    """Return a kernel's name, with arguments for its template's parameters.

    Numbers that are named for a block or a tile have the size of the example's block.
    """
    block = shape(body_in(text, name))[1].partition("x")[0]
    words = [one.split() for one in parameters if one.split() and "=" not in one]
    of_numbers = [block if _OF_BLOCK.search(one[-1]) else _SMALL for one in words]
    given = [
        _OF_TEMPLATE.get(one[0], number) for one, number in zip(words, of_numbers, strict=True)
    ]
    return f"{name}<{', '.join(given)}>"


def shape(body: str) -> tuple[str, str]:
    """Return a grid and a block with the dimensions that a kernel requests."""
    return (
        GRIDS[_SQUARE_GRID.search(body) is not None],
        BLOCKS[_SQUARE_BLOCK.search(body) is not None],
    )


def body_in(text: str, name: str) -> str:
    """Return the text of a kernel, to the next kernel of a file; "" where it is not there."""
    begin = re.search(rf"__global__[^;{{}}]*\b{re.escape(name)}\s*\(", text)
    if begin is None:
        return ""
    return str(text[begin.start() :].partition("__global__")[2].partition("__global__")[0])
