"""The list of kernels, by their published texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from textwrap import wrap
from typing import Any

from rich.text import Text

from gpusim.catalogue import Entry
from gpusim.reports.layout import BAD, DIM, TITLE, command_lines

NAME_WIDTH = 18


@dataclass(frozen=True)
class FileKernel:
    """A kernel of a file: parameters with types, the launch that the file has, a command line.

    `source` is the place of that launch, `error` is the reason where it cannot be described.
    """

    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    kept: Mapping[str, str | list[str]] = field(default_factory=dict)
    source: str = ""
    command: str = ""
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        if self.error:
            return {"name": self.name, "error": self.error}
        parameters = [{"name": name, "type": of} for name, of in self.parameters]
        return {
            "name": self.name,
            "parameters": parameters,
            "launch": dict(self.kept) or None,
            "source": self.source or None,
            "command": self.command,
        }


def file_kernels(kernels: Sequence[FileKernel], width: int) -> Iterator[Text]:
    """Yield the kernels of a file: name, parameters, and a command line that runs."""
    for one in kernels:
        yield Text(one.name, TITLE)
        if one.error:
            yield Text(f"  {one.error}", BAD)
            continue
        listed = ", ".join(f"{name}: {of}" if of else name for name, of in one.parameters)
        yield Text(f"  {listed or 'no parameters'}")
        if one.kept:
            yield Text(f"  launch: {_options(one.kept)} ({one.source})", DIM)
        yield from command_lines(one.command, width, DIM, "  ")


def _options(kept: Mapping[str, str | list[str]]) -> str:
    """Return a launch as the comment of a file has it."""
    words = {name: ",".join(one) if isinstance(one, list) else one for name, one in kept.items()}
    keys = {"arg": "args", "shared_bytes": "shared-bytes"}
    return " ".join(f"{keys.get(name, name)}={text}" for name, text in words.items())


def kernel_list(entries: Sequence[Entry], width: int, *, whole: bool = False) -> Iterator[Text]:
    """Yield the kernels, a line each, grouped by origin; `whole` with lessons and known defects."""
    for origin, found in groupby(entries, key=lambda entry: entry.origin):
        group = list(found)
        yield Text(str(origin), TITLE).append(f"  {len(group)}", "not bold dim")
        for entry in group:
            if whole:
                yield from _whole(entry, width)
            else:
                name = f"{entry.name} !" if entry.defect else entry.name
                yield from _described(
                    name, re.split("[:;]", entry.teaches)[0].rstrip("."), width, ""
                )
        if whole:
            yield Text()
    note = "" if whole else "!: wrong as published; gpusim list --all has the reasons. "
    count = f"{len(entries)} kernels. {note}gpusim run NAME compares one with NumPy."
    for part in wrap(count, width):
        yield Text(part, DIM)


def _whole(entry: Entry, width: int) -> Iterator[Text]:
    """Yield a kernel with its lesson and its known defect."""
    yield from _described(entry.name, entry.teaches, width, "")
    if entry.defect:
        fix = f" Corrected: {entry.fixed_by}." if entry.fixed_by else ""
        defect = f"known defect: {entry.defect.rstrip('.')}.{fix}"
        yield from _described("", defect, width, BAD)


def _described(name: str, text: str, width: int, style: str) -> Iterator[Text]:
    """Yield a name and its text beside it; a name that is too long has a line of its own."""
    if len(name) >= NAME_WIDTH:
        yield Text(f"  {name}")
        name = ""
    for number, part in enumerate(wrap(text, max(20, width - NAME_WIDTH - 2))):
        line = Text(f"  {name if number == 0 else '':<{NAME_WIDTH}}")
        line.append(part, style or None)
        yield line
