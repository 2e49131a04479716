"""`gpusim lower`: the SSA and machine code of a kernel, line by line and pass by pass."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from gpusim.cli.launches import kernel_and_types
from gpusim.cli.options import (
    ARGUMENT_ORDER,
    COMPILING,
    Command,
    Option,
    options,
    print_document,
    print_lines,
)
from gpusim.cli.timing import device_of

if TYPE_CHECKING:
    from gpusim.reports.lowered import Lowered


def lower(chosen: Namespace) -> int:
    """Show the SSA and the machine code of a kernel.

    The passes, each with its changes; then every source line with its operations and
    instructions, their stall counts and the registers in use.

    With --cuda the kernel as CUDA C++, the source of nvcc's code; with --code nvcc that code,
    without passes to show.

    With --after PASS the whole form after a pass; with --diff the change by each pass, with both
    the change by that pass. Nothing is run.
    """
    if chosen.cuda:
        from rich.text import Text

        text = _as_cuda(chosen)
        print_lines(lambda _: [Text(line) for line in text.splitlines()])
        return 0
    lowered = _lowered(chosen)
    if chosen.json:
        print_document("lower", _document(lowered, chosen.after, chosen.diff))
        return 0
    from gpusim.reports import lowering

    if chosen.diff:
        lines = lowering.diff_report(lowered, chosen.after)
    elif chosen.after is not None:
        lines = lowering.stage_report(lowered, chosen.after)
    else:
        print_lines(lambda width: lowering.lowered_report(lowered, width, whole=chosen.all))
        return 0
    print_lines(lambda _: lines)
    return 0


COMMAND = Command(
    "lower",
    lower,
    options(
        "kernel -n --block --grid --op --dtype --coarse --arg",
        COMPILING,
        Option("--code", "machine code of the lowering, or of nvcc (lowering)", "CODE"),
        Option("--cuda", "show a Python kernel written out as CUDA C++"),
        Option("--cc", "compute capability to compile for (the device's)", "CC"),
        "-O --device",
        Option("--after", "the form after this pass; build is before all of them", "PASS"),
        Option("--diff", "the changes by each pass, as unified diffs"),
        "--all --json",
    ),
    (
        f"""passes: the names of the first table; a repeated pass has a number (dse:2)

{ARGUMENT_ORDER}
  data=float32[2^26]       an array by type
  n=uint32(65536), 0.5     a number""",
        """examples:
  gpusim lower reduce3 --block 256 --all
  gpusim lower reduce6 --block 128 --after licm
  gpusim lower reduce6 --block 128 --after full_unrolling --diff
  gpusim lower reduce2 -O0 --cc 3.5 --device k40m --json
  gpusim lower mine.py:saxpy --arg 2.0 --arg "x=float32[64]" \\
      --arg "y=float32[64]" --arg 64""",
    ),
)


def _lowered(chosen: Namespace) -> Lowered:
    from gpusim.cli.inputs import lowering_level
    from gpusim.codegen.generators import LOWERING
    from gpusim.codegen.programs import bind, prepare, program_in_stages
    from gpusim.launch.configured import MachineCode
    from gpusim.launch.grid import ComputeCapability, Launch
    from gpusim.reports.lowered import Lowered

    level = lowering_level(chosen.level)
    device = device_of(chosen.device, None)
    cc = ComputeCapability.parse(chosen.cc or device.gpu.compute_capability)
    kernel, values = kernel_and_types(chosen)
    file = kernel.source.file
    if isinstance(kernel, MachineCode):  # as the compiler left it: there are no passes to show
        prepared = kernel.prepare(Launch.of(1, 1), values, cc)
        return Lowered(prepared.program, file, str(cc), device)
    if chosen.code not in (None, LOWERING):
        prepared = prepare(kernel[1, 1], values, cc, level, code=chosen.code)
        return Lowered(prepared.program, file, str(cc), device)
    program, stages = program_in_stages(kernel, bind(kernel, values), cc, level)
    return Lowered(program, file, str(cc), device, stages)


def _as_cuda(chosen: Namespace) -> str:
    """Return a Python kernel as CUDA C++."""
    from gpusim.codegen.programs import as_cuda
    from gpusim.cuda import Kernel
    from gpusim.errors import InputError

    kernel, values = kernel_and_types(chosen)
    if not isinstance(kernel, Kernel):
        raise InputError(f"{chosen.kernel} is CUDA C++ already")
    return as_cuda(kernel, values)


def _document(lowered: Lowered, after: str | None, diff: bool) -> dict[str, Any]:
    from gpusim.reports import lowering

    made = lowering.lowered_document(lowered)
    if diff:
        made["diff"] = lowering.diff_document(lowered, after)
    elif after is not None:
        made["after"] = lowering.stage_document(lowered, after)
    return made
