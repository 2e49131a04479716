"""From subjects to a page: templates, styles and scripts in one file, and its limit of size."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from gpusim.errors import InputError
from gpusim.host.files import write_whole
from gpusim.host.installation import install
from gpusim.launch.languages import PYTHON
from gpusim.reports.page import spans, stepper
from gpusim.reports.page.pairing import MOST_BESIDE, beside, comparison, verdicts
from gpusim.reports.page.sections import Section, Subject, section
from gpusim.reports.page.terms import explanations
from gpusim.reports.stall_styles import STALL_STYLES

SUFFIX = ".html"
STYLES = ("page", "work", "narrow", "print")
SCRIPTS = (
    "tables",
    "terms",
    "values",
    "stepper",
    "registers",
    "timeline",
    "branches",
    "splitter",
    "finder",
    "work",
    "address",
)


class ReportMissingError(InputError):
    """Jinja2 is not there."""


def check(path: Path) -> None:
    """Raise InputError if no page can be written to this file, or the extra `report` is missing."""
    if path.suffix != SUFFIX:
        raise InputError(f"a report is a file that ends in {SUFFIX}, not {path}")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent} for {path.name}")
    _jinja()


def _jinja() -> Any:
    try:
        return importlib.import_module("jinja2")
    except ImportError:
        raise ReportMissingError(f"a report needs jinja2: {install('report')}") from None


def page(subjects: Sequence[Subject]) -> str:
    """Return the page about one kernel or several side by side.

    It holds all that it shows. Steps and timelines are cut where they are long; it says so itself.
    """
    made = sections(subjects)
    is_alone = len(made) == 1
    return rendered(
        "page.html.jinja",
        sections=made,
        comparison=None if is_alone else comparison(subjects),
        verdicts=list(verdicts(subjects)),
        lines=beside([one.source for one in made]) if 1 < len(made) <= MOST_BESIDE else (),
    )


def sections(subjects: Sequence[Subject]) -> list[Section]:
    """Return the sections of kernels that share a page's room."""
    room = max(1, len(subjects))
    steps, timeline = stepper.MOST_CHARACTERS // room, spans.MOST_CHARACTERS // room
    return [section(subject, steps, timeline) for subject in subjects]


def rendered(template: str, **values: Any) -> str:
    """Return a template of this package with its values, styles and scripts."""
    jinja = _jinja()

    environment = jinja.Environment(
        loader=jinja.FunctionLoader(_resource),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
    )
    named = set(STALL_STYLES)  # in the legend of the timeline

    def is_explained(label: str) -> bool:
        named.add(label)
        return label in explanations()

    environment.filters |= {"coloured": coloured, "is_explained": is_explained}
    text: str = environment.get_template(template).render(
        style="\n".join(_resource(f"styles/{name}.css") for name in STYLES),
        script="\n".join(_resource(f"scripts/{name}.js") for name in SCRIPTS),
        colours=_embedded({name: one.colour for name, one in STALL_STYLES.items()}),
        embedded=_embedded,
        explained=lambda: {label: text for label, text in explanations().items() if label in named},
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
    """Return plain data as JSON for a script element: without the beginning of any tag."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return importlib.import_module("markupsafe").Markup(text)


# Classes of the style sheet, by the beginning of Pygments' names of tokens.
CLASSES = {
    "Token.Keyword": "k",
    "Token.Name.Builtin": "b",
    "Token.Comment": "c",
    "Token.Literal.Number": "n",
    "Token.Literal.String": "s",
}


@cache
def _lexer(language: str) -> Any:
    name = "python" if language == PYTHON else "cuda"
    lexers = importlib.import_module("pygments.lexers")
    return lexers.get_lexer_by_name(name, stripnl=False, ensurenl=False)


def coloured(text: str, language: str) -> Markup:
    """Return a source line as markup, its tokens in elements of `CLASSES`."""
    parts = []
    for kind, value in _lexer(language).get_tokens(text):
        name = next((CLASSES[one] for one in CLASSES if str(kind).startswith(one)), "")
        parts.append(Markup('<i class="{}">{}</i>').format(name, value) if name else escape(value))
    return Markup("").join(parts)
