"""`gpusim check`: races, barrier errors and other errors of a kernel."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.cli import output
from gpusim.cli.findings_formats import chosen_format, print_diagnostics
from gpusim.cli.launches import CatalogueLaunch, refuse, resolved
from gpusim.cli.options import (
    COMPILING,
    DEFAULT_DEVICE,
    LAUNCHING,
    SHARED,
    Command,
    Option,
    options,
    print_document,
    print_lines,
)
from gpusim.cli.progress import Patience
from gpusim.cli.references import Reference
from gpusim.cli.timing import device_of

if TYPE_CHECKING:
    from rich.text import Text

    from gpusim.checking.findings import Findings
    from gpusim.cuda import Kernel
    from gpusim.launch.configured import MachineCode

FOUND = 1


def check(chosen: Namespace) -> int:
    """Check a kernel for races, barrier errors and undefined behaviour.

    Races between warps, lanes and blocks; divergent barriers and wrong masks; deadlocks; reads of
    uninitialised memory; out-of-bounds accesses; waits for blocks that are not resident. The order
    of accesses decides, not the values of this run.

    With --explore other launches of the kernel are checked as well: sizes around multiples of the
    block, empty, one and odd; numbers and elements on either side of the values of comparisons;
    orders of warps and blocks where they communicate. Each finding comes with the command line of
    its smallest launch.

    The exit code is 1 where there are errors (with --strict also for warnings), else 0.
    """
    kind = chosen_format(chosen)
    if chosen.out is not None:
        refuse(
            {"--out": chosen.out if kind != "text" else None}, "it is the page, without a format"
        )
        _require_a_page(Path(chosen.out))
    if chosen.explore is not None:
        return _explore(chosen, kind)
    refuse({"--seed": chosen.seed}, "it is the seed of --explore")
    findings = checked(chosen)
    if kind == "json":
        print_document("check", findings.to_dict())
    elif kind == "text":
        from gpusim.reports.checking import check_report

        print_lines(lambda width: check_report(findings, width, whole=chosen.all))
    else:
        from gpusim.reports.diagnostics import of_findings

        print_diagnostics(of_findings(findings), kind)
    if chosen.out is not None:
        from gpusim.reports.launches import launch_of

        _write_page([("", findings)], launch_of(findings), Path(chosen.out))
    return exit_code(findings, strict=chosen.strict)


def also_checked(chosen: Namespace) -> tuple[Findings | None, int]:
    """Return the findings of --check beside a command's result, and their exit code."""
    if not chosen.check:
        return None, 0
    findings = checked(chosen)
    return findings, exit_code(findings, strict=False)


def with_findings(document: dict[str, Any], findings: Findings | None) -> dict[str, Any]:
    """Return a command's document with the findings of --check."""
    return document if findings is None else {**document, "check": findings.to_dict()}


def print_findings(findings: Findings | None, *, whole: bool) -> None:
    """Print the report of --check after a command's own."""
    if findings is None:
        return
    from gpusim.reports.checking import check_report

    print_lines(lambda width: check_report(findings, width, whole=whole))


def lines_after(findings: Findings | None, width: int, *, whole: bool) -> list[Text]:
    """Return the report of --check as the end of another one: unless `whole` a row for each."""
    if findings is None:
        return []
    from gpusim.reports.checking import check_report, short_report

    return [*(check_report(findings, width) if whole else short_report(findings, width))]


def exit_code(findings: Findings, *, strict: bool) -> int:
    """Return 1 where there are errors, or warnings that count as such."""
    return FOUND if findings.errors or (strict and findings.warnings) else 0


MOST_SEED, MOST_LAUNCHES = 10**9 - 1, 10**4

