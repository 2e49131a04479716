"""Examples of a launch's grid and block, and of a template's arguments, by a kernel's text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from gpusim.cuda_cpp.named_values import whole_numbers

MOST_THREADS = 1024  # of a block
GRID, BLOCKS = "16", ("256", "16x16")  # in a row, in a square
SIDE = 64  # of a square of threads
_OF_TEMPLATE = {"typename": "float", "class": "float", "bool": "true"}
_OF_BLOCK = re.compile(
    r"block|thread|tpb|dim|tile|row|col|size|width|height|^b[mnk]?$", re.IGNORECASE
)
_SMALL = "4"  # of a template, for a number that is none of the block's: elements of a thread
_SIZES = (
    r"__shared__[^;]*\b{name}\b|\+=\s*{name}\b"
    r"|blockIdx\s*\.\s*\w\s*\*\s*{name}\b|\b{name}\s*\*\s*blockIdx\b"
)
# A shared array with numbers or names as its sizes, and the thread's index along an axis.
_SHARED = re.compile(r"__shared__[^;\[]*?(\w+)\s*((?:\[\s*\w+\s*\])+)\s*;")
_THREAD_INDEX = re.compile(r"\b(\w+)\s*=\s*(?:\(\w+\)\s*)?threadIdx\s*\.\s*[xy]\s*[;,]")
_SQUARE_GRID = re.compile(r"\bblockIdx\s*\.\s*y\b|\bgrid\(\s*2\s*\)")
_SQUARE_BLOCK = re.compile(r"\bthreadIdx\s*\.\s*y\b|\bgrid\(\s*2\s*\)")


def example_instance(name: str, parameters: Sequence[str], text: str) -> str:
    """Return a kernel's name, with arguments for its template's parameters.

    Numbers that are named for a block or a tile have the size of the example's block.
    """
    block = shape(body_in(text, name), text)[1].partition("x")[0]
    words = [one.split() for one in parameters if one.split() and "=" not in one]
    of_numbers = [block if _OF_BLOCK.search(one[-1]) else _SMALL for one in words]
    given = [
        _OF_TEMPLATE.get(one[0], number) for one, number in zip(words, of_numbers, strict=True)
    ]
    return f"{name}<{', '.join(given)}>"


def shape(body: str, text: str = "") -> tuple[str, str]:
    """Return a grid and a block with the dimensions that a kernel requests.

    The block has the sizes of the text's constants for it, else of a shared array with an element
    for each thread, where a GPU can run that.
    """
    is_square = _SQUARE_BLOCK.search(body) is not None
    constants = sorted(set(block_constants(text, body).values()), reverse=True)[: 1 + is_square]
    sizes = constants or _shared_sizes(text, body, 1 + is_square)
    sizes = sizes * 2 if is_square and len(sizes) == 1 else sizes
    is_possible = sizes and 0 < prod(sizes) <= MOST_THREADS
    block = "x".join(map(str, sizes)) if is_possible else BLOCKS[is_square]
    if _SQUARE_GRID.search(body) is None:
        return GRID, block
    blocks = max(1, SIDE // int(block.partition("x")[0])) if is_square else SIDE // 16
    return f"{blocks}x{blocks}", block


def block_constants(text: str, body: str) -> dict[str, int]:
    """Return a text's constants that are named for a block and stand for its size in a kernel.

    They are sizes of shared memory, steps of a loop, or factors of the block's index.
    """
    return {
        name: value
        for name, value in whole_numbers(text).items()
        if _OF_BLOCK.search(name) and re.search(_SIZES.format(name=name), body)
    }


def _shared_sizes(text: str, body: str, dimensions: int) -> list[int]:
    """Return the sizes of the smallest shared array that the thread's index is an index of."""
    known = whole_numbers(text)
    threads = "|".join([r"threadIdx\s*\.\s*[xy]", *_THREAD_INDEX.findall(body)])
    found = []
    for array, sizes in _SHARED.findall(body):
        words = re.findall(r"\w+", sizes)
        numbers = [int(one) if one.isdecimal() else known.get(one, 0) for one in words]
        is_by_thread = rf"\b{array}(?:\s*\[\s*(?:{threads})\s*\]){{{dimensions}}}"
        if all(numbers) and len(numbers) >= dimensions and re.search(is_by_thread, body):
            found.append([min(numbers)] * dimensions if dimensions > 1 else numbers[:1])
    return min(found, default=[])


def tile_parameters(body: str, block: str) -> dict[str, str]:
    """Return the words that a block's index is multiplied with, as its threads along the axis."""
    sizes = dict(zip("xyz", block.split("x"), strict=False))
    products = r"blockIdx\s*\.\s*(?P<axis>[xyz])\s*\*\s*(?P<word>\w+)"
    return {found["word"]: sizes.get(found["axis"], "1") for found in re.finditer(products, body)}


def body_in(text: str, name: str) -> str:
    """Return the text of a kernel, to the next kernel of a file; "" where it is not there."""
    begin = re.search(rf"__global__[^;{{}}]*\b{re.escape(name)}\s*\(", text)
    if begin is None:
        return ""
    return str(text[begin.start() :].partition("__global__")[2].partition("__global__")[0])
