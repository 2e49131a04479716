"""What runs, whoever made it: a program with its launch, arguments and compute capability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import catalogue
from gpusim.catalogue import Request
from gpusim.errors import LaunchError
from gpusim.gpu import device
from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.launch.prepared import Prepared
from gpusim.prediction.predict import predict_prepared
from gpusim.tracing.trace import trace_prepared

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
HOPPER = ComputeCapability(9, 0)


def by_hand(**facts: Any) -> Program:
    """Return a program that no compiler made: each thread of a block stores its number."""
    thread, base, size, address = range(4)
    rows = (
        Instruction("S2R", (thread,), (), INT32, detail="tid.x"),
        Instruction("LDC", (base,), (), INT64, detail=("pointer", "out")),
        Instruction("IMAD.WIDE", (address,), (thread, size, base), INT64),
        Instruction("STG", (), (address, thread), INT32, memory=Memory("global", "out", INT32)),
        Instruction("EXIT"),
    )
    return Program("numbers", rows, registers=4, immediates={size: np.int32(4)}, **facts)


def test_a_program_that_was_never_python_is_run_counted_and_predicted() -> None:
    out = np.zeros(64, np.int32)
    prepared = Prepared(by_hand(), Launch.of(1, 64), {"out": out}, HOPPER)
    trace = trace_prepared(prepared)
    assert out.tolist() == list(range(64))
    assert (trace.kernel, trace.counters["instructions"]) == ("numbers", 10)
    found = predict_prepared(prepared, device.load("h200"))
    assert (found.kernel, found.instructions) == ("numbers", 10)


def test_a_block_that_no_gpu_of_the_capability_holds_is_refused_for_every_use() -> None:
    with pytest.raises(LaunchError, match=r"compute capability 9\.0 has at most 232448"):
        Prepared(by_hand(shared_bytes=300_000), Launch.of(1, 64), {}, HOPPER)


@pytest.mark.parametrize("name", ["reduce3", "reduce7", "kernel1", "kernel4", "naive_scan"])
def test_a_launch_can_be_asked_for_again(name: str) -> None:
    setup = catalogue.find(name).setup(3000, block=128)
    again = Request.of(setup).setup()
    assert (again.launch, again.template, again.n) == (setup.launch, setup.template, 3000)
