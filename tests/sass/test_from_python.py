"""Python kernels written out as CUDA C++, and what nvcc's code of them counts."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np
import pytest

from gpusim import cuda
from gpusim.catalogue import entries, find, sample
from gpusim.codegen.programs import as_cuda, prepare
from gpusim.errors import GpusimError
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.sass import wheels
from gpusim.sass.from_python import literal
from gpusim.tracing.trace import trace

needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
HOPPER = ComputeCapability(9, 0)


@cuda.jit
def halves(x, y, n):
    i = cuda.grid(1)
    total = np.float32(0)
    while n > 0:
        if i < n:
            total += x[i] * np.float32(0.5)
        n //= 2
    y[i] = total


def test_a_kernel_becomes_labels_and_gotos_with_the_lines_of_its_source() -> None:
    x = np.ones(64, np.float32)
    text = as_cuda(halves, (x, np.zeros_like(x), 64))
    assert 'extern "C" __global__ void halves(float *x, float *y, int n) {' in text
    assert "goto L" in text
    assert "0x1.0000000000000p-1f" in text
    assert f'"{halves.source.file}"' in text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (np.int32(-(2**31)), "(-2147483647 - 1)"),
        (np.int32(-5), "(-5)"),
        (np.uint32(7), "7u"),
        (np.int64(-(2**63)), "(-9223372036854775807ll - 1)"),
        (np.float32("inf"), "__int_as_float(0x7f800000)"),
        (np.float32(-7.25), "(-0x1.d000000000000p+2f)"),
        (np.float64(0.1), "0x1.999999999999ap-4"),
        (np.bool_(True), "true"),
    ],
)
def test_numbers_are_written_exactly(number: Any, text: str) -> None:
    assert literal(number) == text


@needs_compiler
def test_arrays_and_parameters_may_bear_any_name() -> None:
    @cuda.jit
    def kernel(v0, v1):
        v2 = cuda.shared.array(32, np.int32)
        v_3 = cuda.local.array(2, np.int32)
        i = cuda.threadIdx.x
        v2[i] = v1 + i
        v_3[i & 1] = v2[i] * 2
        v0[i] = v_3[i & 1]

    out = np.zeros(32, np.int32)
    run(prepare(kernel[1, 32], (out, 5), HOPPER, code="nvcc"))
    assert out.tolist() == [2 * (5 + i) for i in range(32)]


@needs_compiler
def test_results_are_those_of_the_lowering() -> None:
    x = np.random.default_rng(0).random(256).astype(np.float32)
    by_lowering, by_nvcc = np.zeros_like(x), np.zeros_like(x)
    trace(halves[2, 128], x, by_lowering, 200)
    made = trace(halves[2, 128], x, by_nvcc, 200, code="nvcc")
    assert (by_lowering == by_nvcc).all()
    assert made.compiler.startswith("NVRTC")
    lines = [line.text.strip() for line in made.lines]
    assert "total += x[i] * np.float32(0.5)" in lines
    assert "y[i] = total" in lines
    assert all(
        line.startswith(("def", "i =", "while", "if", "total", "n //", "y[i]")) for line in lines
    )


@needs_compiler
def test_reduce3_counts_what_hand_written_cuda_counts_on_an_h200() -> None:
    call = find("reduce3").call(sample(2**20, "int32"), block=128)
    made = trace(call.configured, *call.arguments, code="nvcc")
    assert call.wrong() == 0
    assert made.counters["instructions"] == 3_145_728
    assert made.counters["shared_load_instructions"] == 466_944


@needs_compiler
@pytest.mark.slow
def test_every_kernel_of_the_catalogue_is_as_right_as_with_the_lowering() -> None:
    for entry in entries():
        call = entry.setup(None).call(sample(entry.setup(None).n, entry.setup(None).dtype))
        try:
            run(prepare(call.configured, call.arguments, HOPPER, code="nvcc"))
        except GpusimError:
            assert entry.name == "kogge_stone_scan"  # which reads in front of its array
            continue
        assert not (call.wrong() and entry.defect is None), entry.name


@needs_compiler
@pytest.mark.slow
def test_executed_instructions_are_near_those_of_hand_written_cuda() -> None:
    from validate import files

    errors = []
    for counts in files.load("h200").counters:
        if counts.case.block != 128 or counts.entry.defect is not None or counts.case.grid:
            continue
        setup = counts.case.setups(counts.entry)[0]
        call = setup.call(sample(setup.n, setup.dtype))
        made = trace(call.configured, *call.arguments, code="nvcc").counters["instructions"]
        errors.append(made / counts.values["smsp__inst_executed.sum"] - 1)
    assert fmean(map(abs, errors)) <= 0.03
    assert max(map(abs, errors)) <= 0.15
