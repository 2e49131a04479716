"""What one SM has of the memory hierarchy, from the addresses that a grid touches."""

from __future__ import annotations

import pytest

from gpusim import cuda, device
from gpusim.arguments import array_spec
from gpusim.launch import ComputeCapability
from gpusim.prediction.memory import MemoryShare, memory_share
from gpusim.prediction.streams import classify
from gpusim.programs import prepare

H200 = device.load("h200")
CC = ComputeCapability(9, 0)
BLOCKS = 528  # four for each SM


@cuda.jit
def copy(a, out):
    i = cuda.grid(1)
    out[i] = a[i]


@cuda.jit
def look_up(table, out):
    out[cuda.grid(1)] = table[cuda.threadIdx.x]


def share_of(
    kernel: cuda.Kernel, first: int, *, l2: str = "cold", resident: int = 4, blocks: int = BLOCKS
) -> MemoryShare:
    """Return the share of an SM where blocks of 64 threads run a kernel on so many int32."""
    arrays = array_spec(first, "int32"), array_spec(64 * blocks, "int32")
    prepared = prepare(kernel[blocks, 64], arrays, CC)
    return memory_share(prepared, classify(prepared), H200, resident, l2)


def test_bandwidth_is_shared_by_the_sms_that_have_a_block() -> None:
    cycles_per_us = H200.gpu.sm_clock_mhz
    whole = share_of(copy, 64 * BLOCKS)
    assert whole.sms == 132
    assert whole.dram_bytes_per_cycle == pytest.approx(4580e3 / cycles_per_us / 132)
    assert whole.l2_bytes_per_cycle == pytest.approx(9330e3 / cycles_per_us / 132)
    few = share_of(copy, 64 * 2, blocks=2)
    assert few.sms == 2
    assert few.dram_bytes_per_cycle == few.l2_bytes_per_cycle == 123  # what one SM receives


def test_what_blocks_read_once_comes_from_dram() -> None:
    assert share_of(copy, 64 * BLOCKS).whole.l2_miss == 1


def test_what_all_blocks_read_misses_once_and_is_found_by_later_ones() -> None:
    """Each block reads 256 bytes: one of 528 brings them; an SM's four find them but once."""
    (table,) = (s for pc, s in share_of(look_up, 64).by_pc.items() if pc >= 0 and s.l1_hit)
    assert table.l2_miss == pytest.approx(1 / 528)
    assert table.l1_hit == pytest.approx(3 / 4)
    assert table.first_l2_miss == 1


@pytest.mark.parametrize(("filled", "miss"), [(0.1, 0), (0.75, 0), (0.8, 0.5), (0.85, 1), (1, 1)])
def test_a_warm_l2_has_what_fills_three_quarters_of_it_and_beyond_little_more(
    filled: float, miss: float
) -> None:
    """A block reads 256 bytes and writes 256."""
    blocks = int(filled * H200.capacity.l2_bytes / 512)
    share = share_of(copy, 64 * blocks, l2="warm", blocks=blocks)
    assert share.whole.l2_miss == pytest.approx(miss, abs=1e-4)


def test_half_of_the_l2_keeps_what_is_written() -> None:
    """Of what fills it twice three quarters go on to DRAM before the launch ends."""
    blocks = 2 * H200.capacity.l2_bytes // 512
    assert share_of(copy, 64 * blocks, blocks=blocks).written_back == pytest.approx(0.75)
    assert share_of(copy, 64 * BLOCKS).written_back == 0


def test_the_sm_with_the_last_blocks_has_what_the_others_leave() -> None:
    """Of 132 SMs 12 have a block more than the others: their last one has all the bandwidth."""
    share = share_of(copy, 64 * 540, blocks=540)
    assert share.busiest == 12
    assert share.gain(5, 4) == 1
    assert share.gain(1, 4) == 11
