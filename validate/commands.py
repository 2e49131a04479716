"""The commands: run, counters, calibrate, compare, operations, certainty, detectors.

Exit codes are gpusim's: 0 for success, 1 for a missed bar, 2 for an error.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from gpusim.catalogue import find
from gpusim.cli import inputs, output
from gpusim.cli.options import Parser, document_of, print_document, print_lines
from gpusim.cli.progress import Bar
from gpusim.codegen import generators
from gpusim.errors import InputError
from gpusim.gpu import device as devices
from gpusim.host import files as documents
from gpusim.reports.plots import canvas

from . import calibrate as calibration
from . import cases, compilers, counters, files, page, picture, terminal
from .backend import PycudaBackend
from .cases import Pair
from .compilers import Stored
from .detectors.command import EXAMPLES as DETECTORS_EXAMPLES
from .detectors.command import add_options as add_detectors
from .measure import measure_all, median_of, today
from .operations.command import EXAMPLES as OPERATIONS_EXAMPLES
from .operations.command import add_options as add_operations
from .records import Measurement, Measurements
from .report import all_misses, codes_of, pieces, report
from .residuals.command import EXAMPLES as CERTAINTY_EXAMPLES
from .residuals.command import add_options as add_certainty

SAVED_EVERY = 100
PIECES_AT_ONCE = 300  # more launches than that are announced
PIECES_A_MINUTE = 200
PUBLISHED = "k40m,gtx1650,rtx3060ti"

RUN_EXAMPLES = """examples:
  gpusim validate run --device h200 --out mine.json
  gpusim validate run --kernel reduce1,reduce7 -n 2^20,2^24 --rounds 1"""
COUNTERS_EXAMPLES = """examples:
  gpusim validate counters --out mine.json
  gpusim validate counters --kernel reduce2 -n 2^20"""
CALIBRATE_EXAMPLES = """examples:
  gpusim validate calibrate --out my-gpu.toml
  gpusim validate calibrate --pattern k40m --json found.json
  gpusim validate calibrate --probes fences,barriers --out fences.toml"""
COMPARE_EXAMPLES = """examples:
  gpusim validate compare --against k40m
  gpusim validate compare --against h200 --kernel reduce1,reduce2 -n 2^20
  gpusim validate compare --against mine.json --page accuracy.md --picture accuracy.svg"""
EXAMPLES = """examples:
  gpusim validate compare --against k40m     compare with measured times
  gpusim validate run --out mine.json     measure them on this computer's GPU
  gpusim validate COMMAND --help             its options"""

Choice = Callable[[str, int], bool]  # whether a kernel with a number of elements is chosen


def parser() -> argparse.ArgumentParser:
    """Return the parser of the commands."""
    made = Parser(prog="gpusim validate", description=__doc__, epilog=EXAMPLES)
    below = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    measured = below.add_parser(
        "run", help="measure the kernels on this computer's GPU", epilog=RUN_EXAMPLES
    )
    _measuring(measured, run)
    measured.add_argument(
        "--rounds", default="3", help="how often all is measured: the median counts; default 3"
    )
    counted = below.add_parser(
        "counters",
        help="read the hardware's counters, by Nsight Compute",
        epilog=COUNTERS_EXAMPLES,
    )
    _measuring(counted, count)
    calibrated = below.add_parser(
        "calibrate", help="measure the numbers of a device file", epilog=CALIBRATE_EXAMPLES
    )
    calibrated.add_argument("--out", type=Path, default=Path("device.toml"), metavar="FILE")
    calibrated.add_argument(
        "--pattern", default="h200", help="device file for numbers that are not measured"
    )
    calibrated.add_argument(
        "--probes",
        help="microbenchmarks by name, separated by commas; default all",
        metavar="NAMES",
    )
    calibrated.add_argument(
        "--json", type=Path, help="also write all that was found", metavar="FILE"
    )
    calibrated.set_defaults(function=calibrate)
    held = below.add_parser(
        "compare", help="compare predictions with measurements", epilog=COMPARE_EXAMPLES
    )
    held.add_argument(
        "--against",
        default=PUBLISHED,
        help=f"names ({', '.join(files.names())}) or files of measurements, separated by commas; "
        f"h200 takes minutes (default {PUBLISHED})",
        metavar="NAMES",
    )
    _choosing(held)
    held.add_argument("--page", type=Path, help="write all as a Markdown page", metavar="FILE")
    held.add_argument(
        "--picture", type=Path, help="draw it: a file that ends in .png or .svg", metavar="FILE"
    )
    held.add_argument(
        "--code",
        help=f"the code generator: {', '.join(generators.CODES)} (auto: both)",
        metavar="CODE",
    )
    held.add_argument("--json", action="store_true", help="print JSON")
    held.add_argument("--all", action="store_true", help="print each launch, as Markdown")
    held.add_argument("--workers", help="worker processes, at most one for each core", metavar="N")
    held.set_defaults(function=compare)
    add_operations(
        below.add_parser(
            "operations",
            help="compare single operations with a GPU's results, bit for bit",
            epilog=OPERATIONS_EXAMPLES,
        )
    )
    add_certainty(
        below.add_parser(
            "certainty",
            help="how often intervals and orders of launches are right",
            epilog=CERTAINTY_EXAMPLES,
        )
    )
    add_detectors(
        below.add_parser(
            "detectors",
            help="score check on a suite of labelled bugs",
            epilog=DETECTORS_EXAMPLES,
        )
    )
    replayed = below.add_parser("replay")  # for the profiler, hidden from users
    _measuring(replayed, replay)
    replayed.add_argument("--group", required=True, metavar="NAME")
    replayed.add_argument("--binaries", type=Path, required=True, metavar="FOLDER")
    return made


def _measuring(
    parser: argparse.ArgumentParser, function: Callable[[argparse.Namespace], int]
) -> None:
    parser.add_argument("--out", type=Path, default=Path("measured.json"), metavar="FILE")
    parser.add_argument("--device", default="h200", help="the device file that it belongs to")
    _choosing(parser)
    parser.set_defaults(function=function)


def _choosing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kernel", help="names, separated by commas; default all")
    parser.add_argument("-n", help="numbers of elements; default all")


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; raises GpusimError for an invalid request."""
    chosen = parser().parse_args(arguments)
    chosen.words = list(arguments)
    code: int = chosen.function(chosen)
    return code


