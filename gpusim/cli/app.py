"""The `gpusim` command: its subcommands, and the one place where errors become exit codes.

Exit codes: 0 for success, 1 for a wrong result, 2 for input that cannot be used or an answer
that cannot be printed, 130 where the user interrupts. A subcommand's imports are deferred until
it runs: an answer should come in half a second.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence

from gpusim.cli import output
from gpusim.cli.options import Command, Parser, add_options, names_given, renamed
from gpusim.errors import GpusimError, InputError, did_you_mean
from gpusim.version import __version__

INPUT_ERROR = 2
INTERRUPTED = 130
COMPLETION = "_ARGCOMPLETE"  # set by a shell that completes a command line

# The module of each subcommand, in the order of `--help`: imported where it is requested.
MODULES = {
    "list": "listing",
    "run": "run",
    "trace": "trace",
    "check": "check",
    "lower": "lower",
    "predict": "predict",
    "rank": "rank",
    "compare": "compare",
    "sweep": "sweep",
    "tune": "tune",
    "ci": "ci",
    "grade": "grade",
    "plot": "plot",
    "report": "report",
    "devices": "devices",
}

DESCRIPTION = (
    "Counters, findings, checks and predicted duration of CUDA kernels, line by line and warp by "
    "warp, without a GPU."
)
VALIDATION = "Compare predictions with real GPUs: compare, run, counters, calibrate"
EXAMPLES = """examples:
  gpusim list                              the kernels of the catalogue
  gpusim run reduce3 -n 2^20 --block 256   a reduction, checked against NumPy
  gpusim trace reduce2 --block 128         divergence, bank conflicts
  gpusim check reduction5                  races, barriers, bounds
  gpusim lower reduce3 --block 256         SSA and machine code by source line
  gpusim predict reduce3 -n 2^26           duration on an H200, and limiter
  gpusim rank --device k40m                seven reductions by duration
  gpusim compare reduce1 reduce7           two launches: time, counters, results
  gpusim tune reduce7 -n 2^24              the fastest block, grid, coarsening
  gpusim ci                                limits of pyproject.toml
  gpusim grade docs/assignment work/*      points of handed-in kernels
  gpusim plot banks reduce2 --out b.svg    bank conflicts, as a picture
  gpusim report reduce2 --block 128        a page with findings and a stepper
  gpusim run -- python app.py              a whole CUDA program, without a GPU

gpusim COMMAND --help: the options of a command."""


def command(name: str) -> Command:
    """Return a subcommand by its name."""
    found: Command = importlib.import_module(f"gpusim.cli.{MODULES[name]}").COMMAND
    return found


def parser(names: Iterable[str] = MODULES) -> Parser:
    """Return the parser of the command line, as far as it has these subcommands."""
    made = Parser(prog="gpusim", description=DESCRIPTION, epilog=EXAMPLES)
    made.add_argument("--version", action="version", version=f"gpusim {__version__}")
    subparsers = made.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for one in map(command, names):
        below = subparsers.add_parser(
            one.name, help=one.summary, description=one.description, epilog="\n\n".join(one.notes)
        )
        add_options(below, one.options)
        below.set_defaults(function=one.function)
    subparsers.add_parser("validate", help=VALIDATION, add_help=False)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; a user's mistake is a message on stderr."""
    output.prepare()
    if COMPLETION in os.environ:
        from gpusim.cli.completion import command_asked, complete

        complete(parser(command_asked(MODULES)))
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
        output.write()  # output of a kernel's file during its import
        return code
    except GpusimError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("not enough memory for arrays of this size; try a smaller n")
    except KeyboardInterrupt as interrupt:
        output.complain_notes(interrupt)
        return INTERRUPTED


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code; raises GpusimError."""
    try:
        first = arguments[0] if arguments else ""
        if first == "validate":
            from gpusim.cli import validation

            return validation.main(arguments[1:])
        if _may_be_a_program(arguments):
            from gpusim.cli import programs

            if programs.is_meant(first, arguments[1:]):
                return programs.main(first, arguments[1:])
        chosen = chosen_of(arguments)
    except SystemExit as finished:  # after --help and --version
        return int(finished.code or 0)
    if chosen.command is None:
        parser().print_help()
        return 0
    code: int = chosen.function(chosen)
    return code


def chosen_of(arguments: Sequence[str]) -> Namespace:
    """Return the options of a command line, with those of a launch that it names.

    InputError for unknown ones.
    """
    first = arguments[0] if arguments else ""
    whole = parser([first] if first in MODULES else MODULES)
    chosen, unknown = whole.parse_known_args(arguments)
    if unknown:
        _refuse(unknown, first)
    if chosen.command in MODULES:
        chosen.given = names_given(command(chosen.command).options, arguments)
    if not isinstance(getattr(chosen, "kernel", None), str):
        return chosen
    from gpusim.cli.project import with_launch

    return with_launch(chosen)


def _may_be_a_program(arguments: Sequence[str]) -> bool:
    """Return whether a command line has marks of a whole program; without imports."""
    return "--" in arguments or any(one.endswith(".cu") for one in arguments)


def _refuse(unknown: Sequence[str], name: str) -> None:
    """Raise an InputError about arguments that a subcommand does not have."""
    asked = f"gpusim {name}" if name in MODULES else "gpusim"
    for word in unknown:
        renamed(word)
    flag = unknown[0].partition("=")[0]
    near = ""
    if flag.startswith("-"):
        others = [other for other in MODULES if flag in _flags(other)]
        near = f"; {flag} is an option of {', '.join(others)}" if others else _near(flag, name)
    raise InputError(f"unrecognized arguments: {' '.join(unknown)}{near}; see {asked} --help")


def _flags(name: str) -> list[str]:
    """Return the options of a subcommand."""
    options = command(name).options if name in MODULES else ()
    return [one.flag for one in options if one.flag.startswith("-")]


def _near(flag: str, name: str) -> str:
    """Return "; did you mean ...?" with options of a subcommand, compared without dashes."""
    flags = {one.lstrip("-"): one for one in _flags(name)}
    bare = flag.lstrip("-")
    if bare in flags:
        return f"; did you mean {flags[bare]}?"
    hint = did_you_mean(bare, [one for one in flags if len(one) > 1])
    return re.sub(r"[\w-]+(?= or |\?)", lambda word: f"--{word[0]}", hint)


def _fail(message: str) -> int:
    output.complain(message)
    return INPUT_ERROR
