"""What observers are called with: hooks that are empty by default, rows, and barriers that open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.codegen.programs import prepare
from gpusim.errors import InputError, LaunchError
from gpusim.launch.configured import ConfiguredKernel
from gpusim.launch.events import BarrierOpened, Observer, Placement, Step, hooks
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import Schedule, run


class Openings(Observer):
    """Notes which blocks pass a barrier, at which lines, and after which op."""

    def __init__(self) -> None:
        self.seen: list[tuple[list[int], set[int], str]] = []

    def begin(self, program, launch) -> None:
        self.lines = [instruction.line for instruction in program.instructions]

    def barrier_opened(self, opened: BarrierOpened) -> None:
        lines = {self.lines[pc] for pc in opened.pcs.tolist()}
        self.seen.append((opened.blocks.tolist(), lines, opened.after.instruction.op))


def openings(configured: ConfiguredKernel, *args: object, blocks: int | None = None) -> list:
    observer = Openings()
    prepared = prepare(configured, args, ComputeCapability(9, 0))
    run(prepared, observers=[observer], schedule=Schedule(chunk=blocks))
    first = configured.kernel.source.first_line
    return [(found, {line - first for line in lines}, op) for found, lines, op in observer.seen]


def test_a_barrier_opens_for_all_blocks_at_once_that_came_to_it_together() -> None:
    @cuda.jit
    def kernel(out):
        cuda.syncthreads()
        out[0] = 1

    out = np.zeros(1, np.int32)
    assert openings(kernel[3, 64], out) == [([0, 1, 2], {2}, "BAR")]
    assert openings(kernel[3, 64], out, blocks=2) == [([0, 1], {2}, "BAR"), ([2], {2}, "BAR")]


def test_a_barrier_opens_for_each_block_when_its_last_warp_comes() -> None:
    """Block 0 takes a longer path than block 1 before its barrier."""

    @cuda.jit
    def kernel(out):
        if cuda.blockIdx.x == 0:
            for _ in range(out[0]):
                out[1] += 1
        cuda.syncthreads()

    out = np.array([9, 0], np.int32)
    assert openings(kernel[2, 64], out) == [([0], {5}, "BAR"), ([1], {5}, "BAR")]


def test_a_barrier_opens_too_when_those_who_are_missing_leave() -> None:
    """Warp 1 waits at line 7 for warp 0, which returns; each side of a branch has its barrier."""

    @cuda.jit
    def kernel(out):
        if cuda.threadIdx.x < 32:
            for _ in range(out[0]):
                out[1] += 1
            return
        cuda.syncthreads()
        out[2] = 1

    out = np.array([9, 0, 0], np.int32)
    assert openings(kernel[1, 64], out) == [([0], {6}, "EXIT")]
    assert out[2] == 1


def test_rows_know_their_blocks_and_warps() -> None:
    folded = Placement(np.array([4, 5, 6]), 2, folded=True)
    assert folded.block_of(np.array([0, 1])).tolist() == [[4], [5], [6]]
    assert folded.warp_of(np.array([0, 1])).tolist() == [0, 1]
    unfolded = Placement(np.array([4, 5, 6]), 2, folded=False)
    assert unfolded.block_of(np.array([1, 2, 5])).tolist() == [[4, 5, 6]]
    assert unfolded.warp_of(np.array([1, 2, 5])).tolist() == [1, 0, 1]


def test_hooks_that_nobody_overrides_are_never_called() -> None:
    class Quiet(Observer):
        pass

    class Counting(Observer):
        def step(self, step: Step) -> None:
            pass

    quiet, counting = Quiet(), Counting()
    assert hooks([quiet, counting], "step") == [counting.step]
    assert hooks([quiet, counting], "barrier_opened") == []


def test_an_observer_without_hooks_may_listen() -> None:
    @cuda.jit
    def kernel(out):
        cuda.syncthreads()
        out[0] = 1

    out = np.zeros(1, np.int32)
    gpusim.trace(kernel[1, 32], out, observers=[Observer()])
    assert out[0] == 1


@pytest.mark.parametrize("launch", [gpusim.trace, gpusim.predict, gpusim.check])
def test_a_kernel_without_a_grid_is_refused_with_what_to_write(launch: Callable[..., Any]) -> None:
    @cuda.jit
    def kernel(out):
        out[0] = 1

    with pytest.raises(LaunchError, match=r"^give a grid and a block: kernel\[grid, block\]"):
        launch(kernel, np.zeros(1, np.int32))


@pytest.mark.parametrize(("launch", "kind"), [(gpusim.trace, "Observer"), (gpusim.predict, "Span")])
@pytest.mark.parametrize("wrong", [object, object()])
def test_what_is_no_observer_is_refused(
    launch: Callable[..., Any], kind: str, wrong: object
) -> None:
    @cuda.jit
    def kernel(out):
        out[0] = 1

    with pytest.raises(InputError, match=f"observers are objects of subclasses of {kind}"):
        launch(kernel[1, 32], np.zeros(1, np.int32), observers=[wrong])
