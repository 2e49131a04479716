"""`gpusim plot`: a picture of a kernel's behaviour, as a PNG or SVG file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.cli import output
from gpusim.cli.launches import refuse
from gpusim.cli.options import COMPILING, KERNELS, Command, Option, options
from gpusim.cli.references import Reference
from gpusim.cli.timing import SERIES, corrected, device_of, how, one_of
from gpusim.codegen.generators import LOWERING
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.prediction.sweeps.jobs import Forecast


DEFAULT_SIZES = "2^16,2^18,2^20,2^22,2^24,2^26"


def plot(chosen: Namespace) -> int:
    """Draw a kernel's behaviour, as a PNG or SVG file.

    Of one block: the additions of a reduction (tree), the branches of its threads (divergence),
    the bank conflicts of a line (banks), the cost of its strides (strides). Of a prediction: the
    stalls of an SM's warps (timeline). Of several, reduce1 to reduce7 if none are named: gains,
    roofline, traffic, bandwidth, accuracy. Needs matplotlib, the extra `plot`.
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


def _of_trace(name: str, *options: str, code: str | None = None) -> Callable[[Namespace], Any]:
    """Return the function that draws one of a trace's own pictures, with the options it takes.

    `code` is the code generator by default.
    """

    def draw(chosen: Namespace) -> Any:
        from gpusim.cli.inputs import count
        from gpusim.cli.trace import traced

        chosen.kernel = _one_kernel(chosen)
        chosen.code = chosen.code or code
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


def _forecasts(chosen: Namespace) -> list[Forecast]:
    """Return predictions of the named kernels, or of the series as corrected."""
    from gpusim.cli.predict import forecast, job_of

    device = device_of(chosen.device, chosen.without)
    made = []
    for name in chosen.kernels or corrected(SERIES):
        chosen.kernel = name
        made.append(forecast(chosen, job_of(chosen), device))
    return made


def _gains(chosen: Namespace) -> Any:
    from gpusim.reports.plots.gains import plot_gains

    made = _forecasts(chosen)
    setup = made[0].job.launches[0].setup
    what = f"{setup.n:,} {setup.dtype.name}, block {setup.block}" if setup else ""
    times = [one.time_us for one in made]
    firsts = (one.first for one in made)
    return plot_gains(*firsts, times_us=times, what=what, theme=chosen.theme)


def _roofline(chosen: Namespace) -> Any:
    from gpusim.reports.plots.roofline import plot_roofline

    return plot_roofline(*(one.first for one in _forecasts(chosen)), theme=chosen.theme)


def _traffic(chosen: Namespace) -> Any:
    from gpusim.reports.plots.traffic import plot_traffic

    return plot_traffic(*(one.first for one in _forecasts(chosen)), theme=chosen.theme)


def _bandwidth(chosen: Namespace) -> Any:
    """Draw rates over sizes, with measurements of the same block beside them."""
    from gpusim.cli import inputs
    from gpusim.cli.validation import measured_gbps
    from gpusim.reports.plots.bandwidth import Rates, plot_bandwidth

    device = device_of(chosen.device, chosen.without)
    by_kernel: dict[str, list[tuple[int, float]]] = {}
    measured: dict[str, list[tuple[int, float]]] = {}
    sizes = inputs.counts(chosen.n or DEFAULT_SIZES, "-n", "a size")
    for size in map(str, sizes):
        chosen.n = size
        for made in _forecasts(chosen):
            setup, name = made.job.launches[0].setup, made.job.name
            elements = setup.n if setup else inputs.count(size)
            by_kernel.setdefault(name, []).append((elements, made.gbps))
            if setup is not None:
                measured[name] = measured_gbps(name, device.id, setup.block, setup.dtype.name)
    rates = [
        Rates(name, tuple(found), tuple(measured.get(name, ())))
        for name, found in by_kernel.items()
    ]
    return plot_bandwidth(rates, device, theme=chosen.theme)


WHOSE = {"lowering": "the lowering's", "nvcc": "nvcc's"}
NOT_OF_ACCURACY = {
    "--without": "without", "--grid": "grid", "--coarse": "coarse", "--arg": "arg",
    "--input": "input", "--shared-bytes": "shared_bytes", "--cluster": "cluster",
}  # fmt: skip


