"""L1 and L2 miss ratios of each instruction, from reuse times.

The reuse time of a touch gives its reuse distance, the bytes of distinct lines touched since, and a
cache of a certain size holds the most recent lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.gpu import device
from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.launch.grid import WARP_SIZE
from gpusim.prediction.arithmetic.grouping import distinct, numbers
from gpusim.prediction.arithmetic.inner_product import inner
from gpusim.prediction.locality.reuse import NOW, Touches
from gpusim.prediction.locality.schedule import Schedule
from gpusim.prediction.memory.measured import (
    IN_ORDER_BYTES,
    L1_EARLIER_BY_HALVING,
    L1_MEASURED_WARPS,
    WRITTEN_BY_TOUCHES,
    WRITTEN_EDGES,
)
from gpusim.prediction.streams.kinds_by_pc import ATOMIC, LOAD, PAST_L1, STORE
from gpusim.typing import Array

SHORT = 1 / 8  # of all touches: shorter intervals are not resolved by the sample
STEPS_OF_A_LIFE = 512  # time resolution for blocks of one wave
AT_A_TIME = 64  # touches of about equal miss ratio


@dataclass(frozen=True)
class Source:
    """The origin of sectors: hit and miss ratios.

    `l1_hit` is the L1 hit ratio, `first_l1_hit` that of the first wave; of the misses, `l2_miss`
    come from DRAM, the rest from the L2. In the first wave, `first_l2_miss` have DRAM's latency:
    resident blocks wait for one fetch. DRAM moves whole grains, and takes for each as long as for
    `moved` contiguous sectors. Of the sectors from the L2, `far` are in its far part alone, and
    `late` are in flight from DRAM. `apart` (`first_apart` in the first wave) is 1 if the lines of
    one access miss independently, 0 if all of them or none do.
    """

    l2_miss: float
    first_l2_miss: float = 1.0
    l1_hit: float = 0.0
    first_l1_hit: float = 0.0
    moved: float = 1.0
    far: float = 0.0
    late: float = 0.0
    apart: float = 1.0
    first_apart: float = 1.0


KEPT = Source(0.0, 0.0, 1.0, 1.0)  # hits in the L1 only


@dataclass(frozen=True)
class Sources:
    """The origin of an instruction's sectors: touched `first` or `again` by its block.

    `missed` sectors miss the L1, `fetched` of them the L2 too, for `dram_bytes` of DRAM traffic.
    The L2's parts perform `looked_up` sector lookups in all. The sectors lie around `address`;
    `reuse_distance_bytes` is the median reuse distance in the L2, in bytes of lines: infinite if
    most lines are touched once.
    """

    first: Source
    again: Source = KEPT
    missed: float = 0.0
    fetched: float = 0.0
    dram_bytes: float = 0.0
    looked_up: float = 0.0
    address: int = 0
    reuse_distance_bytes: float = math.inf


@dataclass(frozen=True)
class Capacity:
    """Capacities and replacement of the caches, and costs of DRAM accesses.

    `l1_bytes` is the size of an L1 beside its blocks' shared memory. The L2 `is_warm` if the launch
    before has touched the same data. Relative to contiguous data, DRAM takes `line_alone` and
    `grain_alone` times as long for a line and a grain at random places, `write_alone` for a write
    of the grain.
    """

    caches: device.Capacity
    l1_bytes: int
    is_warm: bool
    line_alone: float
    grain_alone: float
    write_alone: float

    @property
    def l2_bytes(self) -> int:
        """Bytes of the L2."""
        return self.caches.l2_bytes

    @property
    def copied(self) -> float:
        """Room of a line read by all SMs, relative to a line read by one SM."""
        caches = self.caches
        if caches.l2_parts == 1:
            return 1.0
        return caches.l2_parts * (caches.l2_kept_fraction + caches.l2_lost_fraction) / 2

    def l1_lacks(self, distance: Array, warps: float) -> Array:
        """Return the L1 miss ratio at reuse distances, as fractions of the L1.

        Fewer warps of an SM come closer to a cyclic sweep, with more misses.
        """
        halvings = max(0.0, math.log2(L1_MEASURED_WARPS / max(1.0, warps)))
        kept, lost = L1_EARLIER_BY_HALVING
        return lacking(
            distance,
            self.caches.l1_kept_fraction - halvings * kept,
            self.caches.l1_lost_fraction - halvings * lost,
        )

    def l1_lacks_at_random(self, distance: Array) -> Array:
        """Return the same for random lines, unevenly distributed over the sets of the L1."""
        return lacking(
            distance, self.caches.l1_random_kept_fraction, self.caches.l1_random_lost_fraction
        )

    def l2_lacks(self, distance: Array) -> Array:
        """Return the L2 miss ratio at reuse distances, as fractions of the L2."""
        return lacking(distance, self.caches.l2_kept_fraction, self.caches.l2_lost_fraction)

    def l2_lacks_of_before(self, distance: Array) -> Array:
        """Return the L2 miss ratio at reuse distances back to the launch before.

        Other SMs touch the data now: half of them at the other half of the L2.
        """
        caches = self.caches
        return lacking(distance, caches.l2_warm_kept_fraction, caches.l2_warm_lost_fraction)

    def l2_writes_back(self, stored: Array, touched: Array) -> Array:
        """Return the ratio of lines written back, after stores and touches as parts of the L2."""
        kept = self.caches.l2_written_fraction
        by_stores = lacking(stored, *(kept * edge for edge in WRITTEN_EDGES))
        return np.maximum(by_stores, lacking(touched, *WRITTEN_BY_TOUCHES))


@dataclass(frozen=True)
class Caches:
    """The caches during a launch: miss ratios for each touch of a sample.

    Both caches allocate whole lines, even for single sectors.
    """

    touches: Touches
    schedule: Schedule
    capacity: Capacity

    @cached_property
    def l1_hit(self) -> Array:
        """L1 hit ratio of each touch, loads and stores."""
        touches = self.touches
        if not self.capacity.l1_bytes:
            return np.zeros(len(touches))
        looks = (touches.kind == LOAD) | (touches.kind == STORE)
        return np.where(np.isfinite(touches.on_sm) & looks, 1 - self._line_miss(), 0.0)

    @cached_property
    def l1_miss(self) -> Array:
        """L1 miss ratio of each touch, 1 for those that do not look there."""
        return np.asarray(1 - self.l1_hit)

    def _line_miss(self) -> Array:
        """Return the L1 miss ratio of each touch's line."""
        touches = self.touches
        kept = np.where(touches.kind <= STORE, touches.weight * touches.lines, 0.0)
        kept = kept / self.schedule.sms
        lines = Footprint(touches.line, kept).within(touches.on_sm) / self.schedule.length
        if self.schedule.is_alike:
            then, part = WaveFootprint(touches.time, touches.line, kept).since(touches.on_sm)
            lines = np.where(part < SHORT, lines, then)
        parts = LINE_BYTES * lines / self.capacity.l1_bytes
        in_order = self.capacity.l1_lacks(parts, self.schedule.warps)
        return np.where(touches.is_random, self.capacity.l1_lacks_at_random(parts), in_order)

    @cached_property
    def by_line(self) -> Array:
        """Reuse time of each line, back to the launch before with a warm L2."""
        touches = self.touches
        if not self.capacity.is_warm:
            return touches.by_line
        return np.asarray(np.minimum(touches.by_line, touches.time + touches.after_all))

    @cached_property
    def gap(self) -> Array:
        """Reuse time of each DRAM grain, back to the launch before with a warm L2."""
        touches = self.touches
        if not self.capacity.is_warm:
            return touches.gap
        return np.asarray(np.minimum(touches.gap, touches.time + touches.after_grain))

    @cached_property
    def far(self) -> Array:
        """For each touch, the fraction of L2 hits in the far part alone.

        A line last touched by the same SM is near, and so is a frequently touched line.
        """
        touches, caches = self.touches, self.capacity.caches
        if caches.l2_parts == 1:
            return np.zeros(len(touches))
        far = caches.l2_far_fraction * np.exp(-self._touched_before / caches.l2_far_touches)
        line = touches.line
        if self.capacity.is_warm:
            line = np.minimum(line, touches.time + touches.after_own)
        return np.where(line > self.by_line, far, 0.0)

    @cached_property
    def region(self) -> Array:
        """Regions of touches, numbered: instructions with overlapping addresses share one."""
        return _regions(self.touches.pc, self.touches.begin)

    @cached_property
    def _touched_before(self) -> Array:
        """Approximate number of loads of a line in the L2, since its first touch or last store.

        Bounded by the elapsed time over the reuse time, by the mean number of touches in the
        region, and by its loads per store.
        """
        touches, warm = self.touches, self.capacity.is_warm
        weight = touches.weight * self.l1_miss
        region = self.region
        came = np.bincount(region, weight * np.isinf(touches.by_line))
        is_store = touches.kind == STORE
        stored = np.bincount(region, touches.weight * is_store)
        with np.errstate(divide="ignore", invalid="ignore"):
            often = (np.bincount(region, weight) / came)[region]
            for_a_store = (np.bincount(region, weight * ~is_store) / stored)[region]
        gap = np.minimum(touches.by_line, touches.time + touches.after_all)
        passed = touches.time + (self.schedule.length if warm else 0.0)
        in_time = np.where(np.isfinite(gap), passed / np.maximum(gap, NOW) - warm, 0.0)
        before = np.fmin(in_time, (often - 1) / 2 + (often - 1 if warm else 0.0))
        return np.asarray(np.maximum(0.0, np.fmin(before, (for_a_store - 1) / 2)))

    def l2_distance(self, gap: Array) -> Array:
        """Return the reuse distance in the L2 for reuse times, as a fraction of the L2."""
        return self._lines(gap) / self.capacity.l2_bytes

    def _lines(self, gap: Array) -> Array:
        """Return the bytes of lines allocated in the L2 within some time.

        Lines loaded by SMs of both halves have a copy in each.
        """
        return self._allocated(self._allocations, gap)

    @cached_property
    def _distance(self) -> Array:
        """Reuse distance of each line in the L2, in bytes."""
        return self._lines(self.by_line)

    @cached_property
    def _allocations(self) -> tuple[Footprint, WaveFootprint | None]:
        return self._allocations_in(np.where(self._is_copied, self._copies, 1.0))

    def _allocations_in(self, room: Array) -> tuple[Footprint, WaveFootprint | None]:
        """Return the footprints of allocated lines, each with its room in the L2."""
        lines = self.touches.weight * self.touches.lines * room
        wave = None
        if self.schedule.is_alike:
            wave = WaveFootprint(self.touches.time, self.by_line, lines)
        return Footprint(self.by_line, lines), wave

    def _allocated(self, allocations: tuple[Footprint, WaveFootprint | None], gap: Array) -> Array:
        """Return the bytes of lines allocated within some time."""
        footprint, wave = allocations
        came = footprint.within(gap) / self.schedule.length
        if wave is not None:
            then, part = wave.since(gap)
            came = np.where((gap > self.touches.time) | (part < SHORT), came, then)
        return LINE_BYTES * came

    @cached_property
    def _is_copied(self) -> Array:
        touches = self.touches
        by_others = np.isfinite(touches.by_line) & (touches.line > touches.by_line)
        is_load = (touches.kind == LOAD) | (touches.kind == PAST_L1)
        return np.asarray(by_others & is_load)

    @cached_property
    def _copies(self) -> Array:
        """Room of each line loaded by several SMs; less for randomly loaded ones.

        Half of the SMs that fetch a line have it in their part alone, and each touch by another may
        copy it. With a miss ratio of q, 1 - q / (2 + 2 q) of the lines are copied.
        """
        touches, copied = self.touches, self.capacity.copied
        room = np.full(len(touches), copied)
        at_random = self._is_copied & touches.is_random
        if copied == 1.0 or not at_random.any():
            return room
        region = self.region
        weight = touches.weight * at_random * self.l1_miss
        whole = np.maximum(np.bincount(region, weight), 1e-12)
        for _ in range(2):
            held = self._allocations_in(np.where(self._is_copied, room, 1.0))
            filled = self._allocated(held, touches.by_line)
            lost = self.capacity.l2_lacks(filled / self.capacity.l2_bytes)
            q = (np.bincount(region, weight * np.where(at_random, lost, 0.0)) / whole)[region]
            room = np.where(touches.is_random, copied * (1 - q / (2 + 2 * q)), copied)
        return room

    def stored_distance(self, gap: Array) -> Array:
        """Return the distinct sectors stored or updated within some time, as a part of the L2."""
        touches = self.touches
        is_written = (touches.kind == STORE) | (touches.kind == ATOMIC)
        sectors = Footprint(touches.stored, touches.weight * is_written).within(gap)
        return SECTOR_BYTES * sectors / self.schedule.length / self.capacity.l2_bytes

    def l2_missing(self, gap: Array) -> Array:
        """Return the L2 miss ratio of DRAM grains with given reuse times.

        A later touch of the line alone is no hit: a line evicted since then comes back without its
        unrequested grains.
        """
        if not self.capacity.l2_bytes:
            return np.ones(len(gap))
        distance, capacity = self.l2_distance(gap), self.capacity
        is_of_before = capacity.is_warm & (gap > self.touches.time)
        of_before = capacity.l2_lacks_of_before(distance)
        missing = np.where(is_of_before, of_before, capacity.l2_lacks(distance))
        return np.where(np.isfinite(gap), missing, 1.0)

    def l2_written_back(self, since: Array) -> Array:
        """Return the fraction of stored sectors that are written to DRAM within some times."""
        if not self.capacity.l2_bytes:
            return np.ones(len(since))
        return self.capacity.l2_writes_back(self.stored_distance(since), self.l2_distance(since))

    @cached_property
    def l2_miss(self) -> Array:
        """L2 miss ratio of each touch."""
        return self.l2_missing(self.gap)

    @cached_property
    def _both_miss(self) -> Array:
        """Ratio of misses in both caches of each touch."""
        return np.asarray(self.l1_miss * self.l2_miss)

    @cached_property
    def first_l2_miss(self) -> Array:
        """L2 miss ratio of each touch in the first wave."""
        touches = self.touches
        before = np.full(len(touches), np.inf)
        if self.capacity.is_warm:
            before = touches.time + touches.after_grain
        late = self.l2_missing(before)
        return np.where(touches.is_late, late, self.l2_miss)

    @cached_property
    def late(self) -> Array:
        """For each touch, the fraction of L2 hits still in flight from DRAM.

        Another block's fetch began shortly before: the earlier, the shorter is the wait.
        """
        touches, lasts = self.touches, self.schedule.under_way
        if not lasts:
            return np.zeros(len(touches))
        settled = touches.settled
        if self.capacity.is_warm:
            settled = np.minimum(settled, touches.time + touches.after_grain)
        waits = np.clip(1 - touches.gap / lasts, 0.0, 1.0)
        return np.asarray(waits * self.l2_missing(settled))

    def _moved(self, grain_alone: float) -> Array:
        """Number of contiguous sectors with the same DRAM time as one sector of each touch.

        A grain at a random place takes `grain_alone` times as long as contiguous data.
        """
        touches = self.touches
        is_line = (touches.run > self.schedule.grain_bytes) | touches.in_line
        alone = np.where(is_line, self.capacity.line_alone, grain_alone)
        spread = alone + (1 - alone) * touches.near
        scatter = np.where(touches.run >= IN_ORDER_BYTES, 1.0, spread)
        return scatter * touches.grains * (self.schedule.grain_bytes // SECTOR_BYTES)

    @cached_property
    def moved(self) -> Array:
        """Number of contiguous sectors that DRAM reads in the time of one sector of each touch."""
        return self._moved(self.capacity.grain_alone)

    def moved_back(self, apart: Array | float = 0.0) -> Array:
        """Number of contiguous sectors that DRAM writes in the time of one sector of each touch.

        A sector is written with those of its line that were stored while the L2 kept it, unless it
        is written `apart`, a fraction of each touch.
        """
        alone = self._moved_back_alone
        joins = self._written_together * (1 - apart)
        return np.asarray(alone + (np.minimum(alone, 1.0) - alone) * joins)

    @cached_property
    def _moved_back_alone(self) -> Array:
        return self._moved(self.capacity.write_alone)

    @cached_property
    def _written_together(self) -> Array:
        """The fraction of each touch, if a store, for which the L2 keeps the line stored before."""
        touches = self.touches
        is_beside = touches.line_stored < touches.stored - NOW
        since = np.where(is_beside, touches.line_stored, np.inf)
        return np.asarray(1 - self.l2_written_back(since))

    def sources(self) -> Mapping[int, Sources]:
        """Return the origin of each instruction's loads, and of all loads as pc -1."""
        loads = (self.touches.kind == LOAD) | (self.touches.kind == PAST_L1)
        pcs = self.touches.pc
        found = {pc: self._sources(loads & (pcs == pc)) for pc in numbers(pcs[loads])}
        found[-1] = self._sources(loads)
        return found

    def _sources(self, mine: Array) -> Sources:
        is_fresh = np.isinf(self.touches.own)
        first = self.touches.weight * (mine & is_fresh)
        again = self.touches.weight * (mine & ~is_fresh)
        missed = (first + again) * self.l1_miss
        fetched = missed * self.l2_miss
        dram_bytes = inner(fetched, self.touches.grains) * self.schedule.grain_bytes
        # Grains from DRAM and hits in other parts are looked up there as well.
        elsewhere = inner(missed - fetched, self.far)
        elsewhere += dram_bytes / SECTOR_BYTES * (1 - 1 / self.capacity.caches.l2_parts)
        distance = self._distance[mine]
        return Sources(
            self._source(first, 1.0, 0.0),
            self._source(again, 0.0, 1.0, is_again=True),
            missed=float(missed.sum()),
            fetched=float(fetched.sum()),
            dram_bytes=dram_bytes,
            looked_up=float(missed.sum()) + elsewhere,
            address=int(self.touches.begin[mine][0]) if mine.any() else 0,
            reuse_distance_bytes=_median(distance) if mine.any() else math.inf,
        )

    def _source(
        self, weight: Array, l2_miss: float, l1_hit: float, *, is_again: bool = False
    ) -> Source:
        """Return the origin of weighted touches; the given ratios without any weight."""
        if not weight.any():
            first = l2_miss if is_again else 1.0
            return Source(l2_miss, first, l1_hit, l1_hit if is_again else 0.0)
        past_l1 = weight * self.l1_miss
        from_l2 = past_l1 * (1 - self.l2_miss)
        missing = mean(self.l2_miss, past_l1, l2_miss)
        hit = mean(self.l1_hit, weight, l1_hit)
        return Source(
            l2_miss=missing,
            first_l2_miss=missing if is_again else mean(self.first_l2_miss, weight, 1.0),
            l1_hit=hit,
            first_l1_hit=hit if is_again else 0.0,
            moved=mean(self.moved, past_l1 * self.l2_miss, 1.0),
            far=mean(self.far, from_l2, 0.0),
            late=0.0 if is_again else mean(self.late, from_l2, 0.0),
            apart=self._apart(self._both_miss, weight),
            first_apart=1.0 if is_again else self._apart(self.first_l2_miss, weight),
        )

    def _apart(self, missing: Array, weight: Array) -> float:
        """Return the independence of random lines of one access, from 0 to 1.

        The first iterations of a loop miss more, in all lanes at once, and the last ones less. So
        all lines of a warp hit more often than with equal ratios in every iteration.
        """
        mine = np.flatnonzero((weight > 0) & self.touches.is_random)
        if not len(mine) or not np.ptp(self.touches.place[mine]):
            return 1.0
        in_time = mine[np.argsort(self.touches.place[mine], kind="stable")]
        parts = np.array_split(in_time, max(1, len(in_time) // AT_A_TIME))
        share = np.array([weight[part].sum() for part in parts]) / weight[mine].sum()
        missed = np.array([mean(missing[part], weight[part], 0.0) for part in parts])
        found, each = float(share @ (1 - missed) ** WARP_SIZE), 1 - float(share @ missed)
        if not 0 < each < 1 or not found:
            return 1.0
        return max(0.0, min(1.0, (math.log(found) / math.log(each) - 1) / (WARP_SIZE - 1)))


def _regions(pcs: Array, begin: Array) -> Array:
    """Return the region of each touch: instructions with overlapping addresses share one."""
    numbers, which = np.unique(pcs, return_inverse=True)
    low, high = np.full(len(numbers), np.iinfo(np.int64).max), np.zeros(len(numbers), np.int64)
    np.minimum.at(low, which, begin)
    np.maximum.at(high, which, begin)
    order = np.argsort(low, kind="stable")
    reached = np.maximum.accumulate(high[order])
    region = np.zeros(len(numbers), dtype=np.int64)
    region[order[1:]] = np.cumsum(low[order][1:] > reached[:-1])
    return np.asarray(region[which])


def mean(values: Array, weights: Array, otherwise: float) -> float:
    """Return the weighted mean of values; `otherwise` without any weight."""
    total = float(weights.sum())
    return inner(values, weights) / total if total > 0 else otherwise


class Footprint:
    """The footprint of time windows: the weight of distinct touches within them.

    For each touch the smaller of window and reuse time counts (Xiang et al., "HOTL: a Higher Order
    Theory of Locality", 2013).
    """

    def __init__(self, gaps: Array, weights: Array) -> None:
        order = np.argsort(gaps, kind="stable")
        weights = weights[order]
        self._gaps = gaps[order]
        finite = np.where(np.isfinite(self._gaps), self._gaps, 0.0)
        self._whole = np.concatenate([[0.0], np.cumsum(finite * weights)])
        self._rest = weights.sum() - np.concatenate([[0.0], np.cumsum(weights)])

    def within(self, times: Array) -> Array:
        """Return the footprint of a window of each of these times."""
        at = np.searchsorted(self._gaps, times)
        rest = self._rest[at]
        with np.errstate(invalid="ignore"):
            return np.asarray(self._whole[at] + np.where(rest > 0, rest * times, 0.0))


class WaveFootprint:
    """The footprint of windows that end at each touch, for blocks of one wave.

    These progress together, so that the position of the window matters: a touch at a `time` has its
    last one a gap before.
    """

    def __init__(self, time: Array, gaps: Array, weights: Array) -> None:
        self._time = time
        self._edges = distinct(_quantiles(time, STEPS_OF_A_LIFE)) if len(time) else np.zeros(1)
        self._at = np.searchsorted(self._edges, time)
        before = np.searchsorted(self._edges, time - gaps, side="left")
        # Steps of time without a touch are left out of the table.
        self._rows, row = np.unique(self._at, return_inverse=True)
        self._columns, column = np.unique(before, return_inverse=True)
        table = np.zeros((len(self._rows) + 1, len(self._columns) + 1))
        np.add.at(table, (row + 1, column + 1), weights)
        self._whole = table.cumsum(axis=0).cumsum(axis=1)

    def since(self, since: Array) -> tuple[Array, Array]:
        """Return the footprint of each touch's window, and the fraction of touches within it."""
        begun = np.searchsorted(self._edges, self._time - since, side="left")
        now, then = (self._rows.searchsorted(at, side="right") for at in (self._at, begun))
        column = self._columns.searchsorted(begun, side="right")
        by_time = self._whole[:, -1]
        part = (by_time[now] - by_time[then]) / max(by_time[-1], 1e-12)
        return self._whole[now, column] - self._whole[then, column], part


def _median(values: Array) -> float:
    """Return the median of values; NumPy's imports `numpy.ma`, 40 ms of the first prediction."""
    ordered = np.sort(values)
    return float(ordered[(len(values) - 1) // 2] + ordered[len(values) // 2]) / 2


def _quantiles(values: Array, count: int) -> Array:
    """Return `count` evenly spaced quantiles of values, with linear interpolation.

    NumPy's `quantile` partitions the values for each of them.
    """
    ordered = np.sort(values, kind="stable")
    place = np.linspace(0, 1, count) * (len(values) - 1)
    below = np.minimum(np.floor(place).astype(np.int64), max(0, len(values) - 2))
    low, high = ordered[below], ordered[np.minimum(below + 1, len(values) - 1)]
    part = place - below
    upward, downward = low + (high - low) * part, high - (high - low) * (1 - part)
    return np.asarray(np.where(part < 0.5, upward, downward))


def lacking(filled: Array, all_hit: float, all_miss: float) -> Array:
    """Return a cache's miss ratio: linear in the reuse distance, from all hits to all misses."""
    if all_miss <= all_hit:
        return np.where(filled > all_hit, 1.0, 0.0)
    return np.clip((filled - all_hit) / (all_miss - all_hit), 0.0, 1.0)
