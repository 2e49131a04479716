"""The reduction tree or scan: the additions of each step by thread, and the warps without work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpusim.errors import InputError
from gpusim.launch.grid import WARP_SIZE
from gpusim.reports.plots.canvas import canvas, matplotlib, title
from gpusim.tracing import lanes
from gpusim.tracing.execution import Execution
from gpusim.tracing.records import Trace

MOST_STEPS = 12

Outline = list[tuple[float, float]]  # from corner to corner


@dataclass(frozen=True)
class Addition:
    """A thread's store to an element of shared memory, computed from other elements.

    With `adds_to_own` also from its own, in memory or a register. Of a shuffle, the elements are
    threads.
    """

    thread: int
    element: int
    sources: tuple[int, ...]
    adds_to_own: bool = True


@dataclass(frozen=True)
class TreeStep:
    """A source line in one of its iterations: the additions of all threads of the block."""

    line: int
    iteration: int
    additions: tuple[Addition, ...]


def tree_steps(trace: Trace) -> list[TreeStep]:
    """Return the steps in which threads combine elements, in order.

    A store takes what its thread has loaded since its last store: before a barrier, in some scans.
    A shuffle takes the value of another lane; a broadcast from one lane combines nothing.
    """
    shuffles: Counter[tuple[int, int]] = Counter()  # of a warp at a line
    loaded: dict[int, set[int]] = {}
    steps: dict[tuple[int, int], list[Addition]] = {}
    placed = zip(trace.executions, trace.iterations, strict=True)
    for execution, iteration in placed:
        if execution.sources is not None and len(set(execution.sources)) > 1:
            number = shuffles[execution.warp, execution.line]
            shuffles[execution.warp, execution.line] += 1
            steps.setdefault((execution.line, number), []).extend(_exchanged(execution))
        if execution.space != "shared" or execution.addresses is None:
            continue
        for lane, element in lanes.element_numbers(execution).items():
            thread = execution.warp * WARP_SIZE + lane
            if execution.op.startswith("LD"):
                loaded.setdefault(thread, set()).add(element)
            elif thread in loaded:
                taken = loaded.pop(thread)
                others = tuple(sorted(taken - {element}))
                if others:
                    found = Addition(thread, element, others, element in taken or len(others) == 1)
                    steps.setdefault((execution.line, iteration), []).append(found)
    return [TreeStep(line, number, tuple(a)) for (line, number), a in steps.items()]


def _exchanged(execution: Execution) -> Iterator[Addition]:
    """Yield the lanes of a shuffle that take another lane's value."""
    first = execution.warp * WARP_SIZE
    for lane in lanes.on_lanes(execution):
        source = (execution.sources or ())[lane]
        if source != lane:
            yield Addition(first + lane, first + lane, (first + source,))


def plot_tree(trace: Trace, *, theme: str = "light") -> Any:
    """Draw the tree of one block: elements across, steps downwards, threads as a strip of cells.

    Raises InputError where the block combines nothing in shared memory or by shuffles.
    """
    steps = tree_steps(trace)[:MOST_STEPS]
    if not steps:
        raise InputError(
            f"{trace.kernel} combines no elements of shared memory or of lanes in block "
            f"{trace.block_index}: there is no tree to draw"
        )
    threads = trace.launch.threads_per_block
    with canvas(theme, 11, 1.3 + 0.75 * len(steps)) as (figure, ink):
        axes = figure.subplots()
        _warps(axes, threads, len(steps), ink)
        for place, step in enumerate(steps):
            _edges(axes, step, place, ink)
            _strip(axes, step, place, threads, ink)
        last = max(threads, 1 + max(a.element for s in steps for a in s.additions)) - 1
        axes.set(xlim=(-1, last + 1), ylim=(len(steps) + 0.1, -0.35))
        axes.set_xticks(range(0, last + 2, WARP_SIZE // 2))
        axes.set_yticks([place + 0.5 for place in range(len(steps))], [_label(s) for s in steps])
        axes.tick_params(length=0)
        axes.set_xlabel("lines: element of shared memory (shuffles: thread);  strip: thread")
        title(
            axes,
            f"{trace.kernel}, block {trace.block_index}: additions by thread",
            "lines: combined elements, in the colour of the adding warp;  "
            "strip: adding (filled) and idle threads, a frame for each warp",
        )
        axes.spines[["left", "bottom"]].set_visible(False)
    return figure


def _label(step: TreeStep) -> str:
    adding = len({addition.thread for addition in step.additions})
    return f"line {step.line}\n{adding} addition{'s' if adding > 1 else ''}"


def _colour(thread: int, ink: Any) -> str:
    colours = ink.series[1:]
    return str(colours[thread // WARP_SIZE % len(colours)])


def _warps(axes: Any, threads: int, steps: int, ink: Any) -> None:
    """Frame the threads of each warp in the strip of each step."""
    frames = [
        _box(first - 0.5, place - 0.2, min(WARP_SIZE, threads - first), 0.16)
        for place in range(steps)
        for first in range(0, threads, WARP_SIZE)
    ]
    _draw(axes, frames, "warps", fill=False, lw=0.8, ec=ink.grey)


def _edges(axes: Any, step: TreeStep, place: int, ink: Any) -> None:
    """Draw an edge from each source element to its result, in the colour of the adding warp."""
    by_colour: dict[str, list[Outline]] = {}
    for addition in step.additions:
        own = (addition.element,) if addition.adds_to_own else ()
        for source in (*own, *addition.sources):
            line: Outline = [(source, place), (addition.element, place + 0.74)]
            by_colour.setdefault(_colour(addition.thread, ink), []).append(line)
    for colour, lines in by_colour.items():
        _draw(axes, lines, f"edges {place}", fill=False, lw=0.8, ec=colour)
        ends = sorted({line[-1] for line in lines})
        axes.plot(*zip(*ends, strict=True), ls="none", marker="o", ms=2.4, color=colour)


def _strip(axes: Any, step: TreeStep, place: int, threads: int, ink: Any) -> None:
    """Fill the cells of the adding threads, and faintly the cells of the others."""
    adding = {addition.thread for addition in step.additions}
    by_look: dict[tuple[str, str], list[Outline]] = {}
    for thread in range(threads):
        is_adding = thread in adding
        look = ("adding", _colour(thread, ink)) if is_adding else ("idle", ink.faint)
        by_look.setdefault(look, []).append(_box(thread - 0.4, place - 0.17, 0.8, 0.1))
    for (name, colour), cells in by_look.items():
        _draw(axes, cells, f"{name} {place}", fc=colour, lw=0)


def _box(left: float, top: float, width: float, height: float) -> Outline:
    right, bottom = left + width, top + height
    return [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]


def _draw(axes: Any, outlines: Sequence[Outline], name: str, **look: Any) -> None:
    """Draw outlines as one patch: thousands of their own make a file five times as large."""
    path = matplotlib("path").Path
    corners = [corner for outline in outlines for corner in outline]
    codes = [
        path.LINETO if number else path.MOVETO
        for outline in outlines
        for number, _ in enumerate(outline)
    ]
    patch = matplotlib("patches").PathPatch(path(corners, codes), **look)
    patch.set_gid(name)
    axes.add_patch(patch)
