"""Shuffles and votes with full masks in divergent code: every kernel ends, each segment for itself.

Random structured kernels branch, loop and leave loops by conditions that a segment of lanes shares.
A segment's results do not depend on the others: the reference runs each by itself.
"""

from __future__ import annotations

import linecache
import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from evaluators import EVALUATORS, HOPPER, runs_in

import gpusim
from gpusim import cuda
from gpusim.codegen.programs import prepare
from gpusim.cuda import Kernel
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.sass import wheels
from gpusim.typing import Array

ALL = 0xFFFFFFFF
BALLOTS = """
__global__ void ballots(int *out) {
    int s = 0;
    for (int i = 0; i <= (threadIdx.x & 31); i++) s += __popc(__ballot_sync(0xffffffffu << i, 1));
    out[threadIdx.x] = s;
}
"""
HAS_NVCC = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
MODES = {
    "up": lambda at, k: at - k,
    "down": lambda at, k: at + k,
    "xor": lambda at, k: at ^ k,
    "idx": lambda at, k: np.full_like(at, k),
}
WORDS = {"up": "shfl_up_sync", "down": "shfl_down_sync", "xor": "shfl_xor_sync", "idx": "shfl_sync"}


@dataclass(frozen=True)
class Statement:
    """A statement of a random kernel: its kind, a number, a mode, and its bodies."""

    kind: str
    number: int = 0
    mode: str = ""
    bodies: tuple[tuple[Statement, ...], ...] = ()


def statements(rng: random.Random, depth: int, *, inside_loop: bool) -> tuple[Statement, ...]:
    """Return a random sequence of statements."""
    kinds = ["add", "shuffle", "shuffle", "vote"] + ["if", "loop", "if"] * (depth < 3)
    kinds += ["break"] * inside_loop
    return tuple(_statement(rng, rng.choice(kinds), depth) for _ in range(rng.randint(1, 4)))


def _statement(rng: random.Random, kind: str, depth: int) -> Statement:
    bodies = {"if": 2, "loop": 1}.get(kind, 0)
    return Statement(
        kind,
        rng.randrange(1, 8),
        rng.choice(list(MODES)),
        tuple(statements(rng, depth + 1, inside_loop=kind == "loop") for _ in range(bodies)),
    )


def written(body: tuple[Statement, ...], width: int, depth: int = 1) -> str:
    """Return statements in the dialect; the variable of a loop is named by its depth."""
    lines = []
    for one in body:
        if one.kind == "add":
            lines.append(f"s = s * 5 + {one.number}")
        elif one.kind == "shuffle":
            lines.append(f"s += cuda.{WORDS[one.mode]}({ALL}, s, {one.number % width}, {width})")
        elif one.kind == "vote":
            lines.append(f"s ^= cuda.ballot_sync({ALL}, s & {one.number} == 0) >> base & own")
        elif one.kind == "break":
            lines.append(f"if x[g] + i{depth - 1} & {one.number} == 0: break")
        else:
            loop = f"for i{depth} in range(x[g] & {one.number & 3}):"
            lines.append(loop if one.kind == "loop" else f"if x[g] & {one.number} == 0:")
            lines.append(written(one.bodies[0], width, depth + 1))
        if one.kind == "if":
            lines += ["else:", written(one.bodies[1], width, depth + 1)]
    return "\n".join(" " * 4 + line for text in lines for line in text.split("\n"))


@dataclass(frozen=True)
class Made:
    """A random kernel with its statements and segments of `width` lanes."""

    kernel: Kernel
    body: tuple[Statement, ...]
    width: int

    def expected(self, x: Array) -> list[int]:
        """Return what each lane ends with."""
        lanes = np.arange(self.width, dtype=np.int32)
        found = [
            self._run(self.body, int(x[g]), 0, lanes + np.int32(g * self.width))
            for g in range(len(x))
        ]
        return [int(one) for part in found for one in part[0]]

    def _run(self, body: tuple[Statement, ...], x: int, i: int, s: Array) -> tuple[Array, bool]:
        """Return the values of a segment behind some statements, and whether it left the loop."""
        for one in body:
            if one.kind == "add":
                s = s * np.int32(5) + np.int32(one.number)
            elif one.kind == "shuffle":
                at = np.arange(self.width)
                source = MODES[one.mode](at, one.number % self.width)
                is_inside = (source >= 0) & (source < self.width)
                s = s + s[np.where(is_inside, source, at)]
            elif one.kind == "vote":
                votes = (s & one.number) == 0
                s = s ^ np.int32(int(sum(1 << k for k in np.flatnonzero(votes).tolist())))
            elif one.kind == "break":
                if (x + i) & one.number == 0:
                    return s, True
            elif one.kind == "if":
                s, leaves = self._run(one.bodies[x & one.number != 0], x, i, s)
                if leaves:
                    return s, True
            else:
                for k in range(x & (one.number & 3)):
                    s, leaves = self._run(one.bodies[0], x, k, s)
                    if leaves:
                        break
        return s, False


