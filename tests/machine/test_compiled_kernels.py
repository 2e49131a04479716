"""Compiled code computes what NumPy's machine computes, for kernels of many origins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from evaluators import EVALUATORS, HOPPER, Went, runs_in
from random_kernels import random_kernel
from strategies import ENTRIES

from gpusim import catalogue
from gpusim.codegen.programs import prepare
from gpusim.errors import GpusimError
from gpusim.machine import run
from gpusim.sass import wheels
from gpusim.tracing.counting import Counters

# Their results depend on the order in which warps read what others write.
RACES = ("hyperloglog", "next_level", "reduction5")


def is_equal(kernel: Any, given: Sequence[Any], code: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Compare bytes, counters and faults; return whether the launch ended in compiled code."""
    found: list[Any] = []
    for evaluator in EVALUATORS:
        runs_in(monkeypatch, evaluator)
        arguments = [one.copy(order="K") if isinstance(one, np.ndarray) else one for one in given]
        counters, went, fault = Counters(HOPPER), Went(), ""
        try:
            run(prepare(kernel, arguments, HOPPER, code=code), observers=(counters, went))
        except GpusimError as error:
            fault = str(error)
        found.append((arguments, counters, fault, went.over))
    one, other = found
    assert one[2] == other[2]
    for a, b in zip(one[0], other[0], strict=True):
        if isinstance(a, np.ndarray):
            x, y = (np.ascontiguousarray(one).view(np.uint8) for one in (a, b))
            np.testing.assert_array_equal(x, y)
    if not one[2]:
        np.testing.assert_array_equal(one[1].by_pc, other[1].by_pc)
        for a, b in zip(one[1].table_of_block, other[1].table_of_block, strict=True):
            np.testing.assert_array_equal(one[1].tables[a], other[1].tables[b])
    assert one[3] == other[3]
    return bool(other[3])


@pytest.mark.parametrize("seed", range(3))
def test_random_kernels_are_equal(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = random_kernel(seed)
    is_equal(made.kernel[made.grid, made.block], made.arguments(), "lowering", monkeypatch)


@pytest.mark.slow
def test_hundreds_of_random_kernels_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    went = 0
    for seed in range(3, 400):
        made = random_kernel(seed)
        kernel = made.kernel[made.grid, made.block]
        went += is_equal(kernel, made.arguments(), "lowering", monkeypatch)
    assert went > 100


@pytest.mark.parametrize(
    "name",
    [
        "reduce3",
        *(
            pytest.param(one.name, marks=pytest.mark.slow)
            for one in ENTRIES
            if one.name not in ("reduce3", *RACES)
        ),
    ],
)
def test_kernels_of_the_catalogue_are_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n, block = (128, None) if catalogue.find(name).one_block else (5000, 128)
    for code in ("lowering", "nvcc") if wheels.are_there() else ("lowering",):
        call = catalogue.find(name).call(catalogue.sample(n, "int32"), block=block)
        is_equal(call.configured, call.arguments, code, monkeypatch)


# In `nms_mask` splits of all warps meet at one pc, in another order than their rows'.
OTHERS = ("collatz", "keep_by_tickets", "nms_mask")


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
@pytest.mark.parametrize("name", OTHERS)
def test_other_kernels_are_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _is_other_equal(name, monkeypatch)


@pytest.mark.slow
@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_all_other_kernels_are_equal_and_most_run_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    from validate.others.plans import KERNELS

    went = [_is_other_equal(name, monkeypatch) for name in KERNELS if name not in RACES]
    assert sum(went) > 0.9 * len(went)


def _is_other_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    import validate.others  # noqa: F401
    from validate.others.compare import configured
    from validate.others.plans import KERNELS

    launch = KERNELS[name].at(KERNELS[name].small)
    return is_equal(configured(launch, "nvcc"), launch.filled(), "nvcc", monkeypatch)
