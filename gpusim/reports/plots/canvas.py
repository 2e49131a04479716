"""The common parts of all pictures: Matplotlib, colours, light and dark themes, output files."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusim.errors import InputError
from gpusim.host.installation import install
from gpusim.reports.plots.svg import lean

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
