"""Pages as notebooks: their prose, their examples as cells, their pictures drawn by commands.

A page is the only source. `python docs/refresh.py` writes the notebooks anew, without outputs, and
a test compares:

- a command of a `console` block is a line `%gpusim ...`, without `| head` and `| tail`: results
  show themselves;
- a `python` block is a cell, with a file name `%%writefile`; a `cuda` block with a name likewise;
- a picture that a command draws is that command; what examples print is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pictures

FOLDER = Path(__file__).parent / "notebooks"
PAGES = ("tour", "lessons")

# The numbers of the page are those of the lowering's code.
FIRST = "%load_ext gpusim\n%env GPUSIM_CODE=lowering"
INTRODUCTION = (
    "*This notebook is made from [its page](../{page}.md). It runs without a GPU, in an "
    "environment with `pip install '.[jupyter]'`; CUDA C++ also needs the extra `nvcc`.*"
)

_PIECE = re.compile(
    r"^```(?P<language>\w*)[ ]?(?P<name>[\w.]*)\n(?P<body>.*?)^```\n"
    r"|^!\[[^\]]*\]\(pictures/(?P<picture>[\w.-]+)\)\n"
    r"|^<!-- [^\n]* -->\n",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"(\]\()(?!https?:|#)([^)\s]+\))")


def notebook(page: str) -> str:
    """Return a page of the documentation as the text of a notebook."""
    text = (Path(__file__).parent / f"{page}.md").read_text(encoding="utf-8")
    cells = [
        {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, **_CELLS[kind](source)}
        for number, (kind, source) in enumerate(_cells(page, text))
    ]
    document = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _source(text: str) -> dict[str, object]:
    return {"source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, object]:
    return {"execution_count": None, "outputs": [], **_source(text)}


_CELLS = {"markdown": _source, "code": _code}


def _cells(page: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the source of each cell; prose between two examples is one."""
    title, _, rest = text.partition("\n")
    yield "markdown", f"{title}\n\n{INTRODUCTION.format(page=page)}"
    yield "code", FIRST
    prose: list[str] = []
    end = 0
    for piece in _PIECE.finditer(rest):
        prose.append(rest[end : piece.start()])
        end = piece.end()
        code = list(_examples(piece))
        if not code:
            prose.append(_kept(piece))
            continue
        yield from _prose(prose)
        prose = []
        yield from (("code", one) for one in code)
    yield from _prose([*prose, rest[end:]])


def _prose(parts: list[str]) -> Iterator[tuple[str, str]]:
    text = re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip()
    if text:
        yield "markdown", _LINK.sub(r"\1../\2", text)


def _examples(piece: re.Match[str]) -> Iterator[str]:
    """Yield the cells of an example; none for anything else."""
    language, name, body = piece["language"], piece["name"], piece["body"]
    if piece["picture"] in pictures.COMMANDS:
        yield f"%gpusim {pictures.COMMANDS[piece['picture']]}"
    elif language in ("python", "cuda") and name:
        yield f"%%writefile {name}\n{body.rstrip()}"
    elif language == "python":
        yield body.rstrip()
    elif language == "console":
        for command in re.findall(r"^\$ (gpusim (?:.*\\\n)*.*)$", body, re.MULTILINE):
            whole = re.sub(r"\s*\\\n\s*", " ", command)
            yield f"%{whole.partition(' | ')[0]}"


def _kept(piece: re.Match[str]) -> str:
    """Return what stays in the prose: blocks that are not run, and pictures of no command."""
    is_printed = piece["language"] == "text" or piece[0].startswith("<!--")
    return "" if is_printed else piece[0]


FILES = {FOLDER / f"{page}.ipynb": partial(notebook, page) for page in PAGES}