def run(chosen: argparse.Namespace) -> int:
    """Measure times; other contents of the file are kept."""
    pairs = _pairs(cases.all_times(), chosen)
    rounds = inputs.count(chosen.rounds, "--rounds")
    _check_places(chosen.out)
    before = _before(chosen.out)
    finished: list[Measurements] = []

    def listen(so_far: Measurements) -> None:
        done, number = len(so_far.times), len(finished) + 1
        output.write(f"[{number}/{rounds}: {done}/{len(pairs)}] {_line(so_far.times[-1])}\n")
        if not finished and done % SAVED_EVERY == 0:
            save(so_far)

    def save(found: Measurements) -> None:
        files.write(chosen.out, before.joined_by(found) if before else found)

    for _ in range(rounds):
        finished.append(measure_all(pairs, chosen.device, listen))
        save(median_of(finished))
    return 0


def _line(measured: Measurement) -> str:
    case = measured.case
    what = measured.fault or f"{measured.time_us:.2f} us"
    wrong = f", {measured.wrong} of {measured.results} wrong" if measured.wrong else ""
    grid = f" grid={case.grid}" if case.grid else ""
    return (
        f"{measured.kernel} {case.dtype} {case.block} n={case.n}{grid} "
        f"{case.l2} {case.scope}: {what}{wrong}"
    )


def count(chosen: argparse.Namespace) -> int:
    """Read counters; other contents of the file are kept.

    All is compiled before: a profiled process that starts compilers may never end.
    """
    pairs = _pairs(cases.all_counters(), chosen)
    _check_places(chosen.out)
    counters.program()
    with tempfile.TemporaryDirectory() as folder:
        backend = PycudaBackend()
        backend.compile_all_of(pairs)
        backend.store(Path(folder))
        machine = backend.machine(chosen.device, today())
        backend.close()
        options = [*_options(chosen), "--binaries", folder]
        package = __package__ or "validate"
        found = [
            counts
            for name, group in cases.profiled_together(pairs)
            for counts in counters.collect(
                group, [sys.executable, "-m", package, "replay", *options, "--group", name]
            )
        ]
    counted = Measurements(machine, (), tuple(found))
    before = _before(chosen.out)
    files.write(chosen.out, before.joined_by(counted) if before else counted)
    output.write(f"{len(found)} of {len(pairs)} launches counted\n")
    return 0


def replay(chosen: argparse.Namespace) -> int:
    """Launch each kernel once, in the order of `counters`."""
    groups = dict(cases.profiled_together(_pairs(cases.all_counters(), chosen)))
    backend = PycudaBackend(compiler=Stored(chosen.binaries))
    for kernel, case in groups[chosen.group]:
        backend.launch_once(kernel, case)
    backend.close()
    return 0


