"""Whole programs: `gpusim run -- python app.py`, `gpusim trace a.cu b.cu -- arguments`.

Before `--` stand gpusim's options and files of CUDA C++, after it the program's command line.
"""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.cli import output
from gpusim.cli.findings_formats import DOCUMENTS, chosen_format, formatted
from gpusim.cli.options import (
    LAUNCHING,
    Option,
    Parser,
    add_options,
    document_of,
    json_parts,
    options,
    printed,
)
from gpusim.cli.timing import L2_KNOWN, device_of, one_of
from gpusim.errors import InputError
from gpusim.host import files

if TYPE_CHECKING:
    from gpusim.cli.program_modes import Watched
    from gpusim.reports.program_records import ProgramReport

COMMANDS = ("run", "trace", "predict", "check", "report")
_MAIN = re.compile(r"\bmain\s*\(")
_OWN_HEADER = re.compile(r'^\s*#\s*include\s*"', re.MULTILINE)
SEPARATOR, SUFFIXES = "--", (".cu", ".cpp", ".cc", ".cxx", ".c")
FINDING = ("check", "trace", "predict")
FOUND, REFUSED = 1, 2
# Of one block: programs loop for longer than kernels that are looked at one by one.
STEP_LIMIT_OF_PROGRAMS = 1 << 27
MOST_SOURCE_BYTES = 1 << 26
PAGE = "report.html"

OPTIONS = options(
    Option("files", "CUDA C++ with a main, compiled with nvcc", "FILE.cu", arity="*"),
    "--device",
    Option("--kernel", "only kernels with this text in their name", "NAME", None, True),
    Option("--launch", "only these launches: 3, 3..5 or 10..", "N", None, True),
    "--l2",
    Option("-I", "a folder of headers", "FOLDER", None, True, "include"),
    Option("-D", "a macro", "NAME[=VALUE]", None, True, "define"),
    Option("-l", "a library to link with", "NAME", None, True, "library"),
    Option("--std", "the C++ of the files (nvcc's own choice)", "STANDARD", None, False, "std"),
    Option("-G", "compile the files without optimisation, as nvcc -G", destination="debug"),
    Option("--nvcc", "a further option for nvcc, as in --nvcc=-O0", "OPTION", None, True),
    "--step-limit --format --json --sarif",
    Option("--strict", "count warnings of check as errors"),
    Option("--lenient", "take locks and flags for acquires without a fence, in check"),
    "--perfetto",
    Option("--out", "where findings, JSON or the page of check or report go", "FILE"),
)
DESCRIPTION = {
    "run": "Run a program on a simulated GPU; its launches are only executed.",
    "trace": "Run a program and count instructions, conflicts and memory traffic of its launches.",
    "predict": "Run a program and predict the time of its launches; its events have these times.",
    "check": "Run a program and check each launch: races, barriers, bounds, memory.",
    "report": "Run a program and write a page about it: its timeline, its kernels, each line.",
}
NOTES = """examples:
  gpusim {0} -- python app.py             a program that loads CUDA's driver: numba-cuda, ...
  gpusim {0} -- ./a.out 1024              one that is linked with the shared runtime
  gpusim {0} a.cu b.cu -- 1024            CUDA C++, compiled for it; 1024 is an argument
  gpusim {0} --launch 3..5 --json --out launches.json -- python app.py

The program runs with your rights. A line of each launch and the summary go to standard error, and
so do findings by --format gcc or github without --out."""


def is_meant(command: str, arguments: Sequence[str]) -> bool:
    """Return whether a command line means a program, not a kernel.

    A file of CUDA C++ does if it has a main, and no option is of one launch; for `run`, which takes
    no kernel of a file, always.
    """
    if command not in COMMANDS:
        return False
    if SEPARATOR in arguments:
        return True
    flags = {flag for option in options(LAUNCHING) for flag in option.flags}
    if command != "run" and flags.intersection(one.partition("=")[0] for one in arguments):
        return False
    named = [one for one in arguments if one.endswith(SUFFIXES) and not one.startswith("-")]
    has_cuda = any(one.endswith(SUFFIXES[0]) for one in named)
    return has_cuda and (command == "run" or any(has_main(Path(one)) for one in named))


def has_main(path: Path) -> bool:
    """Return whether a file of CUDA C++ has a main."""
    from gpusim.cuda_cpp.source_text import plain_text

    if not path.is_file():
        return False
    text = plain_text(files.source(path, MOST_SOURCE_BYTES, again=True))
    return _MAIN.search(text) is not None


def main(command: str, arguments: Sequence[str]) -> int:
    """Run a program under a command, and return the exit code."""
    own, program = _parted(arguments)
    chosen = _parser(command).parse_args(own)
    kind = chosen_format(chosen)
    _check(command, chosen, kind)
    watched, code = run(command, chosen, program, kind)
    report = _report(watched, code, [*chosen.files, *program])
    if kind != "text" and chosen.out is not None:
        files.write_whole(Path(chosen.out), "".join(_formatted(report, kind)))
    if chosen.perfetto is not None:
        from gpusim.reports.perfetto import program_events, write_events

        write_events(program_events(report.intervals, report.device), Path(chosen.perfetto))
    if kind == "text" or chosen.out is not None:
        _print_summary(report)
    else:
        output.tell("".join(_formatted(report, kind)))
    if _has_page(command, chosen, kind):
        _write_page(command, Path(chosen.out or PAGE), watched, report)
    if code and not (watched.cannot_run and not watched.launches):
        return code
    found = command == "check" and (watched.has_errors or (chosen.strict and watched.has_warnings))
    return FOUND if found or watched.has_faults else REFUSED if watched.is_refused else 0


