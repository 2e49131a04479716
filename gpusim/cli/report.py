"""`gpusim report`: one self-contained page about a kernel, or about several side by side."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.cli import output
from gpusim.cli.options import (
    COMPILING,
    DEFAULT_DEVICE,
    KERNELS,
    LAUNCHING,
    Command,
    Option,
    options,
    side,
)
from gpusim.cli.progress import Bar
from gpusim.cli.timing import device_of
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.checking.findings import Finding
    from gpusim.gpu.device import Device
    from gpusim.prediction.sweeps.jobs import Forecast
    from gpusim.reports.page.sections import Remark, Subject

STAGES = ("trace", "prediction", "gains", "check")
DEFAULT_CC = "9.0"
# Options of each kernel, or of all.
OF_A_SIDE = options(
    Option("--device", "GPU of the times: a name of gpusim devices, or a file (h200)", "GPU"),
    LAUNCHING,
    "--code",
    COMPILING,
    Option("--block-index", "index of the block for the stepper (0)", "I", "0"),
    Option("--cc", "compute capability to compile for (the device's, or 9.0)", "CC"),
    "-O --l2 --passes --without --step-limit",
)


def report(chosen: Namespace) -> int:
    """Write one self-contained page about kernels.

    One kernel, or several side by side: the predicted duration and its limiter, findings of the
    trace and of `gpusim check` with their gains, source and machine code with their part of the
    time, and beside them a stepper through a block, the timeline of an SM, and the memory
    hierarchy. The page needs no network. Needs jinja2, the extra `report`.
    """
    from gpusim.reports.page.render import check, write

    path = Path(chosen.out)
    check(path)
    if not chosen.kernels:
        raise InputError("gpusim report needs the name of at least one kernel")
    with Bar(len(STAGES) * len(chosen.kernels), "page") as bar:
        bar.start()
        sides = [side(text, chosen, OF_A_SIDE, "report") for text in chosen.kernels]
        subjects = [_subject(one, bar) for one in sides]
    names = [subject.trace.kernel for subject in subjects]
    if len(set(names)) < len(names):
        texts = zip(subjects, chosen.kernels, strict=True)
        subjects = [replace(subject, label=_label(text)) for subject, text in texts]
    write(subjects, path)
    output.write(f"{path}\n")
    return 0


def _device(chosen: Namespace) -> tuple[Device | None, str]:
    """Return the device of the times, or the reason for none where no device is given."""
    from gpusim.cli.inputs import lowering_level

    is_optimised = lowering_level(chosen.level) == "O3"
    if chosen.device is not None:
        if not is_optimised:
            raise InputError("--device predicts optimised code: give it without -O0")
        return device_of(chosen.device, chosen.without), ""
    if not is_optimised:
        return None, "code of -O0 is not predicted"
    device = device_of(DEFAULT_DEVICE, chosen.without)
    if chosen.cc not in (None, str(device.cc)):
        return None, f"{device.gpu.name} does not run code for {chosen.cc}; --device names a GPU"
    return device, ""


def _label(text: str) -> str:
    """Return a side as it was written, with the name of its file alone."""
    kernel, *options = text.split()
    return " ".join([kernel.rpartition("/")[2], *options])


def _subject(chosen: Namespace, bar: Bar) -> Subject:
    from gpusim.cli.check import checked
    from gpusim.cli.inputs import count
    from gpusim.cli.trace import traced
    from gpusim.reports.page.sections import Subject
    from gpusim.tracing.block_steps import BlockSteps

    name = chosen.kernel
    device, without_time = _device(chosen)
    chosen.cc = chosen.cc or str(device.cc if device is not None else DEFAULT_CC)
    steps = BlockSteps(count(chosen.block_index, "the block index", least=0), registers=True)
    trace, _ = traced(chosen, observers=[steps])
    bar.advance(f"{name}: prediction")
    made = None
    if device is not None:
        made, without_time = _forecast(chosen, device)
    bar.advance(f"{name}: gains of findings")
    if made is not None:
        from gpusim.advice.findings import find

        vars(trace)["findings"] = find(trace, made.first, grid_is_open=made.job.grid_is_open)
    bar.advance(f"{name}: check")
    remarks = tuple(map(_remark, checked(chosen)))
    bar.advance()
    return Subject(trace, steps, made, remarks, without_time=without_time)


def _forecast(chosen: Namespace, device: Device) -> tuple[Forecast | None, str]:
    """Return the prediction, or the reason for none on a device that nobody requested."""
    from gpusim.cli.predict import forecast, job_of

    try:
        return forecast(chosen, job_of(chosen), device, timeline=True), ""
    except InputError as error:
        if chosen.device is not None:
            raise
        return None, str(error)


def _remark(finding: Finding) -> Remark:
    """Return a finding of `gpusim check` as a remark of the page."""
    from gpusim.reports.page.sections import Remark

    return Remark(finding.rule, min(finding.lines, default=0), finding.message, finding.severity)


COMMAND = Command(
    "report",
    report,
    (
        replace(KERNELS, help=f"{KERNELS.help}; in quotes with options of their own"),
        Option("--out", "the page: a file that ends in .html", "FILE", "report.html"),
        *OF_A_SIDE,
    ),
    (
        """examples:
  gpusim report reduce2 --block 128 --out report.html
  gpusim report reduce1 reduce2 reduce3 --block 128 --out three.html
  gpusim report "reduce2 --device h200" "reduce2 --device l40s" --block 128
  gpusim report mine.py:saxpy --grid 64 --block 256 --arg 2.0 \\
      --arg "x=float32[16384]=arange" --arg "y=float32[16384]" --arg "n=16384\"""",
    ),
)
