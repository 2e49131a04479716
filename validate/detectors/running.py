"""Checks of a suite's cases, in a few processes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import gpusim
from gpusim.checking.findings import Finding
from gpusim.cli.launch_examples import parameters_of
from gpusim.errors import GpusimError
from gpusim.sass.compiler import CompileError
from gpusim.sass.decoding import UnknownFormError

from .case import Case, Verdict

STEP_LIMIT = 200_000


def verdicts(cases: Sequence[Case], workers: int) -> Iterator[Verdict]:
    """Yield the verdicts on cases, in their order.

    The compiler runs in processes of its own: threads keep it busy beside the checks.
    """
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(verdict, cases)


def verdict(case: Case) -> Verdict:
    """Return what a check says of a case: the errors of all its launches.

    A debug case whose unoptimised code is refused (it calls functions) is checked as optimised.
    """
    if case.excluded:
        return Verdict(case)
    begin = time.perf_counter()
    try:
        try:
            found = _found(case, debug=case.debug)
        except UnknownFormError:
            if not case.debug:
                raise
            found = _found(case, debug=False)
    except CompileError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        return Verdict(replace(case, excluded="it does not compile"), refused=reason)
    except GpusimError as error:
        reason = str(error).strip().splitlines()[0]
        return Verdict(case, refused=reason, seconds=time.perf_counter() - begin)
    rules = tuple(dict.fromkeys(one.rule for one in found))
    lines = tuple(dict.fromkeys(line for one in found for line in one.lines))
    return Verdict(case, rules, lines, seconds=time.perf_counter() - begin)


def _found(case: Case, *, debug: bool) -> list[Finding]:
    """Return the errors of a case's kernels."""
    file = gpusim.cuda_file(
        case.file, includes=case.includes, definitions=case.definitions, debug=debug
    )
    found: list[Finding] = []
    for name in case.kernels:
        kernel = file[name]
        for arguments in case.arguments:
            launch, given = kernel[case.grid, case.block], arguments(parameters_of(kernel))
            found += gpusim.check(launch, *given, step_limit=STEP_LIMIT).errors
    return found
