"""Constants in nvcc's code: lanes that want different ones, and which data decide that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evaluators import EVALUATORS, evaluated

from gpusim.codegen.programs import prepare
from gpusim.errors import InputError
from gpusim.launch.arguments import array_spec
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.predict import predict
from gpusim.prediction.streams import BlockStream, classify
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

TABLE = """
__constant__ int table[256];
__global__ void lookup(const unsigned char *x, int *y) { y[threadIdx.x] = table[x[threadIdx.x]]; }
"""
LOOP = """
__constant__ int table[256];
__global__ void total(int *y, int first) {
    int sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 64; k++) sum = sum * 31 + table[first + k + threadIdx.x % 4];
    y[threadIdx.x] = sum;
}
"""


def stream_of(text: str, name: str, *arguments: Any) -> BlockStream:
    """Return the stream of one block of a warp."""
    prepared = prepare(cuda_source(text)[name][1, 32], arguments, ComputeCapability(9, 0))
    (only,) = classify(prepared).classes
    return only.stream


@pytest.mark.parametrize(("different", "words"), [(1, 1), (3, 3), (32, 32)])
def test_a_lookup_costs_the_different_words_of_its_lanes(different: int, words: int) -> None:
    x = (np.arange(32) % different).astype(np.uint8) * 7
    (warp,) = stream_of(TABLE, "lookup", x, np.zeros(32, np.int32)).warps
    assert warp.cost[warp.lines == 0].max() == words


def test_many_lookups_at_different_words_are_bound_by_the_unit_of_constants() -> None:
    """64 warps of an SM keep it for 32 x 2 cycles each, two blocks of 1024 threads on each SM."""
    y, kernel = np.zeros(1024, np.int32), cuda_source(TABLE)["lookup"][264, 1024]
    alike, apart = (
        predict(kernel, x, y).cycles
        for x in (np.zeros(1024, np.uint8), np.arange(1024).astype(np.uint8))
    )
    assert alike < 64 * 32 * 2 < apart < 64 * 32 * 2 + alike


def test_a_shape_does_not_say_which_constants_lanes_want() -> None:
    kernel = cuda_source(TABLE)["lookup"][1, 32]
    with pytest.raises(InputError, match="depend on the arrays' elements"):
        predict(kernel, array_spec(32, "uint8"), array_spec(32, "int32"))


def test_each_turn_of_a_loop_through_constants_asks_for_its_words() -> None:
    """Four different words in each of 64 turns."""
    (warp,) = stream_of(LOOP, "total", np.zeros(32, np.int32), np.int32(0)).warps
    is_turn = (warp.cost == 4) & (warp.lines == 0)
    assert warp.times[is_turn].sum() == 64


GUARDED = """
__constant__ unsigned short table[8] = {10, 11, 12, 13, 14, 15, 16, 17};
__global__ void guarded(int *out, const int *at) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, i = at[t], v = 0;
    if ((unsigned)i < 8) v = table[i];
    out[t] = v;
}
"""


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=["interpreted", "compiled"])
def test_lanes_that_are_guarded_off_may_name_any_constant(evaluator: str) -> None:
    """Lanes with an index outside the table skip the load: 10 + i where 0 <= i < 8, else 0."""
    at = np.tile(np.array([3, 1_000_000, -7, 5], np.int32), 64)
    kernel = cuda_source(GUARDED)["guarded"]
    (out, _), _, went = evaluated(kernel, 4, 64, "auto", (np.zeros(256, np.int32), at), evaluator)
    assert went
    assert out.tolist() == [13, 0, 0, 15] * 64


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=["interpreted", "compiled"])
def test_a_warp_without_a_constant_to_load_skips_the_load(evaluator: str) -> None:
    kernel = cuda_source(GUARDED)["guarded"]
    arguments = np.ones(64, np.int32), np.full(64, 8, np.int32)
    (out, _), _, _ = evaluated(kernel, 1, 64, "auto", arguments, evaluator)
    assert not out.any()
