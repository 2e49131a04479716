"""Executions of a trace's block are made for their first reader: most never have one."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.tracing import trace as trace_module
from gpusim.tracing.execution import Execution, Executions


@cuda.jit
def doubles(x):
    x[cuda.grid(1)] *= 2


def test_a_trace_makes_none_until_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = trace_module.executions_of

    def counted(*args: object) -> list[Execution]:
        made.append(1)
        return make(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(trace_module, "executions_of", counted)
    trace = gpusim.trace(doubles[2, 32], np.ones(64, np.int32))
    assert trace.counters["global_store_sectors"] == 8
    assert made == []
    stores = [one for one in trace.executions if one.op.startswith("ST")]
    assert [one.addresses for one in stores] == [tuple(range(0, 128, 4))]
    assert len(trace.executions) == len(list(trace.executions))
    assert made == [1]


def test_executions_are_a_sequence_equal_to_their_list() -> None:
    first, second = (Execution(pc, 1, "EXIT", 0, 0, (True,) * 32, (True,) * 32) for pc in range(2))
    found = Executions(lambda: [first, second])
    assert found == [first, second] == list(found)
    assert found == Executions(lambda: [first, second])
    assert found != [second]
    assert (found[0], found[1:], found[-1]) == (first, [second], second)
