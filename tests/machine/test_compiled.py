"""Compiled code computes what NumPy's machine computes: every array and every counter."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluators import (
    COMPILED,
    EVALUATORS,
    HOPPER,
    Array,
    Went,
    agree,
    evaluated,
    runs_in,
)

from gpusim import cuda
from gpusim.codegen.programs import prepare
from gpusim.cuda import Kernel
from gpusim.errors import GpusimError, InputError, OutOfBoundsError
from gpusim.host.fast import THREADS, threads
from gpusim.isa.ops import OPS
from gpusim.launch.events import Observer
from gpusim.machine import run
from gpusim.machine.compiled import instance, modules, parts
from gpusim.machine.compiled.symbols import Graph
from gpusim.machine.compiled.translation import Translation
from gpusim.sass import wheels
from gpusim.sass.table import MNEMONICS
from gpusim.tracing.execution import Execution
from gpusim.tracing.records import Trace
from gpusim.tracing.trace import trace

NVCC = partial(
    pytest.param, marks=pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
)
CODES = ("lowering", NVCC("nvcc"))


@cuda.jit
def rows_of_products(a, b, out, n):
    i = cuda.grid(1)
    total = np.float32(0.0)
    for k in range(n):
        total += a[i, k] * b[k]
    out[i] = total


@cuda.jit
def collatz(values, steps):
    i = cuda.grid(1)
    if i < values.size:
        n, count = values[i], 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            count += 1
        steps[i] = count


@cuda.jit
def transposed_sums(x, y, total):
    tile = cuda.shared.array((16, 16), np.float32)
    tx, ty = cuda.threadIdx.x % 16, cuda.threadIdx.x // 16
    for base in range(0, x.shape[0], 16):
        tile[ty, tx] = x[base + ty, tx]
        cuda.syncthreads()
        y[base + tx, ty] += tile[tx, ty] / np.float32(3.0)
        cuda.syncthreads()
    cuda.atomic.add(total, 0, cuda.threadIdx.x)


@cuda.jit
def bubbled(x):
    mine = cuda.local.array(8, np.int32)
    i = cuda.grid(1)
    for k in range(8):
        mine[k] = x[i, k]
    for last in range(7, 0, -1):
        for k in range(last):
            if mine[k] > mine[k + 1]:
                greater = mine[k]
                mine[k] = mine[k + 1]
                mine[k + 1] = greater
    for k in range(8):
        x[i, k] = mine[k]


@cuda.jit
def warp_sums(x, out, ballots):
    i = cuda.grid(1)
    value = x[i]
    offset = 16
    while offset > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
        offset //= 2
    ballots[i] = cuda.ballot_sync(0xFFFFFFFF, x[i] > 0)
    if cuda.laneid == 0:
        out[i // 32] = value


@cuda.jit
def elementary(x, out):
    i = cuda.grid(1)
    out[i] = np.exp(x[i]) + np.sqrt(abs(x[i])) - np.log(abs(x[i]) + np.float32(1.0))


@cuda.jit
def quotients(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] / y[i] + y[i] / x[i]


@cuda.jit
def matched(x, y, lanes, alike):
    i = cuda.grid(1)
    lanes[i] = cuda.match_any_sync(0xFFFFFFFF, x[i])
    found, agree = cuda.match_all_sync(0xFFFFFFFF, y[i])
    alike[i] = found
    if agree:
        lanes[i] += cuda.match_any_sync(0xFFFFFFFF, np.float64(x[i % 48]))


def noise(*shape: int, seed: int = 1) -> Array:
    """Return numbers without structure."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def whole(*shape: int, most: int = 1000) -> Array:
    """Return positive whole numbers without structure."""
    return np.random.default_rng(2).integers(1, most, shape).astype(np.int32)


