"""Other values for a file's macros and constants: `TILE=8` for `#define TILE 16`.

A macro without parameters gets another replacement text, a `const` or `constexpr` number another
initial value, wherever the text defines it; line numbers stay. A name that the text only uses
becomes a definition for the compiler, as by `-D`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

_MACRO = r"^([ \t]*#[ \t]*define[ \t]+{name})(?![\w(])((?:[^\n\\]|\\\n|\\.)*)$"
_CONSTANT = (
    r"(\b(?:const|constexpr)\b(?:[ \t]+(?:static|const|constexpr|inline|unsigned|signed|long|short"
    r"|int|char|bool|float|double|auto|size_t|u?int(?:8|16|32|64)_t))+[ \t]+{name}[ \t]*)"
    r"(=[^;,{{}}]*|\{{[^{{}};]*\}})(?=[;,])"
)


def with_values(text: str, values: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return a text with other values of its names, and definitions for those it does not define.

    The names are identifiers, the values tokens of C++.
    """
    definitions = []
    for name, value in values.items():
        text, macros = re.subn(
            _MACRO.format(name=name), partial(_defined, value), text, flags=re.MULTILINE
        )
        text, constants = re.subn(_CONSTANT.format(name=name), partial(_initial, value), text)
        if not macros and not constants:
            definitions.append(f"{name}={value}")
    return text, tuple(definitions)


def whole_numbers(text: str) -> dict[str, int]:
    """Return the macros and constants of a text that are plain whole numbers."""
    any_name = r"(?P<name>[A-Za-z_]\w*)"
    found = [
        *re.finditer(_MACRO.format(name=any_name), text, flags=re.MULTILINE),
        *re.finditer(_CONSTANT.format(name=any_name), text),
    ]
    values = {one["name"]: one[3].partition("//")[0].strip("={} \t") for one in found}
    return {name: int(value) for name, value in values.items() if value.isdecimal()}


def _defined(value: str, match: re.Match[str]) -> str:
    return f"{match[1]} {value}" + "\\\n" * match[2].count("\n")


def _initial(value: str, match: re.Match[str]) -> str:
    return f"{match[1]}= {value}" + "\n" * match[2].count("\n")
