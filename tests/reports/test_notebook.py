"""In a notebook results show themselves; that of the docs runs, and is kept without output."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import catalogue, cuda
from gpusim.catalogue import Request
from gpusim.checking.findings import Findings
from gpusim.errors import InputError
from gpusim.host.installation import install
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.rankings import Ranking
from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.sweep import Case, Swept, sweep
from gpusim.prediction.sweeps.tuning import Tuned, best_launches
from gpusim.tracing import repeat
from gpusim.tracing.records import Trace
from gpusim.tracing.trace import trace_prepared

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def launched(name: str, n: int, block: int) -> tuple[Any, tuple[Any, ...]]:
    call = catalogue.find(name).call(catalogue.sample(n, "int32"), block=block)
    return call.configured, call.arguments


@cache
def traced() -> Trace:
    configured, arguments = launched("reduce2", 128, 64)
    return gpusim.trace(configured, *arguments)


@cache
def predicted() -> Prediction:
    configured, arguments = launched("reduce2", 2**16, 64)
    return gpusim.predict(configured, *arguments, device="h200")


@cache
def checked() -> Findings:
    configured, arguments = launched("reduce5", 128, 64)
    return gpusim.check(configured, *arguments)


@cache
def ranked() -> Ranking:
    return gpusim.rank(["reduce3", "reduce1"])


@cache
def swept() -> Swept:
    requests = [Request("reduce3", n=2**12, block=block) for block in (64, 128)]
    return sweep([Case(one, "h200") for one in requests], workers=1)


@cache
def tuned() -> Tuned:
    requests = [Request("reduce3", n=2**12, block=block) for block in (64, 128)]
    return best_launches([Case(one, "h200") for one in requests], workers=1)[0]


RESULTS = [traced, predicted, checked, ranked, swept, tuned]


@cache
def html(made: Any) -> str:
    """What a result shows in a notebook; its pictures are drawn once."""
    return str(made()._repr_mimebundle_(include=None, exclude=None)["text/html"])


def test_it_is_kept_without_output() -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in document["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_the_notebook_runs_with_pictures_in_its_outputs() -> None:
    """In a kernel of its own, as `jupyter nbconvert --execute` does it."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    document = nbformat.read(NOTEBOOK, 4)
    nbclient.NotebookClient(document, timeout=300, kernel_name="python3").execute()
    outputs = [one for cell in document.cells for one in cell.get("outputs", ())]
    shown = [one["data"] for one in outputs if "data" in one]
    assert [one for one in shown if "image/svg+xml" in one]
    pages = [one.get("text/html", "") for one in shown]
    assert len([page for page in pages if "data:image/png;base64," in page]) >= 3
    assert len([page for page in pages if page.startswith("<iframe")]) == 1
    assert [one for one in outputs if one.output_type == "error"] == []


@pytest.mark.parametrize("made", RESULTS, ids=lambda made: made.__name__)
def test_a_result_shows_a_table_that_asks_nothing_of_the_network(made: Any) -> None:
    assert "<table>" in html(made)
    assert re.findall(r'(?:src|href)="(?!data:)', html(made)) == []


def test_a_trace_shows_its_lines_and_findings_and_escapes_them() -> None:
    for line in traced().lines:
        assert f"<td>{line.executions:,}</td>" in html(traced)
    lines = [replace(line, text="<script>") for line in traced().lines]
    evil = replace(traced(), kernel="<script>", lines=lines)._repr_html_()
    assert "<script>" not in evil
    assert "<b>&lt;script&gt;</b>" in evil


def test_a_trace_has_a_picture_only_of_conflicts_or_divergence() -> None:
    configured, arguments = launched("step4", 128, 64)
    calm = gpusim.trace(configured, *arguments)
    lines = [replace(line, counters={}) for line in calm.lines]
    assert "<img" not in replace(calm, lines=lines)._repr_html_()
    assert "<li>bank-conflict: line " in html(traced)
    assert '<img alt="Words that each bank' in html(traced)


def test_a_prediction_shows_its_findings() -> None:
    assert "predicated off" in html(predicted) or "diverge" in html(predicted)


def test_a_check_shows_each_finding_with_its_source_and_its_fix() -> None:
    first = checked()[0]
    assert html(checked).count(">error: ") == len(checked())
    assert "reduce.py:" in html(checked)
    assert first.fix in html(checked)


