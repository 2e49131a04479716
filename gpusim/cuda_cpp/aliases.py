"""Other names of types: typedefs, `using`, macros, and template arguments.

They are replaced by their definitions in declarations of parameters and members, so that numbers
get the type that the compiler gives them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from gpusim.cuda_cpp.signature import Declared
from gpusim.cuda_cpp.source_text import parts, plain_text
from gpusim.cuda_cpp.structures import TYPES

# The meaning of each name: several types for a typedef under a condition.
Aliases = Mapping[str, Sequence[str]]
MOST_STEPS = 8  # from the alias of an alias to its type
MOST_MEANINGS = 64  # of a name, each by other conditions

_TYPE = r"[A-Za-z_][\w:]*(?:\s+[A-Za-z_]\w*){0,7}\s*\**"
_TYPEDEF = re.compile(rf"\btypedef\s+(?P<meant>{_TYPE})\s*\b(?P<name>[A-Za-z_]\w*)\s*;")
_USING = re.compile(rf"\busing\s+(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<meant>{_TYPE})\s*;")
_MACRO = re.compile(
    rf"^[ \t]*#[ \t]*define[ \t]+(?P<name>[A-Za-z_]\w*)[ \t]+(?P<meant>{_TYPE})[ \t]*$",
    re.MULTILINE,
)
_PARAMETER = re.compile(r"(?:typename|class)\s+([A-Za-z_]\w*)\s*(?:=\s*(.+))?$", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_SPACE = re.compile(r"\b(?:const|volatile|__restrict__)\b\s*|\s+(?=\*)")


def aliases(text: str, definitions: Iterable[str] = ()) -> dict[str, list[str]]:
    """Return the other names of types in a source text, and in macros given beside it."""
    plain = plain_text(text)
    found: dict[str, list[str]] = {}
    for pattern in (_TYPEDEF, _USING, _MACRO):
        for match in pattern.finditer(plain):
            meant = found.setdefault(match["name"], [])
            if match["name"] not in match["meant"].split() and match["meant"] not in meant:
                meant.append(match["meant"].strip())
    for definition in definitions:
        name, _, text = definition.partition("=")
        if re.fullmatch(_TYPE, text):
            found[name] = [text]
    return {name: meant for name, meant in found.items() if meant}


def of_template(parameters: Sequence[str], instance: str) -> dict[str, list[str]]:
    """Return the template arguments of an instance, by parameter name; defaults where missing.

    An instance is written as `kernel<float>`.
    """
    _, bracket, made_with = instance.partition("<")
    given = parts(made_with.rpartition(">")[0]) if bracket else []
    return dict(_types(parameters, given))


def _types(parameters: Sequence[str], given: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield a template's types by its names for them; missing ones take their defaults."""
    for place, parameter in enumerate(parameters):
        match = _PARAMETER.match(parameter.strip())
        meant = given[place] if place < len(given) else match and match[2]
        if match and meant:
            yield match[1], [meant.strip()]


def resolved(declared: Declared, known: Aliases, size: int | None = None) -> Declared:
    """Return a declaration with the aliases in its type replaced.

    Of several meanings, the one of `size` bytes; unchanged if none is certain.
    """
    meanings = islice(_meanings(declared.ctype, known, MOST_STEPS), MOST_MEANINGS)
    found = list(dict.fromkeys(meanings))
    if len(found) > 1:
        found = [one for one in found if one in TYPES and np.dtype(TYPES[one]).itemsize == size]
    return replace(declared, ctype=found[0]) if len(found) == 1 else declared


def _meanings(ctype: str, known: Aliases, steps: int) -> Iterator[str]:
    word = next((word for word in _WORD.findall(ctype) if word in known), None)
    if word is None or not steps:
        yield _SPACE.sub("", ctype).strip()
        return
    for meant in known[word]:
        yield from _meanings(re.sub(rf"\b{word}\b", meant, ctype), known, steps - 1)