LAUNCHES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "long loops": lambda: (
        rows_of_products, 2, 48, noise(96, 20), noise(20), np.zeros(96, np.float32), 20,
    ),
    "divergent lanes": lambda: (collatz, 2, 40, whole(70), np.zeros(70, np.int32)),
    "tiles": lambda: (
        transposed_sums, 1, 256, noise(32, 16), np.zeros((32, 16), np.float32),
        np.zeros(1, np.int32),
    ),
    "local memory": lambda: (bubbled, 2, 32, whole(64, 8)),
    "lanes together": lambda: (
        warp_sums, 2, 64, whole(128) - 500, np.zeros(4, np.int32), np.zeros(128, np.uint32),
    ),
    "equal lanes": lambda: (
        matched, 2, 64, whole(128, most=6), np.arange(128, dtype=np.int32) // 48,
        np.zeros(128, np.uint32), np.zeros(128, np.uint32),
    ),
    "functions of NumPy": lambda: (elementary, 1, 64, noise(64), np.zeros(64, np.float32)),
    "calls": lambda: (
        quotients, 1, 64, noise(64) * np.float32(1e-38), noise(64, seed=3),
        np.zeros(64, np.float32),
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", LAUNCHES)
def test_compiled_code_leaves_the_same_bytes_and_counts(name: str, code: str) -> None:
    kernel, grid, block, *arguments = LAUNCHES[name]()
    agree(kernel, grid, block, code, *arguments)


@pytest.mark.parametrize("name", ["divergent lanes", "tiles", "lanes together"])
def test_a_trace_of_compiled_code_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    for evaluator in EVALUATORS:
        runs_in(monkeypatch, evaluator)
        kernel, grid, block, *arguments = LAUNCHES[name]()
        traces.append(trace(kernel[grid, block], *arguments, code="lowering", block_index=grid - 1))
    one, other = traces
    assert one.to_dict() == other.to_dict()

    def by_warp(made: Trace) -> list[Execution]:
        return sorted(made.executions, key=lambda x: x.warp)

    assert by_warp(one) == by_warp(other)
    assert len(one.executions) > 20


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_function_returns_to_few_basic_blocks() -> None:
    """Otherwise each instruction would be one, and keep its results in memory."""
    kernel, grid, block, *arguments = LAUNCHES["calls"]()
    program = prepare(kernel[grid, block], arguments, HOPPER, code="nvcc").program
    assert any(OPS[row.op].kind == "jump" for row in program.instructions)
    modules.forget()
    evaluated(kernel, grid, block, "nvcc", tuple(arguments))
    (one,) = modules._kept.values()
    assert len(one.made.starts) < len(program.instructions) / 4


def test_words_that_are_joined_and_parted_again_take_no_code() -> None:
    """An address is two registers; of most, both halves are only put together again."""
    graph = Graph()
    low, high = (graph.node("leaf", np.uint32, name) for name in ("low", "high"))
    joined = high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
    for whole in (joined, joined.view(np.int64)):
        assert whole.astype(np.uint32) is low
        assert (whole >> whole.dtype.type(32)).astype(np.uint32) is high
    address = graph.node("leaf", np.int64, "address")
    halves = [
        word.astype(np.uint32).astype(np.uint64) for word in (address, address >> np.int64(32))
    ]
    assert (halves[0] | halves[1] << np.uint64(32)).view(np.int64) is address
    swapped = halves[1] | halves[0] << np.uint64(32)
    assert swapped.operation == "bitwise_or"


def test_a_module_that_no_launch_uses_any_more_frees_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(modules, "_MOST_IDLE_BYTES", 0)
    values, steps = np.arange(1, 65, dtype=np.int64), np.zeros(64, np.int64)
    of_others = list(instance.OPEN)
    _, _, went = evaluated(collatz, 2, 32, "lowering", (values, steps))
    assert went
    assert not [one for one in instance.OPEN if one not in of_others]


@cuda.jit
def sums_of_all_blocks(out, n):
    total = np.float32(cuda.threadIdx.x)
    for _ in range(n):
        total = total * np.float32(0.5) + np.float32(1.0)
    out[cuda.grid(1)] = total


@cuda.jit
def sums_of_each_block(out, n):
    total = np.float32(cuda.grid(1))
    for _ in range(n):
        total = total * np.float32(0.5) + np.float32(1.0)
    out[cuda.grid(1)] = total


@cuda.jit
def logarithms(out, n):
    total = np.float32(cuda.grid(1))
    for _ in range(n):
        total = math.log(total + np.float32(2.0))
    out[cuda.grid(1)] = total


def test_an_observer_of_steps_keeps_a_launch_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Steps(Observer):
        count = 0

        def step(self, step: Any) -> None:
            self.count += 1

    runs_in(monkeypatch, COMPILED)
    kernel, grid, block, *arguments = LAUNCHES["long loops"]()
    steps = Steps()
    run(prepare(kernel[grid, block], arguments, HOPPER, code="lowering"), observers=(steps,))
    assert steps.count > 20


@cuda.jit
def beyond(x, n):
    i = cuda.threadIdx.x
    for k in range(n):
        x[i + k] += 1


@pytest.mark.parametrize("code", CODES)
def test_a_fault_has_the_words_and_leaves_the_bytes_of_numpy(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for evaluator in EVALUATORS:
        x = np.zeros(40, np.int32)
        runs_in(monkeypatch, evaluator)
        prepared = prepare(beyond[1, 32], (x, 20), HOPPER, code=code)
        with pytest.raises(OutOfBoundsError) as caught:
            run(prepared)
        said.append((str(caught.value), x.tobytes()))
    assert said[0] == said[1]


def test_a_loop_without_an_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    @cuda.jit
    def forever(x):
        while x[0] == 0:
            x[1] += 1

    runs_in(monkeypatch, COMPILED)
    prepared = prepare(forever[1, 32], (np.zeros(2, np.int32),), HOPPER, code="lowering")
    with pytest.raises(GpusimError, match="without finishing"):
        run(prepared, step_limit=2000)


@pytest.mark.parametrize("damage", [False, True])
def test_a_module_is_kept_on_disk_and_never_trusted_damaged(
    damage: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel, grid, block, *arguments = LAUNCHES["tiles"]()
    first = evaluated(kernel, grid, block, "lowering", arguments)
    entries = list((tmp_path / "gpusim" / "machine").iterdir())
    assert len(entries) == 2  # the program's, and what all programs share
    if damage:
        for entry in entries:
            held = bytearray(entry.read_bytes())
            held[-1] ^= 1
            entry.write_bytes(bytes(held))
    files = [entry.stat().st_ino for entry in entries]
    again = evaluated(kernel, grid, block, "lowering", arguments)
    assert again[2]
    is_made_anew = [one.stat().st_ino != file for one, file in zip(entries, files, strict=True)]
    assert is_made_anew == [damage, damage]
    np.testing.assert_array_equal(first[0][1], again[0][1])
    np.testing.assert_array_equal(first[1].by_pc, again[1].by_pc)


@cuda.jit
def tickets(x, sums, counter, out):
    i = cuda.grid(1)
    if x[i] > 0:
        out[cuda.atomic.add(counter, 0, 1)] = i
    cuda.atomic.add(sums, i % 3, x[i])


@cuda.jit
def tickets_of_loops(x, counter, out):
    i = cuda.grid(1)
    for k in range(3):
        if x[i] > k:
            out[cuda.atomic.add(counter, 0, 1)] = i


def test_atomics_that_show_their_order_take_that_of_numpy() -> None:
    x = noise(128)
    out = np.zeros(128, np.int32)
    agree(tickets, 2, 64, "lowering", x, np.zeros(3, np.float32), np.zeros(1, np.int32), out)


def test_warps_that_come_to_an_atomic_by_several_paths_take_turns() -> None:
    x, out = whole(128, most=4), np.zeros(512, np.int32)
    agree(tickets_of_loops, 2, 64, "lowering", x, np.zeros(1, np.int32), out)


@cuda.jit
def looked_up(table, x, out):
    i = cuda.grid(1)
    value = x[i]
    if cuda.laneid < 20:
        value += table[x[i] % 7]
    cuda.syncwarp()
    if cuda.laneid % 2 == 0:
        value = value * 3
    out[i] = cuda.shfl_xor_sync(0xFFFFFFFF, value, 1)


@pytest.mark.parametrize("code", CODES)
def test_lanes_that_wait_for_a_mask_run_compiled(code: str) -> None:
    agree(looked_up, 2, 64, code, whole(7), whole(128), np.zeros(128, np.int32))


def test_kept_modules_do_not_depend_on_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = modules._sources.__wrapped__()
    (tmp_path / "own.py").write_text("")
    assert modules._sources.__wrapped__() == before


@cuda.jit
def stores_of_lanes(x, out, n):
    mine = x[cuda.laneid]
    for _ in range(n):
        cuda.syncthreads()
    out[cuda.grid(1)] = mine


def test_narrow_registers_that_all_warps_share_are_brought() -> None:
    given = np.arange(32, dtype=np.int8), np.zeros(128, np.int8)
    agree(stores_of_lanes, 1, 128, "lowering", *given, 40)


@cuda.jit
def all_write_one(x, out):
    i = cuda.grid(1)
    out[1 + i] = x[i]
    out[0] = 7.0


@cuda.jit
def all_count(x, out, total):
    i = cuda.grid(1)
    out[i] = x[i] > 0
    cuda.atomic.add(total, 0, out[i])


@cuda.jit
def sums_of_neighbours(x, out):
    i = cuda.grid(1)
    total = np.float32(0.0)
    for k in range(8):
        total += x[i + k]
    out[i] = total


def in_threads(monkeypatch: pytest.MonkeyPatch, count: int) -> list[bool]:
    """Let launches have threads; return whether their parts were independent, once they ran."""
    found: list[bool] = []
    as_ever = parts.run_parts

    def run_parts(*arguments: Any) -> bool:
        assert len(arguments[0]) == count
        found.append(as_ever(*arguments))
        return found[-1]

    monkeypatch.setenv(THREADS, str(count))
    monkeypatch.setattr(parts, "LEAST_INSTRUCTIONS", -1)
    monkeypatch.setattr(parts, "run_parts", run_parts)
    return found


@pytest.mark.parametrize(
    ("kernel", "is_independent"), [(sums_of_neighbours, True), (all_write_one, False)]
)
def test_blocks_run_in_threads_where_none_touches_what_others_write(
    kernel: Kernel, is_independent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = in_threads(monkeypatch, 3)
    agree(kernel, 8, 64, "lowering", noise(520), np.zeros(520, np.float32))
    assert found == [is_independent]


def test_atomics_of_global_memory_keep_blocks_in_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = in_threads(monkeypatch, 2)
    agree(all_count, 8, 64, "lowering", noise(512), np.zeros(512, np.int32), np.zeros(1, np.int32))
    assert not found


def test_a_fault_in_a_thread_has_the_words_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads(monkeypatch, 2)
    with pytest.raises(OutOfBoundsError, match="x"):
        evaluated(
            sums_of_neighbours, 8, 64, "lowering",
            (noise(512), np.zeros(512, np.float32)),
        )  # fmt: skip


@pytest.mark.parametrize("said", ["0", "two", "65", "1.5"])
def test_a_number_of_threads_that_is_none_is_refused(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(THREADS, said)
    with pytest.raises(InputError, match="a number of 1 to 64"):
        threads()


@cuda.jit
def places_in_a_block(out):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    out[(cuda.blockIdx.x * cuda.blockDim.y + y) * cuda.blockDim.x + x] = 100 * y + x


@pytest.mark.parametrize("code", CODES)
def test_warps_begin_as_their_launch_says_in_the_module_of_another_one(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs_in(monkeypatch, COMPILED)
    for width, height in ((32, 2), (8, 8), (8, 8), (16, 3)):
        out, went = np.zeros(2 * width * height, np.int32), Went()
        launched = places_in_a_block[2, (width, height)]
        run(prepare(launched, (out,), HOPPER, code=code), observers=(went,))
        assert went.over
        expected = 100 * np.arange(height)[:, None] + np.arange(width)
        np.testing.assert_array_equal(out.reshape(2, height, width), [expected, expected])


def test_every_evaluator_has_a_content_so_that_modules_are_kept_on_disk() -> None:
    """Closures of one function, and lambdas, differ by what is in them."""
    content = modules._Content()
    for one in (*OPS.values(), *MNEMONICS.values()):
        if one.evaluate is not None:
            content.of(one.evaluate)
    assert content.of(OPS["SEL"].evaluate) != content.of(OPS["POPC"].evaluate)


def test_all_of_a_translation_but_its_text_is_kept_on_disk() -> None:
    made_anew = {"text", "constants", "begun", "rows_of_sums"}
    names = {one.name for one in fields(Translation)}
    assert set(modules._plain(Translation())) == names - made_anew


def test_an_invalid_module_is_no_reason_to_run_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a limit of WebAssembly is; everything else fails the test that comes upon it."""

    @cuda.jit
    def kernel(x):
        x[cuda.grid(1)] = 1

    def launched(text: str) -> tuple[list[Any], bool]:
        monkeypatch.setattr(modules, "loaded", lambda variant: None)
        monkeypatch.setattr(modules, "translated", lambda *_, **__: Translation(text=text))
        given, _, went = evaluated(kernel, 1, 32, "lowering", (np.zeros(32, np.int32),))
        return given[0].tolist(), went

    with pytest.raises(pytest.fail.Exception, match="an invalid module: unknown local"):
        launched("(module (func (local.get $nobody)))")
    assert launched(f"(module (func {'(local i32)' * 60_000}))") == ([1] * 32, False)
