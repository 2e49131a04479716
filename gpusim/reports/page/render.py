"""From subjects to a page: the template, the script, the pictures, and the limit on its size."""

from __future__ import annotations

import base64
import importlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from gpusim.errors import InputError
from gpusim.host.files import write_whole
from gpusim.reports.page.sections import Subject, comparison, section
from gpusim.reports.page.stepper import MOST_CHARACTERS
from gpusim.reports.plots.canvas import THEMES, matplotlib, save_to

INSTALL = "pip install 'gpusim[report]'"
MOST_BYTES = 2_000_000
SUFFIX = ".html"
MOST_REMARKS = 8  # that are seen at once

PICTURES = (
    ("plot_tree", "additions, step by step"),
    ("plot_divergence", "conditions, thread by thread"),
    ("plot_banks", "words served by each bank"),
    ("plot_strides", "wavefronts by stride"),
)


class ReportMissingError(InputError):
    """Jinja2 is not there."""


@dataclass(frozen=True)
class Image:
    """A picture: its data address by theme, and its caption."""

    by_theme: dict[str, str]
    text: str


def check(path: Path) -> None:
    """Raise InputError if no page can be written to this file, or the extra `report` is missing."""
    if path.suffix != SUFFIX:
        raise InputError(f"a report is a file that ends in {SUFFIX}, not {path}")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent} for {path.name}")
    _jinja()
    matplotlib()


def _jinja() -> Any:
    try:
        return importlib.import_module("jinja2")
    except ImportError:
        raise ReportMissingError(f"a report needs jinja2: {INSTALL}") from None


def page(subjects: Sequence[Subject], most_bytes: int = MOST_BYTES) -> str:
    """Return the page about one kernel or several side by side.

    It holds all that it shows. Steps are cut, and pictures are drawn on light paper alone or left
    out, where it would grow beyond `most_bytes`; it says so itself.
    """
    for themes in (tuple(THEMES), ("light",), ()):
        text = _page(subjects, themes)
        if len(text.encode()) <= most_bytes:
            break
    return text


def _page(subjects: Sequence[Subject], themes: Sequence[str]) -> str:
    """Return the page with its pictures on paper of these themes."""
    sections = [section(subject, MOST_CHARACTERS // len(subjects)) for subject in subjects]
    return rendered(
        "page.html.jinja",
        sections=sections,
        images=[images(subject, themes) for subject in subjects],
        are_pictures_left_out=not themes,
        comparison=comparison(subjects) if len(subjects) > 1 else None,
    )


def rendered(template: str, **values: Any) -> str:
    """Return a template of this package with its values, style and script."""
    jinja = _jinja()
    environment = jinja.Environment(
        loader=jinja.FunctionLoader(_resource),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
    )
    text: str = environment.get_template(template).render(
        style=_resource("page.css"),
        script=_resource("page.js"),
        embedded=_embedded,
        most_remarks=MOST_REMARKS,
        **values,
    )
    return text


def write(subjects: Sequence[Subject], path: Path) -> None:
    """Write the page to a file, whole or not at all."""
    check(path)
    write_whole(path, page(subjects))


def _resource(name: str) -> str:
    return resources.files("gpusim.reports.page").joinpath(name).read_text(encoding="utf-8")


def _embedded(document: Any) -> Any:
    """Return plain data as JSON that may stand in a script element: no tag can begin in it."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return importlib.import_module("markupsafe").Markup(text)


def images(subject: Subject, themes: Sequence[str]) -> list[Image]:
    """Return the pictures that can be drawn of a kernel; none without a theme."""
    found = []
    for draw, kind, text in _drawings(subject) if themes else ():
        try:
            drawn = {theme: _address(draw(theme=theme), kind) for theme in themes}
        except InputError:  # the kernel has nothing to draw in it
            continue
        found.append(Image(drawn, f"{subject.trace.kernel}: {text}"))
    return found


def _drawings(subject: Subject) -> Iterator[tuple[Callable[..., Any], str, str]]:
    """Yield each picture's drawing function, file type and caption."""
    for name, text in PICTURES:
        yield getattr(subject.trace, name), "svg", text
    if subject.forecast is not None:  # a timeline has too many shapes for SVG
        text = "predicted: stalls of the warps of an SM"
        yield subject.forecast.first.plot_timeline, "png", text


_MEDIA = {"svg": "image/svg+xml", "png": "image/png"}


def _address(figure: Any, kind: str) -> str:
    """Return a figure as an address that holds it."""
    picture = io.BytesIO()
    save_to(figure, picture, kind)
    return f"data:{_MEDIA[kind]};base64," + base64.b64encode(picture.getvalue()).decode("ascii")
