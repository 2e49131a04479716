"""Streams and stretches of blocks in compiled code, against the ones of NumPy's machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evaluators import COMPILED, INTERPRETED, runs_in

from gpusim import cuda, machine
from gpusim.codegen.programs import prepare
from gpusim.isa.ops import OPS
from gpusim.launch.arguments import array_spec
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.machine.compiled import evaluator
from gpusim.prediction.streams import BlockStream, Recorder, Stretches, TouchRecorder, classify
from gpusim.prediction.streams.probe import without_results
from gpusim.prediction.streams.stretches import COLUMNS

N = 96  # threads: three warps
BLOCKS = 5
RANDOM = np.random.default_rng(5)
LOTS = RANDOM.integers(0, 4000, 4096).astype(np.int32)
ROUNDS = np.repeat(RANDOM.integers(3, 40, BLOCKS * N // 32), 32).astype(np.int32)  # alike in a warp


@cuda.jit
def fewer(rounds, out):
    """A lane leaves in each iteration: no two of them are of the same lanes."""
    i = cuda.grid(1)
    total = i
    for k in range(rounds[i]):
        for _ in range(20):
            total = (total ^ k) * 5 + (total >> 3)
            total = (total ^ k) * 7 + (total >> 5)
    out[i] = total


@cuda.jit
def walk(rounds, links, out):
    """Each warp follows links as often as its number of rounds: gathers and scattered stores."""
    i = cuda.grid(1)
    at = links[i]
    for _ in range(rounds[i]):
        at = links[(at * 5 + i) % 4096]
        out[at] = at
    out[i] = at


@cuda.jit
def tree(rounds, links, out):
    """Warps wait for each other at barriers after rounds of their own, on shared memory."""
    shared = cuda.shared.array(96, "int32")
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    shared[t] = links[i]
    cuda.syncthreads()
    for k in range(4):
        total = 0
        for n in range(rounds[i] % (7 + k)):
            total += links[(total + n * 96 + shared[(t * 3) % 96]) % 4096]
        cuda.syncthreads()
        shared[t] = total
        cuda.syncthreads()
        if t < 32:
            shared[t] += shared[t + 32 + k]
        cuda.syncthreads()
    out[i] = shared[t]


@cuda.jit
def counts(rounds, links, out):
    """Atomics on global and shared memory: all lanes on one address, or on any."""
    bins = cuda.shared.array(32, "int32")
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    if t < 32:
        bins[t] = 0
    cuda.syncthreads()
    at = links[i]
    for _ in range(rounds[i]):
        at = links[(at + i) % 4096]
        cuda.atomic.add(bins, at % 32, 1)
        cuda.atomic.add(out, at, 1)
        cuda.atomic.add(out, 0, 1)
    cuda.syncthreads()
    if t < 32:
        cuda.atomic.add(out, t, bins[t])


@cuda.jit
def kept(rounds, links, out):
    """An array of each thread, in local memory, at indices that data give."""
    own = cuda.local.array(8, "float64")
    i = cuda.grid(1)
    at = links[i]
    for k in range(8):
        own[k] = at + k
    for _ in range(rounds[i]):
        at = links[(at + i) % 4096]
        own[at % 8] += at
    out[i] = int(own[at % 8])


@cuda.jit
def parting(rounds, links, out):
    """Lanes take sides by their data: paths of a warp run one after the other."""
    i = cuda.grid(1)
    at = links[i]
    for _ in range(rounds[i]):
        if at % 3 == 0:
            at = links[(at + i) % 4096]
            out[at] = at
        else:
            at = links[(at * 7 + 1) % 4096] + 1
    out[i] = at


@cuda.jit
def parting_deeply(rounds, links, out):
    """Sides within sides, with loops that lanes leave by themselves, early ends and votes."""
    i = cuda.grid(1)
    at = links[i]
    if at % 11 == 0:
        out[i] = at
        return
    for k in range(rounds[i]):
        if at % 3 == 0:
            for _ in range(at % 5):
                at = links[(at + i) % 4096]
                if at % 7 == 0:
                    break
                out[at] = at
        elif at % 5 == 0:
            if k % 2 == 0:
                at = links[(at * 7 + 1) % 4096]
            else:
                out[(at * 3) % 4096] = 1
            at += 1
        else:
            at = links[(at * 7 + 1) % 4096] + 1
            if at % 13 == 0:
                continue
            at += cuda.ballot_sync(cuda.activemask(), at % 2 == 0) & 1
        if at % 97 == 0:
            break
    out[i] = at


@cuda.jit
def even(links, out, n):
    total = 0
    i = cuda.grid(1)
    for k in range(n):
        total += links[i + k * 32]
    out[i] = total


@cuda.jit
def in_rounds(links, out, rounds, n):
    """The iterations of a round are alike; of rounds there are too few to leave any out."""
    tile = cuda.shared.array(512, np.int32)
    total = 0
    for k in range(rounds):
        tile[cuda.threadIdx.x] = links[cuda.grid(1) + k * 32]
        cuda.syncthreads()
        for j in range(n):
            total += tile[j]
        cuda.syncthreads()
    out[cuda.grid(1)] = total


class Ran:
    """Whether compiled code ran a batch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        run = evaluator.CompiledLaunch._run

        def counted(*args: Any) -> None:
            run(*args)
            self.times += 1

        monkeypatch.setattr(evaluator.CompiledLaunch, "_run", counted)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    return Ran(monkeypatch)


