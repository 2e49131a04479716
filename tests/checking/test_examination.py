"""Race detection in compiled code says what a check by steps says, or leaves it to the steps."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from checking.planted import CASES, KINDS, Case

import gpusim
from gpusim import cuda
from gpusim.machine.compiled import examination
from gpusim.sass import wheels

for kind in KINDS:
    importlib.import_module(f"checking.planted_{kind}")

BLOCKS, THREADS = 3, 64
PLACES = ("t", "t ^ 1", "t ^ 32", "(t + 1) % 64", "t / 2", "63 - t", "t & 32", "7")


@pytest.fixture
def compiled() -> Iterator[Callable[[], bool]]:
    """Let compiled code examine each launch; return whether it left none."""
    examination.forget()
    yield lambda: not examination._refused
    examination.forget()


def both(check: Callable[[], tuple[gpusim.Findings, Any]], patched: pytest.MonkeyPatch) -> Any:
    """Return what is found by steps alone, having asserted that compiled code changes nothing."""
    patched.setenv("GPUSIM_FAST", "0")
    slow, results = check()
    patched.setenv("GPUSIM_FAST", "1")
    found, others = check()
    assert found.to_dict() == slow.to_dict()
    if not slow.errors:
        assert all(np.array_equal(a, b) for a, b in zip(results, others, strict=True))
    return slow


def random_kernel(name: str, draw: random.Random) -> str:
    """Return a kernel of random accesses to shared and global memory, ordered here and there."""
    lines = ["s[t] = t; f[t] = t; int v = t;"]
    for _ in range(draw.randint(3, 9)):
        place = draw.choice(PLACES)
        array = draw.choice(("s", "s", "g", "mine", "mine"))
        line = draw.choice((
            f"v += {array}[{place}];",
            f"v += {array}[{place}];",
            f"{array}[{place}] = v;",
            f"{array}[{place}] = v;",
            f"atomicAdd(&{array}[{place}], 1);",
            f"v += *(volatile int *)&{array}[{place}];",
            f"atomicAdd(&{draw.choice(('f', 'sums'))}[{place}], 0.5f * t);",
            f"for (int o = {array}[{place}], e = ~o; o != e;)"
            f" o = atomicCAS(&{array}[{place}], e = o, o + 1);",
            "__syncwarp();",
            "v += __shfl_xor_sync(-1, v, 3);",
        ))  # fmt: skip
        if draw.random() < 0.2 and "sync" not in line:
            line = f"if (t {draw.choice(('< 40', '& 1', '== 5'))}) {{ {line} }}"
        lines.append(line)
        if draw.random() < 0.7:
            lines.append("__syncthreads();")
    body = "\n    ".join([*lines, "out[blockIdx.x * 64 + t] = v;"])
    return f"""
