"""A figure that notebooks display without pyplot.

Matplotlib's own are shown where pyplot was imported. This module needs Matplotlib.
"""

from __future__ import annotations

import io

from matplotlib.figure import Figure

from gpusim.reports.plots.canvas import save_to

MOST_SVG_BYTES = 300_000  # a notebook keeps its outputs; more shapes are better pixels


class ShownFigure(Figure):
    """Matplotlib's figure with the methods that IPython asks: SVG, or PNG for many shapes."""

    def _content(self, kind: str) -> bytes:
        content = io.BytesIO()
        save_to(self, content, kind)
        return content.getvalue()

    def _repr_svg_(self) -> str | None:
        content = self._content("svg")
        return content.decode() if len(content) <= MOST_SVG_BYTES else None

    def _repr_png_(self) -> bytes | None:
        return self._content("png") if self._repr_svg_() is None else None
