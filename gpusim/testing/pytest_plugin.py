"""The pytest plugin: `--gpusim-check`, the mark `gpusim`, and fixtures for tests of kernels.

pytest finds it by itself where gpusim is installed. It imports nothing before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from types import ModuleType
from typing import Any, NoReturn

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the option that checks every kernel that any test launches."""
    group = parser.getgroup("gpusim")
    group.addoption(
        "--gpusim-check",
        action="store_true",
        help="check every kernel that tests launch for races, barriers and bounds",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Describe the mark that holds the launches of a test to limits."""
    config.addinivalue_line(
        "markers",
        "gpusim(device='h200', **limits): hold every launch of the test to limits: counters, "
        "bank_conflicts, time_us, registers, errors, findings, ...",
    )


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


@pytest.fixture(autouse=True)
def _gpusim_check_where_asked(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--gpusim-check"):
        request.getfixturevalue("gpusim_check")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hold the launches of a marked test to the limits of its marks."""
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


def _fail(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)
