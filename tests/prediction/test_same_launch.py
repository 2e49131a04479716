"""Launches that are predicted once: elements that decide nothing are no part of them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from gpusim import array_spec, cuda, cuda_source, predict
from gpusim.codegen.programs import prepare
from gpusim.cuda import Kernel
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams import classify
from gpusim.prediction.streams.same_launch import SameLaunch
from gpusim.sass import wheels


@cuda.jit
def scaled(x, out, factor, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] * factor


@cuda.jit
def gathered(x, places, out):
    i = cuda.grid(1)
    out[i] = x[places[i]]


@cuda.jit
def positive(x, out):
    i = cuda.grid(1)
    if x[i] > 0:
        out[i] = x[i]


@cuda.jit
def copied(x, out):
    i = cuda.grid(1)
    out[i] = x[i]


def prepared(kernel: Kernel, *arguments: Any) -> Prepared:
    return prepare(kernel[2, 64], arguments, ComputeCapability(9, 0), code="lowering")


def floats(seed: int, n: int = 128) -> np.ndarray:
    return np.random.default_rng(seed).random(n).astype(np.float32)


def of_scaled(seed: int, n: int = 128) -> Prepared:
    return prepared(scaled, floats(seed, n), floats(0, n), np.float32(3), np.int32(n))


def test_blocks_are_recorded_once_for_all_elements_that_decide_nothing() -> None:
    assert classify(of_scaled(1)) is classify(of_scaled(2))
    assert classify(of_scaled(1)) is not classify(of_scaled(1, 100))


def test_elements_that_decide_an_address_or_a_branch_belong_to_a_launch() -> None:
    places = np.arange(128, dtype=np.int32)
    assert SameLaunch.of(prepared(gathered, floats(1), places, floats(0))) is None
    assert SameLaunch.of(prepared(positive, floats(1), floats(0))) is None


def test_it_matters_whether_arrays_are_the_same_and_not_that_they_overlap_in_part() -> None:
    x = floats(1, 192)
    apart = SameLaunch.of(prepared(copied, floats(1), floats(2)))
    twice = SameLaunch.of(prepared(copied, x, x))
    assert apart is not None
    assert twice is not None
    assert apart != twice
    assert SameLaunch.of(prepared(copied, x[:128], x[64:])) is None


def test_arrays_that_a_kernel_may_not_store_to_or_with_gaps_belong_to_a_launch() -> None:
    out = floats(0)
    out.flags.writeable = False
    assert SameLaunch.of(prepared(copied, floats(1), out)) is None
    assert SameLaunch.of(prepared(copied, floats(1, 256)[::2], floats(0))) is None


def test_a_prediction_with_elements_is_that_without() -> None:
    spec, another = array_spec(128, "float32"), array_spec(128, "float32")
    number, n = np.float32(3), np.int32(128)
    given = predict(scaled[2, 64], floats(1), floats(0), number, n, code="lowering")
    described = predict(scaled[2, 64], spec, another, number, n, code="lowering")
    assert (given.cycles, given.stalls) == (described.cycles, described.stalls)


def test_arrays_are_not_kept_with_what_is_known_of_their_launch() -> None:
    x = floats(5)
    held = weakref.ref(x)
    classify(prepared(scaled, x, floats(0), np.float32(5), np.int32(128)))
    del x
    gc.collect()
    assert held() is None


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_kernel_that_prints_has_the_text_of_its_formats() -> None:
    text = """#include <cstdio>
    __global__ void greet(int id) { printf("block %d of %d\\n", blockIdx.x, id); }"""
    found = predict(cuda_source(text)["greet"][2, 32], 3, device="h200")
    assert found.time_us > found.overhead_us
