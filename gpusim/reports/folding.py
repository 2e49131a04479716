"""Lines of reports folded to the width of a terminal, at spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

_SECOND_COLUMN = re.compile(r"\s*\S+(?: \S+)*?\s{2,}(?=\S)")


def pieces(line: Text, width: int) -> Iterator[Text]:
    """Yield a line in pieces of at most `width`; all but the first are indented two further.

    One that may not wrap stays whole.
    """
    from rich.text import Text

    if line.no_wrap:
        yield line
        return
    for whole in line.split("\n", allow_blank=True):
        indent = hang(whole.plain, width // 4)
        while whole.cell_len > width:
            at = whole.plain.rfind(" ", indent, width + 1)
            at = at if at > width // 3 else width
            first, whole = whole.divide([at])
            first.rstrip()
            yield first
            rest = len(whole.plain) - len(whole.plain.lstrip())
            whole = Text(" " * indent).append_text(whole[rest:])
        yield whole


def hang(text: str, most: int) -> int:
    """Return the indent of continuation lines: the second column's if at `most`, else two more."""
    column = _SECOND_COLUMN.match(text)
    leading = len(text) - len(text.lstrip())
    return column.end() if column and column.end() <= most else leading + 2
