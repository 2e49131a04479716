"""`gpusim validate operations`: hold the corpus of operations to a GPU's results, or record them."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gpusim.cli import inputs, output
from gpusim.cli.options import print_document
from gpusim.cli.progress import Bar
from gpusim.errors import InputError
from gpusim.sass import wheels

from ..backend import pycuda_driver, reported_by_nvidia_smi
from ..measure import today
from . import record, recording, running
from .operation import Operation
from .record import Record
from .rooms import ROOMS, room
from .running import Simulator
from .verdict import Verdict, judge

EXAMPLES = """examples:
  gpusim validate operations --rooms single,double
  gpusim validate operations --every 40
  gpusim validate operations --pack code             here, where the compiler is
  gpusim validate operations --packed code --out results    there, where the GPU is"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--rooms", help=f"of {', '.join(ROOMS)}; default all", metavar="NAMES")
    parser.add_argument(
        "--against", default="h200", help="the GPU of the results; default h200", metavar="GPU"
    )
    parser.add_argument("--every", default="1", help="each N-th operation alone", metavar="N")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--pack", type=Path, help="write machine code for a GPU", metavar="FOLDER")
    parser.add_argument(
        "--packed", type=Path, help="run that on this computer's GPU", metavar="FOLDER"
    )
    parser.add_argument("--out", type=Path, help="where the GPU's results go", metavar="FOLDER")
    parser.set_defaults(function=operations)


def operations(chosen: argparse.Namespace) -> int:
    """Run the chosen operations; return 1 for a wrong result of the simulator."""
    names = list(ROOMS) if chosen.rooms is None else inputs.listed(chosen.rooms, "--rooms")
    for name in names:
        room(name)
    if (chosen.packed is None) != (chosen.out is None):
        raise InputError("--packed and --out go together: machine code in, results out")
    if chosen.pack:
        running.pack(names, chosen.pack)
        return 0
    if chosen.packed:
        return _record(names, chosen.packed, chosen.out)
    every = inputs.count(chosen.every, "--every")
    verdicts = judged(names, chosen.against, every)
    if chosen.json:
        print_document(
            "validate operations",
            {"against": chosen.against, "verdicts": [asdict(one) for one in verdicts]},
        )
    else:
        output.write(table(verdicts))
    return 1 if any(one.state == "wrong" for one in verdicts) else 0


def judged(names: Sequence[str], device: str, every: int) -> list[Verdict]:
    """Return the simulator's verdicts on each N-th operation of some rooms."""
    work = {name: room(name)[::every] for name in names}
    made: list[Verdict] = []
    with Bar(sum(map(len, work.values())), "operations") as bar:
        bar.start()
        for name, some in work.items():
            known = record.load(device, name)
            there = [one for one in some if not missing_headers(one)]
            simulator = Simulator(there) if there else None
            for operation in some:
                if simulator is not None and operation in there:
                    made.append(judge(name, operation, simulator, known))
                else:
                    made.append(_unavailable(name, operation))
                bar.advance()
    return made


def missing_headers(operation: Operation) -> list[str]:
    """Return the headers of an operation that a wheel carries and that are not here."""
    folders = wheels.headers()
    return [
        header
        for header in operation.included
        if wheels.wheel_of(header) and not any((folder / header).is_file() for folder in folders)
    ]


def _unavailable(name: str, operation: Operation) -> Verdict:
    header = missing_headers(operation)[0]
    reason = f"{header} is not here; it comes with pip install {wheels.wheel_of(header)}"
    return Verdict(name, operation.name, "unavailable", reason)


def table(verdicts: Sequence[Verdict]) -> str:
    """Return the counts of each room, and a line for each operation that is not right."""
    lines = [f"{'room':12} {'right':>6} {'refused':>8} {'wrong':>6} {'unavailable':>12}"]
    for name in dict.fromkeys(one.room for one in verdicts):
        held = Counter(one.state for one in verdicts if one.room == name)
        counts = f"{held['right']:6,} {held['refused']:8,} {held['wrong']:6,}"
        lines.append(f"{name:12} {counts} {held['unavailable']:12,}")
    for one in verdicts:
        if one.state in ("refused", "wrong"):
            lines.append(f"{one.state}: {one.room} {one.operation}: {one.reason}")
    lines += dict.fromkeys(one.reason for one in verdicts if one.state == "unavailable")
    return "\n".join(lines) + "\n"


def _record(names: Sequence[str], packed: Path, folder: Path) -> int:
    driver = pycuda_driver()
    context = driver.Device(0).make_context()
    try:
        machine = (str(driver.Device(0).name()), reported_by_nvidia_smi()[0], today())
        recording.record_all(names, packed, driver, machine, folder, _tell)
    finally:
        context.pop()
    return 0


def _tell(name: str, made: Record) -> None:
    output.write(f"{name}: {len(made.checksums) + len(made.values)} operations\n")
