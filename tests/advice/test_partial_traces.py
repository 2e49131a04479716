"""Advice of a prediction, whose block runs more than the log of a trace has room for."""

from __future__ import annotations

from typing import Any

import pytest

from gpusim import cuda
from gpusim.advice.evidence import Evidence
from gpusim.advice.launch import advice_on, typical_block
from gpusim.launch.arguments import array_spec
from gpusim.prediction.predict import predict
from gpusim.prediction.records import Prediction

ITERATIONS = 512


@cuda.jit
def product(a: Any, b: Any, out: Any, n: Any) -> None:
    s = cuda.shared.array(1024, "float32")
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for k in range(n):
        s[x * 32 + y] = a[y * n + k]
        cuda.syncthreads()
        total += s[y * 32 + x] * b[k * 32 + x]
        cuda.syncthreads()
    out[y * 32 + x] = total


@pytest.fixture(scope="module")
def predicted() -> Prediction:
    arrays = [array_spec(size, "float32") for size in (32 * ITERATIONS, 32 * ITERATIONS, 1024)]
    return predict(product[264, (32, 32)], *arrays, ITERATIONS, device="h200", code="lowering")


def test_costs_count_all_iterations_of_a_block(predicted: Prediction) -> None:
    evidence = Evidence(typical_block(predicted), predicted)
    rows = evidence.instructions
    stores = [p for p in evidence.numbered if rows[p.execution.pc].op == "STS"]
    assert len(stores) < 32 * ITERATIONS
    assert sum(p.times for p in stores) == pytest.approx(32 * ITERATIONS, rel=0.01)
    line = rows[stores[0].execution.pc].line
    wavefronts = evidence.of_a_block(line, "shared_store_wavefronts")
    assert wavefronts == pytest.approx(32 * 32 * ITERATIONS, rel=0.01)


def test_messages_give_parts_of_what_was_not_all_traced(predicted: Prediction) -> None:
    said = {one.kind: one.message for one in advice_on(predicted)}
    assert "97 % of the line's wavefronts are excessive" in said["bank-conflict"]
    assert "loads each byte of b 32 times in the iterations that were traced" in str(said)


def test_a_trace_without_a_prediction_is_whole() -> None:
    arrays = [array_spec(size, "float32") for size in (32 * 8, 32 * 8, 1024)]
    small = predict(product[1, (32, 32)], *arrays, 8, device="h200", code="lowering")
    assert Evidence(typical_block(small)).is_whole
    assert Evidence(typical_block(small), small).is_whole
