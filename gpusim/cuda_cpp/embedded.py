"""CUDA C++ in the strings of a Python file, as CuPy and PyCUDA compile it, or in a notebook.

The file is read, never run: texts that it assembles when it runs are not found.
"""

from __future__ import annotations

import ast
import json
from itertools import zip_longest
from typing import Any

from gpusim.errors import InputError

_KERNEL = "__global__"


def cuda_of(text: str, file: str) -> str:
    """Return the strings of a Python file that hold kernels, each in its own lines of the file.

    "" where there are none; InputError where the file is no Python, or puts a kernel's text
    together.
    """
    if _KERNEL not in text:
        return ""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be parsed as Python: {error}") from None
    every = list(ast.walk(tree))
    documentation = {id(node.value) for node in every if isinstance(node, ast.Expr)}
    joined = [part for node in every if isinstance(node, ast.JoinedStr) for part in ast.walk(node)]
    assembled = {id(part) for part in joined}
    found = [
        (node.lineno, node.value, id(node) in assembled)
        for node in every
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if _KERNEL in node.value and id(node) not in documentation
    ]
    lines: list[str] = []
    for line, held, is_assembled in sorted(found):
        if not is_assembled:
            lines += [""] * (line - 1 - len(lines))
            lines += held.split("\n")
    if found and not lines:
        raise InputError(
            f"{file}, line {found[0][0]}: a kernel's text is assembled at run time; use "
            f"gpusim run -- python {file}"
        )
    return "\n".join(lines)


def cuda_of_notebook(text: str, file: str) -> str:
    """Return the CUDA C++ of a notebook: cells such as %%cuda, and strings of its Python.

    Lines are counted over all cells. InputError where the file is no notebook.
    """
    try:
        cells = [_lines(one) for one in json.loads(text)["cells"] if one["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{file} cannot be parsed as a notebook") from None
    python: list[str] = []
    cuda: list[str] = []
    for lines in cells:
        is_cuda = lines[0].startswith("%%") and any(_KERNEL in one for one in lines)
        cuda += ["", *lines[1:]] if is_cuda else [""] * len(lines)
        python += [""] * len(lines) if is_cuda else map(_without_magic, lines)
    strings = cuda_of("\n".join(python), file).split("\n")
    return "\n".join(one or other for one, other in zip_longest(cuda, strings, fillvalue=""))


def _lines(cell: Any) -> list[str]:
    held = cell["source"]
    return ("".join(held) if isinstance(held, list) else str(held)).split("\n")


def _without_magic(line: str) -> str:
    """Return a line of Python, without commands of IPython."""
    return "" if line.lstrip().startswith(("%", "!", "?")) else line
