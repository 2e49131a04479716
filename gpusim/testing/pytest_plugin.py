"""The pytest plugin: `--gpusim-check`, the marks `gpusim` and `gpusim_points`, and fixtures.

pytest finds it by itself where gpusim is installed. It imports nothing before a test requests it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from types import ModuleType
from typing import Any, NoReturn

import pytest

POINTS = "gpusim_points"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Take the option that checks every kernel that any test launches.

    pytest would rewrite the assertions of all modules of a plugin's distribution: gpusim's 700 have
    none to rewrite, and take 6 s of a first run.
    """
    marked = getattr(getattr(pluginmanager, "rewrite_hook", None), "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("gpusim")
    group = parser.getgroup("gpusim")
    group.addoption(
        "--gpusim-check",
        action="store_true",
        help="check every kernel that tests launch for races, barriers and bounds",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marks; with the option, let every test use the fixture that checks."""
    if config.getoption("--gpusim-check"):
        config.addinivalue_line("usefixtures", "gpusim_check")
    config.addinivalue_line(
        "markers",
        "gpusim(device='h200', **limits): check every launch of the test against limits: counters, "
        "bank_conflicts, time_us, registers, errors, findings, ...",
    )
    config.addinivalue_line("markers", "gpusim_points(points): points of a test of an assignment")


@pytest.fixture
def gpusim_testing() -> ModuleType:
    """The assertions of `gpusim.testing`: assert_correct, assert_no_bank_conflicts, ..."""
    from gpusim.testing import assertions as testing

    return testing


@pytest.fixture
def gpusim_check() -> Iterator[None]:
    """Check every kernel that the test launches: an error fails the test at the launch."""
    from gpusim.testing.assertions import checks_every_launch

    end = checks_every_launch()
    yield
    end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Check the launches of a marked test against the limits of its marks."""
    marks = list(item.iter_markers("gpusim"))
    if not marks:
        return (yield)
    from gpusim.errors import InputError
    from gpusim.testing.assertions import DEFAULT_DEVICE, LimitedLaunches

    limits: dict[str, Any] = {}
    for mark in reversed(marks):  # of a module, a class, the test
        if mark.args:
            _fail(f"limits have names, as in gpusim(time_us=10), not {mark.args[0]!r}")
        limits |= mark.kwargs
    held = LimitedLaunches(limits.pop("device", DEFAULT_DEVICE), limits)
    try:
        held.begin()
    except InputError as error:
        _fail(str(error))
    try:
        result = yield
    finally:
        held.end()
    if not held.launches:
        _fail("the test is marked gpusim, and launches no kernel[grid, block](...)")
    return result


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the points of marked tests, for the summary."""
    for item in items:
        mark = item.get_closest_marker(POINTS)
        if mark is not None:
            if len(mark.args) != 1 or mark.kwargs or not isinstance(mark.args[0], int):
                raise pytest.UsageError(f"{item.nodeid}: a mark is gpusim_points(3), a number")
            item.user_properties.append((POINTS, mark.args[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the points of tests that passed, of all that ran, where any have points."""
    reached = possible = 0
    lines = []
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(outcome):
            points = dict(getattr(report, "user_properties", ())).get(POINTS)
            is_last = outcome != "passed" or report.when == "call"
            if points is not None and is_last:
                has = points if outcome == "passed" else 0
                reached, possible = reached + has, possible + points
                lines.append(f"{has:3} of {points:3}  {report.nodeid.rpartition('::')[2]}")
    if lines:
        terminalreporter.section("points")
        for line in (*lines, f"points: {reached} of {possible}"):
            terminalreporter.write_line(line)


def _fail(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)
