"""What several files of tests use."""

from __future__ import annotations

import gc
import importlib.util
import io
import json
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import pytest
import schemas
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from gpusim.cli import ci, options, programs
from gpusim.cli.app import main
from gpusim.cli.progress import SWITCH
from gpusim.codegen import generators
from gpusim.codegen.generators import LOWERING, VARIABLE
from gpusim.host.fast import THREADS
from gpusim.machine.compiled.modules import RefusedModuleError

# What tests count and time is the lowering's code, wherever they run; others ask for nvcc's.
os.environ[VARIABLE] = LOWERING
os.environ[THREADS] = "1"
os.environ[SWITCH] = "0"  # on a busy machine, any command may take some seconds

# How long an example takes says nothing on a busy machine.
settings.register_profile(
    "busy", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy")
# It would read the numbers of all 850 modules that are imported, 2 to 5 s in each worker.
providers._get_local_constants = Constants

# Some 300 processes are started, each of which would compile gpusim anew: 0.5 s.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return 0 for a few tests, since workers take seconds to start: files or tests by name."""
    is_few = config.option.keyword or any("::" in one or one.endswith(".py") for one in config.args)
    return 0 if is_few else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave modules and tests out of garbage collection: they stay, and to see them takes 1 s."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


@pytest.fixture(autouse=True, scope="session")
def _documents_keep_to_the_schema() -> Iterator[None]:
    """Hold every JSON document that a test prints to docs/schema.json."""
    if importlib.util.find_spec("jsonschema") is None:
        yield
        return
    as_ever = options.document_of

    def document_of(name: str, members: Mapping[str, Any]) -> dict[str, Any]:
        made = as_ever(name, members)
        schemas.require_valid(json.loads(json.dumps(options.plain(made), default=str)))
        return made

    with pytest.MonkeyPatch.context() as patched:
        for module in (options, ci, programs, sys.modules.get("validate.commands")):
            if module is not None:
                patched.setattr(module, "document_of", document_of)
        yield


@pytest.fixture(autouse=True, scope="session")
def _modules_are_refused_for_their_size_alone() -> Iterator[None]:
    """Fail where a module is not valid: the launch would run in NumPy, and nobody notice."""

    def refuse(self: RefusedModuleError, reason: str) -> None:
        if "exceed" not in reason:
            pytest.fail(f"an invalid module: {reason}")
        Exception.__init__(self, reason)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RefusedModuleError, "__init__", refuse)
        yield


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no compiler of CUDA C++ installed."""
    monkeypatch.setattr(generators, "is_installed", lambda: False)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


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