def _accuracy(chosen: Namespace) -> Any:
    """Draw measured times of the launches that the options name, beside their predictions."""
    from gpusim.catalogue import find
    from gpusim.cli.validation import beside_predictions
    from gpusim.codegen import generators
    from gpusim.reports.plots.accuracy import Timed, plot_times

    refuse(
        {flag: getattr(chosen, name) or None for flag, name in NOT_OF_ACCURACY.items()},
        "measured launches have their own options",
    )
    if any(Reference.of(name).file for name in chosen.kernels):
        raise InputError(
            "only kernels of gpusim list have been measured; to draw your own times use Python: "
            "prediction.plot_accuracy(measured_us=[...])"
        )
    device, asked = device_of(chosen.device, None), _cases(chosen)
    kernels = [find(name).name for name in chosen.kernels or corrected(SERIES)]
    code = generators.chosen(chosen.code)
    if code == generators.AUTO:
        is_served = generators.is_installed() and not generators.refusal(device.cc, "O3")
        code = generators.NVCC if is_served else generators.LOWERING
    found = beside_predictions(
        kernels,
        device.id,
        lambda case: all(getattr(case, name) == value for name, value in asked.items()),
        code,
    )
    what = f"{device.name}, {WHOSE[code]} code"
    return plot_times([Timed(*one) for one in found], what, theme=chosen.theme)


def _cases(chosen: Namespace) -> dict[str, Any]:
    """Return the options as a filter of the measured cases, by the fields of a case."""
    from gpusim.cli import inputs
    from gpusim.cli.validation import SCOPES

    passes, l2 = how(chosen)
    asked: dict[str, Any] = {"l2": l2, "scope": SCOPES[passes]}
    if chosen.n is not None:
        asked["n"] = inputs.count(chosen.n)
    if chosen.block is not None:
        asked["block"] = inputs.count(chosen.block, "the block")
    if chosen.dtype is not None:
        asked["dtype"] = inputs.dtype(chosen.dtype).name
    if chosen.op is not None:
        asked["operation"] = chosen.op
    return asked


def _one_kernel(chosen: Namespace) -> str:
    if len(chosen.kernels) != 1:
        raise InputError(f"gpusim plot {chosen.picture} needs the name of one kernel")
    name: str = chosen.kernels[0]
    return name


@dataclass(frozen=True)
class Picture:
    """A picture: its summary, and the function that draws it from the options."""

    summary: str
    draw: Callable[[Namespace], Any]


PICTURES = {
    "tree": Picture("additions by thread, step by step", _of_trace("tree")),
    "divergence": Picture(
        "conditions by thread and iteration, in the lowering's code",
        _of_trace("divergence", code=LOWERING),
    ),
    "banks": Picture(
        "words served by each bank of shared memory, access by access",
        _of_trace("banks", "line", "warp"),
    ),
    "strides": Picture("wavefronts by stride, beside gcd(stride, banks)", _of_trace("strides")),
    "gains": Picture("predicted: speedup from kernel to kernel, and its reasons", _gains),
    "roofline": Picture("predicted: roofline of operations, bytes and instructions", _roofline),
    "traffic": Picture("predicted: bytes by source, over the least possible", _traffic),
    "bandwidth": Picture("GB/s over size: lines predicted, points measured", _bandwidth),
    "accuracy": Picture("predicted against measured times, and the 10 % band", _accuracy),
    "timeline": Picture(
        "predicted: stalls of an SM's warps and their source lines over time", _timeline
    ),
}


def _legend() -> str:
    width = max(map(len, PICTURES))
    rows = (f"  {name:<{width}}  {picture.summary}" for name, picture in PICTURES.items())
    return "\n".join(["pictures:", *rows])


COMMAND = Command(
    "plot",
    plot,
    options(
        Option("picture", "the name of a picture, see below", "PICTURE"),
        KERNELS,
        Option("--out", "the picture: a file that ends in .png or .svg", "FILE", "picture.svg"),
        Option("--theme", "light or dark paper (light)", "THEME", "light"),
        Option("-n", "number of elements; of bandwidth several: 2^16..2^24", "N"),
        "--block --grid --cluster --op --dtype --input --coarse --arg --shared-bytes --code",
        COMPILING,
        Option("--block-index", "index of the block (0)", "I", "0"),
        Option("--line", "banks: of this line (the one with most conflicts)", "LINE"),
        Option("--warp", "banks: of this warp (the one with most conflicts)", "W"),
        "--cc",
        "-O --device --l2 --passes --without --step-limit",
    ),
    (
        _legend(),
        """examples:
  gpusim plot tree reduce2 --block 128 --out tree.svg
  gpusim plot divergence reduce1 --block 256 --out divergence.png --theme dark
  gpusim plot banks reduce2 --block 128 --line 81 --out banks.svg
  gpusim plot timeline reduce2 -n 2^20 --block 128 --out timeline.png
  gpusim plot gains -n 2^26 --block 256 --device h200 --out gains.svg
  gpusim plot bandwidth reduce1 reduce3 reduce7 --block 256 --out bandwidth.svg
  gpusim plot accuracy reduce3 reduce6 -n 2^24 --device h200 --out accuracy.svg""",
    ),
)
