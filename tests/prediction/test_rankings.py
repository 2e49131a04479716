"""`gpusim.rank`: kernels in order of their time."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.catalogue import Request


@cuda.jit
def copies(source, target):
    i = cuda.grid(1)
    target[i] = source[i]


@cuda.jit
def copies_far(source, target):
    i = cuda.grid(1)
    target[i * 8] = source[i * 8]


ARRAYS = (gpusim.array_spec((2**17,), np.float32), gpusim.array_spec((2**17,), np.float32))


def test_kernels_of_the_catalogue_come_slowest_first() -> None:
    requests = [Request(name, 2**16, 128) for name in ("reduce3", "reduce1")]
    done: list[str] = []
    ranking = gpusim.rank(requests, device="k40m", progress=done.append)
    assert [one.job.name for one in ranking.forecasts] == ["reduce1", "reduce3"]
    assert ranking.step(1) > 1
    assert done == ["reduce3", "reduce1"]


def test_launches_of_ones_own_share_their_arguments() -> None:
    ranking = gpusim.rank([copies[64, 256], copies_far[64, 256]], *ARRAYS, code="lowering")
    assert [one.job.name for one in ranking.forecasts] == ["copies_far", "copies"]
    alone = gpusim.predict(copies[64, 256], *ARRAYS, code="lowering")
    assert ranking.forecasts[-1].time_us == alone.time_us


def test_a_kernel_that_cannot_run_is_among_the_failures() -> None:
    ranking = gpusim.rank(["reduce1", "reduce99"])
    assert [one.job.name for one in ranking.forecasts] == ["reduce1"]
    [(name, reason)] = ranking.failures
    assert (name, "there is no kernel" in reason) == ("reduce99", True)


def test_where_no_kernel_can_run_the_first_error_is_raised() -> None:
    with pytest.raises(gpusim.GpusimError, match="reduce99"):
        gpusim.rank(["reduce99", "reduce98"])
    with pytest.raises(gpusim.GpusimError, match="no kernels to rank"):
        gpusim.rank([])
