"""`gpusim plot`: a picture of what a kernel does, as a PNG or SVG file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusim.cli import output
from gpusim.cli.options import (
    BLOCK,
    COARSE,
    COUNT,
    DATA_TYPE,
    GRID,
    INPUT,
    LEVEL,
    OPERATION,
    STEP_LIMIT,
    Command,
    Option,
)
from gpusim.cli.own_kernels import ARGUMENT, SHARED_BYTES
from gpusim.cli.timing import DEVICE, L2, PASSES, WITHOUT, device_of, one_of
from gpusim.errors import InputError


def plot(chosen: Namespace) -> int:
    """Draw what a kernel does, as a PNG or SVG file.

    Of one block: who adds what (tree), who passes which condition (divergence), which banks a
    line meets (banks), what its strides cost (strides). Of a prediction: what the warps of an SM
    wait for (timeline). Needs matplotlib, the extra `plot`.
    """
    from gpusim.reports.plots.canvas import check, save, theme_of

    path = Path(chosen.out)
    theme_of(chosen.theme)
    check(path)
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent} for {path.name}")
    one_of(chosen.picture, tuple(PICTURES), "the picture")
    save(PICTURES[chosen.picture].draw(chosen), path)
    output.write(f"{path}\n")
    return 0


def _of_trace(name: str, *options: str) -> Callable[[Namespace], Any]:
    """Return what draws one of a trace's own pictures, with the options that it takes."""

    def draw(chosen: Namespace) -> Any:
        from gpusim.cli.inputs import count
        from gpusim.cli.trace import traced

        chosen.kernel = _one_kernel(chosen)
        given = {
            option: count(getattr(chosen, option), f"the {option}", least=0)
            for option in options
            if getattr(chosen, option) is not None
        }
        trace, _ = traced(chosen)
        return getattr(trace, f"plot_{name}")(theme=chosen.theme, **given)

    return draw


def _timeline(chosen: Namespace) -> Any:
    """Draw the timeline of a prediction."""
    from gpusim.cli.predict import forecast, job_of

    chosen.kernel = _one_kernel(chosen)
    device = device_of(chosen.device, chosen.without)
    made = forecast(chosen, job_of(chosen), device, timeline=True)
    return made.first.plot_timeline(theme=chosen.theme)


def _one_kernel(chosen: Namespace) -> str:
    if len(chosen.kernels) != 1:
        raise InputError(f"gpusim plot {chosen.picture} draws one kernel: name it")
    name: str = chosen.kernels[0]
    return name


@dataclass(frozen=True)
class Picture:
    """What is seen in a picture, and what draws it from the command line's options."""

    summary: str
    draw: Callable[[Namespace], Any]


PICTURES = {
    "tree": Picture("who adds what, step by step", _of_trace("tree")),
    "divergence": Picture("which threads pass each condition", _of_trace("divergence")),
    "banks": Picture(
        "the words that each bank of shared memory serves", _of_trace("banks", "line", "warp")
    ),
    "strides": Picture("wavefronts by stride, beside the law", _of_trace("strides")),
    "timeline": Picture("predicted: why the warps of an SM wait, cycle by cycle", _timeline),
}


def _legend() -> str:
    width = max(map(len, PICTURES))
    rows = (f"  {name:<{width}}  {picture.summary}" for name, picture in PICTURES.items())
    return "\n".join(["pictures:", *rows])


COMMAND = Command(
    "plot",
    plot,
    (
        Option("picture", "what to draw, see below", "PICTURE"),
        Option("kernels", "names of gpusim list, or FILE.py:FUNCTION", "KERNEL", arity="*"),
        Option("--out", "the picture: a file that ends in .png or .svg", "FILE", "picture.svg"),
        Option("--theme", "light or dark paper (light)", "THEME", "light"),
        COUNT,
        BLOCK,
        GRID,
        OPERATION,
        DATA_TYPE,
        INPUT,
        COARSE,
        ARGUMENT,
        SHARED_BYTES,
        Option("--block-index", "the block that is drawn (0)", "I", "0"),
        Option("--line", "banks: of this line (the one with most conflicts)", "LINE"),
        Option("--warp", "banks: of this warp (the one with most conflicts)", "W"),
        Option("--cc", "compute capability to compile for (9.0)", "CC", "9.0"),
        LEVEL,
        DEVICE,
        L2,
        PASSES,
        WITHOUT,
        STEP_LIMIT,
    ),
    (
        _legend(),
        """examples:
  gpusim plot tree reduce2 --block 128 --out tree.svg
  gpusim plot divergence reduce1 --block 256 --out divergence.png --theme dark
  gpusim plot banks reduce2 --block 128 --line 81 --out banks.svg
  gpusim plot timeline reduce2 -n 2^20 --block 128 --device h200 --out timeline.png""",
    ),
)