Both = tuple[dict[int, BlockStream], dict[int, Stretches]]


def recorded(prepared: Prepared, evaluator: str, monkeypatch: pytest.MonkeyPatch) -> Both:
    """Return streams and stretches of blocks in compiled code or in NumPy."""
    runs_in(monkeypatch, evaluator)
    streams, touches = Recorder(prepared), TouchRecorder(prepared)
    machine.run(
        without_results(prepared),
        observers=(streams, touches),
        blocks=range(prepared.launch.blocks),
    )
    return streams.streams, touches.stretches


def prepared_for(kernel: cuda.Kernel, *args: object, level: str = "O3") -> Prepared:
    return prepare(kernel[BLOCKS, N], args, ComputeCapability(9, 0), level, code="lowering")


@pytest.mark.parametrize(
    ("kernel", "level"),
    [(kernel, "O3") for kernel in (walk, tree, counts, kept, parting, parting_deeply)]
    + [(kernel, "O0") for kernel in (parting, parting_deeply)],
)
def test_streams_are_equal_bit_for_bit(
    kernel: cuda.Kernel, level: str, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs them: lanes part in one order."""
    rounds = LOTS % 30 if kernel is parting_deeply else ROUNDS
    prepared = prepared_for(kernel, rounds, LOTS, np.zeros(4096, dtype=np.int32), level=level)
    streams, touched = recorded(prepared, INTERPRETED, monkeypatch)
    others, others_touched = recorded(prepared, COMPILED, monkeypatch)
    assert ran.times == 2
    assert {b: one.key for b, one in others.items()} == {b: s.key for b, s in streams.items()}
    for block, stretches in touched.items():
        there = others_touched[block]
        assert there.steps == stretches.steps
        for name in COLUMNS:
            assert getattr(there, name).tolist() == getattr(stretches, name).tolist(), name


def test_streams_are_the_same_however_often_a_launch_was_run() -> None:
    """Nor does it matter which modules the process has loaded: lanes part here."""
    prepared = prepared_for(parting, 8 * ROUNDS, LOTS, np.zeros(4096, dtype=np.int32), level="O0")

    def keys() -> list[object]:
        classes = classify(prepared, folds=False).classes
        return [(one.ranges, one.stream.key) for one in classes]

    first = keys()
    machine.run(prepared)
    assert keys() == first


def test_arrays_without_elements_are_zeros_in_compiled_code_too(
    ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepared_for(walk, ROUNDS, LOTS, array_spec(4096, "int32"))
    streams, _ = recorded(prepared, INTERPRETED, monkeypatch)
    others, _ = recorded(prepared, COMPILED, monkeypatch)
    assert ran.times
    assert {b: one.key for b, one in others.items()} == {b: s.key for b, s in streams.items()}


def test_arrays_of_two_gigabytes_are_run_in_compiled_code(
    ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warps and records lie behind them, at addresses above 2^31, and blocks do the same."""
    launches = [prepared_for(walk, ROUNDS, LOTS, np.zeros(4096, dtype=np.int32))]
    launches.append(prepared_for(walk, ROUNDS, LOTS, array_spec(1 << 29, "int32")))
    near, far = (recorded(one, COMPILED, monkeypatch)[0] for one in launches)
    assert ran.times == 2
    assert {b: one.key for b, one in near.items()} == {b: one.key for b, one in far.items()}


def test_a_run_with_too_many_steps_to_keep_is_numpys(
    ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What compiled code recorded until then is forgotten: each step counts once."""
    from gpusim.machine.compiled import instance

    monkeypatch.setattr(instance, "MOST_RECORDED", 10)
    prepared = prepared_for(walk, ROUNDS, LOTS, np.zeros(4096, dtype=np.int32))
    others, _ = recorded(prepared, COMPILED, monkeypatch)
    streams, _ = recorded(prepared, INTERPRETED, monkeypatch)
    assert not ran.times
    assert {b: one.key for b, one in others.items()} == {b: s.key for b, s in streams.items()}


def test_accesses_of_all_kinds_are_among_the_compared(ran: Ran) -> None:
    """The kernels above would not show a column that none of them sets."""
    args = ROUNDS, LOTS, np.zeros(4096, dtype=np.int32)
    seen = {
        (OPS[row.op].kind, row.memory.space)
        for kernel in (walk, tree, counts, kept)
        for row in prepared_for(kernel, *args).program.instructions
        if row.memory is not None
    }
    kinds = {"load", "store"}
    wanted = {(kind, space) for kind in kinds for space in ("global", "shared", "local")}
    assert wanted | {("atomic", "global"), ("atomic", "shared")} <= seen
