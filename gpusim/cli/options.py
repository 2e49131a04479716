"""Options that several subcommands share, each described once, and how results are printed."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.text import Text

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a report.")]
Count = Annotated[
    str | None,
    typer.Option("-n", metavar="N", help="Number of elements: 4096, 2^20, 1e6."),
]
Block = Annotated[
    str | None,
    typer.Option("--block", metavar="THREADS", help="Threads per block: 256, or 16x16."),
]
Grid = Annotated[
    str | None,
    typer.Option("--grid", metavar="BLOCKS", help="Blocks, in place of the kernel's own rule."),
]
Operation = Annotated[
    str | None, typer.Option("--op", metavar="OP", help="sum, max or min, where the kernel can.")
]
DataType = Annotated[
    str | None, typer.Option("--dtype", metavar="TYPE", help="Type of the elements: float32, ...")
]
Coarse = Annotated[
    str | None,
    typer.Option("--coarse", metavar="FACTOR", help="Elements a thread takes, where it is free."),
]
Input = Annotated[
    str | None,
    typer.Option(
        "--input", metavar="FILE", help="Numbers to work on: .npy, .csv or text; else a sample."
    ),
]
Capability = Annotated[
    str, typer.Option("--cc", metavar="CC", help="Compute capability to compile for.")
]
StepLimit = Annotated[
    str | None,
    typer.Option(
        "--step-limit",
        metavar="N",
        help="Instructions a block may run before it counts as making no progress.",
    ),
]


def verbatim(*paragraphs: str) -> str:
    """Return paragraphs of help that keep their line breaks."""
    return "\n\n".join(f"\b\n{paragraph.rstrip()}" for paragraph in paragraphs)


def print_json(document: Any) -> None:
    """Print plain data as JSON; NaN and infinities, which JSON lacks, as strings."""
    json.dump(_plain(document), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def print_lines(lines: Iterable[Text], width: int | None = None) -> None:
    """Print lines of a report, none of which wraps."""
    from gpusim.reports.layout import console

    screen = console()
    for line in lines:
        screen.print(line, no_wrap=True, overflow="ellipsis", crop=True, width=width)
