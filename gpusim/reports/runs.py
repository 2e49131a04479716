"""The report of a run: its result beside NumPy's, its passes, and the speed of simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np
from rich.text import Text

from gpusim.catalogue import REDUCTION, Call, Entry
from gpusim.catalogue.oracle import Expected
from gpusim.catalogue.reduction import expected
from gpusim.launch.prepared import Prepared
from gpusim.reports.generators import code_of, fallback_lines
from gpusim.reports.layout import BAD, DIM, TITLE, plural


@dataclass(frozen=True, eq=False)
class Outcome:
    """The launches of a run, their result and NumPy's; `prepared` is the first launch."""

    entry: Entry
    calls: Sequence[Call]
    seconds: float
    result: Any
    reference: Any
    wrong: int
    prepared: Prepared

    @property
    def right(self) -> bool:
        """Whether every value is right."""
        return self.wrong == 0

    @property
    def threads(self) -> int:
        """Threads of all launches."""
        return sum(c.launch.blocks * c.launch.threads_per_block for c in self.calls)


def checked(entry: Entry, calls: Sequence[Call], seconds: float, prepared: Prepared) -> Outcome:
    """Return the comparison of the launches' result with NumPy's."""
    result = calls[-1].result
    should_be: Expected
    if entry.family is REDUCTION:
        should_be = expected(calls[0].data, [call.setup for call in calls])
    else:
        should_be = calls[0].expected()
    wrong = int(np.count_nonzero(should_be.wrong(result)))
    return Outcome(entry, calls, seconds, result, should_be.values, wrong, prepared)


def run_document(outcome: Outcome) -> dict[str, Any]:
    """Return a run as plain data; `value` is the last element of a scan."""
    first = outcome.calls[0].setup
    return {
        "kernel": outcome.entry.name,
        "generator": outcome.prepared.program.generator,
        "fallback": outcome.prepared.fallback or None,
        "n": first.n,
        "block": first.block,
        "grid": first.grid,
        "operation": first.operation,
        "dtype": str(first.dtype),
        "value": outcome.result[-1].item(),
        "numpy": outcome.reference[-1].item(),
        "right": outcome.right,
        "wrong_values": outcome.wrong,
        "values": len(outcome.result),
        "defect": outcome.entry.defect,
        "fixed_by": outcome.entry.fixed_by,
        "passes": [
            {"n": call.setup.n, "grid": call.setup.grid, "block": call.setup.block}
            for call in outcome.calls
        ],
        "threads": outcome.threads,
        "seconds": outcome.seconds,
        "threads_per_second": outcome.threads / outcome.seconds,
    }


def known_defect(entry: Entry) -> str:
    """Return the known defect of a kernel as published, and the name of the corrected kernel."""
    fix = f" {entry.fixed_by} is corrected." if entry.fixed_by else ""
    return f"Known defect: {(entry.defect or '').rstrip('.')}.{fix}"


def run_lines(outcome: Outcome, width: int) -> Iterator[Text]:
    """Yield a run as lines for a terminal of `width` columns."""
    first = outcome.calls[0].setup
    title = Text(outcome.entry.name, TITLE)
    title.append(
        f"  {first.operation} of {first.n:,} {first.dtype}, block {first.block}", style="not bold"
    )
    yield title
    grids = " + ".join(f"{call.setup.grid:,}" for call in outcome.calls)
    blocks = f"{grids} blocks" if grids != "1" else "1 block"
    passes = len(outcome.calls)
    code = code_of(outcome.prepared.program)
    yield Text(f"{passes} pass{'' if passes == 1 else 'es'}: {blocks}; {code}", DIM)
    yield from fallback_lines(outcome.prepared.fallback, width)
    last = "last value  " if len(outcome.result) > 1 else ""
    yield Text(f"\n  gpusim  {last}{outcome.result[-1]}")
    yield Text(f"  NumPy   {last}{outcome.reference[-1]}")
    yield _verdict(outcome)
    if not outcome.right and outcome.entry.defect:
        for part in wrap(known_defect(outcome.entry), width - 4):
            yield Text(f"  {part}")
    rate = outcome.threads / outcome.seconds
    yield Text(
        f"\n{plural(outcome.threads, 'thread')} in {outcome.seconds:.2f} s: "
        f"{rate:,.0f} threads/s simulated",
        DIM,
    )


def _verdict(outcome: Outcome) -> Text:
    if outcome.right:
        same = bool(np.array_equal(outcome.result, outcome.reference, equal_nan=True))
        return Text("  they match" if same else "  they match within rounding", "green")
    count = len(outcome.result)
    if count == 1:
        return Text("  WRONG: they differ", BAD)
    return Text(f"  WRONG: {outcome.wrong:,} of {count:,} values differ", BAD)
