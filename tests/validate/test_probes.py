"""What probes read off cycles: on a GPU whose law is known they find its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from validate.bench import Array, Bench
from validate.probes import (
    atomics,
    fetching,
    l1,
    l2,
    staging_in_bulk,
    stores,
    thread_block_clusters,
    under_way,
)

SMS = 132
Law = Callable[[str, tuple[Any, ...], int], Array]


class Backend:
    """A driver that knows how many threads an SM holds, and has nothing to empty."""

    def empty_l2(self) -> None:
        """Do nothing."""

    compute_capability = "9.0"

    def attribute(self, name: str) -> int:
        """Return what an H200's driver does."""
        return {
            "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
            "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
            "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 228 * 1024,
        }[name]


class Known(Bench):
    """A bench of which each kernel tells what a law gives: its name, its arguments, its grid."""

    def __init__(self, law: Law) -> None:
        self.backend: Any = Backend()
        self.sms, self.notes, self._law = SMS, {}, law
        self.values = {"bandwidth.l2_atomic_units": 80.0}

    def probe(self, file: str, expression: str) -> Any:
        return lambda *arguments, **launch: None

    def allow_cluster(self, file: str, expression: str, blocks: int) -> Any:
        return self.probe(file, expression)

    def prepare(self, file: str, *expressions: str) -> None:
        """Compile nothing."""

    def buffer(self, size: int) -> Any:
        return 0

    stamps = buffer

    def told(
        self, file: str, expression: str, numbers: int, *arguments: Any, grid: int = 1, **_: Any
    ) -> Array:
        numbers_only = arguments[0 if isinstance(arguments[0], np.number) else 1 :]
        found = self._law(expression, numbers_only, grid)
        return np.broadcast_to(found, numbers) if found.ndim < 1 else found

    def span(self, file: str, expression: str, *arguments: Any, **_: Any) -> float:
        return float(self._law(expression, arguments, 1))


def test_lines_that_are_far_become_fewer_with_each_load_of_them() -> None:
    """A quarter of 67,584 loads takes 200 cycles longer, after 4 loads of a line e times fewer."""
    drawn = np.random.default_rng(1)

    def law(_: str, arguments: tuple[Any, ...], grid: int) -> Array:
        lines, steps = int(arguments[0]), int(arguments[3])
        touched = np.arange(steps) * grid / lines
        chance = 0.25 * np.exp(-touched / 4) if grid > 1 else 0.0 * touched
        return (300 + 200 * (drawn.random((grid, steps)) < chance)).reshape(-1).astype(np.int64)

    assert l2.l2_copies_by_touches(Known(law)) == pytest.approx([0.25, 4], rel=0.05)


def test_the_last_of_several_lines_tells_how_far_their_places_differ() -> None:
    def law(_: str, arguments: tuple[Any, ...], grid: int) -> Array:
        count = int(arguments[1])
        return np.array(300 + 27 * (count - 1) / (count + 1))

    assert l2.l2_lines_at_once(Known(law)) == pytest.approx([27])


def test_of_what_shared_memory_leaves_the_l1_some_holds_no_lines() -> None:
    """256 KB less the carve-out of Hopper's sizes, less 8: 28 KB are left where 224 are shared."""
    by_one = [224, 192, 28, 28, 28, 60, 60, 60, 28, 124, 92, 60, 28, 28]
    by_32 = [248, 248, 224, 192, 156, 156, 124, 60, 28, 124, 92, 60, 28, 28]
    told = iter([(1, left) for left in by_one] + [(32, left) for left in by_32])

    def law(_: str, arguments: tuple[Any, ...], grid: int) -> Array:
        warps, left = next(told)
        return np.tile([left - 8, 0, 512 - (left - 8), 0], warps)

    bench = Known(law)
    assert l1.l1_beside_shared_memory(bench) == [8192]


def test_a_further_constant_of_a_load_is_the_slope_of_what_loads_take() -> None:
    def law(_: str, arguments: tuple[Any, ...], grid: int) -> Array:
        lanes, rounds = int(arguments[0]), int(arguments[2])
        return np.array(500 + rounds * (26 + 11 * lanes))

    assert fetching.constants_of_a_load(Known(law)) == pytest.approx([11])


@pytest.mark.parametrize(("late", "one_in"), [((4,), 4), ((2,), 2), ((), 1)])
def test_constants_come_in_pieces_of_which_one_is_late(late: tuple[int, ...], one_in: int) -> None:
    cycles = np.array([160 + k % 3 for k in range(64)])
    for apart in late:
        cycles[::apart] = 800
    cycles = cycles if late else np.full(64, 160)
    assert fetching.late_one_in(cycles) == one_in


