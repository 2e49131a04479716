"""A launch's size, its origin and its data, as lines under a heading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text

from gpusim.launch.description import LaunchDescription
from gpusim.reports.generators import made_by
from gpusim.reports.layout import DIM, size

if TYPE_CHECKING:
    from gpusim.checking.findings import Findings


def description_lines(description: LaunchDescription | None, width: int) -> Iterator[Text]:
    """Yield the size of a launch with its origin, and the data that was assumed."""
    if description is None:
        return
    for text in (made_of(description), data_of(description)):
        for part in wrap(text, width, subsequent_indent="  "):
            yield Text(part, DIM)


def launches_lines(
    launches: Iterable[tuple[str, LaunchDescription | None]], width: int
) -> Iterator[Text]:
    """Yield the origin and the assumed data of launches of files, equal ones together."""
    names: dict[str, list[str]] = {}
    for name, one in launches:
        if one is not None and one.arguments and (said := said_of(one)):
            names.setdefault(said, []).append(name)
    for said, of in names.items():
        prefix = f"{', '.join(filter(None, of))}: " if any(of) else ""
        for part in wrap(f"{prefix}{said}", width, subsequent_indent="  "):
            yield Text(part, DIM)


def said_of(description: LaunchDescription) -> str:
    """Return the size, the origin and the assumed data of a launch, "" for one without."""
    return "; ".join(filter(None, (made_of(description), data_of(description))))


def launch_of(findings: Findings) -> str:
    """Return a launch that was checked in a sentence: grid, block, code, size, origin and data."""
    about = findings.description
    said = [
        f"grid {size(findings.grid)}, block {size(findings.block)}",
        f"compute capability {findings.compute_capability}, "
        f"{made_by(findings.compiler, findings.lowering)}",
        "" if about is None else said_of(about),
    ]
    return "; ".join(filter(None, said))


def made_of(description: LaunchDescription) -> str:
    """Return the size, and the origin of what was not typed; "" for a launch without either."""
    n = "" if description.n is None else f"n {int(description.n.value):,}"
    return "; ".join(filter(None, (n, description.origin)))


def data_of(description: LaunchDescription) -> str:
    """Return the data that was assumed, "" for none."""
    return f"data, assumed: {description.assumptions}" if description.data else ""