def test_a_check_without_findings_says_what_it_compared() -> None:
    configured, arguments = launched("reduce3", 128, 64)
    found = gpusim.check(configured, *arguments)
    assert "No hazards found" in found._repr_html_()
    assert f"{found.coverage.accesses:,} accesses" in found._repr_html_()


def test_a_ranking_shows_steps_and_a_picture() -> None:
    assert f"{ranked().step(1):.2f}x" in html(ranked)
    assert "data:image/png;base64," in html(ranked)


@pytest.mark.parametrize("made", RESULTS, ids=lambda made: made.__name__)
def test_as_text_a_result_is_a_summary_of_at_most_100_columns(made: Any) -> None:
    text = str(made())
    assert max(map(len, text.splitlines())) <= 100
    assert "reduce" in text
    assert len(repr(made())) < 80
    bundle = made()._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == text


def test_the_summary_of_a_trace_has_its_sums_and_findings() -> None:
    text = str(traced())
    assert text.startswith("reduce2  grid 2, block 64")
    assert f"{traced().counters['instructions']:,} instructions" in text
    for finding in traced().findings:
        assert f"line {finding.line}" in text


def test_without_matplotlib_tables_are_shown_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = traced()._repr_html_()
    assert "<table>" in page
    assert "<img" not in page


# -- pictures ------------------------------------------------------------------------------


def test_a_figure_shows_itself_as_svg_and_one_of_many_shapes_as_pixels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gpusim.reports.plots import figure as figures

    figure = traced().plot_banks()
    assert "<svg" in figure._repr_svg_()
    assert figure._repr_png_() is None
    monkeypatch.setattr(figures, "MOST_SVG_BYTES", 100)
    assert figure._repr_svg_() is None
    assert figure._repr_png_().startswith(b"\x89PNG")


# -- the page ------------------------------------------------------------------------------


@cuda.jit
def accumulate(total: Any, step: Any) -> None:
    i = cuda.grid(1)
    if total[i] > 0:
        step[i] = 5
    total[i] += 1


def test_the_page_is_a_frame_that_holds_it() -> None:
    shown = traced().show(device=None)._repr_html_()
    assert shown.startswith("<iframe ")
    assert 'srcdoc="&lt;!doctype html&gt;' in shown.lower()
    assert "reduce2" in shown
    assert '"<' not in shown


def test_the_page_shows_the_launch_as_it_ran_and_leaves_its_arrays_alone() -> None:
    """A second run on the same arrays would take the branch."""
    total, step = np.zeros(32, dtype=np.int32), np.zeros(32, dtype=np.int32)
    trace = gpusim.trace(accumulate[1, 32], total, step)
    assert trace.repeat is not None
    for _ in range(2):
        again = trace_prepared(trace.repeat.prepared(ComputeCapability(9, 0)))
        assert again.counters == trace.counters
    assert (total.tolist(), step.tolist()) == ([1] * 32, [0] * 32)


def test_views_of_one_array_overlap_in_the_repeated_launch() -> None:
    whole = np.arange(64, dtype=np.int32)
    kept = repeat.repeat_of(accumulate[1, 32], (whole[:40], whole[32:]), "O3", None)
    assert kept is not None
    first, second = kept.arguments
    first[39] = -1
    assert second[7] == -1
    assert whole[39] == 39


def test_a_launch_with_large_arrays_is_not_kept_and_says_so() -> None:
    large = np.zeros(repeat.MOST_BYTES // 4 + 1, np.int32)
    trace = gpusim.trace(accumulate[1, 32], large, np.ones(32, np.int32))
    with pytest.raises(InputError, match="gpusim report"):
        trace.show()


# -- DataFrames ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "rows", "columns"),
    [
        (traced, lambda: len(traced().lines), {"line", "text", "shared_load_bank_conflicts"}),
        (predicted, lambda: len(predicted().stalls_by_line), {"line", "fraction", "barrier"}),
        (checked, lambda: len(checked()), {"rule", "severity", "lines"}),
        (ranked, lambda: 2, {"kernel", "time_us", "step"}),
        (swept, lambda: 2, {"kernel", "block", "time_us"}),
        (tuned, lambda: 2, {"kernel", "block", "time_us"}),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_a_result_is_a_data_frame(made: Any, rows: Any, columns: set[str]) -> None:
    pytest.importorskip("pandas")
    found = made().to_dataframe()
    assert len(found) == rows()
    assert columns <= set(found.columns)


def test_without_pandas_a_data_frame_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="needs pandas: " + re.escape(install("jupyter"))):
        traced().to_dataframe()
