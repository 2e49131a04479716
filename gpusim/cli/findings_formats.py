"""The formats of findings: text, JSON, SARIF, annotations of GitHub, lines as compilers write."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from gpusim.cli import output
from gpusim.cli.options import json_parts
from gpusim.cli.timing import one_of
from gpusim.errors import InputError
from gpusim.host.files import harmless, printable

if TYPE_CHECKING:
    from gpusim.advice.records import Advice
    from gpusim.checking.findings import Findings
    from gpusim.reports.diagnostics import Diagnostic

KNOWN = ("text", "json", "sarif", "github", "gcc")
DOCUMENTS = ("json", "sarif")


def chosen_format(chosen: Namespace) -> str:
    """Return the format of findings; InputError where two are given."""
    given = [name for name in ("json", "sarif") if getattr(chosen, name)]
    given += [] if chosen.format is None else [one_of(chosen.format, KNOWN, "--format")]
    if len(set(given)) > 1:
        raise InputError(f"findings have one format, not {' and '.join(dict.fromkeys(given))}")
    return given[0] if given else "text"


def print_diagnostics(found: Iterable[Diagnostic], kind: str) -> None:
    """Print findings in one of the formats sarif, github and gcc."""
    output.write_all(formatted(found, kind))


def formatted(found: Iterable[Diagnostic], kind: str) -> Iterator[str]:
    """Yield findings in one of the formats sarif, github and gcc, as lines with their ends."""
    if kind == "sarif":
        from gpusim.reports.sarif import sarif

        yield from json_parts(sarif(found))
        return
    from gpusim.reports.diagnostics import FORMATS

    for line in map(printable, FORMATS[kind](found)):
        yield f"{line if kind == 'github' else harmless(line)}\n"


def print_advice(
    advice: Iterable[Advice], source_file: str, checked: Findings | None, kind: str
) -> None:
    """Print findings on performance, then those of --check, in one of these formats."""
    from gpusim.reports.diagnostics import of_advice, of_findings

    found = of_advice(advice, source_file)
    print_diagnostics(found if checked is None else chain(found, of_findings(checked)), kind)
