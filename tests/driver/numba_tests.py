"""Runs numba-cuda's own tests of its wheel, and prints their results as JSON.

`gpusim run -- python numba_tests.py RESULTS [EVERY [FIRST]]` runs one in EVERY of them, from number
FIRST on in a fixed order. OUT_OF_SCOPE names the modules left out, with reasons.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import sys
import traceback
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDERS = ("cudapy", "cudasim", "doc_examples")
_TEXT, _CACHE, _TYPES, _FOREIGN, _PROCESSES = (
    "about PTX, NVVM IR or debug information as text",
    "about numba's caches on disk",
    "about bytecode, numba's IR, typing and tracing",
    "about linking of foreign code, or of packages that are not installed",
    "about processes that share a GPU",
)
OUT_OF_SCOPE = {
    "test_debug": _TEXT, "test_debuginfo": _TEXT, "test_debuginfo_types": _TEXT,
    "test_inspect": _TEXT, "test_lineinfo": _TEXT, "test_optimization": _TEXT,
    "test_cache_hints": _TEXT, "test_const_string": _TEXT,
    "test_caching": _CACHE, "test_serialize": _CACHE,
    "test_analysis": _TYPES, "test_byteflow": _TYPES, "test_copy_propagate": _TYPES,
    "test_ir": _TYPES, "test_ir_utils": _TYPES, "test_ssa": _TYPES, "test_tracing": _TYPES,
    "test_typeinfer": _TYPES,
    "test_bfloat16_bindings": _FOREIGN, "test_cffi": _FOREIGN, "test_ffi": _FOREIGN,
    "test_cupy_bfloat16_interop": _FOREIGN, "test_fp8_bindings": _FOREIGN,
    "test_ipc": _PROCESSES, "test_multiprocessing": _PROCESSES,
}  # fmt: skip
# Tests in scope that do not pass, by a part of their names, with the reason.
FAILING = {
    "test_array_reductions": "reads of constant memory behind its end are faults",
    "test_dynshared_slice_gaps": "a vector of shared memory that ends behind the launch's bytes",
    "test_struct_model_type_arr": "an access behind the end of its array, which a GPU lets pass",
    "test_dispatcher_cpointer_arguments": "it writes 16 elements of 10, which a GPU lets pass",
    "test_bfloat16": "roundings of bfloat16 constants (FRND.BF16)",
}
SECONDS = 300  # of one test


class LateError(Exception):
    """A test that takes too long."""


def late(*_: object) -> None:
    raise LateError(f"it takes more than {SECONDS} s")


class Results(unittest.TestResult):
    """Keeps the name of each test with "passed", "skipped" or the error."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[str, str]] = []

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        signal.alarm(SECONDS)

    def stopTest(self, test: unittest.TestCase) -> None:
        signal.alarm(0)
        super().stopTest(test)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.rows.append((test.id(), "passed"))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.rows.append((test.id(), "skipped"))

    def addExpectedFailure(self, test: unittest.TestCase, error: Any) -> None:
        self.rows.append((test.id(), "passed"))

    def addError(self, test: unittest.TestCase, error: Any) -> None:
        if error[0].__name__ == "Skipped":  # by pytest.importorskip
            return self.addSkip(test, str(error[1]))
        said = traceback.format_exception_only(error[0], error[1])
        return self.rows.append((test.id(), said[-1].strip()[:300]))

    def addFailure(self, test: unittest.TestCase, error: Any) -> None:
        self.addError(test, error)

    def addSubTest(self, test: unittest.TestCase, subtest: Any, error: Any) -> None:
        if error is not None:
            self.addError(subtest, error)


def flat(suite: Any) -> Iterator[unittest.TestCase]:
    """Yield the tests of a suite."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from flat(one)
        else:
            yield one


def in_scope() -> list[unittest.TestCase]:
    """Return the tests in an order that mixes modules, the same each time."""
    import numba.cuda  # noqa: F401  it makes numba.cuda.tests importable

    spec = importlib.util.find_spec("numba_cuda")
    assert spec is not None
    root = Path(str(spec.origin)).parent / "numba" / "cuda" / "tests"
    names = [
        f"numba.cuda.tests.{folder}.{file.stem}"
        for folder in FOLDERS
        for file in sorted((root / folder).glob("test_*.py"))
        if file.stem not in OUT_OF_SCOPE
    ]
    tests = list(flat(unittest.defaultTestLoader.loadTestsFromNames(names)))
    random.Random(5).shuffle(tests)
    return tests


def is_broken() -> bool:
    """Return whether a kernel's fault has ended the context, and all later calls would fail."""
    from numba.cuda.cudadrv.driver import driver

    try:
        driver.cuCtxSynchronize()
    except Exception as error:
        return "CONTEXT" not in str(error)  # without a context nothing is broken
    return False


def run(path: Path, every: int, first: int) -> None:
    """Run tests in scope, and write the results to a file.

    A fault is as sticky as on a GPU: the next test begins in a new process.
    """
    signal.signal(signal.SIGALRM, late)
    rows = json.loads(path.read_text()) if path.exists() else []
    for number, test in enumerate(in_scope()[first::every]):
        results = Results()
        test.run(results)
        path.write_text(json.dumps([*rows, *results.rows], indent=1))
        rows += results.rows
        if is_broken():
            again = [str(path), str(every), str(first + (number + 1) * every)]
            os.execv(sys.executable, [sys.executable, __file__, *again])


if __name__ == "__main__":
    counts = [int(word) for word in sys.argv[2:]]
    run(Path(sys.argv[1]), *(counts or [1])[:1], *counts[1:2] or [0])
