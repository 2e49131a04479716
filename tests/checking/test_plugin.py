"""The assertions for tests of kernels, and the pytest plugin that brings them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.testing.assertions import (
    assert_at_most,
    assert_correct,
    assert_no_bank_conflicts,
    assert_no_divergence,
    assert_none_wrong,
    checks_every_launch,
)


@cuda.jit
def racy(x, out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    out[t] = s[63 - t]


@cuda.jit
def right(x, out):
    out[cuda.grid(1)] = x[cuda.grid(1)] + 1


@cuda.jit
def strided(out):
    s = cuda.shared.array(1024, np.int32)
    t = cuda.threadIdx.x
    s[32 * t] = t
    if t % 2 == 0:
        out[t] = s[32 * t]


def ints(n: int = 64) -> np.ndarray:
    return np.arange(n, dtype=np.int32)


def test_pytest_rewrites_no_assertions_of_gpusim() -> None:
    """They would all be compiled again in the first run, and have no assertions."""
    assert type(cuda.__loader__) is SourceFileLoader


def test_a_correct_kernel_passes_and_leaves_its_results() -> None:
    out = np.zeros(64, np.int32)
    assert_correct(right[2, 32], ints(), out)
    assert out.tolist() == list(range(1, 65))


def test_a_race_fails_with_its_lines() -> None:
    line = racy.source.first_line + 4
    with pytest.raises(AssertionError, match=rf"test_plugin.py:{line}  s\[t\] = x\[t\]"):
        assert_correct(racy[1, 64], ints(), np.zeros(64, np.int32))


def test_warnings_fail_where_strict() -> None:
    @cuda.jit
    def returns(out, n):
        i = cuda.grid(1)
        if i >= n:
            return
        cuda.syncthreads()
        out[i] = i

    found = gpusim.check(returns[1, 64], np.zeros(64, np.int32), np.int32(40))
    assert_none_wrong(found)
    with pytest.raises(AssertionError, match="have exited"):
        assert_none_wrong(found, strict=True)


def test_bank_conflicts_and_divergence_fail_with_their_lines() -> None:
    line = strided.source.first_line + 4
    with pytest.raises(AssertionError, match=f"bank conflicts:\n  line {line}: 31 "):
        assert_no_bank_conflicts(strided[1, 32], np.zeros(32, np.int32))
    with pytest.raises(
        AssertionError, match=f"strided has divergent conditions:\n  line {line + 1}: 1 "
    ):
        assert_no_divergence(strided[1, 32], np.zeros(32, np.int32))
    assert_no_bank_conflicts(right[2, 32], ints(), ints())
    assert_no_divergence(right[2, 32], ints(), ints())


def test_bounds_fail_with_what_was_found_and_what_was_allowed() -> None:
    out = np.zeros(32, np.int32)
    assert_at_most(right[2, 32], ints(), ints(), sectors_per_request=4, registers=32, time_us=50)
    with pytest.raises(AssertionError, match=r"sectors_per_request is 4, allowed are 3\.5"):
        assert_at_most(right[2, 32], ints(), ints(), sectors_per_request=3.5)
    # One store, a wavefront for each lane; what was stored is kept in a register.
    assert_at_most(strided[1, 32], out, shared_wavefronts=32)
    with pytest.raises(AssertionError, match="shared_wavefronts is 32, allowed are 31"):
        assert_at_most(strided[1, 32], out, shared_wavefronts=31)
    with pytest.raises(AssertionError, match=r"time_us is .* allowed are 0\.001"):
        assert_at_most(right[2, 32], ints(), ints(), time_us=0.001)


def test_every_launch_is_checked_until_the_end() -> None:
    out = np.zeros(64, np.int32)
    end = checks_every_launch()
    with pytest.raises(AssertionError, match="shared-race"):
        racy[1, 64](ints(), out)
    right[2, 32](ints(), out)
    end()
    out[:] = -1
    racy[1, 64](ints(), out)
    assert (out >= 0).all()


TESTS = """
import numpy as np
from test_plugin_kernels import racy

def test_launches(gpusim_check):
    racy[1, 64](np.arange(64, dtype=np.int32), np.zeros(64, np.int32))

def test_launches_unchecked():
    racy[1, 64](np.arange(64, dtype=np.int32), np.zeros(64, np.int32))

