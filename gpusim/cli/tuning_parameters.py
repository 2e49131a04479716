"""Tuning parameters of the user's kernel: names whose values vary, `--tune TILE=8,16,32`.

A parameter may stand in the block, the grid, the shared memory and the arguments of a launch, among
the template arguments of a kernel, and in its file: as a macro or a constant of CUDA C++, or as a
constant of a Python module.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from gpusim.cli.inputs import counts, listed, whole_number
from gpusim.cli.references import Reference
from gpusim.errors import InputError
from gpusim.host.files import shown

RESERVED = frozenset(("n", "block", "grid", "waves", "coarse"))  # options, or names of sizes
LAUNCH_OPTIONS = ("block", "grid", "shared_bytes", "arg")
_NAME = re.compile(r"[A-Za-z_]\w*")
_VALUE = re.compile(r"[\w.:+-]+(?:\s[\w.:+-]+)*")  # a number, or a type: float, unsigned int


def axes(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the values of each NAME=VALUE,VALUE,...; InputError for anything else.

    2..32 is 2 and twice that, up to 32.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not _NAME.fullmatch(name):
            raise InputError(f"--tune is {shown(text)!r}; write NAME=VALUE,VALUE, as in TILE=8,16")
        if name in RESERVED:
            option = "-n" if name == "n" else f"--{name}"
            raise InputError(f"--tune {name} is not a parameter of a file; give {option}")
        if name in found:
            raise InputError(f"--tune {name} is given twice; give all its values with commas")
        found[name] = [
            str(value) for part in listed(values, f"--tune {name}") for value in _values(part, name)
        ]
    return found


def _values(part: str, name: str) -> Iterable[str | int]:
    if ".." in part:
        return counts(part, f"--tune {name}", name)
    if not _VALUE.fullmatch(part):
        raise InputError(f"--tune {name} is {shown(part)!r}, neither a number nor a type's name")
    number = whole_number(part)
    return [part if number is None else number]


def with_values(chosen: Namespace, values: Mapping[str, str]) -> Namespace:
    """Return options with the values of tuning parameters wherever they stand.

    `values` of the result are those of names in the kernel's file, `unused` the names that stand
    nowhere.
    """
    if not values:
        return chosen
    changed: dict[str, Any] = {}
    used: set[str] = set()
    for option in LAUNCH_OPTIONS:
        given = getattr(chosen, option, None)
        if given is not None:
            several = isinstance(given, list | tuple)
            made = [_substituted(text, values, used) for text in (given if several else [given])]
            changed[option] = made if several else made[0]
    reference = Reference.of(chosen.kernel)
    base, bracket, template = reference.kernel.partition("<")
    in_template: set[str] = set()
    if bracket:
        name = f"{base}<{_substituted(template, values, in_template)}"
        changed["kernel"] = f"{reference.file}:{name}"
    text = reference.source
    words = {name for name in values if re.search(rf"\b{name}\b", text)} - in_template
    unused = values.keys() - used - in_template - words
    in_file = {name: value for name, value in values.items() if name in words}
    return Namespace(**{**vars(chosen), **changed, "values": in_file, "unused": unused})


def require_used(chosen: Namespace) -> None:
    """Raise InputError for tuning parameters that stand nowhere."""
    for name in sorted(getattr(chosen, "unused", ())):
        raise InputError(
            f"nothing in {chosen.kernel} nor in its launch is named {name}; a tuning parameter is "
            "a macro, a constant, a template argument, or a name in --block, --grid or --arg"
        )


def _substituted(text: str, values: Mapping[str, str], used: set[str]) -> str:
    """Return a text with values in place of names, as in TILExTILE; `used` gets the names."""
    any_name = "|".join(values)
    after = rf"\W|$|x(?:[\d(]|(?:{any_name}|n|block)(?:\W|$|x)|ceil\()"
    pattern = re.compile(rf"(?:(?<!\w)|(?<=[\d)]x)|(?<=\bnx)|(?<=\bblockx))({any_name})(?={after})")
    while match := pattern.search(text):
        used.add(match[1])
        text = f"{text[: match.start()]}{values[match[1]]}{text[match.end() :]}"
    return text
