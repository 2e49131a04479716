"""Assertions for tests of kernels: correct, free of conflicts and divergence, within bounds.

Each function runs `kernel[grid, block]` with its arguments (arrays hold the results afterwards),
and raises AssertionError with lines and numbers if the kernel violates the assertion.
No GPU is needed; the simulator is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpusim.checking.findings import Findings
    from gpusim.gpu.device import Device
    from gpusim.launch.configured import ConfiguredKernel
    from gpusim.prediction.records import Prediction
    from gpusim.tracing.records import Trace

DEFAULT_DEVICE = "h200"
WIDTH = 100
MOST_SHOWN = 3  # lines of a limit
# Of these counters the first that is known says where lanes disagree: CUDA C++ has no conditions.
DIVERGENCE = ("source_divergent_branches", "divergent_branches")


def assert_correct(
    configured: ConfiguredKernel,
    *args: Any,
    device: str | Path | Device = DEFAULT_DEVICE,
    strict: bool = False,
    uninitialised: Collection[str] = (),
) -> None:
    """Assert that `gpusim.check` finds no error; with `strict`, no warning either.

    Arrays named in `uninitialised` have no values before the launch.
    """
    from gpusim.checking.check import check

    found = check(configured, *args, device=device, uninitialised=uninitialised)
    assert_none_wrong(found, strict=strict)


def assert_none_wrong(found: Findings, *, strict: bool = False) -> None:
    """Assert that findings contain no error; with `strict`, no warning either."""
    wrong = [*found.errors, *(found.warnings if strict else ())]
    if wrong:
        titles = "; ".join(f"{one.about.title}, line {one.lines[-1]}" for one in wrong)
        raise AssertionError(f"{titles}\n\n{_report(found)}")


def _report(found: Findings) -> str:
    """Return the report of a check as plain text."""
    from gpusim.reports.checking import check_report
    from gpusim.reports.layout import console, harmless

    page = StringIO()
    screen = console(page)
    for line in check_report(found, WIDTH):
        screen.print(harmless(line), soft_wrap=True)
    return page.getvalue()


def assert_no_bank_conflicts(configured: ConfiguredKernel, *args: Any, cc: str = "9.0") -> None:
    """Assert that no access to shared memory takes more wavefronts than its width needs."""
    counters = ("shared_load_bank_conflicts", "shared_store_bank_conflicts")
    _assert_none(_traced(configured, args, cc), counters, "bank conflicts")


def assert_no_divergence(configured: ConfiguredKernel, *args: Any, cc: str = "9.0") -> None:
    """Assert that lanes of a warp agree about every condition of the source."""
    # Of a Python kernel only the lowering knows the source's conditions.
    trace = _traced(configured, args, cc, code="lowering")
    counters = [name for name in DIVERGENCE if name in trace.counters]
    _assert_none(trace, counters[:1], "divergent conditions")


def _traced(
    configured: ConfiguredKernel, args: Sequence[Any], cc: str, code: str | None = None
) -> Trace:
    from gpusim.tracing.trace import trace

    return trace(configured, *args, cc=cc, code=code)


def _assert_none(trace: Trace, counters: Sequence[str], what: str) -> None:
    where = [
        f"  line {line.line}: {count:,}  {line.text.strip()}"
        for line in trace.lines
        if (count := sum(line.counters[name] for name in counters))
    ]
    if where:
        raise AssertionError("\n".join([f"{trace.kernel} has {what}:", *where]))


def assert_at_most(
    configured: ConfiguredKernel,
    *args: Any,
    device: str | Path | Device = DEFAULT_DEVICE,
    **limits: float,
) -> None:
    """Assert upper bounds on a launch's counters, findings, registers and duration on a GPU.

    A limit has the name of a counter, or is `bank_conflicts` or `shared_wavefronts`, sums over
    loads and stores; `sectors_per_request`, the mean over global accesses; `registers` of a thread;
    `time_us`, the predicted time with launch; `errors`, `warnings` and `findings`, or one kind of
    them with underscores (`bank_conflict`). Raises InputError for any other name.
    """
    __tracebackhide__ = True
    _hold(configured, _given(args), device, limits)
    configured(*args)


def _hold(
    configured: ConfiguredKernel,
    given: Callable[[], Sequence[Any]],
    device: str | Path | Device,
    limits: Mapping[str, float],
) -> None:
    """Raise AssertionError where a launch exceeds limits; `given` returns its arguments again."""
    __tracebackhide__ = True
    from gpusim.checking.check import check
    from gpusim.gpu.device import load
    from gpusim.limits.measures import Subject
    from gpusim.limits.verdicts import Limits, judged
    from gpusim.prediction.predict import predict
    from gpusim.tracing.trace import trace

    gpu = load(device)

    def prediction() -> tuple[float, Prediction]:
        made = predict(configured, *given(), device=gpu)
        return made.time_us, made

    subject = Subject(
        trace=lambda: trace(configured, *given(), cc=str(gpu.cc)),
        prediction=prediction,
        check=lambda: check(configured, *given(), device=gpu),
    )
    verdict = judged(subject, Limits(own=_by_measure(limits), common={}))
    if verdict.is_within:
        return
    exceeded = "; ".join(map(str, verdict.exceeded))
    lines = [f"{configured.kernel.__name__}: {exceeded or verdict.fault}"]
    for held in verdict.exceeded:
        shares = held.shares[:MOST_SHOWN]
        lines += [f"  line {one.line}: {one.text.removeprefix(f'line {one.line}: ')}"
                  for one in shares if one.line]  # fmt: skip
    raise AssertionError("\n".join(lines))


def _by_measure(limits: Mapping[str, float]) -> dict[str, float]:
    """Return limits by their measures: hyphens in kinds of findings are underscores in Python."""
    from gpusim.limits.measures import measure_names, require_known

    hyphened = {name.replace("-", "_"): name for name in measure_names() if "-" in name}
    named = {hyphened.get(name, name): limit for name, limit in limits.items()}
    require_known(list(named), "limits")
    return named


def _given(args: Sequence[Any]) -> Callable[[], list[Any]]:
    """Return a function that returns copies of arguments as they are now."""
    import numpy as np

    def copied(values: Sequence[Any]) -> list[Any]:
        return [one.copy() if isinstance(one, np.ndarray) else one for one in values]

    held = copied(args)
    return lambda: copied(held)


def run_checked(configured: ConfiguredKernel, args: Sequence[Any]) -> None:
    """Run a launch as `kernel[grid, block](*args)` does, and assert that it is correct."""
    __tracebackhide__ = True
    assert_correct(configured, *args)


def checks_every_launch() -> Callable[[], None]:
    """Check every launch from now on; return the function that stops it."""
    from gpusim.launch import configured

    before = configured.BACKEND
    configured.BACKEND = f"{__name__}:{run_checked.__name__}"

    def end() -> None:
        configured.BACKEND = before

    return end


_HOLDING: list[LimitedLaunches] = []


class LimitedLaunches:
    """Limits for every launch between `begin` and `end`; `launches` counts them."""

    def __init__(self, device: str | Path | Device, limits: Mapping[str, float]) -> None:
        self.device, self.limits = device, limits
        self.launches = 0
        self._before = ""

    def begin(self) -> None:
        """Check the following launches against the limits; InputError for a limit of no measure."""
        from gpusim.gpu.device import load
        from gpusim.launch import configured

        _by_measure(self.limits)
        load(self.device)
        self._before = configured.BACKEND
        configured.BACKEND = f"{__name__}:{run_within_limits.__name__}"
        _HOLDING.append(self)

    def end(self) -> None:
        """Let launches run as before."""
        from gpusim.launch import configured

        configured.BACKEND = self._before
        _HOLDING.remove(self)

    def run(self, configured: ConfiguredKernel, args: Sequence[Any]) -> None:
        """Check a launch against the limits, on copies of its arrays, and run it."""
        __tracebackhide__ = True
        from importlib import import_module

        self.launches += 1
        _hold(configured, _given(args), self.device, self.limits)
        module, function = self._before.split(":")
        getattr(import_module(module), function)(configured, args)


def run_within_limits(configured: ConfiguredKernel, args: Sequence[Any]) -> None:
    """Run a launch as `kernel[grid, block](*args)` does, and assert the limits of its test."""
    __tracebackhide__ = True
    _HOLDING[-1].run(configured, args)
