"""Checks of a suite's cases, in a few processes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import gpusim
from gpusim.errors import GpusimError
from gpusim.sass.compiler import CompileError

from .case import Case, Verdict

STEP_LIMIT = 200_000


def verdicts(cases: Sequence[Case], workers: int) -> Iterator[Verdict]:
    """Yield the verdicts on cases, in their order.

    The compiler runs in processes of its own: threads keep it busy beside the checks.
    """
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(verdict, cases)


def verdict(case: Case) -> Verdict:
    """Return what a check says of a case: the errors of all its kernels."""
    if case.excluded:
        return Verdict(case)
    begin = time.perf_counter()
    rules: dict[str, None] = {}
    lines: dict[int, None] = {}
    try:
        file = gpusim.cuda_file(case.file, includes=case.includes, definitions=case.definitions)
        for name in case.kernels:
            kernel = file[name]
            declared = getattr(file, "kernels", {}).get(name, ())
            launch = kernel[case.grid, case.block]
            for finding in gpusim.check(
                launch, *case.arguments(declared), step_limit=STEP_LIMIT
            ).errors:
                rules[finding.rule] = None
                lines |= dict.fromkeys(finding.lines)
    except CompileError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        return Verdict(replace(case, excluded="it does not compile"), refused=reason)
    except GpusimError as error:
        reason = str(error).strip().splitlines()[0]
        return Verdict(case, refused=reason, seconds=time.perf_counter() - begin)
    return Verdict(case, tuple(rules), tuple(lines), seconds=time.perf_counter() - begin)
