"""The common layout of reports: one width, one way to write numbers, one set of colours."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.style import Style
from rich.text import Text

from gpusim.host import files

DEFAULT_WIDTH = 100
LEAST_WIDTH = 40

BAD = "bold red"
DIM = "dim"
TITLE = "bold"
NO_LINE = "(no source line)"
KIND_STYLES = {"exact": "green", "model": "yellow", "measured": "cyan"}


def console(stream: IO[str]) -> Console:
    """Return a console as wide as the terminal; 100 columns (or COLUMNS) where there is none."""
    width = None
    if not stream.isatty():
        columns = os.environ.get("COLUMNS", "")
        is_width = re.fullmatch(r"[1-9]\d{0,3}", columns, re.ASCII)
        width = max(int(columns), LEAST_WIDTH) if is_width else DEFAULT_WIDTH
    return Console(
        file=stream,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_jupyter=False,  # a notebook would get a frame for each line
    )


def harmless(line: Text) -> Text:
    """Return a line without characters that control a terminal, or begin a command of a log."""
    text = files.harmless(line.plain)
    if text != line.plain:
        line = line.copy()
        line.plain = text
    return line


def linked(style: str, file: str) -> Style:
    """Return a style that also links to a file, for terminals with hyperlinks (OSC 8)."""
    return Style.parse(style) + Style(link=Path(file).absolute().as_uri())


def integer(value: int) -> str:
    """Return a count with commas, or "." for zero, which makes the other numbers stand out."""
    return f"{value:,}" if value else "."


def command_lines(command: str, width: int, style: str, indent: str = "") -> Iterator[Text]:
    """Yield a command line in lines that a shell takes for one, however long its words are."""
    lines = [indent]
    for word in map(shlex.quote, shlex.split(command)):
        is_first = lines[-1] == indent
        if not is_first and len(lines[-1]) + len(word) + 3 > width:
            lines.append(f"{indent}   ")
        lines[-1] += word if is_first else f" {word}"
    for number, line in enumerate(lines, 1):
        text = line if number == len(lines) else f"{line} \\"
        yield Text(text, style, no_wrap=True, overflow="ignore")


def heading(text: str, note: str = "") -> Text:
    """Return the title of a section, preceded by an empty line, with a note beside it."""
    line = Text(f"\n{text}", TITLE)
    if note:
        line.append(f"  {note}", style="not bold dim")
    return line


def plural(number: int, noun: str, several: str = "") -> str:
    """Return "1 warp" or "4 warps"; `several` is a plural that takes more than an s."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def size(values: Sequence[int]) -> str:
    """Return a grid or block as 128 or 16 x 16."""
    trimmed = list(values)
    while len(trimmed) > 1 and trimmed[-1] == 1:
        trimmed.pop()
    return " x ".join(f"{value:,}" for value in trimmed)