COMMAND = Command(
    "check",
    check,
    options(
        "kernel",
        LAUNCHING,
        COMPILING,
        "--device",
        replace(
            SHARED["--code"],
            help="code of a Python kernel: lowering at -O0, nvcc or auto (lowering)",
        ),
        Option("--strict", "count warnings as errors"),
        Option(
            "--lenient",
            "take locks and flags for acquires without a fence after them; the report notes it",
        ),
        Option(
            "-G",
            "compile FILE.cu without optimisation, as nvcc -G: every access of the source is "
            "checked",
            destination="debug",
        ),
        Option(
            "--uninitialised",
            "an uninitialised array of FILE.py:FUNCTION: a read before the first write is an error",
            "NAME",
            None,
            True,
        ),
        Option("--explore", "also check N launches with other inputs and orders", "N"),
        Option("--seed", "of the launches of --explore (0)", "SEED"),
        Option("--order", "run warps and blocks in random order, with this seed", "SEED"),
        Option("--blocks", "check only some blocks: last:64, first:64, 100:200", "BLOCKS"),
        "--step-limit --all",
        Option("--out", "also write a page of the findings: a file that ends in .html", "FILE"),
        "--format --json --sarif",
    ),
    (
        """machine code: the lowering's at -O0 for a Python kernel, nvcc's for FILE.cu:KERNEL and
with --code nvcc; arithmetic that is undefined in C is looked for in the lowering's alone""",
        """examples:
  gpusim check reduction5
  gpusim check reduce5_fixed --strict --device v100
  gpusim check reduce3 --explore 50 --seed 7
  gpusim check mine.py:saxpy --grid 64 --block 256 --arg 2.0 \\
      --arg "x=float32[16384]=arange" --arg "y=float32[16384]" --arg "n=16384\"""",
    ),
)


def checked(chosen: Namespace, kernel: Kernel | MachineCode | None = None) -> Findings:
    """Return the findings of a check of the launch that the options describe.

    A `kernel` of a file that is known is not read again.
    """
    from gpusim.checking.check import check as judge
    from gpusim.checking.check import check_call
    from gpusim.cli.inputs import some_blocks
    from gpusim.cli.selection import step_limit

    if getattr(chosen, "debug", False):
        _require_a_source(chosen.kernel)
    launch = resolved(chosen, kernel=kernel)
    configured, values = launch.filled()
    settings: dict[str, Any] = {
        "device": device_of(getattr(chosen, "device", None) or DEFAULT_DEVICE, None),
        "step_limit": step_limit(chosen),
        "progress": Patience(configured.launch.blocks),
        "lenient": getattr(chosen, "lenient", False),
        "order": _seed(chosen, "order"),
        "code": getattr(chosen, "code", None),
    }
    if (text := getattr(chosen, "blocks", None)) is not None:
        settings["blocks"] = some_blocks(text, configured.launch.blocks)
    if isinstance(launch, CatalogueLaunch):
        found = check_call(launch.call, **settings)
    else:
        nothing = getattr(chosen, "uninitialised", None) or ()
        found = judge(configured, *values, uninitialised=nothing, **settings)
    return replace(found, description=launch.description)


def _seed(chosen: Namespace, name: str) -> int | None:
    """Return the seed that an option gives, if any."""
    from gpusim.cli import inputs

    text = getattr(chosen, name, None)
    return None if text is None else inputs.count(text, f"--{name}", least=0, most=MOST_SEED)


def _explore(chosen: Namespace, kind: str) -> int:
    """Check a launch and others; print the smallest of each finding."""
    from gpusim.cli import inputs
    from gpusim.cli.exploring import explored

    count = inputs.count(chosen.explore, "--explore", most=MOST_LAUNCHES)
    seed = _seed(chosen, "seed") or 0
    made = explored(chosen, count, seed, checked, COMMAND.options)
    if kind == "json":
        print_document("explore", made.to_dict())
    elif kind == "text":
        from gpusim.reports.checking import explored_report

        print_lines(lambda width: explored_report(made, width, whole=chosen.all))
    else:
        from gpusim.reports.diagnostics import of_findings

        smallest = [one.findings for one in made.smallest if one.findings is not None]
        print_diagnostics(chain.from_iterable(map(of_findings, smallest)), kind)
    if chosen.out is not None:
        shown = [
            (o.command, o.findings) for o in made.smallest or made.ran[:1] if o.findings is not None
        ]
        about = f"{len(made.ran):,} launches, seed {made.seed}; the smallest of each finding"
        _write_page(shown, about, Path(chosen.out))
    return FOUND if made.has_errors or (chosen.strict and made.has_warnings) else 0


def _require_a_page(path: Path) -> None:
    from gpusim.reports.page import render

    render.check(path)


def _write_page(checks: Sequence[tuple[str, Findings]], about: str, path: Path) -> None:
    from gpusim.reports.page.checks import write_findings

    write_findings(checks, about, path)
    output.complain(f"{path} is the page")


def _require_a_source(kernel: str) -> None:
    """Raise InputError where -G has nothing to compile."""
    reference = Reference.of(kernel)
    if reference.is_binary:
        refuse({"-G": True}, "machine code is checked as it is")
    if not reference.is_code:
        refuse({"-G": True}, "a Python kernel is always checked without optimisation")