@cache
def made(seed: int) -> Made:
    """Return the kernel of a seed."""
    rng = random.Random(seed)
    width, body = rng.choice((4, 8, 16)), statements(rng, 0, inside_loop=False)
    text = f"""def kernel(x, out):
    t = cuda.threadIdx.x
    g = t // {width}
    base = t % 32 // {width} * {width}
    own = {(1 << width) - 1}
    s = t
{written(body, width)}
    out[t] = s
"""
    name = f"<full mask {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"cuda": cuda}
    exec(compile(text, name, "exec"), scope)
    return Made(cuda.jit(scope["kernel"]), body, width)


def launched(one: Made, x: Array, code: str, cc: ComputeCapability, evaluator: str) -> list[int]:
    """Return the results of a launch in compiled code or in NumPy."""
    out = np.zeros(64, np.int32)
    with pytest.MonkeyPatch.context() as patched:
        runs_in(patched, evaluator)
        run(prepare(one.kernel[1, 64], (x, out), cc, code=code))
    return out.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_segments_come_out_as_if_each_were_alone(seed: int) -> None:
    """In NumPy's machine and in compiled code, lowered."""
    one = made(seed)
    x = np.random.default_rng(seed).integers(0, 8, 64 // one.width).astype(np.int32)
    for evaluator in EVALUATORS:
        assert launched(one, x, "lowering", HOPPER, evaluator) == one.expected(x)


@HAS_NVCC
def test_segments_come_out_alone_in_the_code_of_nvcc() -> None:
    """Both evaluators, and generations that gather lanes in another way each."""
    one, x = made(57), np.arange(16, dtype=np.int32) % 8
    assert one.width == 4
    for cc in ("9.0", "8.0"):
        for evaluator in EVALUATORS:
            found = launched(one, x, "nvcc", ComputeCapability.parse(cc), evaluator)
            assert found == one.expected(x)


@cuda.jit
def lanes_that_are_left(out):
    """Lanes leave one by one; each mask names those that are left."""
    lane, s, i = cuda.laneid, 0, 0
    while i <= lane:
        s += cuda.popc(cuda.ballot_sync(ALL << i, True))
        i += 1
    out[cuda.threadIdx.x] = s


@pytest.mark.parametrize("code", ["lowering", pytest.param("nvcc", marks=HAS_NVCC)])
def test_lanes_that_leave_a_loop_vote_with_those_that_are_left(code: str) -> None:
    """As on an H200: nvcc writes four iterations out, where lanes vote at several places."""
    votes = [sum(32 - i for i in range(lane + 1)) for lane in range(32)]
    for evaluator in EVALUATORS:
        out = np.zeros(64, np.int32)
        with pytest.MonkeyPatch.context() as patched:
            runs_in(patched, evaluator)
            run(prepare(lanes_that_are_left[1, 64], (out,), HOPPER, code=code))
        assert out.tolist() == votes * 2


def test_masks_of_the_lanes_that_are_left_have_no_finding() -> None:
    """CUDA lets lanes with the same mask meet at different places."""
    assert not list(gpusim.check(lanes_that_are_left[1, 64], np.zeros(64, np.int32)))
    if wheels.are_there():
        kernel = gpusim.cuda_source(BALLOTS)["ballots"]
        assert not list(gpusim.check(kernel[1, 64], np.zeros(64, np.int32)))


@cuda.jit
def reduction_of_half_a_warp(x, out):
    """A shuffle of all lanes that half of them run, before a barrier of the block."""
    t = cuda.threadIdx.x
    s = x[t]
    if t < 16:
        k = 8
        while k > 0:
            s += cuda.shfl_down_sync(ALL, s, k)
            k //= 2
    cuda.syncthreads()
    out[t] = s


@pytest.mark.parametrize("code", ["lowering", pytest.param("nvcc", marks=HAS_NVCC)])
def test_half_a_warp_with_a_full_mask_goes_on_by_itself(code: str) -> None:
    """Lane 0 has the sum of 0 to 15; lane 15 reads 0 from lanes that are not there."""
    launch = reduction_of_half_a_warp[2, 64]
    for evaluator in EVALUATORS:
        x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
        with pytest.MonkeyPatch.context() as patched:
            runs_in(patched, evaluator)
            run(prepare(launch, (x, out), HOPPER, code=code))
        assert out.tolist() == [sum(range(t, 16)) for t in range(16)] + list(range(16, 64))
    assert gpusim.predict(launch, x, out, code=code).time_us > 0
    found = gpusim.check(launch, x, out)
    assert {one.rule for one in found.errors} == {"mask"}
