"""The catalogue on compute capabilities 10.0 and 12.0, in nvcc's code for them."""

from __future__ import annotations

import pytest
from strategies import RIGHT

import gpusim
from gpusim.catalogue import Entry, find, sample
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

NEWER = [find(name) for name in ("reduce_redux", "reduce_cluster", "reduce_bulk")]
PLAIN = {  # of a plain run, which takes a second for each
    "10.0": ("reduce1", "reduce5_fixed", "kernel4", "lookback_scan", "reduce_cluster"),
    "12.0": ("reduce6", "reduction1", "step5_fixed", "naive_scan", "reduce_bulk"),
}


@pytest.mark.parametrize(
    ("entry", "cc"),
    [
        pytest.param(
            entry,
            cc,
            id=f"{entry.name}-{cc}",
            marks=[] if entry.name in names else pytest.mark.slow,
        )
        for cc, names in PLAIN.items()
        for entry in (*RIGHT, *NEWER)
    ],
)
def test_a_kernel_gives_what_its_oracle_says_on_a_newer_gpu(entry: Entry, cc: str) -> None:
    """Two blocks and a part of one; of a scan in one block, a block that is not full."""
    block = None if entry.one_block else 64
    n = 60 if entry.one_block else 2 * 64 * entry.per_thread + 5
    call = entry.call(sample(n, entry.dtypes[0]), block=block)
    trace = gpusim.trace(call.configured, *call.arguments, cc=cc, code="nvcc")
    assert trace.cc == cc
    assert trace.generator.startswith("NVRTC")
    assert call.wrong() == 0
