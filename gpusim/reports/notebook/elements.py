"""The elements of HTML that results share: tables, lists of findings, pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Collection, Iterable, Sequence
from html import escape
from typing import Any

from rich.text import Text

from gpusim.advice.records import NONE, Advice
from gpusim.errors import InputError
from gpusim.reports.plots.canvas import save_to

LEFT = ' style="text-align: left"'
BARE = ' style="margin: 0; background: none"'  # Jupyter has a paper for code


def table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    typed: int = -1,
    texts: Collection[str] = (),
) -> str:
    """Return a table; cells of the column `typed` keep their spaces, as source code does.

    They are on the left, and so are the columns of these titles.
    """
    sides = [LEFT if place == typed or title in texts else "" for place, title in enumerate(titles)]
    head = "".join(
        f"<th{side}>{escape(title)}</th>" for side, title in zip(sides, titles, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{LEFT}><pre{BARE}>{escape(cell)}</pre></td>"
            if place == typed
            else f"<td{sides[place]}>{escape(cell)}</td>"
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Several(tuple[Any, ...]):
    """Results that are shown one below the other."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))


def listed(sentences: Iterable[str]) -> str:
    """Return sentences as a list, nothing where there are none."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def advice_list(found: Iterable[Advice]) -> str:
    """Return findings on performance as a list, each with its kind."""
    return listed(
        one.sentence if one.kind == NONE else f"{one.kind}: {one.sentence}" for one in found
    )


def headline(name: str, about: str) -> str:
    """Return the first line: the kernel's name, and its launch or its time."""
    return f"<p><b>{escape(name)}</b> {escape(about)}</p>"


def note(text: str) -> str:
    """Return a remark as a paragraph, nothing for no text."""
    return f"<p>{escape(text)}</p>" if text else ""


def plain(lines: Iterable[Text]) -> str:
    """Return lines of a report as text."""
    return "\n".join(line.plain.rstrip() for line in lines)


def picture(draw: Callable[[], Any], about: str) -> str:
    """Return a picture as an element, nothing where there is nothing to draw.

    `about` is read out in its place.
    """
    try:
        figure = draw()
    except InputError:  # nothing of the kind in this kernel, or no Matplotlib
        return ""
    content = io.BytesIO()
    save_to(figure, content, "png")
    address = base64.b64encode(content.getvalue()).decode("ascii")
    return (
        f'<img alt="{escape(about)}" style="max-width: 100%" src="data:image/png;base64,{address}">'
    )