def compare(chosen: argparse.Namespace) -> int:
    """Compare predictions with measurements; return 1 for a missed bar."""
    workers = inputs.count(chosen.workers, "--workers", most=1024) if chosen.workers else None
    wanted = _choice(chosen)
    if chosen.picture:
        canvas.check(chosen.picture)
    _check_places(chosen.page, chosen.picture)
    held = [_only(files.load(name), wanted) for name in inputs.listed(chosen.against, "--against")]
    codes = [codes_of(one, chosen.code) for one in held]
    total = sum(map(pieces, held, codes))
    if total > PIECES_AT_ONCE:
        minutes = f"{total / PIECES_A_MINUTE:.0f} minutes of one core"
        output.complain(f"{total:,} launches are simulated, which takes some {minutes}")
    with Bar(total, "launches") as bar:
        bar.start()
        reports = [
            report(one, made, workers=workers, done=bar.advance)
            for one, made in zip(held, codes, strict=True)
        ]
    if chosen.picture:
        picture.draw(reports, chosen.picture)
    if chosen.page:
        command = shlex.join(["gpusim", "validate", *chosen.words])
        written = page.page(reports, command, _link(chosen))
        documents.write_whole(chosen.page, written + _kept(chosen.page))
    missed = all_misses(reports)
    if chosen.json:
        print_document(
            "validate compare", {"reports": [one.to_dict() for one in reports], "missed": missed}
        )
    elif chosen.all:
        output.write("\n".join(page.section(one) for one in reports))
    else:
        print_lines(lambda width: terminal.summary(reports, width))
    return 1 if missed else 0


def _only(measured: Measurements, wanted: Choice) -> Measurements:
    """Return the chosen part of a file; InputError if it is empty."""
    times = tuple(one for one in measured.times if wanted(one.kernel, one.case.n))
    counts = tuple(one for one in measured.counters if wanted(one.kernel, one.case.n))
    if not times and not counts:
        raise InputError(f"{measured.machine.gpu}: none of the chosen launches was measured")
    return Measurements(measured.machine, times, counts)


def _kept(path: Path) -> str:
    """Return the kept part of an existing page: its marker, and all below."""
    if not path.exists():
        return ""
    _, marker, below = documents.text(path, documents.MAX_JSON_BYTES).partition(page.KEPT)
    return f"\n{marker}{below}" if marker else ""


def _link(chosen: argparse.Namespace) -> str | None:
    """Return the picture's path relative to the page."""
    if chosen.picture is None:
        return None
    return Path(os.path.relpath(chosen.picture, chosen.page.parent)).as_posix()


def calibrate(chosen: argparse.Namespace) -> int:
    """Run the microbenchmarks and write a device file; DeviceError for inconsistent numbers."""
    pattern = devices.load(chosen.pattern)
    names = None if chosen.probes is None else inputs.listed(chosen.probes, "--probes")
    probes = None if names is None else calibration.chosen_probes(names)
    _check_places(chosen.out, chosen.json)
    backend = PycudaBackend(compiler=compilers.quick())
    found = calibration.calibrate(backend, pattern, probes)
    backend.close()
    for key, why in found.refused().items():
        output.complain(f"{key}, {why}: as in {chosen.pattern}")
    if chosen.json:
        made = document_of("validate calibrate", found.to_dict())
        documents.write_whole(chosen.json, json.dumps(made, indent=1) + "\n")
    documents.write_whole(chosen.out, calibration.device_file(found, pattern))
    devices.load(chosen.out)
    return 0


def _check_places(*paths: Path | None) -> None:
    """Raise InputError for an unwritable file, before any long work."""
    for path in paths:
        if path is None:
            continue
        with documents.refusing(path):
            if path.is_dir() or not path.parent.is_dir():
                raise InputError(f"{path}: cannot be written: there is no such directory")


def _before(path: Path) -> Measurements | None:
    with documents.refusing(path):
        return files.read(path) if path.exists() else None


def _pairs(every: Sequence[Pair], chosen: argparse.Namespace) -> list[Pair]:
    """Return the chosen launches; InputError if there are none, or no such device."""
    devices.load(chosen.device)
    wanted = _choice(chosen)
    pairs = [(kernel, case) for kernel, case in every if wanted(kernel.name, case.n)]
    if not pairs:
        raise InputError("nothing is measured: no launch has these kernels and sizes")
    return pairs


def _choice(chosen: argparse.Namespace) -> Choice:
    """Return the choice of kernels and sizes; InputError for unknown names."""
    kernels, sizes = None, None
    if chosen.kernel is not None:
        kernels = {find(name).name for name in inputs.listed(chosen.kernel, "--kernel")}
    if chosen.n is not None:
        sizes = {inputs.count(one, "a size") for one in inputs.listed(chosen.n, "-n")}
    return lambda kernel, n: (
        (kernels is None or kernel in kernels) and (sizes is None or n in sizes)
    )


def _options(chosen: argparse.Namespace) -> list[str]:
    """Return the choice as options for another process."""
    given = {"--kernel": chosen.kernel, "-n": chosen.n}
    return [word for name, text in given.items() if text is not None for word in (name, text)]
