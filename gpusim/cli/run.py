"""`gpusim run`: a kernel of the catalogue, all passes, checked against NumPy."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpusim.cli.check import also_checked, print_findings, with_findings
from gpusim.cli.options import Command, Option, options, print_document, print_lines
from gpusim.cli.output import has_terminal, note_telling
from gpusim.cli.references import CODE_SUFFIXES, PYTHON, Reference
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.catalogue import Call
    from gpusim.launch.prepared import Prepared

WRONG_RESULT = 1


def run(chosen: Namespace) -> int:
    """Run a kernel, all passes, and check it against NumPy; or a whole program.

    A reduction is launched until one value is left. The exit code is 0 where the result is
    right and 1 where it is wrong. A program follows --, as in gpusim run -- python app.py;
    gpusim run a.cu compiles one (gpusim run --help has its options).
    """
    from gpusim.catalogue import find
    from gpusim.cli.selection import selected, step_limit
    from gpusim.reports.runs import checked, run_document, run_lines

    _refuse_files(chosen.kernel)
    choice = selected(find(chosen.kernel), chosen)
    limit = step_limit(chosen)
    launches = choice.launches()
    with Progress(sum(launch.blocks for launch in launches)) as progress:
        started = time.perf_counter()
        made: list[Prepared] = []
        calls = choice.run(lambda call: made.append(_launch(call, chosen.code, limit, progress)))
        seconds = time.perf_counter() - started
    outcome = checked(choice.entry, calls, seconds, made[0])
    findings, found = also_checked(chosen)
    if chosen.json:
        document = run_document(outcome)
        print_document("run", with_findings(document, findings))
    else:
        print_lines(lambda width: run_lines(outcome, width))
        print_findings(findings, whole=chosen.all)
    return found if outcome.right else WRONG_RESULT


COMMAND = Command(
    "run",
    run,
    options(
        Option("kernel", "a name of gpusim list", "KERNEL"),
        "-n --block --op --dtype --input --grid --cluster --coarse --code --step-limit --check",
        "--all --json",
    ),
    (
        """examples:
  gpusim run reduce3 -n 2^20 --block 256
  gpusim run reduction2 --op max --dtype float32 -n 1e6
  gpusim run reduce7 --input numbers.npy --json
  gpusim run -- python app.py
  gpusim run a.cu b.cu -- 1024""",
    ),
)


def _refuse_files(kernel: str) -> None:
    """Raise InputError for a file: only kernels of the catalogue have a right result."""
    reference = Reference.of(kernel)
    if not reference.file:
        return
    path = reference.path
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    if path.suffix in (*CODE_SUFFIXES, PYTHON):
        raise InputError(
            "run takes kernels of the catalogue, and whole programs; "
            f"gpusim trace {kernel} (or predict, check, report) takes a kernel of {path}"
        )
    raise InputError(f"there is no kernel {kernel}; to run a program write gpusim run -- {kernel}")


def _launch(call: Call, code: str | None, step_limit: int, progress: Progress) -> Prepared:
    """Run one launch, and return its prepared program."""
    from gpusim import machine
    from gpusim.codegen.programs import prepare

    prepared = prepare(call.configured, call.arguments, machine.DEFAULT_CC, code=code)
    finished = machine.Finished(progress.launch())
    machine.run(prepared, observers=(finished,), step_limit=step_limit)
    return prepared


class Progress:
    """A bar on stderr that appears where the work takes longer than a second."""

    PATIENCE_S = 1.0

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.started = time.perf_counter()
        self.watched = has_terminal()
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def launch(self) -> Callable[[int], None]:
        """Return a callback for the number of finished blocks of the next launch."""
        before = self.done

        def report(finished: int) -> None:
            self.done = before + finished
            late = time.perf_counter() - self.started > self.PATIENCE_S
            if self.bar is None and self.watched and late:
                self._show()
            if self.bar is not None:
                self.bar.update(self.task, completed=self.done)

        return report

    def _show(self) -> None:
        import sys

        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("blocks"),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self.task = self.bar.add_task("blocks", total=self.total)
        self.bar.start()
        note_telling(float("inf"))
