"""`gpusim trace`: what one launch of a kernel does to the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpusim.cli.options import (
    Block,
    Capability,
    Coarse,
    Count,
    DataType,
    Grid,
    Input,
    Json,
    Operation,
    StepLimit,
    print_json,
    print_lines,
)
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.records import Trace

ARGUMENTS = """Each --arg is the next argument of FILE.py:FUNCTION, or the one that NAME= names:
  int32[65536]=arange      an array: type[shape]=filling. Fillings: zeros (where none is
  data=float32[64,64]      given), ones, arange, random (seeded), full:NUMBER
  @numbers.npy             an array from a file: .npy, .csv or text; int32@numbers.csv
  65536, 2^16, 0.5, true   a number: int32 (int64 where it must be), float64, bool
  n=uint32(65536)          a number of that type
"""
EXAMPLES = """Examples:
  gpusim trace reduce2 --block 128
  gpusim trace reduce1 -n 2^20 -O 0 --json
  gpusim trace mine.py:saxpy --grid 64 --block 256 --arg 2.0 \\
      --arg "x=float32[16384]=arange" --arg "y=float32[16384]" --arg "n=16384"
"""


def trace(
    kernel: Annotated[
        str,
        typer.Argument(metavar="KERNEL", help="A name of gpusim list, or FILE.py:FUNCTION."),
    ],
    n: Count = None,
    block: Block = None,
    grid: Grid = None,
    op: Operation = None,
    dtype: DataType = None,
    input: Input = None,  # noqa: A002
    coarse: Coarse = None,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", metavar="[NAME=]VALUE", help="An argument of FILE.py:FUNCTION."),
    ] = None,
    shared_bytes: Annotated[
        str | None,
        typer.Option(
            "--shared-bytes",
            metavar="BYTES",
            help="Dynamic shared memory of a block, for FILE.py:FUNCTION.",
        ),
    ] = None,
    block_index: Annotated[
        str, typer.Option("--block-index", metavar="I", help="The block whose warps are shown.")
    ] = "0",
    line: Annotated[
        str | None, typer.Option("--line", metavar="LINE", help="Draw this line, lane by lane.")
    ] = None,
    warp: Annotated[
        str | None, typer.Option("--warp", metavar="W", help="The warp that --line draws.")
    ] = None,
    cc: Capability = "9.0",
    level: Annotated[
        str,
        typer.Option("-O", metavar="LEVEL", help="3 as nvcc -O3, 0 as nvcc -G."),
    ] = "3",
    step_limit: StepLimit = None,
    json: Json = False,
) -> None:
    """Show what a launch does, line by line and warp by warp.

    Totals, source lines, the warps of one block, and what to make of it; with --line, that
    line's accesses lane by lane, address by address, bank by bank.

    A kernel of the catalogue needs no more than its name. A kernel of your own is named by its
    file; give its grid, its block and its arguments.
    """
    from gpusim.inputs import count, names_a_file

    options: dict[str, Any] = {
        "cc": cc,
        "level": _level(level),
        "block_index": count(block_index, "the block index", least=0),
    }
    if step_limit is not None:
        options["step_limit"] = count(step_limit, "the step limit", most=2**62)
    drawn = count(line, "the line") if line is not None else None
    lane_warp = count(warp, "the warp", least=0) if warp is not None else None
    if lane_warp is not None and drawn is None:
        raise InputError("--warp says which warp --line draws; give --line too")
    if names_a_file(kernel):
        _refuse({"-n": n, "--op": op, "--dtype": dtype, "--input": input, "--coarse": coarse},
                f"{kernel} takes its data from --arg")  # fmt: skip
        made = _own_kernel(kernel, grid, block, arg or [], shared_bytes, options)
    else:
        _refuse({"--arg": arg, "--shared-bytes": shared_bytes},
                "a kernel of the catalogue makes its own arguments")  # fmt: skip
        made = _catalogue_kernel(kernel, (n, block, op, dtype, input, grid, coarse), options)
    if json:
        print_json(_document(made, drawn, lane_warp))
        return
    from gpusim.reports.layout import console

    width = console().width
    if drawn is not None:
        from gpusim.reports.accesses import line_report

        print_lines(line_report(made, drawn, lane_warp, width))
        return
    from gpusim.reports.trace import trace_report

    print_lines(trace_report(made, width))


def _level(text: str) -> str:
    level = text.upper().removeprefix("O")
    if level not in ("0", "3"):
        raise InputError(f"-O is 0 (as nvcc -G) or 3 (an optimising compiler), not {text!r}")
    return f"O{level}"


def _refuse(options: dict[str, Any], because: str) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(f"{', '.join(given)} cannot be given here: {because}")


def _catalogue_kernel(name: str, chosen: Sequence[str | None], options: dict[str, Any]) -> Trace:
    from gpusim.catalogue import find
    from gpusim.cli.selection import selected
    from gpusim.tracing import trace as run_traced

    call = selected(find(name), *chosen).call()
    return run_traced(call.configured, *call.arguments, **options)


def _own_kernel(
    name: str,
    grid: str | None,
    block: str | None,
    arguments: Sequence[str],
    shared_bytes: str | None,
    options: dict[str, Any],
) -> Trace:
    from gpusim import inputs
    from gpusim.tracing import trace as run_traced

    kernel = inputs.kernel_of_file(name)
    if grid is None or block is None:
        raise InputError(f"{name} has no launch rule; give --grid and --block")
    dynamic = inputs.count(shared_bytes, "--shared-bytes", least=0) if shared_bytes else 0
    launch = (inputs.sizes(grid, "the grid"), inputs.sizes(block, "the block"), 0, dynamic)
    configured = kernel[launch]
    described = [inputs.argument(text) for text in arguments]
    values = inputs.bound(described, kernel.source.parameters, kernel.__name__)
    return run_traced(configured, *values, **options)


def _document(made: Trace, line: int | None, warp: int | None) -> dict[str, Any]:
    document = made.to_dict()
    if line is None:
        return document
    from gpusim.reports.accesses import line_document

    return {**document, "accesses": line_document(made, line, warp)}
