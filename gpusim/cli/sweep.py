"""`gpusim sweep`: kernels, blocks, sizes and devices crossed into a table."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.cli.options import (
    DEFAULT_DEVICE,
    DISTRIBUTION,
    KERNELS_OR_SERIES,
    OWN,
    Command,
    Option,
    options,
    print_document,
    print_lines,
)
from gpusim.cli.output import complain
from gpusim.cli.progress import Bar
from gpusim.cli.timing import SERIES, device_of, distribution, how, none_can_run, with_corrections
from gpusim.errors import GpusimError

if TYPE_CHECKING:
    from gpusim.launch.description import LaunchDescription
    from gpusim.launch.grid import ComputeCapability
    from gpusim.prediction.sweeps.sweep import Case, Swept

USUAL_BLOCK = 256  # of a kernel in a file without a launch
ALTERNATIVES = ("op", "dtype", "passes", "l2", "code")  # beside kernels, blocks, sizes, devices


def sweep(chosen: Namespace) -> int:
    """Predict all combinations of kernels, blocks, sizes and devices.

    With --out every finished row is saved at once: the same command resumes after an interrupt or
    a kill, changes nothing in a complete table, and another command needs --overwrite. A
    combination that cannot run is a row with its reason; if none can run, the exit code is 2.
    Columns other than time and GB/s are of the first pass. Kernels of your own are named by their
    files, and share grid and arguments.
    """
    from gpusim.reports.sweeps import sweep_summary, sweep_table

    if chosen.plot is not None:
        from gpusim.reports.plots import canvas

        canvas.check(Path(chosen.plot))
    found = swept(chosen)
    if chosen.plot is not None:
        from gpusim.reports.plots.sweep import plot_sweep

        canvas.save(plot_sweep(found.rows), Path(chosen.plot))
    if chosen.json:
        documents = [one.to_dict() for one in _launches(chosen)]
        print_document("sweep", {"launches": documents, "rows": found.rows})
    elif chosen.out is not None:
        print_lines(lambda width: sweep_summary(found, chosen.out, width))
    elif found.failed < len(found.rows):
        launches = list(_launches(chosen))
        print_lines(lambda width: sweep_table(found.rows, width, launches))
    if found.failed == len(found.rows):
        reasons = {row["reason"]: "" for row in found.rows}
        raise none_can_run("combinations", reasons)
    return 0


def _launches(chosen: Namespace) -> Iterator[LaunchDescription]:
    """Yield the launch of each kernel that its rows are made from."""
    from gpusim.cli.own_requests import description_of

    blocks = _blocks(chosen)
    for name in chosen.kernels or with_corrections(SERIES):
        with suppress(GpusimError):  # its rows have the reason
            one = next(_alternatives(chosen))
            yield description_of(_request(name, one, (), blocks[0]), chosen)


def _blocks(chosen: Namespace) -> Sequence[int | str | None]:
    from gpusim.cli import inputs

    return [None] if chosen.block is None else inputs.blocks(chosen.block, "--block")


def swept(chosen: Namespace) -> Swept:
    """Return the rows of a sweep, finished ones from its output."""
    from gpusim.prediction.sweeps.sweep import sweep as run_sweep

    cases = _cases(chosen)
    output = Path(chosen.out) if chosen.out is not None else None
    bar = Bar(len(cases), "rows")
    try:
        with bar:
            return run_sweep(
                cases,
                output,
                **distribution(chosen),
                overwrite=chosen.overwrite,
                started=bar.start,
                progress=lambda case: bar.advance(f"{case.request.kernel} {case.device}"),
                remark=complain,
            )
    except KeyboardInterrupt:
        if output is not None:
            complain("stopped; run the same command again to continue")
        raise


def _cases(chosen: Namespace) -> list[Case]:
    """Return every combination of the alternatives, once."""
    from gpusim.cli import inputs
    from gpusim.cli.selection import step_limit
    from gpusim.codegen.generators import chosen as code_chosen
    from gpusim.prediction.sweeps.sweep import crossed

    gpus = inputs.listed(chosen.device, "--device")
    devices = [device_of(name, chosen.without, chosen.changed) for name in gpus]
    ccs = [device.cc for device in devices]
    cases: list[Case] = []
    for one in _alternatives(chosen):
        _, l2 = how(one)
        blocks = _blocks(one)
        cases += crossed(
            [
                _request(name, one, ccs, blocks[0])
                for name in one.kernels or with_corrections(SERIES)
            ],
            blocks,
            [None] if one.n is None else inputs.counts(one.n, "-n", "a size"),
            gpus,
            l2=l2,
            without=tuple(sorted(devices[0].ablations)),
            changed=devices[0].changed,
            step_limit=step_limit(one),
            code=code_chosen(one.code),
        )
    return list(dict.fromkeys(cases))


def _request(
    name: str, chosen: Namespace, ccs: Sequence[ComputeCapability], block: int | str | None
) -> Any:
    """Return the request for a kernel, with a block where its launch has none."""
    from gpusim.catalogue import Request
    from gpusim.cli.own_requests import request_of

    made = request_of(name, chosen, ccs)
    is_open = not isinstance(made, Request) and made.block is None
    return made.sized(None, block or USUAL_BLOCK) if is_open else made


def _alternatives(chosen: Namespace) -> Iterator[Namespace]:
    """Yield the options with one of the values each that commas separate."""
    from gpusim.cli import inputs

    given = {name: getattr(chosen, name) for name in ALTERNATIVES}
    lists = [
        [None] if text is None else inputs.listed(text, f"--{name}") for name, text in given.items()
    ]
    for values in product(*lists):
        yield Namespace(**{**vars(chosen), **dict(zip(given, values, strict=True))})


COMMAND = Command(
    "sweep",
    sweep,
    options(
        KERNELS_OR_SERIES,
        Option("--block", "threads per block: 64,128 or 8x8 (256, or the launch's)", "64,128,..."),
        Option("-n", "numbers of elements (2^24, or the launch's)", "2^20..2^24"),
        Option("--device", "names of gpusim devices, or files (h200)", "A,B,...", DEFAULT_DEVICE),
        Option("--out", "the table: a file that ends in .csv, .json or .parquet", "FILE"),
        Option("--plot", "a picture of times by size: a file that ends in .svg or .png", "FILE"),
        Option("--overwrite", "replace the contents of --out"),
        DISTRIBUTION,
        "--passes --l2 --without --set --op --dtype",
        OWN,
        "--code --step-limit --json",
    ),
    (
        """examples:
  gpusim sweep reduce1 reduce7 --block 128,256 -n 2^20,2^24
  gpusim sweep --device h200,k40m,my-gpu.toml --out table.csv
  gpusim sweep -n 2^16,2^20,2^24 --passes all --out table.json --workers 4
  gpusim sweep reduce6 --dtype int32,float64 --l2 cold,warm -n 2^16..2^24 --plot times.svg
  gpusim sweep kernels.cu:k --block 64,128 -n 2^20..2^24 \\
      --grid 'ceil(n/block)' --arg 'int32[n]=random' --arg 'int32[n]' \\
      --arg n --out table.csv""",
        """lists: 2^20,2^24 are two numbers, 2^20..2^24 is 2^20 and twice that, up to 2^24; --op,
--dtype, --passes, --l2 and --code take several values too""",
    ),
)