__global__ void {name}(int *g, float *sums, int *out) {{
    __shared__ int s[64];
    __shared__ float f[64];
    int t = threadIdx.x, *mine = g + 64 * (1 + blockIdx.x);
    {body}
}}"""


def held_for(seed: int, count: int, patched: pytest.MonkeyPatch) -> list[bool]:
    """Assert that random kernels are judged alike; return whether each is clean."""
    draw = random.Random(seed)
    names = [f"k{number}" for number in range(count)]
    file = gpusim.cuda_source("".join(random_kernel(name, draw) for name in names))
    clean = []
    for name in names:

        def check(name: str = name) -> tuple[gpusim.Findings, Any]:
            g, out = np.arange(64 * (1 + BLOCKS), dtype=np.int32), np.zeros(64 * BLOCKS, np.int32)
            arrays = g, np.zeros(64, np.float32), out
            return gpusim.check(file[name][BLOCKS, THREADS], *arrays), arrays

        clean.append(not both(check, patched))
    return clean


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
@pytest.mark.usefixtures("compiled")
def test_random_kernels_are_judged_as_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = held_for(0, 10, monkeypatch)
    assert {True, False} == set(clean)


def judged_alike(case: Case, patched: pytest.MonkeyPatch) -> None:
    for kernel in case.pair():

        def check(kernel: Any = kernel) -> tuple[gpusim.Findings, Any]:
            return case.check(kernel), ()

        both(check, patched)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("case", CASES[::16], ids=lambda case: case.name)
def test_planted_bugs_are_judged_as_step_by_step(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_alike(case, monkeypatch)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_planted_bugs_are_judged_as_step_by_step(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_alike(case, monkeypatch)


@cuda.jit
def sorted_in_place(x):
    s = cuda.shared.array(64, np.int32)
    t, i = cuda.threadIdx.x, cuda.blockIdx.x * 64 + cuda.threadIdx.x
    s[t] = x[i]
    cuda.syncthreads()
    for _ in range(20):
        following = s[(t + 1) % 64]
        cuda.syncthreads()
        s[t] = following
        cuda.syncthreads()
    x[i] = s[t] + 1


def test_a_clean_kernel_is_examined_in_compiled_code_from_the_arrays_as_they_were(
    compiled: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check() -> tuple[gpusim.Findings, Any]:
        x = np.arange(256, dtype=np.int32)
        return gpusim.check(sorted_in_place[4, 64], x), (x,)

    found = both(check, monkeypatch)
    assert compiled()
    assert not found
    assert found.coverage.accesses == 256 * (2 + 2 + 2 * 20)
    again, (x,) = check()
    assert again.to_dict() == found.to_dict()
    assert x[:3].tolist() == [21, 22, 23]


def test_a_kernel_with_a_race_is_left_to_the_steps_from_then_on(
    compiled: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    @cuda.jit
    def reversed_late(x):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        for i in range(20):
            s[t] = s[t] + i
        x[t] = s[63 - t]

    def check() -> tuple[gpusim.Findings, Any]:
        x = np.arange(64, dtype=np.int32)
        return gpusim.check(reversed_late[1, 64], x), (x,)

    found = both(check, monkeypatch)
    assert not compiled()
    assert [finding.rule for finding in found.errors] == ["shared-race"]


@pytest.mark.parametrize("clears", [True, False])
def test_a_store_behind_the_atomics_of_one_thread_is_not_forgotten(
    clears: bool, monkeypatch: pytest.MonkeyPatch, compiled: Callable[[], bool]
) -> None:
    """The store is not the last access to the element when other threads come to it."""

    @cuda.jit
    def counted(out):
        s = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        if t == 0:
            s[0] = 0
        if clears:
            cuda.syncthreads()
        cuda.atomic.add(s, 0, 1)
        cuda.syncthreads()
        out[t] = s[0]

    found = both(lambda: (gpusim.check(counted[1, 64], np.zeros(64, np.int32)), ()), monkeypatch)
    assert compiled() == (not found) == clears


SUMS = """
__global__ void in_turn(const float *x, float *y) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 16777216;
    __syncthreads();
    atomicAdd(&sum, x[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
__global__ void at_once(const float *x, float *y) {
    atomicAdd(&y[1 + threadIdx.x % 2], x[threadIdx.x]);
}
__global__ void early(const float *x, float *y) {
    __shared__ float sum;
    sum = 0;
    atomicAdd(&sum, x[threadIdx.x]);
    y[blockIdx.x] = sum;
}
"""


def summed(kernel: str, threads: int = 64) -> tuple[gpusim.Findings, Any]:
    x, y = np.ones(threads, np.float32), np.full(3, 1 << 24, np.float32)
    return gpusim.check(gpusim.cuda_source(SUMS)[kernel][2, threads], x, y), (x, y)


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_sums_that_threads_swap_in_are_told_by_compiled_code(
    compiled: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 2 blocks swaps 64 numbers in; of 2^24 and 1 in float32 the sum is 2^24."""
    found = both(lambda: summed("in_turn"), monkeypatch)
    assert compiled()
    (note,) = found
    assert note.rule == "float-lost"
    assert "64 of 64 additions change nothing" in note.message
    assert found.coverage.not_compared["strong"] > 0


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_contended_sums_are_told_by_their_lowest_element(
    compiled: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = both(lambda: summed("at_once"), monkeypatch)
    assert compiled()
    (note,) = found
    assert (note.rule, note.array, note.index) == ("float-lost", "y", 1)
    assert "64 of 64 additions change nothing" in note.message


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_sum_that_is_cleared_or_read_without_a_barrier_is_left_to_the_steps(
    compiled: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = both(lambda: summed("early", 4), monkeypatch)
    assert not compiled()
    assert {finding.rule for finding in found.errors} == {"warp-race"}


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_exchanges_are_examined_in_the_order_of_steps(
    compiled: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a thread gets tells who came before it: to the first exchange, or to the second."""
    source = """
    __global__ void exchanged(int *word, int *out) {
        int i = blockIdx.x * 64 + threadIdx.x;
        out[i] = atomicExch(word, i);
        out[192 + i] = atomicExch(word, 192 + i);
    }"""
    kernel = gpusim.cuda_source(source)["exchanged"]

    def check() -> tuple[gpusim.Findings, Any]:
        arrays = np.full(1, -1, np.int32), np.zeros(384, np.int32)
        return gpusim.check(kernel[3, 64], *arrays), arrays

    assert not both(check, monkeypatch)
    assert compiled()
    _, (word, out) = check()
    assert sorted([*out.tolist(), *word.tolist()]) == list(range(-1, 384))


@pytest.mark.slow
@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("seed", range(1, 9))
def test_many_random_kernels_are_judged_as_step_by_step(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_for(seed, 60, monkeypatch)