def test_asserts(gpusim_testing):
    x, out = np.arange(64, dtype=np.int32), np.zeros(32, np.int32)
    gpusim_testing.assert_correct(racy[1, 32], x, out)
"""
KERNELS = """
import numpy as np
from gpusim import cuda

@cuda.jit
def racy(x, out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    out[t] = s[63 - t]
"""


def said_of(folder: Path, tests: str, *options: str) -> str:
    """What pytest says of tests, with the plugin and without any other."""
    (folder / "test_them.py").write_text(tests)
    (folder / "test_plugin_kernels.py").write_text(KERNELS)
    words = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "gpusim.testing.pytest_plugin",
        "-rN",  # the summary repeats messages, whole where the variable CI is set
        "--strict-markers",
        "test_them.py",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(gpusim.__file__).parent.parent),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # where gpusim is installed, it is there already
    }
    done = subprocess.run(
        [sys.executable, *words, "test_them.py", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.mark.parametrize(("options", "passed"), [([], 1), (["--gpusim-check"], 0)])
def test_the_plugin_checks_launches_where_a_fixture_or_the_option_asks(
    tmp_path: Path, options: list[str], passed: int
) -> None:
    said = said_of(tmp_path, TESTS, *options)
    assert f"{3 - passed} failed" in said, said
    assert (f"{passed} passed" in said) == bool(passed)
    assert "race in shared memory between warps" in said


MARKED = """
import numpy as np
import pytest
from gpusim import cuda
from test_plugin_kernels import racy

@cuda.jit
def add(out):
    s = cuda.shared.array(1024, np.int32)
    s[cuda.threadIdx.x * 32] = 1
    out[cuda.threadIdx.x] += 1

@pytest.mark.gpusim(shared_store_bank_conflicts=31, time_us=50, bank_conflict=1)
def test_within():
    out = np.zeros(32, np.int32)
    add[1, 32](out)
    assert out.tolist() == [1] * 32  # the measurements run on copies

@pytest.mark.gpusim(bank_conflicts=0)
class TestLimits:
    @pytest.mark.gpusim(time_us=0.5)
    def test_both_marks_hold(self):
        add[1, 32](np.zeros(32, np.int32))

    @pytest.mark.gpusim(errors=0, device="v100", bank_conflicts=5)
    def test_the_nearer_mark_is_stronger(self):
        racy[1, 64](np.arange(64, dtype=np.int32), np.zeros(64, np.int32))

@pytest.mark.gpusim(time_us=10)
def test_without_a_launch():
    pass

@pytest.mark.gpusim(bank_conflict_s=0)
def test_of_no_measure():
    add[1, 32](np.zeros(32, np.int32))

def test_unmarked():
    add[1, 32](np.zeros(32, np.int32))
"""


def test_a_mark_holds_the_launches_of_its_test_to_limits(tmp_path: Path) -> None:
    said = said_of(tmp_path, MARKED)
    assert "4 failed, 2 passed" in said, said
    assert "bank_conflicts is 31, allowed are 0" in said
    assert "line 10: 31  s[cuda.threadIdx.x * 32] = 1" in said
    assert "time_us is " in said
    assert "errors is 1, allowed are 0" in said
    assert said.count("bank_conflicts is") == 1
    assert "launches no kernel[grid, block](...)" in said
    assert "'bank_conflict_s' cannot have a limit; did you mean bank_conflicts" in said


def test_a_limit_may_be_of_any_counter_and_of_a_kind_of_findings() -> None:
    out = np.zeros(32, np.int32)
    assert_at_most(strided[1, 32], out, barriers=0, integer_division=0, errors=0)
    with pytest.raises(AssertionError, match="bank-conflict is 1, allowed are 0"):
        assert_at_most(strided[1, 32], out, bank_conflict=0)
    with pytest.raises(gpusim.errors.InputError, match="'barrier' cannot have a limit"):
        assert_at_most(strided[1, 32], out, barrier=0)


def test_the_plugin_imports_nothing_heavy() -> None:
    code = "import sys, gpusim.testing.pytest_plugin; print({'numpy', 'rich'} & sys.modules.keys())"
    environment = {**os.environ, "PYTHONPATH": str(Path(gpusim.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
