"""`gpusim trace`: counters and findings of one launch of a kernel."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.cli import output
from gpusim.cli.check import also_checked, lines_after, with_findings
from gpusim.cli.findings_formats import chosen_format, print_advice
from gpusim.cli.launches import CatalogueLaunch, ResolvedLaunch, resolved
from gpusim.cli.options import (
    ARGUMENT_ORDER,
    COMPILING,
    LAUNCHING,
    SIZES_OF_N,
    Command,
    Option,
    options,
    print_document,
    print_lines,
)
from gpusim.cli.progress import Patience
from gpusim.errors import InputError

if TYPE_CHECKING:
    from rich.text import Text

    from gpusim.advice.records import Advice
    from gpusim.checking.findings import Findings
    from gpusim.gpu.device import Device
    from gpusim.launch.events import Observer
    from gpusim.tracing.records import Trace


def trace(chosen: Namespace) -> int:
    """Show the counters of a launch, line by line and warp by warp.

    Totals, source lines, the warps of one block, and findings; with --line, that
    line's accesses lane by lane, address by address, bank by bank.

    A kernel of the catalogue needs only its name. A kernel of your own is named by its file,
    with its grid, block and arguments.
    """
    from gpusim.cli.inputs import count

    kind = chosen_format(chosen)
    line = count(chosen.line, "the line") if chosen.line is not None else None
    warp = count(chosen.warp, "the warp", least=0) if chosen.warp is not None else None
    if warp is not None and line is None:
        raise InputError("--warp selects the warp for --line; give --line too")
    made, remark = answered(chosen)
    findings, code = also_checked(chosen)
    if kind == "json":
        document = _document(made, line, warp)
        print_document("trace", with_findings(document, findings))
        return code
    if kind != "text":
        print_advice(made.findings, made.source_file, findings, kind)
        return code
    print_lines(partial(_report, chosen, made, remark, findings, line, warp))
    return code


def _report(
    chosen: Namespace,
    made: Trace,
    remark: str,
    findings: Findings | None,
    line: int | None,
    warp: int | None,
    width: int,
) -> Iterator[Text]:
    """Yield the report of a trace or of one of its lines, with the findings of --check."""
    whole = chosen.all
    after = lines_after(findings, width, whole=whole)
    if line is None:
        from gpusim.reports.trace import trace_report

        yield from trace_report(made, width, remark, whole=whole, after=after)
    else:
        from gpusim.reports.accesses import line_report

        yield from line_report(made, line, warp, width, whole=whole)
        yield from after


def answered(chosen: Namespace) -> tuple[Trace, str]:
    """Return the trace, with findings on a device if one is given, and a remark on its result."""
    device = _device(chosen)
    made, remark = _exported(chosen) if chosen.perfetto is not None else traced(chosen)
    if device is not None:
        vars(made)["findings"] = _timed_findings(chosen, made, device)
    return made, remark


COMMAND = Command(
    "trace",
    trace,
    options(
        "kernel",
        LAUNCHING,
        COMPILING,
        "--code",
        Option("--block-index", "index of the block for the table of warps (0)", "I", "0"),
        Option("--line", "draw this line of the source, lane by lane", "LINE"),
        Option("--warp", "warp for --line (the one with most excessive wavefronts)", "W"),
        "--cc",
        Option("--device", "predict the gain of each finding on a GPU: a name, or a file", "GPU"),
        "-O --perfetto --step-limit --check --all --format --json --sarif",
    ),
    (
        f"""{ARGUMENT_ORDER}
  int32[65536]=arange      an array: type[shape]=filling
  data=float32[64,64]      fillings: zeros (default), ones, arange, random (seeded), full:NUMBER
  @numbers.npy             an array from a file, .npy, .csv or text: int32@numbers.csv
  65536, 2^16, 0.5, true   a number: int32 (int64 if larger), float64, bool
  n=uint32(65536)          a number of a given type
  null                     a null pointer of CUDA C++
  int32[n], ceil(n/block)  {SIZES_OF_N}""",
        """examples:
  gpusim trace reduce2 --block 128
  gpusim trace reduce1 -n 2^20 -O0 --json
  gpusim trace reduce1 --block 128 --perfetto steps.json
  gpusim trace mine.py:saxpy --grid 64 --block 256 --arg 2.0 \\
      --arg "x=float32[16384]=arange" --arg "y=float32[16384]" --arg "n=16384\"""",
    ),
)


def _device(chosen: Namespace) -> Device | None:
    """Return the device for which gains are requested; it then decides about the code."""
    if chosen.device is None:
        return None
    from gpusim.cli.inputs import lowering_level
    from gpusim.cli.timing import device_of

    if lowering_level(chosen.level) != "O3":
        raise InputError("--device predicts optimised code: give it without -O0")
    device = device_of(chosen.device, None)
    chosen.cc = str(device.cc)
    return device


def _timed_findings(chosen: Namespace, made: Trace, device: Device) -> list[Advice]:
    """Return the findings of a trace with limits and gains on a device."""
    from gpusim.advice.findings import find
    from gpusim.cli.selection import step_limit

    job = resolved(chosen, is_timed=True).job().in_code(chosen.code)
    first = job.on(device, step_limit=step_limit(chosen)).first
    return find(made, first, grid_is_open=job.grid_is_open)


def _exported(chosen: Namespace) -> tuple[Trace, str]:
    """Return the trace, and write the steps of its block to a file that Perfetto opens."""
    from gpusim.cli.inputs import count
    from gpusim.reports.perfetto import trace_events, write_events
    from gpusim.tracing.block_steps import BlockSteps

    steps = BlockSteps(count(chosen.block_index, "the block index", least=0))
    made, remark = traced(chosen, observers=[steps])
    write_events(trace_events(made, steps), Path(chosen.perfetto))
    return made, remark


def traced(chosen: Namespace, observers: Sequence[Observer] = ()) -> tuple[Trace, str]:
    """Return the trace that is requested, and a remark on the result of a known defect.

    What the kernel prints goes to standard error.
    """
    from gpusim.cli.inputs import count, lowering_level
    from gpusim.cli.selection import step_limit
    from gpusim.tracing.trace import trace as run_traced

    launch = resolved(chosen)
    configured, values = launch.filled()
    made = run_traced(
        configured,
        *values,
        cc=chosen.cc,
        level=lowering_level(chosen.level),
        code=chosen.code,
        block_index=count(chosen.block_index, "the block index", least=0),
        step_limit=step_limit(chosen),
        observers=observers,
        progress=Patience(configured.launch.blocks),
    )
    output.tell(made.printed.decode(errors="replace"))
    return replace(made, description=launch.description), _remark(launch)


def _remark(launch: ResolvedLaunch) -> str:
    """Return a remark on the result of a launch where the kernel has a known defect."""
    if not isinstance(launch, CatalogueLaunch) or not launch.entry.defect:
        return ""
    from gpusim.reports.runs import known_defect

    count = f"{launch.call.wrong():,} of {len(launch.call.result):,} results are wrong"
    return f"{count} in this run. {known_defect(launch.entry)}"


def _document(made: Trace, line: int | None, warp: int | None) -> dict[str, Any]:
    document = made.to_dict()
    if line is None:
        return document
    from gpusim.reports.accesses import line_document

    return {**document, "accesses": line_document(made, line, warp)}
