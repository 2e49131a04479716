"""Subcommands as data: the options of each, described once, and the printing of results.

The standard library reads the command line: typer depends on pydantic, whose import takes
longer than compiling and running a kernel.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import re
import shlex
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from gpusim.cli import output
from gpusim.errors import InputError
from gpusim.reports import folding
from gpusim.version import SCHEMA_VERSION

if TYPE_CHECKING:
    from rich.text import Text


def renamed(word: str) -> None:
    """Raise InputError for an option of an earlier version, with its name now."""
    flag = word.partition("=")[0]
    if flag in RENAMED:
        raise InputError(f"{flag} is no longer an option; write {RENAMED[flag]}")


@dataclass(frozen=True)
class Option:
    """A flag or, without dashes, an argument; `metavar` names its value, where it has one.

    `arity` is "?" for an argument that may be left out, "*" for any number of them. `alias` is a
    second flag for the same.
    """

    flag: str
    help: str
    metavar: str | None = None
    default: str | None = None
    repeated: bool = False
    destination: str | None = None
    arity: str | None = None
    alias: str | None = None

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Make a parser understand this option."""
        settings: dict[str, Any] = {"help": self.help}
        if self.destination is not None:
            settings["dest"] = self.destination
        if self.arity is not None:
            settings["nargs"] = self.arity
        if self.metavar is None:
            settings["action"] = "store_true"
        else:
            settings["metavar"] = self.metavar
            settings["default"] = self.default
            if self.repeated:
                settings["action"] = "append"
        parser.add_argument(*self.flags, **settings)

    @property
    def flags(self) -> tuple[str, ...]:
        """The ways to write it."""
        alias = self.alias or ALIASES.get(self.flag)
        return (self.flag,) if alias is None else (self.flag, alias)

    @property
    def name(self) -> str:
        """The name of its value among the options that are read."""
        return self.destination or self.flag.lstrip("-").replace("-", "_")

    def is_given(self, words: Iterable[str]) -> bool:
        """Return whether it stands among the words of a command line: --n, --n=1, -n or -n1."""
        long = tuple(flag for flag in self.flags if flag.startswith("--"))
        short = tuple(flag for flag in self.flags if flag[1:2] not in ("", "-"))
        return any(word.partition("=")[0] in long or word.startswith(short or ("\0",))
                   for word in words)  # fmt: skip


def names_given(options: Iterable[Option], words: Sequence[str]) -> set[str]:
    """Return the names of the options that stand on a command line."""
    return {one.name for one in options if one.flag.startswith("-") and one.is_given(words)}


