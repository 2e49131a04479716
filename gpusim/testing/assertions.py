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
    from gpusim.tracing.records import Trace

DEFAULT_DEVICE = "h200"
WIDTH = 100
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

    Arrays named in `uninitialised` hold nothing before the launch.
    """
    from gpusim.checking.check import check

    found = check(configured, *args, device=device, uninitialised=uninitialised)
    assert_none_wrong(found, strict=strict)


def assert_none_wrong(found: Findings, *, strict: bool = False) -> None:
    """Assert that findings hold no error; with `strict`, no warning either."""
    if found.errors or (strict and found.warnings):
        raise AssertionError(_report(found))


def _report(found: Findings) -> str:
    """Return the report of a check as plain text."""
    from gpusim.reports.checking import check_report
    from gpusim.reports.layout import console

    page = StringIO()
    screen = console(page)
    for line in check_report(found, WIDTH):
        screen.print(line, soft_wrap=True)
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
    _assert_none(trace, counters[:1], "conditions about which lanes disagree")


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
    shared_wavefronts: int | None = None,
    sectors_per_request: float | None = None,
    registers: int | None = None,
    time_us: float | None = None,
    device: str | Path | Device = DEFAULT_DEVICE,
) -> None:
    """Assert upper bounds on a launch's counters, registers and duration on a GPU.

    `shared_wavefronts` is the sum over all loads and stores, `sectors_per_request` the mean over
    all global ones, `registers` the count of a thread, `time_us` the predicted time with launch.
    """
    from gpusim.gpu.device import load

    gpu = load(device)
    limits = {
        "shared_wavefronts": shared_wavefronts,
        "sectors_per_request": sectors_per_request,
        "registers": registers,
        "time_us": time_us,
    }
    asked = {name: limit for name, limit in limits.items() if limit is not None}
    found = {name: MEASURES[name](configured, args, gpu) for name in asked}
    beyond = [
        f"  {name} is {found[name]:,.6g}, allowed are {limit:,.6g}"
        for name, limit in asked.items()
        if found[name] > limit
    ]
    if beyond:
        raise AssertionError("\n".join([f"{configured.kernel.__name__} takes too much:", *beyond]))


def _shared_wavefronts(configured: ConfiguredKernel, args: Sequence[Any], gpu: Device) -> float:
    counters = _traced(configured, args, str(gpu.cc)).counters
    return counters["shared_load_wavefronts"] + counters["shared_store_wavefronts"]


def _sectors_per_request(configured: ConfiguredKernel, args: Sequence[Any], gpu: Device) -> float:
    counters = _traced(configured, args, str(gpu.cc)).counters
    sectors, requests = (
        counters[f"global_load_{what}"] + counters[f"global_store_{what}"]
        for what in ("sectors", "requests")
    )
    return sectors / requests if requests else 0.0


def _registers(configured: ConfiguredKernel, args: Sequence[Any], gpu: Device) -> float:
    from gpusim.codegen.programs import prepare

    return prepare(configured, args, gpu.cc).program.register_estimate


def _time_us(configured: ConfiguredKernel, args: Sequence[Any], gpu: Device) -> float:
    from gpusim.prediction.predict import predict

    return predict(configured, *args, device=gpu).time_us


MEASURES: Mapping[str, Callable[[ConfiguredKernel, Sequence[Any], Device], float]] = {
    "shared_wavefronts": _shared_wavefronts,
    "sectors_per_request": _sectors_per_request,
    "registers": _registers,
    "time_us": _time_us,
}


def run_checked(configured: ConfiguredKernel, args: Sequence[Any]) -> None:
    """Run a launch as `kernel[grid, block](*args)` does, and assert that it is correct."""
    __tracebackhide__ = True
    assert_correct(configured, *args)


def checks_every_launch() -> Callable[[], None]:
    """Check every launch from now on; return the function that ends this."""
    from gpusim.launch import configured

    before = configured.BACKEND
    configured.BACKEND = f"{__name__}:{run_checked.__name__}"

    def end() -> None:
        configured.BACKEND = before

    return end
