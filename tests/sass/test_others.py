"""Kernels of other kinds, in nvcc's own code: results as NumPy's, counters beside Nsight's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_file
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.trace import trace
from validate.others import errors
from validate.others.compare import configured
from validate.others.plans import KERNELS, SEEN, Launch, differing, three

pytestmark = [
    pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL),
    pytest.mark.slow,
]
BY_METRIC = {spec.ncu: name for name, spec in COUNTERS.items() if spec.ncu}
THREADS = "thread_instructions", "thread_instructions_guard_on"
ISSUED = "instructions", "branches", "divergent_branches", *THREADS
MOST_ARBITRATION = 1.17  # of the wavefronts that addresses and masks need, there are so many


@dataclass(frozen=True)
class Reason:
    """Why counters of some kernels are off, and by how much at most, as a part of Nsight's.

    `counters` are names, or what they begin with.
    """

    counters: tuple[str, ...]
    most: Mapping[str, float]

    def excuses(self, name: str, counter: str, measured: int, simulated: int) -> bool:
        """Return whether a kernel's counter may be off as far as it is."""
        within = abs(measured - simulated) <= self.most.get(name, 0) * measured
        return within and counter.startswith(self.counters)


# What was counted is the code of nvcc 13.0; here it is that of the NVRTC that is installed.
VERSION = Reason(
    ISSUED,
    {
        "asian_option": 0.26, "viterbi": 0.14, "fft256": 0.025, "stereo_match": 0.02,
        "dot_int8": 0.99, "split_sort": 0.04, "hit_triangles": 0.08, "merge": 0.006, "refit": 0.04,
        "paged_attention": 0.0005, "sample_token": 0.022,
    },
)  # fmt: skip
# Whose lane swaps first decides how often a loop swaps that adds floats or claims places.
SWAPS = Reason(
    (*ISSUED, "shared_load", "shared_atomics"),
    {"group_by": 0.32, "kmeans_update": 0.47, "shared_float_sum": 1.9},
)
# Who comes first to a word in global memory decides where others store, or whether they go on.
FIRST = Reason(
    (*ISSUED, "global"),
    {
        "keep_by_tickets": 0.002, "keep_by_warps": 0.004, "count_distinct": 0.022,
        "next_level": 0.051, "refit": 0.15,
    },
)  # fmt: skip
# How often a loop that waits for other blocks goes round.
SPINNING = Reason(
    (*ISSUED, "global_load"), {"chained_scan": 0.84, "lookback_scan": 0.16, "rounds_of_grid": 0.009}
)
# A quotient or a root in its last bit decides about an iteration.
LAST_BIT = Reason(THREADS, {"implied_vol": 1e-5, "black_scholes": 1e-7})
# Parts of a warp come to one BSYNC: the hardware issues some of these together, and counts lanes
# that wait there already with those that come.
MEETING = Reason(
    ("instructions", *THREADS),
    {
        "accept_drafts": 0.0045, "btree_lookup": 0.0015, "cholesky_by_warps": 0.002,
        "collatz": 0.0002,
        "count_triangles": 0.0007, "cyclic_reduction": 1e-6, "direct_conv": 3e-5,
        "epidemics": 2e-6, "find_pattern": 0.006, "hash_lookup": 0.0003, "hit_triangles": 1e-4,
        "ising": 1e-5, "join_chains": 0.011, "lennard_jones": 0.0007, "mandelbrot": 1e-4,
        "page_rank": 0.0005, "parse_prices": 0.0022, "render_volume": 3e-6,
        "spmv_by_threads": 0.0002, "sph_density": 0.0005, "index_delimiters": 0.001,
        "independent_set": 0.006, "photons": 0.042, "parse_dates": 0.0093, "match_lines": 0.0005,
    },
)  # fmt: skip
OF_ANY_COMPILER = SWAPS, FIRST, SPINNING, LAST_BIT, MEETING


every_file = pytest.mark.parametrize("file", sorted({one.file for one in KERNELS.values()}))


@every_file
def test_results_are_what_numpy_says(file: str) -> None:
    for kernel in KERNELS.values():
        if kernel.file == file:
            launch = kernel.at(kernel.small)
            before, after = launch.filled(), launch.copied()
            configured(launch, "nvcc")(*after)
            assert differing(launch.plan, before, after) == [], kernel.name


def counted(launch: Launch, kernel: Any) -> dict[str, tuple[int, int]]:
    """Return Nsight's number and ours of the counters that differ by more than arbitration."""
    row = errors.by_launch(errors.COUNTED)[launch.key]
    made: Any = trace(kernel, *launch.copied()).counters
    pairs = {
        counter: (int(row[metric]), made[counter])
        for metric, counter in BY_METRIC.items()
        if row.get(metric)
    }
    return {
        counter: (measured, simulated)
        for counter, (measured, simulated) in pairs.items()
        if measured != simulated
        and not (
            counter.endswith("_wavefronts")
            and simulated <= measured <= MOST_ARBITRATION * simulated
        )
    }


def without_excuse(
    name: str, off: dict[str, tuple[int, int]], *reasons: Reason
) -> dict[str, tuple[int, int]]:
    """Return the counters that are off for none of some reasons."""
    return {
        counter: pair
        for counter, pair in off.items()
        if not any(reason.excuses(name, counter, *pair) for reason in reasons)
    }


@every_file
def test_counters_equal_nsights_but_for_reasons_that_are_named(file: str) -> None:
    for kernel in KERNELS.values():
        if kernel.file == file and kernel.part == SEEN:
            has_reasons(kernel.name)


def has_reasons(name: str) -> None:
    """Each reason that is named for a kernel is needed, but that compilers may be alike."""
    launch = KERNELS[name].at(min(KERNELS[name].sizes))
    off = counted(launch, configured(launch, "nvcc"))
    assert without_excuse(name, off, VERSION, *OF_ANY_COMPILER) == {}, name
    assert bool(off) or not any(name in reason.most for reason in OF_ANY_COMPILER), name
    if name in MEETING.most and name not in VERSION.most:
        more, more_on = (off.get(counter, (0, 0)) for counter in THREADS)
        assert more[0] - more[1] == more_on[0] - more_on[1] >= 0


NVCC = shutil.which("nvcc")


def is_the_one_measured_with() -> bool:
    """Return whether nvcc 13.0 is there."""
    if NVCC is None:
        return False
    said = subprocess.run([NVCC, "--version"], capture_output=True, text=True)
    return "release 13.0" in said.stdout


@pytest.mark.skipif(not is_the_one_measured_with(), reason="nvcc 13.0 is not on PATH")
@pytest.mark.parametrize("name", VERSION.most)
def test_code_of_the_nvcc_that_was_measured_counts_as_nsight_does(
    name: str, tmp_path: Path
) -> None:
    launch, cubin = KERNELS[name].at(min(KERNELS[name].sizes)), tmp_path / "code.cubin"
    command = [NVCC, "-cubin", "-O3", "-arch=sm_90", "-std=c++17", "-o", str(cubin)]
    subprocess.run([*command, str(launch.kernel.source)], check=True)
    code = cuda_file(cubin)
    symbol = next(one for one in code.names if one.startswith(launch.kernel.mangled))
    off = counted(launch, code[symbol][three(launch.plan.grid), three(launch.plan.block)])
    assert without_excuse(name, off, *OF_ANY_COMPILER) == {}
