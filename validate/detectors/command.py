"""`gpusim validate detectors`: how many of a suite's labelled bugs a check finds."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from gpusim.cli import inputs, output
from gpusim.cli.options import print_document
from gpusim.cli.progress import Bar
from gpusim.errors import InputError
from gpusim.host.installation import install
from gpusim.sass import wheels

from . import gpuverify, indigo, scor
from .case import ANY, Case, Verdict
from .running import verdicts

SUITES: dict[str, Callable[[Path], Iterable[Case]]] = {
    "indigo": indigo.cases,
    "scor": scor.cases,
    "gpuverify": gpuverify.cases,
}
STATES = ("right", "missed", "false report", "refused", "excluded")
EXAMPLES = """examples:
  gpusim validate detectors scor ScoR
  gpusim validate detectors indigo IndigoSuite_1.3 --every 10
  gpusim validate detectors gpuverify gpuverify --json"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("suite", help=f"one of {', '.join(SUITES)}", metavar="SUITE")
    parser.add_argument("folder", type=Path, help="where the suite lies", metavar="FOLDER")
    parser.add_argument("--every", default="1", help="each N-th program alone", metavar="N")
    parser.add_argument("--only", help="programs with this in their name", metavar="TEXT")
    parser.add_argument("--workers", default="2", help="checks at a time", metavar="N")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(function=detectors)


def detectors(chosen: argparse.Namespace) -> int:
    """Check a suite; return 1 for a wrong verdict."""
    if chosen.suite not in SUITES:
        raise InputError(f"no suite {chosen.suite!r}; suites are {', '.join(SUITES)}")
    if not chosen.folder.is_dir():
        raise InputError(f"{chosen.folder} is not a folder")
    if not wheels.are_there():
        raise InputError(f"CUDA C++ needs {wheels.INSTALL}: {install('nvcc')}")
    every, workers = (
        inputs.count(value, name)
        for value, name in ((chosen.every, "--every"), (chosen.workers, "--workers"))
    )
    cases = [one for one in SUITES[chosen.suite](chosen.folder) if (chosen.only or "") in one.name]
    cases = cases[::every]
    if not cases:
        raise InputError(f"{chosen.folder} has no such programs of {chosen.suite}")
    made: list[Verdict] = []
    with Bar(len(cases), "programs") as bar:
        bar.start()
        for one in verdicts(cases, workers):
            made.append(one)
            bar.advance()
    if chosen.json:
        print_document("validate detectors", document(chosen.suite, made))
    else:
        output.write(table(made))
    return 1 if any(one.state in ("missed", "false report", "refused") for one in made) else 0


def document(suite: str, made: Sequence[Verdict]) -> dict[str, Any]:
    """Return the verdicts, ready for JSON."""
    return {
        "suite": suite,
        "counts": {state: sum(one.state == state for one in made) for state in STATES},
        "verdicts": [
            {
                "name": one.case.name,
                "defects": sorted(one.case.defects),
                "found": sorted(one.found),
                "state": one.state,
                "rules": list(one.rules),
                "lines": list(one.lines),
                "reason": one.refused or one.case.excluded,
                "seconds": round(one.seconds, 3),
            }
            for one in made
        ],
    }


def table(made: Sequence[Verdict]) -> str:
    """Return the score of each defect, and a line for each program that is not right."""
    launched = [one for one in made if not (one.refused or one.case.excluded)]
    judged = sorted({defect for one in launched for defect in one.case.judged})
    lines = [f"{'defect':10} {'labelled':>9} {'found':>6} {'clean':>6} {'reported':>9}"]
    for defect in judged:
        bad = [one for one in launched if defect in one.case.defects]
        clean = [one for one in launched if defect not in one.case.defects]
        name = "error" if defect == ANY else defect
        found, reported = (sum(defect in one.found for one in some) for some in (bad, clean))
        lines.append(f"{name:10} {len(bad):9,} {found:6,} {len(clean):6,} {reported:9,}")
    counts = Counter(one.state for one in made)
    lines.append(", ".join(f"{counts[state]:,} {state}" for state in STATES))
    for one in made:
        if one.state in ("missed", "false report", "refused"):
            why = one.refused or ", ".join(one.rules) or "no error"
            lines.append(f"{one.state}: {one.case.name}: {why}")
    lines += _reasons(made)
    seconds = sorted(one.seconds for one in launched)
    if seconds:
        lines.append(
            f"seconds a program: median {seconds[len(seconds) // 2]:.2f}, most {seconds[-1]:.2f}"
        )
    return "\n".join(lines) + "\n"


def _reasons(made: Sequence[Verdict]) -> list[str]:
    counts = Counter(one.case.excluded for one in made if one.case.excluded)
    return [f"excluded: {count:,} ({reason})" for reason, count in counts.most_common()]