def _has_page(command: str, chosen: Namespace, kind: str) -> bool:
    is_asked = command == "report" or (command == "check" and chosen.out is not None)
    return is_asked and kind == "text"


def _write_page(command: str, path: Path, watched: Watched, report: ProgramReport) -> None:
    if command == "check":
        from gpusim.reports.page import checks

        checks.write(report, path)
    else:
        from gpusim.reports.page import program

        program.write(report, watched.subjects, path)
    output.complain(f"{path} is the page")


def _check(command: str, chosen: Namespace, kind: str) -> None:
    """Raise InputError for options that do not go together, before the program runs."""
    for flag in ("strict", "lenient"):
        if getattr(chosen, flag) and command != "check":
            raise InputError(f"--{flag} is of gpusim check, not of gpusim {command}")
    if chosen.debug and not chosen.files:
        raise InputError("-G cannot be given here: a program after -- is compiled already")
    if kind not in ("text", "json") and command not in FINDING:
        raise InputError(
            f"--format {kind} has findings: gpusim {', '.join(FINDING)}, not {command}"
        )
    if kind in DOCUMENTS and chosen.out is None:
        raise InputError(
            "--json and --sarif of a program go to a file, for standard output is the program's: "
            "give --json --out FILE"
        )
    if _has_page(command, chosen, kind):
        from gpusim.reports.page import render

        render.check(Path(chosen.out or PAGE))
    elif chosen.out is not None and kind == "text":
        raise InputError(
            "--out is of --json, --sarif, --format, and of the pages of gpusim check and report"
        )
    if chosen.perfetto is not None and "time" not in _looks(command):
        raise InputError("--perfetto shows predicted times: gpusim predict and gpusim report")


def _looks(command: str) -> frozenset[str]:
    from gpusim.cli.program_modes import LOOKS

    return LOOKS[command]


def run(
    command: str, chosen: Namespace, program: Sequence[str], kind: str = "text"
) -> tuple[Watched, int]:
    """Run a program, and return its launches and its exit code; `kind`: the format of findings."""
    from gpusim.cli.inputs import count
    from gpusim.cli.program_modes import LOOKS, LaunchChoice, Watched
    from gpusim.cli.progress import Word
    from gpusim.driver import session

    device = device_of(chosen.device, None)
    choice = LaunchChoice.of(chosen.kernel or (), chosen.launch or ())
    most = 1 << 62
    limit = chosen.step_limit
    steps = count(limit, "--step-limit", most=most) if limit else STEP_LIMIT_OF_PROGRAMS
    looks = LOOKS[command]
    if command == "predict" and kind != "text":  # they take as long as some predictions
        looks |= {"advise"}
    l2 = one_of(chosen.l2, L2_KNOWN, "--l2")
    watched = Watched(device, choice, looks, steps, l2, chosen.lenient)
    if command == "report" and kind == "text":
        from gpusim.reports.page.program import MOST_SECTIONS

        watched.most_subjects = MOST_SECTIONS
    command_line = [*_compiled(chosen, device.cc.target), *program]
    if not command_line:
        raise InputError(f"no program is given; write gpusim {command} -- PROGRAM, or FILE.cu")
    Word.running = lambda: watched.running
    return watched, session.run(command_line, device, watched, command)


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    if SEPARATOR not in arguments:
        return list(arguments), []
    place = list(arguments).index(SEPARATOR)
    return list(arguments[:place]), list(arguments[place + 1 :])


def _parser(command: str) -> Parser:
    made = Parser(
        prog=f"gpusim {command}", description=DESCRIPTION[command], epilog=NOTES.format(command)
    )
    add_options(made, OPTIONS)
    return made


def _compiled(chosen: Namespace, architecture: str) -> list[str]:
    """Return the program that the files make, as the begin of a command line."""
    if not chosen.files:
        return []
    from gpusim.driver import builds

    for name in chosen.files:
        if not Path(name).is_file():
            what = "is a folder" if Path(name).is_dir() else "there is no such file"
            raise InputError(f"{name}: {what}; write a program after --: gpusim run -- PROGRAM")
    if not any(_may_have_main(Path(name)) for name in chosen.files):
        raise InputError(builds.without_main(chosen.files))
    options = [f"-I{folder}" for folder in chosen.include or ()]
    options += [f"-D{macro}" for macro in chosen.define or ()]
    options += [f"-l{name}" for name in chosen.library or ()]
    options += [f"-std={chosen.std}"] if chosen.std else []
    options += ["-G"] if chosen.debug else []
    options += chosen.nvcc or ()
    return [str(builds.built(chosen.files, options, architecture, output.complain))]


def _may_have_main(path: Path) -> bool:
    """Return whether a file has a main, or a header of its project's that may have it."""
    text = files.source(path, MOST_SOURCE_BYTES, again=True)
    return has_main(path) or _OWN_HEADER.search(text) is not None


def _report(watched: Watched, code: int, command: Sequence[str]) -> ProgramReport:
    from gpusim.reports.program_records import ProgramReport

    return ProgramReport(
        command=tuple(command),
        device=watched.device.gpu.name,
        exit_code=code,
        launches=watched.launches,
        host=watched.host_findings,
        refused=watched.refusals,
        intervals=watched.intervals,
        operations=watched.operations,
    )


def _formatted(report: ProgramReport, kind: str) -> Iterator[str]:
    """Return a report in a format other than text, in parts."""
    if kind == "json":
        return json_parts(document_of("program", report.to_dict()))
    from gpusim.reports.program_findings import program_diagnostics

    return formatted(program_diagnostics(report), kind)


def _print_summary(report: ProgramReport) -> None:
    from gpusim.reports.programs import program_summary

    output.tell(printed(lambda width: program_summary(report, width), sys.stderr))
