"""Runs of single blocks serve blocks of other launches: the same streams as if each were run."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ComputeCapability, array_spec, cuda
from gpusim.catalogue import Request
from gpusim.codegen.programs import prepare
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams import parametric, probe
from gpusim.prediction.streams.probe import Probe, touched_by
from gpusim.prediction.streams.stretches import COLUMNS
from gpusim.prediction.sweeps.jobs import job_of

CC = ComputeCapability(9, 0)
BLOCK = 64


@cuda.jit
def halves(x, y, n):
    """The second half of the elements is read backwards: addresses fall as n grows."""
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i] + x[n - 1 - i]


@cuda.jit
def every_third(x, y, n):
    """Blocks part at a third of n, which is no linear function of it."""
    i = cuda.grid(1)
    if i < n // 3:
        y[i] = x[i]
    elif i < n:
        y[i] = x[i] * x[i]


@cuda.jit
def by_grid(x, y, n):
    """A loop over the grid's strides: as many iterations as n asks for."""
    total = 0
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        total += x[i]
    y[cuda.grid(1)] = total


@cuda.jit
def rows_of_33(x, y, n):
    i = cuda.blockIdx.x * 33 + cuda.threadIdx.x
    if cuda.threadIdx.x < 33 and i < n:
        y[i] = x[i]


@cuda.jit
def parted(x, y, n):
    """Lanes of a warp part, by their place."""
    i = cuda.grid(1)
    if i < n:
        if i % 2:
            for k in range(4):
                y[i] += x[i] * k
        else:
            y[i] = x[i]


@cuda.jit
def of_data(x, y, n):
    i = cuda.grid(1)
    if i < n and x[i] > 0:
        y[i] = 1


def launch(kernel: object, n: int, grid: int | None = None) -> Prepared:
    blocks = grid or -(-n // BLOCK)
    made = array_spec((n,), np.int32), array_spec((n,), np.int32), np.int32(n)
    return prepare(kernel[blocks, BLOCK], made, CC, code="lowering")  # type: ignore[index]


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> None:
    parametric._kept.cache_clear()


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Note the blocks that are executed."""
    made: list[list[int]] = []
    run = parametric.machine.run

    def noted(*args: object, **settings: object) -> None:
        made.append(list(settings["blocks"]))  # type: ignore[call-overload]
        run(*args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(parametric.machine, "run", noted)
    return made


def facts(prepared: Prepared, blocks: list[int]) -> list[object]:
    """Return all that is recorded of some blocks."""
    found = Probe(prepared, 10**6, skips=True)
    found.run(np.array(blocks))
    touched = touched_by(prepared, blocks)
    stretches = [[getattr(touched[b], name).tolist() for name in COLUMNS] for b in blocks]
    keys = [found.streams[kind].key for kind in found.kinds(np.array(blocks)).tolist()]
    return [keys, stretches, [touched[b].steps for b in blocks], found.is_compiled]


def facts_alone(prepared: Prepared, blocks: list[int]) -> list[object]:
    """Return the same where every block is executed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "runs_of", lambda _: None)
        return facts(prepared, blocks)


def test_no_more_blocks_are_run_alone_where_others_are_not_like_them(
    executed: list[list[int]],
) -> None:
    """Rows of 33 elements begin at 32 places of a line."""
    found = Probe(launch(rows_of_33, 33 * 64, 64), 10**6, skips=True)
    found.run(np.arange(8))
    found.run(np.arange(8, 16))
    assert executed == [*([k] for k in range(probe.MOST_FOLLOWED)), [*range(8)], [*range(8, 16)]]


@pytest.mark.parametrize("kernel", [halves, every_third, by_grid, parted])
def test_blocks_of_all_sizes_have_the_streams_of_their_own_execution(kernel: object) -> None:
    grids = [6] if kernel is by_grid else [None]
    for n in (640, 64 * 100, 1000, 1001, 4096, 7 * 64, 2**20 + 5):
        prepared = launch(kernel, n, *grids)
        last = prepared.launch.blocks - 1
        blocks = sorted({0, 1, last // 3, last // 2, last - 1, last})
        assert facts(prepared, blocks) == facts_alone(prepared, blocks)


@pytest.mark.parametrize(
    "name",
    ["reduce1", "reduce6", "reduction1", "kernel1", "reduce_coarsening_gpu"],
)
def test_kernels_of_the_catalogue_do_too(name: str) -> None:
    for n in (2**12, 2**20, 100_000):
        job = job_of(Request(name, n, 128)).in_code("lowering")
        prepared = job.launches[0].prepared(CC)
        last = prepared.launch.blocks - 1
        blocks = sorted({0, last // 2, last - 1, last} - {-1})
        assert facts(prepared, blocks) == facts_alone(prepared, blocks)


def test_one_run_serves_all_full_blocks_of_all_sizes(executed: list[list[int]]) -> None:
    job = job_of(Request("reduce3", 2**12, BLOCK)).in_code("lowering")
    facts(job.launches[0].prepared(CC), [0, 1, 31])
    assert executed == [[0]]
    larger = job_of(Request("reduce3", 2**24 + 1, BLOCK)).in_code("lowering")
    last = larger.launches[0].prepared(CC).launch.blocks - 1
    facts(larger.launches[0].prepared(CC), [0, 77, last - 1, last])
    assert executed == [[0], [last]]  # it has a single element


@pytest.mark.parametrize("name", ["reduction1", "reduce_gpu"])
def test_one_run_serves_all_sizes_where_lanes_part(name: str, executed: list[list[int]]) -> None:
    for n in (2**12, 2**22):
        job = job_of(Request(name, n, BLOCK)).in_code("lowering")
        facts(job.launches[0].prepared(CC), [0, 1, 31])
    assert executed == [[0]]


def test_accesses_of_an_array_that_move_apart_are_executed(executed: list[list[int]]) -> None:
    facts(launch(halves, 640), [0, 9])
    facts(launch(halves, 6400), [99])
    assert executed == [[0], [9], [99]]  # the halves of x come nearer to each other


def test_blocks_of_which_one_cannot_be_followed_are_run_together(
    executed: list[list[int]],
) -> None:
    """Loops are left out at steps that all blocks of a run share."""
    facts(launch(by_grid, 640, 6), [0, 5])
    executed.clear()
    long = launch(by_grid, 64 * 6 * 100, 6)
    facts(long, [0, 5])
    assert [blocks for blocks in executed if len(blocks) > 1] == [[0, 5]] * 2


def test_a_kernel_that_its_data_decide_is_executed(executed: list[list[int]]) -> None:
    x = np.arange(256, dtype=np.int32)
    made = prepare(of_data[4, BLOCK], (x, x.copy(), np.int32(256)), CC, code="lowering")
    assert parametric.runs_of(made) is None
    facts(made, [0, 3])
    assert executed == [[0, 3]] * 2
