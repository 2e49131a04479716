"""The picture of a comparison: what is drawn where, and what is said where it cannot be."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim.cli.app import main
from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.errors import InputError
from gpusim.host.installation import install
from validate import picture
from validate.compare import KINDS
from validate.counted import Counted
from validate.predicted import Compared
from validate.records import Case, Machine, Measurements
from validate.report import Report, Section

SIZES = (2**20, 2**22, 2**24)


def made(kernels: tuple[str, ...] = picture.SERIES) -> Report:
    """Three sizes and two blocks of each kernel: measured 10, 20, ... us, predicted 5 % more."""
    cases = [
        Compared(kernel, Case(n, block, "int32"), 10.0 * k, 10.5 * k, 1.0)
        for k, kernel in enumerate(kernels, 1)
        for block in (64, 256)
        for n in SIZES
    ]
    measurements = Measurements(Machine("a GPU", "h200", "made by hand"))
    return Report(measurements, (Section(KINDS[1], tuple(cases)),), (), Counted(()))


@cache
def panels() -> Any:
    """Return the panels of one report."""
    return picture.figure([made()]).axes


def drawn(axes: Any, style: str) -> list[Any]:
    """The lines of a panel that have a style; "None" are points."""
    return [line for line in axes.get_lines() if line.get_linestyle() == style]


def test_one_panel_has_a_point_for_each_case_and_the_band() -> None:
    report = made()
    left, _ = panels()
    (points,) = drawn(left, "None")
    cases = report.sections[0].cases
    assert sorted(zip(*points.get_data(), strict=True)) == sorted(
        (one.measured_us, one.predicted_us) for one in cases
    )
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert labels == ["within 10 %", "reduce: 42 launches"]
    assert (left.get_xscale(), left.get_yscale()) == ("log", "log")


def test_the_other_has_a_line_for_each_kernel_and_the_peak() -> None:
    _, right = panels()
    lines, (peak,) = drawn(right, "-"), drawn(right, "--")
    assert [len(line.get_xdata()) for line in lines] == [3] * 7
    first = 4 * np.array(SIZES) / 10.5 / 1000
    assert np.asarray(lines[0].get_ydata()) == pytest.approx(first)
    assert list(peak.get_ydata()) == [4815, 4815]
    named = {text.get_text() for text in right.texts}
    assert named == {*picture.SERIES, "DRAM's peak, 4,815 GB/s"}
    assert "block 256" in right.get_title(loc="left")


def test_each_code_has_a_line_of_its_own() -> None:
    """Predictions of both codes for a size used to be joined by a line straight up."""
    of_nvcc, of_lowering = made().sections[0], made(("reduce1", "reduce2")).sections[0]
    sections = replace(of_nvcc, code=NVCC), replace(of_lowering, code=LOWERING)
    _, right = picture.figure([replace(made(), sections=sections)]).axes
    for style, count in (("-", 7), ("--", 2 + 1)):  # the peak is dashed, too
        lines = drawn(right, style)
        assert len(lines) == count
        assert all(len(set(line.get_xdata())) == len(line.get_xdata()) for line in lines)
    assert "solid: nvcc's code; dashed: the lowering's" in right.get_title(loc="left")


def test_lines_differ_in_colour_and_points_in_shape() -> None:
    _, right = panels()
    lines, points = drawn(right, "-"), drawn(right, "None")
    assert [line.get_color() for line in lines] == [point.get_color() for point in points]
    assert len({line.get_color() for line in lines}) == 7
    assert len({point.get_marker() for point in points}) == 7


def test_labels_are_moved_apart_no_further_than_need_be() -> None:
    assert picture._apart([1.0, 2.0, 3.0], 0.5) == [1.0, 2.0, 3.0]
    assert picture._apart([1.0, 1.0], 0.5) == [0.75, 1.25]
    moved = picture._apart([1.0, 1.0, 1.0, 1.1], 0.5)
    assert min(np.diff(moved)) == pytest.approx(0.5, abs=1e-6)


def test_a_report_has_a_row_of_two_panels() -> None:
    assert len(picture.figure([made(), made(("reduction1", "reduction2"))]).axes) == 4


def test_a_picture_is_a_file_of_its_suffix_and_always_the_same(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("a.svg", "b.svg", "c.png"))
    for path in (first, second, third):
        picture.draw([made(("reduce1", "reduce2"))], path)
    assert first.read_bytes().startswith(b"<?xml")
    assert first.read_bytes() == second.read_bytes()
    assert third.read_bytes().startswith(b"\x89PNG")


def test_without_predictions_there_is_nothing_to_draw() -> None:
    with pytest.raises(InputError, match="there is nothing to draw"):
        picture.figure([Report(made().measurements, (), (), Counted(()))])


def test_without_matplotlib_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["validate", "compare", "--picture", "x.png"]) == 2
    told = capsys.readouterr().err
    assert told == f"gpusim: a picture needs matplotlib: {install('plot')}\n"


def test_nothing_else_needs_matplotlib() -> None:
    script = "import sys, validate.commands; print('matplotlib' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert ran.stdout == "False\n"


def test_the_command_draws_and_links_the_picture(tmp_path: Path) -> None:
    drawn, written = tmp_path / "pictures" / "a.svg", tmp_path / "a.md"
    drawn.parent.mkdir()
    words = ["--against", "k40m", "--workers", "1", "--page", str(written)]
    assert main(["validate", "compare", *words, "--picture", str(drawn)]) == 0
    assert drawn.stat().st_size > 10_000
    assert "](pictures/a.svg)" in written.read_text(encoding="utf-8")
