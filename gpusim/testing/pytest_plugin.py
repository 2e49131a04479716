"""The pytest plugin: `--gpusim-check`, and fixtures for tests of kernels.

pytest finds it by itself where gpusim is installed. It imports nothing before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the option that checks every kernel that any test launches."""
    group = parser.getgroup("gpusim")
    group.addoption(
        "--gpusim-check",
        action="store_true",
        help="check every kernel that tests launch for races, barriers and bounds",
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
