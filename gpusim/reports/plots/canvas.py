"""The common parts of all pictures: Matplotlib, colours, light and dark themes, output files."""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusim.errors import InputError
from gpusim.host.installation import install

SUFFIXES = (".png", ".svg")


class PlotMissingError(InputError):
    """Matplotlib is not there."""


@dataclass(frozen=True)
class Theme:
    """Paper, ink and colours. `series` is for categories, `ramp` for magnitudes.

    Both are for eyes that do not tell red from green: Okabe and Ito's palette without its
    yellow, and Matplotlib's cividis.
    """

    name: str
    paper: str
    ink: str
    grey: str
    faint: str
    series: tuple[str, ...]
    ramp: str = "cividis"

    @property
    def style(self) -> dict[str, Any]:
        """Matplotlib's settings for it."""
        inks = (
            "text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color",
        )  # fmt: skip
        return {
            **dict.fromkeys(inks, self.ink),
            "axes.edgecolor": self.grey,
            "axes.facecolor": self.paper,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.dpi": 110,
            "figure.facecolor": self.paper,
            "font.size": 10,
            "legend.frameon": False,
            "savefig.facecolor": self.paper,
            "svg.fonttype": "none",  # text stays text: half the size
            "svg.hashsalt": "gpusim",
        }


_SERIES = ("#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7")
THEMES = {
    "light": Theme("light", "#ffffff", "#1b1b1b", "#808080", "#e2e2e2", ("#000000", *_SERIES)),
    "dark": Theme("dark", "#16181d", "#e8e8e8", "#8c8c8c", "#33373f", ("#f0f0f0", *_SERIES)),
}
MARKERS = "osD^vPX"
LONG_AXIS = 300  # times from end to end


def theme_of(name: str) -> Theme:
    """Return a theme by its name; InputError for one that there is not."""
    if name not in THEMES:
        raise InputError(f"the theme is {' or '.join(THEMES)}, not {name!r}")
    return THEMES[name]


def matplotlib(module: str = "") -> Any:
    """Return Matplotlib or a module of it; PlotMissingError where it is not installed."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        raise PlotMissingError(f"a picture needs matplotlib: {install('plot')}") from None
    return importlib.import_module(f"matplotlib.{module}" if module else "matplotlib")


@contextmanager
def canvas(theme: str, width: float, height: float) -> Iterator[tuple[Any, Theme]]:
    """Give an empty figure, sizes in inches, and the theme of the drawing."""
    chosen = theme_of(theme)
    with matplotlib().rc_context(chosen.style):
        shown = importlib.import_module("gpusim.reports.plots.figure").ShownFigure
        figure = shown(figsize=(width, height), layout="constrained")
        yield figure, chosen
        figure.draw_without_rendering()  # ticks take their colours when they are first drawn


def check(path: Path) -> None:
    """Raise InputError where no picture can be drawn into this file."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"a picture is a file that ends in {' or '.join(SUFFIXES)}, not {path}")
    matplotlib()


def save(figure: Any, path: Path) -> None:
    """Write a figure to a .png or .svg file; the same figure gives the same bytes."""
    check(path)
    save_to(figure, path, path.suffix.removeprefix("."))


def save_to(figure: Any, target: Any, kind: str) -> None:
    """Write a figure as "png" or "svg" to a file name or a file object."""
    if kind != "svg":
        figure.savefig(target, format=kind)
        return
    drawn = io.StringIO()
    with matplotlib().rc_context({"svg.fonttype": "none", "svg.hashsalt": "gpusim"}):
        figure.savefig(drawn, format=kind, metadata={"Date": None})
    content = lean(drawn.getvalue()).encode()
    if isinstance(target, Path):
        target.write_bytes(content)
    else:
        target.write(content)


def title(axes: Any, first: str, second: str = "") -> None:
    """Write a panel's title, and its subject below."""
    axes.set_title(f"{first}\n{second}" if second else first, loc="left", fontsize=10)


def plain_numbers(*axes: Any) -> None:
    """Write the numbers of logarithmic axes out: 1, 2, 5, 10, and of long ones 1, 10, 100."""
    ticker = matplotlib("ticker")
    for axis in axes:
        low, high = axis.get_view_interval()
        subs = (1, 2, 5) if high < LONG_AXIS * low else (1,)
        axis.set_major_locator(ticker.LogLocator(subs=subs))
        axis.set_major_formatter(lambda x, _: f"{x:,.0f}" if x >= 1 else f"{x:g}")
        axis.set_minor_formatter(ticker.NullFormatter())


_TAG = re.compile(r"<[^>]*>")
_DECIMALS = re.compile(r"(\d\.\d\d)\d+")
_MARKER = re.compile(r'<path id="(\w+)" d="[^"]*" style="([^"]*)"/>')
_USE = re.compile(r'(<use xlink:href="#(\w+)"[^>]*?) style="([^"]*)"/>')


def lean(picture: str) -> str:
    """Return a picture with two decimals of each coordinate, and each marker's style said once.

    Matplotlib writes six decimals, and at every point again the style that its marker has, or that
    all points of the marker have. Texts stand between tags and are left alone.
    """
    rounded = _TAG.sub(lambda tag: _DECIMALS.sub(r"\1", tag[0]), picture)
    styles = dict(_MARKER.findall(rounded))
    of_points: dict[str, set[str]] = {}

    def own(use: re.Match[str]) -> str:
        known = styles.get(use[2], "").split("; ")
        return "; ".join(part for part in use[3].split("; ") if part not in known)

    def once(use: re.Match[str]) -> str:
        mine = "" if use[2] in common else own(use)
        return f'{use[1]} style="{mine}"/>' if mine else f"{use[1]}/>"

    def whole(marker: re.Match[str]) -> str:
        name, style = marker[1], marker[2]
        return marker[0].replace(style, f"{style}; {common[name]}") if name in common else marker[0]

    for use in _USE.finditer(rounded):
        of_points.setdefault(use[2], set()).add(own(use))
    common = {
        name: found.pop()
        for name, found in of_points.items()
        if name in styles and len(found) == 1 and "" not in found
    }
    return _MARKER.sub(whole, _USE.sub(once, rounded))
