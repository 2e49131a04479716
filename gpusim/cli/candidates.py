"""Candidates whose times are compared do the same work: each is run once, small, and checked.

Their results are compared with those of the first launch, or of the file's own launch.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from gpusim.errors import GpusimError, KernelFault
from gpusim.prediction.sweeps.jobs import Difference

if TYPE_CHECKING:
    from gpusim.cli.launches import FileLaunch
    from gpusim.cli.results import Outputs

# Of a launch that is run for its results.
MOST_ELEMENTS, LEAST_ELEMENTS = 4096, 64
USUAL_THREADS, MOST_THREADS = 1 << 16, 1 << 20
KEPT = 64


class Candidate(Hashable, Protocol):
    """A request for a launch of a file: frozen data, with a size that may be changed."""

    @property
    def n(self) -> int | None:
        """The number of elements, None if the launch does not depend on it."""

    def sized(self, n: int | None, block: int | str | None) -> Candidate:
        """Return the request with another size and block; None leaves them as they are."""

    def launch(self) -> FileLaunch:
        """Return the launch, resolved."""


def difference(
    first: Candidate, other: Candidate, device: str, code: str | None
) -> Difference | None:
    """Return how a launch is wrong beside the first, None where both leave the same.

    It has a fault, errors that `gpusim check` finds, or other results; or one of both cannot be run
    for them.
    """
    from gpusim.cli.results import agreements

    try:
        first = _small(first)
        other = other.sized(first.n, None)
        found = _outcome(other, device, code)
    except KernelFault as error:
        return Difference(f"it fails: {error}")
    except GpusimError as error:
        return Difference(str(error), is_wrong=False)
    try:
        expected = _outcome(first, device, code)
    except GpusimError as error:
        return Difference(f"the first launch: {error}", is_wrong=False)
    wrong = [one for one in agreements(expected, found) if not one.agrees]
    errors = _errors(other, device)
    if not wrong:
        return errors
    cause = f"; {errors.text}" if errors is not None and errors.is_wrong else ""
    return Difference(f"other results; {wrong[0]}{cause}")


@lru_cache(maxsize=KEPT)
def _outcome(request: Candidate, device: str, code: str | None) -> Outputs:
    """Return what a launch leaves; GpusimError where it has no results."""
    from gpusim.cli.results import ran
    from gpusim.codegen.programs import prepare
    from gpusim.errors import InputError
    from gpusim.gpu import device as devices
    from gpusim.machine import DEFAULT_STEP_LIMIT

    configured, values = request.launch().filled()
    if configured.launch.blocks * configured.launch.threads_per_block > MOST_THREADS:
        raise InputError(f"a launch has more than {MOST_THREADS:,} threads")
    prepared = prepare(configured, values, devices.load(device).cc, code=code)
    return ran(configured, values, prepared, DEFAULT_STEP_LIMIT)


@lru_cache(maxsize=KEPT)
def _errors(request: Candidate, device: str) -> Difference | None:
    """Return the errors that a check of a launch finds, None for none."""
    from gpusim.checking.check import check

    configured, values = request.launch().filled()
    try:
        errors = check(configured, *values, device=device).errors
    except GpusimError as error:
        return Difference(str(error), is_wrong=False)
    rules = ", ".join(dict.fromkeys(one.rule for one in errors))
    return Difference(f"gpusim check finds errors: {rules}") if errors else None


@lru_cache(maxsize=KEPT)
def _small(request: Candidate) -> Candidate:
    """Return a launch for n elements that is quickly run: n is halved until it is."""
    n = None if request.n is None else min(request.n, MOST_ELEMENTS)
    while True:
        small = request.sized(n, None)
        launch = small.launch().configured.launch
        threads = launch.blocks * launch.threads_per_block
        if threads <= USUAL_THREADS or n is None or n <= LEAST_ELEMENTS:
            return small
        n //= 2
