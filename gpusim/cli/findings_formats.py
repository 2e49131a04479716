"""The formats of findings: text, JSON, SARIF, annotations of GitHub, lines as compilers write."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpusim.cli import output
from gpusim.cli.options import Option, print_json
from gpusim.cli.timing import one_of
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.reports.diagnostics import Diagnostic

KNOWN = ("text", "json", "sarif", "github", "gcc")
FORMAT = Option("--format", "of findings: text, json, sarif, github or gcc (text)", "FORMAT")
SARIF = Option("--sarif", "short for --format sarif: SARIF 2.1, for code hosts and editors")


def chosen_format(chosen: Namespace) -> str:
    """Return the format of findings; InputError where two are given."""
    given = [name for name in ("json", "sarif") if getattr(chosen, name)]
    given += [] if chosen.format is None else [one_of(chosen.format, KNOWN, "--format")]
    if len(set(given)) > 1:
        raise InputError(f"findings have one format, not {' and '.join(dict.fromkeys(given))}")
    return given[0] if given else "text"


def print_diagnostics(found: Iterable[Diagnostic], kind: str) -> None:
    """Print findings in one of the formats sarif, github and gcc."""
    if kind == "sarif":
        from gpusim.reports.sarif import sarif

        print_json(sarif(found))
        return
    from gpusim.reports.diagnostics import FORMATS

    output.write_all(f"{line}\n" for line in FORMATS[kind](found))
