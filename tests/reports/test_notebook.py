"""In a notebook results show themselves; that of the docs runs, and is kept without output."""

from __future__ import annotations

import ast
import json
import linecache
import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gpusim
from gpusim import catalogue
from gpusim.prediction.records import Prediction
from gpusim.tracing.records import Trace

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


@cache
def traced() -> Trace:
    call = catalogue.find("reduce2").call(catalogue.sample(128, "int32"), block=64)
    return gpusim.trace(call.configured, *call.arguments)


@cache
def bundle() -> dict[str, str]:
    """What the trace shows in a notebook; its pictures are drawn once."""
    return traced()._repr_mimebundle_(include=None, exclude=None)


def run(cells: list[str]) -> list[Any]:
    """Run cells in order as Jupyter does; return what the last line of each comes to."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for number, source in enumerate(cells):
        name = f"<cell {number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        *before, last = ast.parse(source).body
        if not isinstance(last, ast.Expr):
            before, last = [*before, last], ast.parse("None").body[0]
        exec(compile(ast.Module(before, []), name, "exec"), names)
        assert isinstance(last, ast.Expr)
        shown.append(eval(compile(ast.Expression(last.value), name, "eval"), names))
    return shown


def test_the_notebook_runs_and_shows_results() -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    shown = run(["".join(cell["source"]) for cell in cells])
    assert [type(value) for value in shown if isinstance(value, Trace | Prediction)] == [
        Trace,
        Prediction,
    ]
    for value in shown:
        if isinstance(value, Trace | Prediction):
            assert "<table>" in value._repr_html_()
            assert "data:image/png;base64," in value._repr_html_()


def test_it_is_kept_without_output() -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in document["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


def test_a_trace_shows_its_lines_and_findings_and_escapes_them() -> None:
    html = bundle()["text/html"]
    for line in traced().lines:
        assert f"<td>{line.executions:,}</td>" in html
    lines = [replace(line, text="<script>") for line in traced().lines]
    evil = replace(traced(), kernel="<script>", lines=lines)._repr_html_()
    assert "<script>" not in evil
    assert "<b>&lt;script&gt;</b>" in evil
    assert re.findall(r'(?:src|href)="(?!data:)', html) == []


def test_what_shows_no_html_has_the_report_as_text() -> None:
    assert set(bundle()) == {"text/plain", "text/html"}
    assert bundle()["text/plain"].startswith("reduce2  grid 2, block 64")
    assert max(map(len, bundle()["text/plain"].splitlines())) <= 100


def test_without_matplotlib_tables_are_shown_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    html = traced()._repr_html_()
    assert "<table>" in html
    assert "<img" not in html
