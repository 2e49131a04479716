"""What serves an SM's warps in turn, behind its schedulers: each unit is free from a time on.

The data stage passes shared memory's wavefronts and global memory's lines; behind it lie L1, L2
and DRAM with this SM's share of the device. All times are in ticks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import NormalDist

from gpusim.device import Device
from gpusim.memory import SECTOR_BYTES
from gpusim.prediction.clock.costs import TICKS, ticks
from gpusim.prediction.clock.steps import READS, Action, Touched

SECTOR_PART = 0.81  # of what an integer atomic on one word takes: a sector's, measured on an H200
SLOTS = 2  # accesses that the data stage serves in turn, a pass each
WINDOW = 2048 * TICKS  # in which a share of the bandwidth may be made up for

# Fractions of the golden ratio's multiples lie evenly, however many there are; of its multiples by
# squares as if drawn at random.
WHOLE = 1 << 64
GOLDEN_PART = 0x9E3779B97F4A7C15  # of it
GOLDEN = GOLDEN_PART / WHOLE
FETCHES_APART = 4093
MOST_DRAWN = 0.99
LINES_TOGETHER = 8  # 1 KB: what warps fetch there at once is there at nearly the same time,
OWN_PART = 0.15  # but for a part of the latency above the least that is a warp's own,
OWN_QUEUE = 0.4  # and this part of what a busy DRAM adds


@dataclass(frozen=True)
class Source:
    """Where sectors come from that a block touches first.

    `dram_part` of them comes from DRAM, the others from the L2. For the first blocks on the SMs
    `first_part` is as late as DRAM: those that run together wait for one fetch. For later blocks
    `near_part` lies in the SM's L1, where an earlier one brought it.
    """

    dram_part: float
    first_part: float = 1.0
    near_part: float = 0.0


@dataclass(frozen=True)
class Share:
    """What one SM has of the device: bytes per cycle from DRAM and L2, and how busy others are.

    `whole` says where fresh sectors come from, `by_pc` where those do that an instruction
    fetches. `written_back` is the part of written sectors that goes on to DRAM before the launch
    ends; one takes DRAM `write_factor` times as long as one that is read. `busiest` of the `sms`
    get as many blocks as this one, the others one less; `first_wave` is the part of the blocks
    that runs from the beginning on. `side_by_side` is how many atomics of an instruction the L2
    does at a time.
    """

    dram_bytes_per_cycle: float
    l2_bytes_per_cycle: float
    whole: Source
    written_back: float
    write_factor: float
    sms: int
    busiest: int
    first_wave: float = 1.0
    by_pc: Mapping[int, Source] = field(default_factory=dict)
    side_by_side: Mapping[int, float] = field(default_factory=dict)

    def gain(self, left: int, resident: int) -> float:
        """Return how much more than its share an SM has while `left` of its blocks remain.

        Where other SMs have no blocks left, those that have share what there is.
        """
        if left > resident or not left:
            return 1.0
        others = (self.sms - self.busiest) * (left - 1)
        return left * self.sms / (self.busiest * left + others)


@dataclass(slots=True)
class Fetcher:
    """What the latencies of a warp's fetches depend on: its block, its number there, its past.

    A warp that has waited for a fetch `is_apart` from the others of its block, until the next
    barrier. Its block may be among the first on the SMs. Its last access had a `slot` of the data
    stage and was `served` at a time.
    """

    block: int
    number: int
    is_first: bool = False
    waits: int = 0
    is_apart: bool = False
    slot: int = 0
    served: int = 0

    def wait(self) -> None:
        """Take note that the warp waits for what it has fetched."""
        self.waits += 1
        self.is_apart = True


Serves = Callable[[Touched, Fetcher, int, int], tuple[int, int]]


def _not_served(*_: object) -> tuple[int, int]:
    raise AssertionError("what comes to no unit of the SM is not served")


class Units:
    """The units of one SM."""

    def __init__(self, device: Device, share: Share) -> None:
        self.end = 0  # when the last store has arrived
        self.constants_there = 0  # when a launch's first constants have been fetched
        self._device, self._share = device, share
        self._barrier_free = self._store_free = self._atomic_free = 0
        self._read_free = [0] * len(READS)
        self._sent = [0] * device.queue.store_depth  # when each of the last stores left
        self._stores = 0
        self._data_free = [0] * SLOTS
        self._dram_free = self._l2_free = -1
        self._noted = 0
        self._shared_out = self._shared_above = 0.0
        self._shared_fetch: tuple[int, int, int, float] | None = None  # the last of several warps
        self._recent = self._recently_written = self._loaded = 0.0
        self._set_latencies()
        self._set_intervals()
        self._set_bandwidths()
        # By action: serves an access, returns when its result is there and when it begins. It does
        # not begin before what its scheduler asked for before, which is the last argument.
        serves: dict[Action, Serves] = {
            Action.SHARED_LOAD: self._shared_load,
            Action.SHARED_STORE: self._shared_store,
            Action.SHUFFLE: self._shuffle_lanes,
            Action.GLOBAL_LOAD: self._global_load,
            Action.GLOBAL_STORE: self._global_store,
            Action.SHARED_ATOMIC: self._shared_atomic,
            Action.GLOBAL_ATOMIC: self._global_atomic,
            **{action: partial(self._read, unit) for unit, action in enumerate(READS)},
        }
        self.serves: list[Serves] = [serves.get(action, _not_served) for action in Action]

    def _set_latencies(self) -> None:
        latency = self._device.latency_cycles
        self._shared_latency = ticks(latency.shared_load)
        self._shared_step = ticks(latency.shared_wavefront)
        self._shuffle_latency = ticks(latency.shuffle)
        self._l1, self._l2, self._dram = (ticks(c) for c in (latency.l1, latency.l2, latency.dram))
        self._least = latency.dram_least / latency.dram
        bandwidth = self._device.bandwidth
        self._growth = bandwidth.dram_latency_growth
        self._growth_by_writes = bandwidth.dram_latency_growth_by_writes
        self._atomic_latency = ticks(latency.shared_atomic)
        self._global_atomic_latency = ticks(latency.global_atomic)

    def _set_intervals(self) -> None:
        interval, free = self._device.interval_cycles, self._device.ablations
        self._wavefront = ticks(interval.shared_wavefront)
        self._store_conflict = ticks(interval.shared_store_conflict)
        self._conflicts_cost = "bank-conflicts" not in free
        self._request = ticks(interval.lsu_sm)
        self._shuffle = ticks(interval.shuffle)
        self._address = ticks(interval.adu)
        barrier = "barriers" not in free
        self._arrival = ticks(self._device.latency_cycles.barrier_per_warp) if barrier else 0
        self._barrier = ticks(interval.barrier) if barrier else 0
        self._barrier_warp = interval.barrier_per_warp * TICKS if barrier else 0.0
        queues = self._device.queue.lsu_depth * self._device.sm.schedulers
        self._queued_arrivals = queues * self._arrival
        atomics, sms = "atomics" not in free, self._share.sms
        self._atomic_pass = ticks(interval.shared_atomic_pass) if atomics else 0
        whole, parts = (
            interval.global_atomic_same_address,
            interval.global_atomic_float_same_address,
        )
        self._same_address = ticks(whole * sms) if atomics else 0
        self._same_address_float = ticks(parts * sms) if atomics else 0

    def _set_bandwidths(self) -> None:
        bandwidth, share = self._device.bandwidth, self._share
        limited = "bandwidth" not in self._device.ablations
        of_l2 = share.sms / bandwidth.l2_stores_per_cycle
        per_packet = max(self._device.interval_cycles.store_packet, of_l2)
        sector = SECTOR_BYTES * TICKS if limited else 0
        self._packet = per_packet * TICKS if limited else 0.0
        self._own_dram = sector / share.dram_bytes_per_cycle
        self._own_l2 = sector / share.l2_bytes_per_cycle
        self._port = sector / bandwidth.l2_to_sm_bytes_per_cycle
        self._written = share.written_back * share.write_factor
        self._request_sectors = bandwidth.l2_request_bytes / SECTOR_BYTES
        self._grain_sectors = bandwidth.dram_grain_bytes // SECTOR_BYTES
        self.share_bandwidth(1.0)

    def share_bandwidth(self, gain: float) -> None:
        """Let the SM have so much more than its share of the bandwidth from now on."""
        self._dram_sector = self._own_dram / gain
        self._l2_sector = max(self._own_l2 / gain, min(self._own_l2, self._port))

    # -- special registers, constants and barriers -------------------------------------

    def _read(
        self, unit: int, touched: Touched, warp: Fetcher, now: int, behind: int
    ) -> tuple[int, int]:
        """Read a special register or a constant: either kind has a unit."""
        begin = max(now, self._read_free[unit])
        self._read_free[unit] = begin + self._address
        return max(begin, self.constants_there) + touched.cost, begin

    def arrive(self, now: int, *, again: bool) -> int:
        """Count a warp at its barrier; return when it has been counted.

        Once the schedulers' queues are full of others, it takes half the time, unless the
        scheduler sends warps of one block one after the other: `again`.
        """
        begin = now if now > self._barrier_free else self._barrier_free
        is_quick = begin - now > self._queued_arrivals and not again
        self._barrier_free = begin + (self._arrival // 2 if is_quick else self._arrival)
        return self._barrier_free

    def release(self, now: int, warps: int) -> None:
        """Let a barrier of some warps pass the data stage."""
        busy = max(self._barrier, round(self._barrier_warp * warps))
        self._data_free = [max(free, now) + busy for free in self._data_free]

    # -- shared memory and shuffles ----------------------------------------------------

    def _stage(self, now: int, busy: int, warp: Fetcher, behind: int) -> int:
        """Let an access keep a slot of the data stage for a time; return when it begins.

        Those of a warp come one after the other. One without a lane takes its turn as well.
        """
        least = self._request if busy else TICKS
        busy = SLOTS * (busy if busy > least else least)
        free = self._data_free
        slot = warp.slot
        if warp.served <= now or free[slot] < warp.served:
            slot = 0 if free[0] <= free[1] else 1
        start = now if now > free[slot] else free[slot]
        if start < warp.served:
            start = warp.served
        warp.slot = slot
        warp.served = free[slot] = start + busy
        return start if start > behind else behind

    def _shared_load(
        self, touched: Touched, warp: Fetcher, now: int, behind: int
    ) -> tuple[int, int]:
        passes = touched.cost if self._conflicts_cost else min(touched.cost, 1)
        start = self._stage(now, passes * self._wavefront, warp, behind)
        there = start + self._shared_latency + (touched.words - 1) * TICKS
        return (there + (passes - 1) * self._shared_step if passes > 1 else there), start

    def _shared_store(
        self, touched: Touched, warp: Fetcher, now: int, behind: int
    ) -> tuple[int, int]:
        passes = touched.cost if self._conflicts_cost else min(touched.cost, 1)
        if touched.words > passes > 0:
            passes = touched.words
        busy = self._wavefront + (passes - 1) * self._store_conflict if passes else 0
        start = self._stage(now, busy, warp, behind)
        return warp.served, start

    def _shuffle_lanes(
        self, touched: Touched, warp: Fetcher, now: int, behind: int
    ) -> tuple[int, int]:
        start = self._stage(now, self._shuffle, warp, behind)
        return start + self._shuffle_latency, start

    def _shared_atomic(
        self, touched: Touched, warp: Fetcher, now: int, behind: int
    ) -> tuple[int, int]:
        """Serve an atomic pass by pass; those of other warps fit in between the passes of one."""
        more = max(0, touched.cost - 1) * self._atomic_pass
        start = self._stage(now, self._request + more // SLOTS if touched.cost else 0, warp, behind)
        return start + self._atomic_latency + more, start

    # -- global memory -----------------------------------------------------------------

    def _global_load(
        self, touched: Touched, warp: Fetcher, now: int, behind: int
    ) -> tuple[int, int]:
        start = self._stage(now, touched.lines * self._wavefront, warp, behind)
        missed = touched.fresh if self._device.capacity.l1_caches_global else touched.cost
        if missed:
            return self._fetch(missed, touched, warp, start), start
        if touched.joins:
            return start + self._fetch_latency(self._source(touched), warp, touched), start
        return start + self._l1, start

    def _global_store(
        self, touched: Touched, warp: Fetcher, now: int, behind: int
    ) -> tuple[int, int]:
        """Send a store's packets: each line and each sector of it is one.

        Some stores may wait for that; others wait in their schedulers' queues.
        """
        place = self._stores % len(self._sent)
        start = self._stage(now, touched.lines * self._wavefront, warp, behind)
        start = max(start, self._sent[place])
        begin = max(start, self._store_free, self._dram_free - WINDOW)
        self._store_free = begin + round((touched.lines + touched.cost) * self._packet)
        self._sent[place] = begin
        self._stores += 1
        self.end = max(self.end, begin + self._l2)
        if touched.written and self._written:
            busy = round(touched.written * self._written * self._dram_sector)
            self._dram_free = _made_up(self._dram_free, start) + busy
            self._note_busy(start, busy, busy)
            self.end = max(self.end, self._dram_free)
        return 0, start

    def _global_atomic(
        self, touched: Touched, warp: Fetcher, now: int, behind: int
    ) -> tuple[int, int]:
        """Send an atomic to the L2: lanes on one word, and its sectors, one after the other.

        Those on different lines go to different places, which work side by side.
        """
        start = self._stage(now, self._request if touched.cost else 0, warp, behind)
        begin = max(start, self._atomic_free)
        word = self._same_address_float if touched.is_float else self._same_address
        busy = max(touched.cost * word, touched.lines * self._same_address * SECTOR_PART)
        self._atomic_free = begin + round(busy / self._share.side_by_side.get(touched.pc, 1.0))
        self.end = max(self.end, self._atomic_free)
        return begin + self._global_atomic_latency, start

    def _source(self, touched: Touched) -> Source:
        return self._share.by_pc.get(touched.pc, self._share.whole)

    def _fetch(self, sectors: int, touched: Touched, warp: Fetcher, at: int) -> int:
        """Return when sectors that missed the L1 are there, requested at a time.

        What others leave of the bandwidth may be used: an SM that took less than its share
        for some time may take more.
        """
        source = self._source(touched)
        far = sectors * (1 - source.near_part)
        # A line of which little is wanted takes the L2 as long as a request of some bytes.
        asked = max(far, (1 - source.near_part) * touched.lines * self._request_sectors)
        self._l2_free = _made_up(self._l2_free, at) + round(asked * self._l2_sector)
        served = self._l2_free
        if source.dram_part:
            grains = -(-sectors // self._grain_sectors) * self._grain_sectors
            part = source.dram_part * (1 - source.near_part)
            busy = round(grains * part * self._dram_sector)
            self._dram_free = _made_up(self._dram_free, at) + busy
            self._note_busy(at, busy, 0)
            served = max(served, self._dram_free)
        return max(at, served) + self._fetch_latency(source, warp, touched)

    def _fetch_latency(self, source: Source, warp: Fetcher, touched: Touched) -> int:
        """Return the latency of what the block touches first, as busy as DRAM is.

        Whether it comes from L1, L2 or DRAM is shared out evenly over the fetches. DRAM's differs
        from fetch to fetch: an exponential law above the least. Warps of a block that fetch
        together wait almost equally long, those that drifted apart do not.
        """
        near = 0.0 if warp.is_first else source.near_part
        late = source.first_part if warp.is_first else source.dram_part
        if near or late < 1:
            self._shared_out = (self._shared_out + GOLDEN) % 1.0
            if self._shared_out < near:
                return self._l1
            if self._shared_out >= near + (1 - near) * late:
                return self._l2
        place = _place(warp, warp.number)
        own = _drawn(place, 1.0)
        above = _drawn(place, touched.draws)
        if not warp.is_apart:
            together = warp.number * touched.lines // LINES_TOGETHER
            fetch = warp.block, together, warp.waits, touched.draws
            if fetch != self._shared_fetch:
                self._shared_fetch = fetch
                self._shared_above = _drawn(_place(warp, together), touched.draws)
            above += (1 - OWN_PART) * (self._shared_above - above)
        varied = self._least + (1 - self._least) * above
        return round(self._dram * (varied + self._loaded * (1 - OWN_QUEUE + OWN_QUEUE * own)))

    def _note_busy(self, now: int, busy: int, written: int) -> None:
        """Keep how much longer DRAM's latency is for what is under way, in all and of writes.

        Its utilisation is by Little's law what is under way over what it can hold. What was
        requested counts for less and less, over the time of a latency.
        """
        passed = max(0, now - self._noted)
        left = math.exp(-passed / self._dram)
        self._noted = max(now, self._noted)
        self._recent = self._recent * left + busy
        self._recently_written = self._recently_written * left + written
        utilisation = min(1.0, self._recent / self._dram)
        by_writes = self._growth_by_writes * min(1.0, self._recently_written / self._dram)
        self._loaded = self._growth * utilisation**3 + by_writes


def _place(warp: Fetcher, number: int) -> float:
    """Return the place in DRAM's law of a warp's fetch, from 0 to 1.

    Evenly spread over blocks, and as if drawn at random over warps and fetches.
    """
    name = number * FETCHES_APART + warp.waits
    return (warp.block * (name * name + 1) + name) * GOLDEN_PART % WHOLE / WHOLE


def _drawn(place: float, draws: float) -> float:
    """Return how many means an exponential law's value lies above its least, the last of some."""
    return -math.log(1 - (place * MOST_DRAWN) ** (1 / draws))


def slowest_excess_cycles(
    device: Device, share: Share, played: tuple[int, int], whole: tuple[int, int]
) -> float:
    """Return how much longer the slowest warp of all waits for DRAM than that of those played.

    Both are numbers of fetches that a warp waits for, and of warps.
    """
    source = share.whole
    part = max(source.dram_part, share.first_wave * source.first_part)
    deviation = device.latency_cycles.dram_deviation * part
    return deviation * (_latest(*whole) - _latest(*played))


def _latest(fetches: int, warps: int) -> float:
    """Return how much longer than the mean the last of some warps waits, in deviations of a fetch.

    Exponential laws add up to a gamma law, of which this is Wilson and Hilferty's quantile.
    """
    if not fetches or warps < 2:
        return 0.0
    normal = NormalDist().inv_cdf(1 - 1 / warps)
    root = 1 - 1 / (9 * fetches) + normal / (3 * math.sqrt(fetches))
    return fetches * (root**3 - 1)


def _made_up(free: int, now: int) -> int:
    """Return from when a server with a share is free, what was left unused in a window used."""
    return now if free < 0 else max(free, now - WINDOW)