@dataclass(frozen=True)
class Command:
    """A subcommand: its function's docstring is its help, the function's result the exit code."""

    name: str
    function: Callable[[argparse.Namespace], int]
    options: tuple[Option, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def summary(self) -> str:
        """The first line of the help, without its full stop."""
        return self._documentation[0].rstrip(".")

    @property
    def description(self) -> str:
        """The whole help."""
        return "\n".join(self._documentation)

    @property
    def defaults(self) -> dict[str, Any]:
        """The value of each option where it is not given, by its destination."""
        parser = argparse.ArgumentParser(add_help=False)
        for option in self.options:
            if option.flag.startswith("-"):
                option.add_to(parser)
        return vars(parser.parse_args([]))

    @property
    def _documentation(self) -> list[str]:
        lines = (self.function.__doc__ or "").strip().splitlines()
        return [line.removeprefix("    ") for line in lines]


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help for the terminal's width: paragraphs are filled, indented lines fold."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if isinstance(action, _HelpAction):
            return ", ".join(action.option_strings)
        return super()._format_action_invocation(action)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(self._paragraph(paragraph, width) for paragraph in paragraphs)

    def _paragraph(self, text: str, width: int) -> str:
        lines = text.splitlines()
        if not any(line.startswith(" ") for line in lines):
            return fill(" ".join(lines), width)
        hangs = [" " * folding.hang(line, width // 2) for line in lines]
        return "\n".join(
            fill(line, width, subsequent_indent=hang)
            for line, hang in zip(lines, hangs, strict=True)
        )


# Options of earlier versions, each with the one that has its meaning now.
RENAMED = {
    "--sizes": "-n", "--devices": "--device", "--output": "--out",
    "--kernels": "the kernels themselves, without an option (in gpusim validate --kernel)",
}  # fmt: skip

# What is written in place of an option by habit.
ALIASES = {"--out": "-o", "-n": "--n"}

# The groups of options in the help, by flag; others is beside them.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "launch": (
        "-n", "--block", "--grid", "--cluster", "--arg", "--shared-bytes", "--op", "--dtype",
        "--input", "--coarse", "--passes", "--waves", "--tune", "--max-registers", "--max-shared",
    ),
    "GPU": ("--device", "--cc", "--l2", "--without", "--set"),
    "machine code": ("--code", "-O", "-G", "-I", "-D", "--std"),
    "output": (
        "--json", "--format", "--sarif", "--out", "--overwrite", "--perfetto", "--plot",
        "--timeline", "--theme", "--top", "--all", "--line", "--warp", "--block-index",
    ),
    "work": ("--workers", "--dask", "--no-cache", "--step-limit"),
}  # fmt: skip


def add_options(parser: argparse.ArgumentParser, options: Iterable[Option]) -> None:
    """Make a parser understand options, in their groups."""
    group_of = {flag: name for name, flags in GROUPS.items() for flag in flags}
    members: dict[str, list[Option]] = {name: [] for name in ("", *GROUPS)}
    for option in options:
        members[group_of.get(option.flag, "")].append(option)
    for name, found in members.items():
        place = parser.add_argument_group(name) if name and found else parser
        for option in found:
            option.add_to(place)


HELP_LINES, HELP_EXAMPLES = 60, 2


class _HelpAction(argparse.Action):
    """Prints the help: what fits on a screen, or with `all` the whole."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> NoReturn:
        assert isinstance(parser, Parser)
        parser.help_of_all = values == "all"
        parser.print_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors as InputErrors, like all other errors of a user."""

    help_of_all = False

    def __init__(self, *, add_help: bool = True, **given: Any) -> None:
        super().__init__(formatter_class=_Help, allow_abbrev=False, add_help=False, **given)
        if add_help:
            told = "show this help and exit; --help all: every option"
            settings: dict[str, Any] = {"metavar": "all", "default": argparse.SUPPRESS}
            self.add_argument("-h", "--help", action=_HelpAction, nargs="?", help=told, **settings)

    def format_help(self) -> str:
        """Return the help, without its least used parts where it does not fit on a screen."""
        whole = super().format_help()
        if self.help_of_all or whole.count("\n") <= HELP_LINES:
            return whole
        _, *parts = whole.strip().split("\n\n")
        parts.insert(0, self._short_usage())
        parts = [part.replace(", see below", "") for part in parts]
        ending = [f"{self.prog} --help all: every option"]
        for shorter in _SHORTER:
            if _lines(parts + ending) > HELP_LINES:
                parts = shorter(parts)
        return "\n\n".join(parts + ending) + "\n"

    def _short_usage(self) -> str:
        named = [one for one in self._actions if not one.option_strings]
        words = [one.metavar or one.dest for one in named]
        left_out = [one.nargs in ("?", "*") for one in named]
        places = (f"[{word}]" if may else word for word, may in zip(words, left_out, strict=True))
        return " ".join(("usage:", self.prog, "[options]", *map(str, places)))

    def error(self, message: str) -> NoReturn:
        """Raise the error with the command for help, or with an option's new name."""
        for word in message.partition("unrecognized arguments: ")[2].split():
            renamed(word)
        raise InputError(f"{message}; see {self.prog} --help")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help and version as everything is printed; complaints are raised instead."""
        output.write(message)


def _lines(parts: Sequence[str]) -> int:
    return sum(part.count("\n") + 2 for part in parts) - 1


def _without(begin: str) -> Callable[[list[str]], list[str]]:
    return lambda parts: [part for part in parts if not part.startswith(begin)]


def _with_few_examples(parts: list[str]) -> list[str]:
    """Return parts with the first examples alone; further lines belong to the one above."""
    return [_first_examples(part) if part.startswith("examples:") else part for part in parts]


def _first_examples(part: str) -> str:
    lines = part.splitlines()
    begins = [at for at, line in enumerate(lines) if line.startswith("  gpusim ")]
    return "\n".join(lines[: [*begins, len(lines)][min(HELP_EXAMPLES, len(begins))]])


def _with_short_description(parts: list[str]) -> list[str]:
    """Return parts with two paragraphs of the description."""
    end = next(at for at, part in enumerate(parts) if part.startswith("positional arguments:"))
    return parts[: min(end, 3)] + parts[end:]


# What shortens a help that does not fit on a screen, the least used part first.
_SHORTER = (
    *map(_without, ("arguments of", "work:", "machine code:", "lists:")),
    _with_few_examples,
    _with_short_description,
    _without("GPU:"),
)

DEFAULT_DEVICE = "h200"
# Options that several commands have, by their flags.
_SHARED = (
    Option("kernel", "a name of gpusim list, FILE.py:FUNCTION or FILE.cu:KERNEL", "KERNEL"),
    Option("-n", "number of elements: 4096, 2^20, 1e6", "N"),
    Option("--block", "threads per block: 256, or 16x16", "THREADS"),
    Option("--grid", "blocks, in place of the kernel's launch rule", "BLOCKS"),
    Option("--cluster", "blocks of a cluster: 4, or 2x2 (the kernel's)", "BLOCKS"),
    Option("--op", "sum, max or min, where the kernel can", "OP"),
    Option("--dtype", "type of the elements: int32, float32, ...", "TYPE"),
    Option("--input", "input numbers, .npy, .csv or text, in place of a sample", "FILE"),
    Option("--coarse", "coarsening factor: elements per thread, where it is free", "FACTOR"),
    Option("--arg", "an argument of FILE.py:FUNCTION, see below", "[NAME=]VALUE", None, True),
    Option("--shared-bytes", "dynamic shared memory of a block, for FILE.py:FUNCTION", "BYTES"),
    Option("-I", "a folder of headers, for FILE.cu:KERNEL", "FOLDER", None, True, "include"),
    Option("-D", "a macro, for FILE.cu:KERNEL", "NAME[=VALUE]", None, True, "define"),
    Option("--std", "the C++ that FILE.cu is written in (c++17)", "STANDARD", None, False, "std"),
    Option("--code", "code generator of a Python kernel: lowering, nvcc or auto (auto)", "CODE"),
    Option("-O", "3 as nvcc -O3 (the default), 0 as nvcc -G", "LEVEL", "3", False, "level"),
    Option("--cc", "compute capability to compile for (9.0)", "CC", "9.0"),
    Option("--step-limit", "instructions per block before an error: no progress", "N"),
    Option(
        "--device", "a name of gpusim devices, or a file my-gpu.toml (h200)", "GPU", DEFAULT_DEVICE
    ),
    Option(
        "--l2",
        "state of the L2 cache at the first launch: cold, warm or dirty (other stored lines) "
        "(cold)",
        "L2",
        "cold",
    ),
    Option(
        "--passes", "one launch, or all until one value is left: one or all (one)", "PASSES", "one"
    ),
    Option(
        "--without",
        "ablation: bank-conflicts, barriers, ..., or of a line: bank-conflicts@81; may be repeated",
        "X",
        None,
        True,
    ),
    Option(
        "--set",
        "another value of a device key: latency_cycles.l2=250; may be repeated",
        "KEY=VALUE",
        None,
        True,
        "changed",
    ),
    Option("--workers", "worker processes, at most one for each core", "N"),
    Option(
        "--dask", "a cluster: the address of its scheduler, or local (extra dask)", "ADDRESS", None
    ),
    Option("--no-cache", "predict every row again, and keep none for later sweeps"),
    Option("--check", "also check the launch, as gpusim check: exit code 1 for an error"),
    Option("--perfetto", "also write a timeline for ui.perfetto.dev, as JSON", "FILE"),
    Option("--all", "print everything, however long"),
    Option("--format", "of findings: text, json, sarif, github or gcc (text)", "FORMAT"),
    Option("--json", "print JSON instead of a report"),
    Option("--sarif", "short for --format sarif: SARIF 2.1, for code hosts and editors"),
)
SHARED = {one.flag: one for one in _SHARED}
COMPILING = "-I -D --std"
# How a launch is described, of a catalogue kernel or the user's.
LAUNCHING = "-n --block --grid --cluster --op --dtype --input --coarse --arg --shared-bytes"
# How the launch of the user's kernel is described beside its size and its block.
OWN = f"--grid --cluster --arg --shared-bytes {COMPILING}"
DISTRIBUTION = "--workers --dask --no-cache"


def options(*parts: str | Option) -> tuple[Option, ...]:
    """Return options in order: a command's own, and shared ones by their flags, as "-n --block"."""
    return tuple(
        one
        for part in parts
        for one in ([part] if isinstance(part, Option) else map(SHARED.__getitem__, part.split()))
    )


KERNELS = Option(
    "kernels", "names of gpusim list, FILE.py:FUNCTION or FILE.cu:KERNEL", "KERNEL", arity="*"
)
KERNELS_OR_SERIES = replace(
    KERNELS, help=KERNELS.help.replace("gpusim list", "gpusim list (reduce1 to reduce7)")
)


def print_document(name: str, members: Mapping[str, Any]) -> None:
    """Print the members of a document, under its name and the version of the schema."""
    print_json(document_of(name, members))


def document_of(name: str, members: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document: the version of its schema, its name, and its members."""
    return {"schema_version": SCHEMA_VERSION, "document": name, **members}


def print_json(document: Any) -> None:
    """Print plain data as JSON."""
    output.write_all(json_parts(document))


def json_parts(document: Any) -> Iterator[str]:
    """Return plain data as JSON, in parts; NaN and infinities, absent from JSON, as strings."""
    encoder = json.JSONEncoder(indent=2, allow_nan=False)
    return chain(encoder.iterencode(plain(document)), "\n")


def plain(value: Any) -> Any:
    """Return data as JSON has it: NaN and infinities are strings, tuples lists."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def print_lines(report: Callable[[int], Iterable[Text]]) -> None:
    """Print the lines of a report for the terminal's width; longer ones fold at spaces."""
    output.write_all([printed(report, output.standard_output())])


def printed(report: Callable[[int], Iterable[Text]], stream: TextIO) -> str:
    """Return the lines of a report as they are printed to a stream."""
    from gpusim.reports.layout import console, harmless

    screen = console(stream)
    width = screen.width
    screen.file = page = io.StringIO()  # rich leaves the process where a reader has left
    for line in report(width):
        for part in folding.pieces(harmless(line), width):
            screen.print(harmless(part), no_wrap=True, crop=True, soft_wrap=bool(line.no_wrap))
    return page.getvalue()


ARGUMENT_ORDER = "arguments of FILE.py:FUNCTION, in order, or by name as NAME=VALUE:"
WITH_ELEMENTS = (
    "an array with elements, for data-dependent control flow or addresses: zeros, ones, arange, "
    "random, random:SEED:LEAST:MOST, full:NUMBER"
)
SIZES_OF_N = (
    "sizes as expressions of -n N and the block's threads, in --grid too, as ceil(n/16)xn: "
    "+ - * / %, min, max, ceil"
)

_TEMPLATE = re.compile(r"^[^\s'\"]+:[\w:]+<.*>")  # a kernel whose arguments have blanks between


def side(text: str, both: Namespace, options: Sequence[Option], command: str) -> Namespace:
    """Return a side's options: its own, else those for all sides, else those of a named launch.

    `options` are those that a side takes. Raises InputError for others, and for open quotes.
    """
    try:
        file, _, rest = text.rpartition(":")  # which may have blanks in its name
        is_plain = " " not in rest and Path(file).is_file()
        words = [text] if is_plain else shlex.split(_TEMPLATE.sub(r'"\g<0>"', text))
    except ValueError as error:
        raise InputError(f"{text!r} is not a command line: {error}") from None
    parser = Parser(prog=f"gpusim {command}")
    Option("kernel", "a kernel", "KERNEL").add_to(parser)
    for option in options:
        option.add_to(parser)
    own, unknown = parser.parse_known_args(words)
    if unknown:
        raise InputError(f"unrecognized arguments of {own.kernel}: {' '.join(unknown)}")
    names = names_given(options, words)
    given = {name: value for name, value in vars(own).items() if name in {*names, "kernel"}}
    from gpusim.cli.project import with_launch

    said = names | getattr(both, "given", set())
    return with_launch(Namespace(**{**vars(both), **given, "given": said}))
