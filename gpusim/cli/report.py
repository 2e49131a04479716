"""`gpusim report`: one self-contained page about a kernel, or about several side by side."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.cli import output
from gpusim.cli.code_files import CODE, COMPILING
from gpusim.cli.options import LEVEL, STEP_LIMIT, Command, Option
from gpusim.cli.own_kernels import LAUNCHING
from gpusim.cli.project import with_launch
from gpusim.cli.timing import L2, PASSES, WITHOUT, device_of
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.checking.findings import Finding
    from gpusim.gpu.device import Device
    from gpusim.reports.page.sections import Remark, Subject


def report(chosen: Namespace) -> int:
    """Write one self-contained page about kernels.

    One kernel, or several side by side: source with heat and machine code, findings of the trace
    and of `gpusim check`, pictures, sortable tables, and a stepper through a block, instruction by
    instruction; with --device also the predicted duration. The page needs no network.
    Needs jinja2 and matplotlib, the extra `report`.
    """
    from gpusim.reports.page.render import check, write

    path = Path(chosen.out)
    check(path)
    if not chosen.kernels:
        raise InputError("gpusim report needs the name of at least one kernel")
    device = device_of(chosen.device, chosen.without) if chosen.device is not None else None
    if chosen.cc is None:
        chosen.cc = str(device.cc) if device is not None else "9.0"
    write([_subject(name, chosen, device) for name in chosen.kernels], path)
    output.write(f"{path}\n")
    return 0


def _subject(name: str, chosen: Namespace, device: Device | None) -> Subject:
    from gpusim.cli.check import checked
    from gpusim.cli.inputs import count
    from gpusim.cli.predict import forecast, job_of
    from gpusim.cli.trace import traced
    from gpusim.reports.page.sections import Subject
    from gpusim.tracing.block_steps import BlockSteps

    chosen = with_launch(Namespace(**{**vars(chosen), "kernel": name}))
    made = None
    if device is not None:
        made = forecast(chosen, job_of(chosen), device, timeline=True)
    steps = BlockSteps(count(chosen.block_index, "the block index", least=0))
    trace, _ = traced(chosen, observers=[steps])
    if made is not None:
        from gpusim.advice.findings import find

        vars(trace)["findings"] = find(trace, made.first)
    return Subject(trace, steps, made, tuple(map(_remark, checked(chosen))))


def _remark(finding: Finding) -> Remark:
    """Return a finding of `gpusim check` as a remark of the page."""
    from gpusim.reports.page.sections import Remark

    return Remark(finding.rule, min(finding.lines, default=0), finding.message, finding.severity)


COMMAND = Command(
    "report",
    report,
    (
        Option(
            "kernels",
            "names of gpusim list, FILE.py:FUNCTION or FILE.cu:KERNEL",
            "KERNEL",
            arity="*",
        ),
        Option("--out", "the page: a file that ends in .html", "FILE", "report.html"),
        Option("--device", "also predict: a name of gpusim devices, or a file", "GPU"),
        *LAUNCHING,
        CODE,
        *COMPILING,
        Option("--block-index", "index of the block for the stepper (0)", "I", "0"),
        Option("--cc", "compute capability to compile for (the device's, or 9.0)", "CC"),
        LEVEL,
        L2,
        PASSES,
        WITHOUT,
        STEP_LIMIT,
    ),
    (
        """examples:
  gpusim report reduce2 --block 128 --device h200 --out report.html
  gpusim report reduce1 reduce2 reduce3 --block 128 --out three.html
  gpusim report mine.py:saxpy --grid 64 --block 256 --arg 2.0 \\
      --arg "x=float32[16384]=arange" --arg "y=float32[16384]" --arg "n=16384\"""",
    ),
)
