"""Masks of warp barriers, from PTX."""

from __future__ import annotations

import pytest

from gpusim.sass.cubin import KernelCode
from gpusim.sass.decoding import Micro
from gpusim.sass.listing import Place, Row
from gpusim.sass.masks import masks
from gpusim.sass.ptx import Ptx


@pytest.mark.parametrize(
    ("text", "found"),
    [("bar.warp.sync 15;", {0: 15}), ("bar.sync 0;", {}), ("barrier.sync 1;", {})],
)
def test_the_number_of_a_blocks_barrier_is_no_mask_of_lanes(
    text: str, found: dict[int, int]
) -> None:
    """Compilers let a warp converge before a barrier of the block, by a NOP of the same line."""
    row = Row(0, "NOP", (), (), None, Place("k.cu", 1), "NOP", ptx_line=1)
    kernel = KernelCode("k", 8, (), 0, 0)
    assert masks([Micro("NOP", 0)], [row], Ptx(text), kernel, 90) == found
