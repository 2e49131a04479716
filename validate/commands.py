"""The commands: run, counters, calibrate, compare.

Exit codes are gpusim's: 0 for success, 1 where a stated bar is missed, 2 for what cannot be done.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gpusim import device as devices
from gpusim.catalogue import Entry, find
from gpusim.errors import GpusimError

from . import calibrate as calibration
from . import cases, counters, files, page
from . import compare as comparison
from .backend import PycudaBackend
from .cases import Pair
from .compilers import Stored
from .measure import measure_all, today
from .records import Measurement, Measurements

SAVED_EVERY = 100


def parser() -> argparse.ArgumentParser:
    """Return the parser of the commands."""
    made = argparse.ArgumentParser(prog="gpusim validate", description=__doc__)
    below = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = below.add_parser("run", help="measure the kernels on this computer's GPU")
    _measuring(run)
    count = below.add_parser("counters", help="read the hardware's counters, by Nsight Compute")
    _measuring(count)
    calibrated = below.add_parser("calibrate", help="measure what a device file holds")
    calibrated.add_argument("--output", type=Path, default=Path("device.toml"), metavar="FILE")
    calibrated.add_argument(
        "--pattern", default="h200", help="device file for what is not measured"
    )
    calibrated.add_argument(
        "--json", type=Path, help="also write all that was found", metavar="FILE"
    )
    held = below.add_parser("compare", help="hold predictions against measurements")
    held.add_argument(
        "--against",
        default="k40m,gtx1650,rtx3060ti",
        help="names or files of measurements, separated by commas; h200 takes minutes",
        metavar="NAMES",
    )
    held.add_argument("--page", type=Path, help="write all as a Markdown page", metavar="FILE")
    held.add_argument("--json", action="store_true", help="print JSON")
    replay = below.add_parser("replay", help="launch each kernel once, for a profiler")
    _measuring(replay)
    replay.add_argument("--group", required=True, metavar="NAME")
    replay.add_argument("--binaries", type=Path, required=True, metavar="FOLDER")
    return made


def _measuring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, default=Path("measured.json"), metavar="FILE")
    parser.add_argument("--device", default="h200", help="the device file that it belongs to")
    parser.add_argument("--kernels", default="", help="names, separated by commas; default all")
    parser.add_argument("--sizes", default="", help="numbers of elements; default all")


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    chosen = parser().parse_args(arguments)
    commands = {"run": run, "counters": count, "replay": replay, "calibrate": calibrate}
    commands["compare"] = compare
    try:
        return commands[chosen.command](chosen)
    except GpusimError as error:
        print(f"gpusim: {error}", file=sys.stderr)
        return 2


def run(chosen: argparse.Namespace) -> int:
    """Measure times; what else the file holds stays in it."""
    pairs = _chosen(cases.all_times(), chosen)
    before = _before(chosen.output)

    def listen(so_far: Measurements) -> None:
        done = len(so_far.times)
        print(f"[{done}/{len(pairs)}] {_line(so_far.times[-1])}", flush=True)
        if done % SAVED_EVERY == 0 or done == len(pairs):
            files.write(chosen.output, before.joined_by(so_far) if before else so_far)

    measure_all(pairs, chosen.device, listen)
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
    """Read counters; what else the file holds stays in it.

    All is compiled before: a profiled process that starts compilers may never end.
    """
    pairs = _chosen(cases.all_counters(), chosen)
    counters.program()
    with tempfile.TemporaryDirectory() as folder:
        backend = PycudaBackend()
        backend.compile_all_of(pairs)
        backend.store(Path(folder))
        machine = backend.machine(chosen.device, today())
        backend.close()
        options = ["--kernels", chosen.kernels, "--sizes", chosen.sizes, "--binaries", folder]
        package = __package__ or "validate"
        found = [
            counts
            for name, group in cases.profiled_together(pairs)
            for counts in counters.collect(
                group, [sys.executable, "-m", package, "replay", *options, "--group", name]
            )
        ]
    counted = Measurements(machine, (), tuple(found))
    before = _before(chosen.output)
    files.write(chosen.output, before.joined_by(counted) if before else counted)
    print(f"{len(found)} of {len(pairs)} launches counted")
    return 0


def replay(chosen: argparse.Namespace) -> int:
    """Launch each kernel once, in the order of `counters`."""
    groups = dict(cases.profiled_together(_chosen(cases.all_counters(), chosen)))
    backend = PycudaBackend(compiler=Stored(chosen.binaries))
    for kernel, case in groups[chosen.group]:
        backend.launch_once(kernel, case)
    backend.close()
    return 0


def compare(chosen: argparse.Namespace) -> int:
    """Hold predictions against measurements; 1 where a stated bar is missed."""
    sections, missed, told = [], [], {}
    for name in chosen.against.split(","):
        measured = files.load(name)
        found = comparison.compare(measured, wanted=comparison.is_comparable)
        sections.append(page.section(measured, found))
        cases = [c for c in found if isinstance(c, comparison.Compared)]
        if cases:
            whole = comparison.summary(cases)
            told[name] = asdict(whole)
            published = all(one.repetitions is None for one in measured.times)
            told_of = comparison.misses(whole, order_alone=published)
            missed += [f"{name}: {miss}" for miss in told_of]
    if chosen.page:
        chosen.page.write_text("\n".join([page.INTRODUCTION, *sections]), encoding="utf-8")
    if chosen.json:
        print(json.dumps({"comparisons": told, "missed": missed}, indent=1))
    else:
        print("\n".join([*sections, *(f"missed: {miss}" for miss in missed)]))
    return 1 if missed else 0


def calibrate(chosen: argparse.Namespace) -> int:
    """Run the microbenchmarks and write a device file."""
    pattern = devices.load(chosen.pattern)
    backend = PycudaBackend()
    found = calibration.calibrate(backend, pattern.id)
    backend.close()
    chosen.output.write_text(calibration.device_file(found, pattern), encoding="utf-8")
    if chosen.json:
        text = json.dumps(found.to_dict(), indent=1)
        chosen.json.write_text(text + "\n", encoding="utf-8")
    return 0


def _before(path: Path) -> Measurements | None:
    return files.read(path) if path.exists() else None


def _chosen(pairs: list[Pair], chosen: argparse.Namespace) -> list[Pair]:
    wanted: list[Entry] = [find(name) for name in chosen.kernels.split(",") if name]
    sizes = {int(size) for size in chosen.sizes.split(",") if size}
    return [
        (kernel, case)
        for kernel, case in pairs
        if (not wanted or kernel in wanted) and (not sizes or case.n in sizes)
    ]