def test_atomics_are_set_against_those_on_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 units 32 places have 16, and 8 lines 2 or 4 by where they begin.

    A whole sector takes four fifths of one of which some words are updated; 8 sectors leave an SM
    as 10 packets.
    """

    def of_lanes(
        _: Bench, steps: tuple[int, int, int], words: int, apart: int, **more: int
    ) -> float:
        if "sms" in more:
            return apart + 2
        if words == 8 and apart == 4:
            return 1.2 if steps[0] == 8 else 1.5
        if "first" in more:
            return 4 * 1.2 / (4 if more["first"] % 1024 else 2)
        return 1.5 * (1 / 80 + 2 / words) if words > 1 else 1.5

    monkeypatch.setattr(atomics, "of_lanes", of_lanes)
    bench = Known(lambda *_: np.zeros(1))
    assert atomics.atomics_in_few_places(bench) == pytest.approx([2, 8**0.5])
    assert atomics.atomics_on_whole_sectors(bench) == pytest.approx([0.8])


def test_lines_that_are_read_beside_atomics_count_in_parts_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row is a line of two halves; 32 lanes' atomics take 0.64 cycles, 0.02 each."""

    def among_loads(_: Bench, rows: int, size: int) -> float:
        return 0.64 + rows * 0.02 * (0.7 if size < 2**30 else 1.9)

    monkeypatch.setattr(atomics, "_among_loads", among_loads)
    assert atomics.atomics_among_loads(Known(lambda *_: np.zeros(1))) == pytest.approx([0.7, 0.6])


def test_what_is_found_at_random_tells_where_a_cache_begins_to_lose_and_ends() -> None:
    """Of twice the cache half of all that came in since is found where it loses all at once.

    Where it loses from half of it to once and a half as much, of as much as it holds all but an
    eighth: of what came in since, half is below the half, and the rest loses a quarter.
    """
    parts = np.array([0.5, 1, 2, 4])
    assert l1.edges_at_random(parts, np.array([1, 1, 0.5, 0.25])) == pytest.approx([1, 1], abs=0.06)
    assert l1.edges_at_random(parts, np.array([1, 0.875, 0.5, 0.25])) == pytest.approx([0.5, 1.5])


def test_a_busy_l2_is_told_by_what_loads_of_all_sms_wait_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All SMs have 40 bytes a cycle each; a busy L2 takes half of 300 cycles longer."""

    def turn_cycles(_: Bench, sms: int, warps: int, ahead: int) -> float:
        cycles = 300.0
        for _ in range(50 if sms > 1 else 0):
            cycles = 300 + 150 * min(1.0, warps * ahead * 128 / cycles / 40) ** 3
        return cycles

    monkeypatch.setattr(under_way, "_turn_cycles", turn_cycles)
    bench = Known(lambda *_: np.zeros(1))
    bench.clock_mhz = 2000.0
    bench.values |= {"latency_cycles.l2": 300.0, "bandwidth.l2_gbps": 40 * 2000 * SMS / 1000}
    assert under_way.l2_under_load(bench) == pytest.approx([0.5], rel=0.01)


def test_stores_beside_loads_take_a_part_of_what_they_take_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A megabyte is read in 0.1 us, stored in 0.2, both in 0.25: three quarters of storing more."""
    us = {(1, 0): 0.1, (0, 1): 0.2, (1, 1): 0.25}
    monkeypatch.setattr(stores, "_near_us_a_mb", lambda _, reads, writes, apart: us[reads, writes])
    assert stores.stores_beside_loads(Known(lambda *_: np.zeros(1))) == pytest.approx([0.75])


def test_a_bulk_copy_has_a_start_a_rate_and_an_interval() -> None:
    """Out of an L2 of 281 cycles 16 bytes take 313: 12 are the thread's, 10 each before and after.

    Further bytes come at 100 a cycle, further copies each 55 cycles later.
    """

    def law(expression: str, arguments: tuple[Any, ...], grid: int) -> Array:
        size, count, rounds = (int(one) for one in arguments)
        return np.full(rounds, 313 + (size - 16) // 100 + 55 * (count - 1))

    bench = Known(law)
    bench.values["latency_cycles.l2"] = 281.0
    assert staging_in_bulk.bulk_loads(bench) == pytest.approx([10, 10, 100, 55], rel=0.01)


def test_a_bulk_copy_to_global_memory_is_read_at_a_rate() -> None:
    def law(expression: str, arguments: tuple[Any, ...], grid: int) -> Array:
        size, count, rounds = (int(one) for one in arguments)
        read = 51 + size // 32 + 16 * (count - 1)
        return np.tile([read, read + 11], rounds)

    assert staging_in_bulk.bulk_stores(Known(law)) == pytest.approx([30, 32, 16], rel=0.01)


def test_clusters_that_begin_late_did_not_fit() -> None:
    """Eight blocks on an SM: of clusters of 4 and 8 those on 124 of 132 SMs, of 16 on 116."""
    fits = {1: 132, 2: 132, 4: 124, 8: 124, 16: 116}

    def law(expression: str, arguments: tuple[Any, ...], grid: int) -> Array:
        blocks = int(expression[5:-1]) if expression.startswith("stay<") else 1
        at_once = fits[blocks] * (8 if grid > SMS else 1)
        late = np.arange(grid) >= at_once
        return np.stack([500 * late + 1, 500 * late + 300], axis=1).reshape(-1)

    parts = [1, 124 / 132, 124 / 132, 116 / 132]
    assert thread_block_clusters.clusters_that_fit(Known(law)) == pytest.approx(parts)


def test_a_way_to_a_peer_is_set_against_the_same_instructions_alone() -> None:
    """160 cycles each way less 90, and the 26 of an atomic in one's own shared memory."""

    def law(expression: str, arguments: tuple[Any, ...], grid: int) -> Array:
        rounds = int(arguments[0])
        each = 90 if expression.startswith("by_itself") else 2 * 160
        return np.array([100, 100 + rounds * each])

    bench = Known(law)
    bench.values["latency_cycles.shared_atomic"] = 26.0
    assert thread_block_clusters.peer_arrivals(bench) == pytest.approx([96])
