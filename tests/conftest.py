"""What several files of tests use."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from gpusim.cli.app import main
from gpusim.codegen.generators import LOWERING, VARIABLE

# What tests count and time is the lowering's code, wherever they run; others ask for nvcc's.
os.environ[VARIABLE] = LOWERING


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return 0 for a few tests, since workers take seconds to start: files or tests by name."""
    is_few = config.option.keyword or any("::" in one or one.endswith(".py") for one in config.args)
    return 0 if is_few else None


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process; return its exit code and what it printed."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run
