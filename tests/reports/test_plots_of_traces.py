"""Pictures of a trace: what is drawn is what the trace holds, on light paper and on dark."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import catalogue, cuda
from gpusim.cli.app import main
from gpusim.errors import InputError
from gpusim.host.installation import install
from gpusim.launch.views import View
from gpusim.reports.plots.banks import bank_use
from gpusim.reports.plots.canvas import THEMES, save
from gpusim.reports.plots.divergence import ABSENT, NOT_TAKEN, TAKEN, decisions
from gpusim.reports.plots.strides import law, strides
from gpusim.reports.plots.tree import Addition, tree_steps
from gpusim.sass import wheels
from gpusim.tracing.records import Trace

PICTURES = ("tree", "divergence", "banks", "strides")


@cache
def traced(name: str, block: int) -> Trace:
    """Two blocks of a kernel of the catalogue."""
    entry = catalogue.find(name)
    data = catalogue.sample(2 * block * entry.per_thread, "int32")
    call = entry.call(data, block=block)
    return gpusim.trace(call.configured, *call.arguments)


# -- the tree ------------------------------------------------------------------------------

NEEDS_NVCC = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)


def test_each_step_of_a_tree_adds_the_elements_that_the_published_indices_say() -> None:
    """reduce1: thread t adds t + s where t % 2s == 0; reduce2: thread t adds 2st and 2st + s."""
    stride = 1
    for first, second in zip(
        *(tree_steps(traced(n, 64)) for n in ("reduce1", "reduce2")), strict=True
    ):
        places = range(0, 64, 2 * stride)
        assert first.additions == tuple(Addition(t, t, (t + stride,)) for t in places)
        assert second.additions == tuple(
            Addition(t, e, (e + stride,)) for t, e in enumerate(places)
        )
        stride *= 2
    assert stride == 64


def test_the_drawn_tree_has_a_line_for_each_element_and_a_cell_for_each_thread() -> None:
    figure = traced("reduce2", 64).plot_tree()
    (axes,) = figure.axes
    for place, adding in enumerate((32, 16, 8, 4, 2, 1)):
        assert drawn(axes, f"adding {place}") == adding
        assert drawn(axes, f"idle {place}") == 64 - adding
        assert drawn(axes, f"edges {place}") == 2 * adding
    assert drawn(axes, "warps") == 2 * 6  # a frame for each warp in each step


def drawn(axes: Any, name: str) -> int:
    """How many outlines of that name there are."""
    paths = [patch.get_path() for patch in axes.patches if patch.get_gid() == name]
    return sum(int((path.codes == path.MOVETO).sum()) for path in paths)


def test_a_scan_that_loads_before_a_barrier_and_stores_behind_it_has_a_tree() -> None:
    """Kogge and Stone: in step k all threads from 2^k on add the element 2^k before their own."""
    call = catalogue.find("kogge_stone_scan_fixed").call(catalogue.sample(128, "int32"), block=128)
    steps = tree_steps(gpusim.trace(call.configured, *call.arguments))
    assert [len(step.additions) for step in steps] == [127, 126, 124, 120, 112, 96, 64]
    assert steps[1].additions[0].sources == (0,)


def test_of_two_buffers_a_scan_draws_the_elements_that_it_reads() -> None:
    """Each thread writes to the other buffer: not its own element there is added, but two here."""
    call = catalogue.find("kogge_stone_scan_double_fixed").call(np.ones(64, np.int32), block=64)
    steps = tree_steps(gpusim.trace(call.configured, *call.arguments))
    added = next(one for one in steps[0].additions if one.thread == 40)
    assert (added.element, added.sources, added.adds_to_own) == (104, (39, 40), False)


@cuda.jit
def scan_of_a_warp(source: Any, target: Any) -> None:
    lane = cuda.threadIdx.x % 32
    value = source[cuda.grid(1)]
    offset = 1
    while offset < 32:
        other = cuda.shfl_up_sync(0xFFFFFFFF, value, offset)
        if lane >= offset:
            value += other
        offset *= 2
    target[cuda.grid(1)] = cuda.shfl_sync(0xFFFFFFFF, value, 31)


@pytest.mark.parametrize("code", ["lowering", pytest.param("nvcc", marks=NEEDS_NVCC)])
def test_shuffles_have_a_tree_of_threads(code: str) -> None:
    """Kogge and Stone by shuffles, two warps; the broadcast at the end combines nothing."""
    numbers = np.ones(64, np.int32)
    trace = gpusim.trace(scan_of_a_warp[1, 64], numbers, numbers.copy(), code=code)
    steps = tree_steps(trace)
    assert [len(step.additions) for step in steps] == [62, 60, 56, 48, 32]
    assert Addition(thread=34, element=34, sources=(32,)) in steps[1].additions


def test_what_combines_nothing_has_no_tree() -> None:
    @cuda.jit
    def copy(source: Any, target: Any) -> None:
        target[cuda.grid(1)] = source[cuda.grid(1)]

    numbers = np.zeros(64, np.int32)
    trace = gpusim.trace(copy[2, 32], numbers, numbers.copy())
    with pytest.raises(InputError, match="there is no tree to draw"):
        trace.plot_tree()
    for picture in (trace.plot_banks, trace.plot_strides, trace.plot_divergence):
        with pytest.raises(InputError, match="to draw"):
            picture()


# -- divergence ----------------------------------------------------------------------------


def test_threads_that_pass_are_those_of_the_condition() -> None:
    """Line 53 of reduce1 is `tid % (2 * stride) == 0`."""
    found = decisions(traced("reduce1", 64))
    tid = np.arange(64)
    for iteration in range(6):
        row = found.steps.index((53, iteration))
        passes = tid % (2 << iteration) == 0
        assert (found.states[row] == np.where(passes, TAKEN, NOT_TAKEN)).all()
        warps = [w for w in (0, 1) if 0 < passes[32 * w : 32 * w + 32].sum() < 32]
        assert [warp for where, warp in found.divergent if where == row] == warps


def test_the_drawn_cells_are_the_decisions_and_frames_are_divergent_warps() -> None:
    trace = traced("reduce1", 64)
    found = decisions(trace)
    (axes,) = trace.plot_divergence().axes
    assert (axes.images[0].get_array() == found.states).all()
    frames = [(round(p.get_y() + 0.42), (p.get_x() + 0.5) / 32) for p in axes.patches]
    assert frames == [(row, warp) for row, warp in found.divergent]
    per_warp = sum(warp.counters["source_divergent_branches"] for warp in trace.warps)
    assert len(frames) == per_warp


def test_threads_of_a_short_last_warp_are_not_drawn() -> None:
    @cuda.jit
    def some(numbers: Any) -> None:
        if cuda.threadIdx.x < 20:
            numbers[cuda.threadIdx.x] = 1

    found = decisions(gpusim.trace(some[1, 40], np.zeros(40, np.int32)))
    assert found.states.shape == (1, 40)
    assert found.states.tolist() == [[TAKEN] * 20 + [NOT_TAKEN] * 20]
    assert ABSENT not in found.states


# -- banks and strides ---------------------------------------------------------------------


def test_a_bank_serves_as_many_words_as_lanes_meet_in_it() -> None:
    """In iteration 1 of reduce2 lanes are 4 words apart: 4 of them meet in every 4th bank."""
    found = bank_use(traced("reduce2", 128))
    assert (found.line, found.warp) == (81, 0)
    row = found.rows.index("1st load of shared, iteration 1")
    assert found.words[row].tolist() == [4, 0, 0, 0] * 8
    assert found.wavefronts[row] == 4
    assert (found.words.max(axis=1) == found.wavefronts).all()


def test_the_drawn_banks_are_numbered_where_words_meet() -> None:
    trace = traced("reduce2", 128)
    words = bank_use(trace, line=81, warp=1).words
    axes = trace.plot_banks(line=81, warp=1).axes[0]
    (image,) = axes.images
    levels = [0, *np.unique(words[words > 0])]  # a colour for each number, none for no word
    assert (np.take(levels, image.get_array().filled(-1) + 1) == words).all()
    assert len(levels) - 1 == image.cmap.N
    numbers = {t.get_position(): int(t.get_text()) for t in axes.texts}
    assert numbers == {(b, r): words[r, b] for r, b in np.argwhere(words > 1)}


def test_a_line_without_shared_memory_has_no_banks() -> None:
    with pytest.raises(InputError, match="line 72 of reduce2 has no access to shared memory"):
        traced("reduce2", 128).plot_banks(line=72)


def test_accesses_fall_on_the_law_of_strides() -> None:
    found = strides(traced("reduce2", 128))
    assert {stride for stride, _ in found} == {1, 2, 4}
    assert all(wavefronts == law(stride, 32) for stride, wavefronts in found)
    (axes,) = traced("reduce2", 128).plot_strides().axes
    points = axes.get_lines()[1]
    assert list(zip(*points.get_data(), strict=True)) == list(found)


@pytest.mark.parametrize(
    ("stride", "banks", "cost"), [(0, 32, 1), (3, 32, 1), (8, 32, 8), (4, 16, 8)]
)
def test_the_law_is_the_greatest_common_divisor(stride: int, banks: int, cost: int) -> None:
    assert law(stride, banks) == cost


# -- paper, files, the command -------------------------------------------------------------


@pytest.mark.parametrize("picture", PICTURES)
def test_axes_have_labels_and_dark_paper_has_light_ink(picture: str) -> None:
    figure = getattr(traced("reduce2", 64), f"plot_{picture}")(theme="dark")
    axes = figure.axes[0]
    assert axes.get_xlabel()
    assert axes.get_ylabel() or axes.get_yticklabels()
    paper, ink = THEMES["dark"].paper, THEMES["dark"].ink
    assert figure.get_facecolor() == pytest.approx(_rgba(paper))
    assert axes.xaxis.label.get_color() == ink


def _rgba(colour: str) -> tuple[float, ...]:
    return (*(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)), 1.0)


@pytest.mark.parametrize(("suffix", "begins"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_a_picture_is_a_file_and_always_the_same(
    suffix: str, begins: bytes, tmp_path: Path
) -> None:
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for path in (first, second):
        save(traced("reduce2", 64).plot_strides(), path)
    assert first.read_bytes().startswith(begins)
    assert first.read_bytes() == second.read_bytes()


def test_the_command_draws_and_names_the_file(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "tree.svg"
    assert main(["plot", "tree", "reduce2", "-n", "256", "--block", "64", "--out", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert "additions by thread" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["tree", "reduce2", "--out", "a.gif"], "ends in .png or .svg, not a.gif"),
        (["forest", "reduce2"], "the picture is tree, divergence, banks,"),
        (["accurcy"], "timeline, not 'accurcy'; did you mean accuracy?"),
        (["tree"], "gpusim plot tree needs the name of one kernel"),
        (["tree", "reduce2", "--theme", "sepia"], "the theme is light or dark, not 'sepia'"),
        (["tree", "reduce2", "--out", "nowhere/a.svg"], "there is no directory nowhere for a.svg"),
    ],
)
def test_what_cannot_be_drawn_is_said(words: list[str], complaint: str, capsys: Any) -> None:
    assert main(["plot", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_without_matplotlib_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["plot", "tree", "reduce2"]) == 2
    told = capsys.readouterr().err
    assert told == f"gpusim: a picture needs matplotlib: {install('plot')}\n"


def test_every_view_of_a_trace_leads_to_a_function() -> None:
    views = [name for name, value in vars(Trace).items() if isinstance(value, View)]
    assert {f"plot_{picture}" for picture in PICTURES} <= set(views)
    for name in views:
        assert callable(getattr(Trace, name).load())
