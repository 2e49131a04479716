"""Device memory: allocations apart from each other, at addresses that are not used again."""

from __future__ import annotations

import sys

import pytest

from gpusim.driver.arena import ALIGNMENT, APART, BEGIN, DEVICE, Arena, OutOfMemoryError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="device memory is a memfd")


@pytest.fixture
def arena() -> Arena:
    return Arena(1 << 20)


def test_allocations_stand_apart_and_aligned(arena: Arena) -> None:
    first, second = arena.allocate(1, DEVICE), arena.allocate(1, DEVICE)
    assert first.address == BEGIN
    assert second.address - first.address == ALIGNMENT + APART


def test_an_address_lies_in_the_allocation_around_it_alone(arena: Arena) -> None:
    held = arena.allocate(100, DEVICE)
    assert arena.at(held.address + 99) is held
    assert arena.at(held.address + 100) is None
    assert arena.at(held.address - 1) is None
    assert arena.is_inside(held.address + 50, 50)
    assert not arena.is_inside(held.address + 50, 51)


def test_freed_memory_is_no_allocation_and_is_remembered(arena: Arena) -> None:
    held = arena.allocate(100, DEVICE)
    assert arena.free(held.address) is held
    assert arena.at(held.address) is None
    assert arena.free(held.address) is None
    assert held.address in arena.freed
    assert arena.allocate(100, DEVICE).address != held.address


def test_memory_is_zeros_and_no_more_than_the_gpu_has(arena: Arena) -> None:
    held = arena.allocate(1 << 20, DEVICE)
    assert not held.bytes.any()
    with pytest.raises(OutOfMemoryError):
        arena.allocate(1, DEVICE)
    arena.free(held.address)
    arena.allocate(1, DEVICE)
