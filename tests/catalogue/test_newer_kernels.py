"""The kernels of the catalogue with instructions of Ampere and Hopper, in nvcc's code."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpusim
from gpusim.catalogue import Request, entries, find, reduction, sample
from gpusim.checking.check import check_call
from gpusim.cli.app import main
from gpusim.errors import InputError, LaunchError
from gpusim.prediction.sweeps.jobs import catalogue_job
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason="needs NVIDIA's compiler")

NEWER = [entry.name for entry in entries() if not entry.is_lowered]
BLOCK = 64


def test_kernels_in_nvccs_code_alone_are_known() -> None:
    assert NEWER == ["reduce_bulk", "reduce_cluster", "reduce_redux"]
    assert find("reduce_redux").requires.endswith(
        "compute capability 8.0 or higher; nvcc's code (extra nvcc)"
    )


@pytest.mark.parametrize("name", NEWER)
def test_a_whole_reduction_leaves_what_numpy_finds(name: str) -> None:
    """9,000 numbers leave some partial results, with a last block that is not full."""
    made = reduction.reduce_all(Request(name, block=BLOCK), sample(9000, "int32"))
    assert reduction.is_right(made)
    assert len(made.passes) > 1


@pytest.mark.parametrize("name", NEWER)
def test_check_finds_nothing_in_nvccs_code(name: str) -> None:
    """Of the bulk copies each stage of four is filled twice."""
    call = find(name).call(sample(2048, "int32"), block=BLOCK)
    found = check_call(call)
    assert not found.found
    assert found.compiler


@pytest.mark.parametrize("name", ["lookback_scan", *NEWER])
def test_a_launch_is_predicted_on_a_gpu_that_has_its_instructions(name: str) -> None:
    """The scan's blocks wait for sums of others: its elements are the catalogue's sample."""
    forecast = catalogue_job(Request(name, 2**12, BLOCK)).on("h200")
    assert 2 < forecast.time_us < 20
    assert forecast.first.depends_on_data == (name == "lookback_scan")


@pytest.mark.parametrize(
    ("name", "device", "says"),
    [
        ("reduce_redux", "v100", "8.0"),
        ("reduce_cluster", "a10", "9.0"),
        ("reduce_bulk", "a10", "9.0"),
    ],
)
def test_an_older_gpu_is_refused(
    name: str, device: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", name, "--device", device]) == 2
    assert f"needs compute capability {says} or higher" in capsys.readouterr().err


def test_a_cluster_of_any_size_leaves_one_sum() -> None:
    """Of 4,096 numbers in 16 blocks, clusters of 4 leave four sums, of 16 one."""
    data = sample(4096, "int32")
    for cluster, results in ((4, 4), (16, 1)):
        call = find("reduce_cluster").call(data, block=BLOCK, cluster=cluster)
        gpusim.trace(call.configured, *call.arguments)
        assert call.result.tolist() == data.reshape(results, -1).sum(axis=1).tolist()
    assert find("reduce_cluster").setup(4097, block=BLOCK, cluster=4).grid == 20


def test_a_cluster_that_a_kernel_does_not_take_is_refused() -> None:
    with pytest.raises(LaunchError, match="a cluster has 1 to 16 blocks, not 17"):
        find("reduce_cluster").setup(cluster=17)
    with pytest.raises(InputError, match="reduce3 has no clusters"):
        find("reduce3").setup(cluster=2)


def test_the_cluster_of_an_option_reaches_every_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    launch = ["reduce_cluster", "-n", "4096", "--block", "64", "--cluster", "16"]
    for command in ("trace", "predict", "check", "run"):
        assert main([command, *launch]) == 0
        assert re.search(r"grid 16\b|\b16 blocks", capsys.readouterr().out), command
    assert main(["rank", *launch, "--code", "nvcc", "--json"]) == 0


def test_redux_replaces_the_shuffles_of_a_warp() -> None:
    call = find("reduce_redux").call(np.arange(256, dtype=np.int32), block=BLOCK)
    trace = gpusim.trace(call.configured, *call.arguments)
    assert call.result.tolist() == [32640]
    assert trace.counters["shuffles"] == 0


def test_bulk_copies_load_what_no_thread_loads() -> None:
    call = find("reduce_bulk").call(np.arange(4096, dtype=np.int32), block=BLOCK, coarse=2)
    trace = gpusim.trace(call.configured, *call.arguments)
    assert call.result.tolist() == call.expected().values.tolist()
    assert trace.counters["global_load_instructions"] == 0
