"""Launches that stand side by side: each a kernel with options of its own in quotes."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from gpusim.cli.options import Option, Parser, names_given
from gpusim.errors import InputError

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
