"""Global memory on the clock, as seen by one SM: caches, bandwidth queues and latencies.

L2 and DRAM serve the SM's share in turn; unused bandwidth of a recent window is credited, because
the other SMs were idle then.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from gpusim.gpu.device import Device
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.arithmetic.elementary import exp
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.memory.access import Access, Requester
from gpusim.prediction.memory.atomics import AtomicLoad
from gpusim.prediction.memory.dram import WINDOW, Dram, made_up
from gpusim.prediction.memory.latency import FetchLatency
from gpusim.prediction.memory.measured import (
    COPY_GIVEN_UP_CYCLES,
    FAR_PASSES,
    SECTORS_OF_A_HALF,
)
from gpusim.prediction.memory.miss_ratios import Source
from gpusim.prediction.memory.share import MemoryShare
from gpusim.prediction.memory.stores import Stored


class GlobalMemory:
    """L1, L2 and DRAM with the servers between them. All times are in ticks.

    `end` is the arrival of the last store or atomic.
    """

    end: int
    _l1_caches: bool
    _l1: int
    _last: int
    _dram: Dram
    _latency: FetchLatency
    _l2_free: int
    _between_free: int  # of the link between the parts of the L2
    _own_l2: float
    _l2_gain: float
    _parts_met: float  # crossings of the link by a far sector, relative to a stored one
    _l2_sector: float
    _port: float
    _request_sectors: float
    _load_depth: int
    _waiting: list[int]  # negated arrival times of loads in flight, ascending
    _store_free: int
    _evicted: float  # sectors stored before the launch that go to DRAM for each read from there
    _stores: int
    _last_sent: int  # time at which the last store or atomic left
    _asked: int  # lines requested from the L2 by loads, stores and atomics
    _fences: Fences
    _sent: list[int]  # times at which each of the last stores left
    _packet: float
    _part_packet: float
    _l2_packet: float
    _store_part: float  # fraction of a store's time that occupies the destination part of the L2
    _atomic_free: list[int]  # by group
    _all_updated: int
    _atomics: int
    _done: list[int]  # times at which each of the last atomics was served
    _atomic_latency: int
    _word: int
    _float_word: int
    _whole_sector: float
    # By group: end of the units' lookups for atomics and for loads beside them.
    _lookup_free: list[int]
    _units: float
    _lookup: float
    _filling: float  # time of half a line filled from DRAM
    # By pc + 1: sources of sectors touched first or again by a block; DRAM sectors moved for a
    # stored one; parallel atomics, and the additional time of an atomic that returns the old value.
    _without_sectors: list[int]  # latency of a load of no sector, for a peer's shared memory
    _first: list[Source]
    _again: list[Source]
    _written: list[float]
    # By pc + 1: probability that a randomly stored line has a copy in another part, and the stores
    # of all SMs per line for one of this SM; the time of the L2 where stores meet.
    _copied: list[float]
    _meeting: list[float]
    _give_up: float
    _meet_within: int
    _recently_stored: float
    _noted: float
    _concurrent_atomics: list[float]
    _same_sector: list[float]
    _group: list[int]
    _answering: list[float]

    def __init__(self, device: Device, share: MemoryShare) -> None:
        self.end = 0
        self._l1_caches = device.capacity.l1_caches_global
        self._l1 = ticks(device.latency_cycles.l1)
        self._last = ticks(device.latency_cycles.last_store)
        self._dram = Dram(device, share)
        self._latency = FetchLatency(device, self._dram)
        self._l2_free = self._between_free = -1
        self._evicted = share.evicted
        self._request_sectors = device.bandwidth.l2_request_bytes / SECTOR_BYTES
        self._load_depth = device.queue.load_depth
        self._waiting = [0]
        self._store_free = self._stores = 0
        self._last_sent = self._asked = 0
        self._fences = Fences(device)
        self._sent = [0] * device.queue.store_depth
        pcs = range(-1, max([-1, *share.by_pc, *share.stored, *share.atomics, *share.peers]) + 2)
        peer = ticks(device.latency_cycles.peer_load)
        self._without_sectors = [peer if pc in share.peers else self._l1 for pc in pcs]
        self._first = [share.sources(pc).first for pc in pcs]
        self._again = [share.sources(pc).again for pc in pcs]
        loads = [share.atomics.get(pc, AtomicLoad()) for pc in pcs]
        self._concurrent_atomics = [one.at_once for one in loads]
        self._same_sector = [one.same_sector for one in loads]
        self._group = [one.group for one in loads]
        self._answering = [share.answering.get(pc, 0.0) for pc in pcs]
        self._set_bandwidths(device, share)
        self._set_stores(device, [share.written(pc) for pc in pcs], share)
        self._set_atomics(device, share.sms)

    def _set_bandwidths(self, device: Device, share: MemoryShare) -> None:
        bandwidth = device.bandwidth
        limited = "bandwidth" not in device.ablations
        sector = SECTOR_BYTES * TICKS if limited else 0
        self._own_l2 = sector / share.l2_bytes_per_cycle
        parts = device.capacity.l2_parts
        self._parts_met = FAR_PASSES * parts / (parts - 1) if parts > 1 else 0.0
        self._port = sector / bandwidth.l2_to_sm_bytes_per_cycle
        self.scale_bandwidth(1.0)

    def _set_stores(self, device: Device, stored: Sequence[Stored], share: MemoryShare) -> None:
        bandwidth = device.bandwidth
        sms = 0 if "bandwidth" in device.ablations else share.sms
        self._packet = device.interval_cycles.store_packet * TICKS if sms else 0.0
        self._part_packet = max(self._packet, sms * TICKS / bandwidth.l2_stores_per_cycle)
        self._l2_packet = sms * TICKS / bandwidth.l2_whole_stores_per_cycle
        self._store_part = bandwidth.l2_store_part_factor
        self._copied = [one.copied for one in stored]
        self._meeting = [sms / one.among for one in stored]
        self._give_up = COPY_GIVEN_UP_CYCLES * TICKS * sms
        self._meet_within = ticks(device.latency_cycles.flag)
        self._recently_stored = self._noted = 0.0
        self._written = [
            one.written_back * share.write_factor * one.moved + one.read_first for one in stored
        ]

    def _set_atomics(self, device: Device, sms: int) -> None:
        interval = device.interval_cycles
        counted = 0 if "atomics" in device.ablations else sms
        self._atomic_free = [0] * (max(self._group) + 1)
        self._all_updated = self._atomics = 0
        self._done = [0] * device.queue.atomic_depth
        self._atomic_latency = ticks(device.latency_cycles.global_atomic)
        self._word = ticks(interval.global_atomic_same_address * counted)
        self._float_word = ticks(interval.global_atomic_float_same_address * counted)
        self._whole_sector = interval.global_atomic_whole_sector
        self._lookup_free = [0] * len(self._atomic_free)
        units = self._units = device.bandwidth.l2_atomic_units
        self._lookup = interval.global_atomic_read * self._word / units
        self._filling = interval.global_atomic_miss * self._word / units

    def scale_bandwidth(self, gain: float) -> None:
        """Multiply the SM's share of the bandwidth by `gain` from now on."""
        self._dram.scale_bandwidth(gain)
        self._l2_gain = gain
        self._l2_sector = max(self._own_l2 / gain, min(self._own_l2, self._port))

    def load(self, access: Access, requester: Requester, at: int) -> tuple[int, int]:
        """Return the arrival time of a load requested at a time, and the time of its lookup.

        At most `load_depth` loads may be in flight past the L1; further ones wait before their
        lookup.
        """
        waiting, start = self._waiting, at
        while waiting and -waiting[-1] <= at:
            del waiting[-1]
        if len(waiting) >= self._load_depth:
            start = -waiting[-1]
        there = self._there(access, requester, start)
        pends = access.pends and requester.there > at + self._l1
        if there <= start + self._l1 and not pends:
            return at + self._l1, at
        if start > at:
            del waiting[-1]
        insort(waiting, -there)
        requester.there = there
        return there, start

    def bulk_load(self, access: Access, requester: Requester, at: int) -> int:
        """Return the arrival time of a piece of a bulk copy requested at a time."""
        return self._fetch(access.cost, self._first[self._place(access)], access, requester, at)

    def lines_past_l1(self, access: Access) -> float:
        """Return the mean number of a load's lines that the SM requests from the L2."""
        place = self._place(access)
        missed = access.fresh if self._l1_caches else access.cost
        if missed:
            return min(access.lines, missed) * (1 - self._first[place].l1_hit)
        again = 0 if access.joins else min(access.lines, access.cost)
        return again * (1 - self._again[place].l1_hit)

    def _there(self, access: Access, requester: Requester, at: int) -> int:
        """Return the arrival time of a load looked up at a time."""
        missed = access.fresh if self._l1_caches else access.cost
        place = self._place(access)
        if missed:
            return self._fetch(missed, self._first[place], access, requester, at)
        if access.joins:
            return at + self._latency.of(self._first[place], requester, access, access.cost)
        again = self._again[place]
        if again.l1_hit < 1.0 and access.cost:
            return self._fetch(access.cost, again, access, requester, at)
        if access.pends:
            return max(at + self._l1, requester.there)
        return at + (self._l1 if access.cost else self._without_sectors[place])

    def store(self, access: Access, at: int) -> int:
        """Send a store's packets, one for each line and each sector; return when it may leave.

        At most `store_depth` stores may wait to leave; others wait in their schedulers' queues.
        """
        turn = self._stores % len(self._sent)
        start = max(at, self._sent[turn])
        free = max(self._l2_free, self._between_free)
        begin = max(start, self._store_free, self._dram.free - WINDOW, free)
        place, packets = self._place(access), access.lines + access.cost
        sent = self._packet if access.is_whole else self._part_packet
        self._store_free = begin + round(packets * sent)
        busy = packets * self._l2_packet / self._l2_gain
        self._between_free = made_up(self._between_free, begin) + round(busy)
        given_up = self._given_up(access, place, begin) if self._copied[place] else 0.0
        kept = round(busy * self._store_part + given_up)
        self._l2_free = made_up(self._l2_free, begin) + kept
        self._latency.note_busy(begin, 0, round(busy))
        self._sent[turn] = self._last_sent = begin
        self._asked += access.lines
        self._stores += 1
        written = self._dram.write(access.written * self._written[place], start)
        self.end = max(self.end, begin + self._last, self._between_free, written)
        return start

    def _given_up(self, access: Access, place: int, at: int) -> float:
        """Return how long the L2 is busy with invalidating copies of lines stored to again.

        A copy is invalidated if another store to the line was sent shortly before, as a random one
        of all SMs' stores.
        """
        passed = exp(-max(0.0, at - self._noted) / self._meet_within)
        self._recently_stored = self._recently_stored * passed + access.lines
        self._noted = max(self._noted, float(at))
        met = 1 - exp(-self._recently_stored * self._meeting[place])
        return access.lines * self._copied[place] * met * self._give_up / self._l2_gain

    def atomic(self, access: Access, at: int) -> tuple[int, int]:
        """Send an atomic to the L2; return the arrival of its result, and when it may leave.

        It is sent as a packet for each sector. The L2 serves passes on one place in turn and on
        different places in parallel; its units also perform lookups of reads beside them. At most
        `atomic_depth` atomics may be in flight; sectors that miss the L2 come from DRAM.
        """
        turn, place = self._atomics % len(self._done), self._place(access)
        group = self._group[place]
        start = max(at, self._done[turn])
        sent = max(start, self._store_free)
        self._store_free = sent + round(access.lines * self._packet)
        begin, looked_up = max(sent, self._atomic_free[group]), max(sent, self._lookup_free[group])
        passes = access.cost * self._word * (self._whole_sector if access.is_whole else 1.0)
        at_once, slowest = self._concurrent_atomics[place], passes
        if access.is_float:
            again = access.cost / max(access.lines, 1) - 1.0 + self._same_sector[place]
            other = (1.0 - self._same_sector[place]) * self._word
            slowest = max(passes, again * self._float_word + other)
        answering = passes * self._answering[place]
        self._hold_up(sent, round(passes / self._units), round(passes / self._units + answering))
        self._lookup_free[group] = looked_up + round(passes / at_once)
        updated = self._atomic_free[group] = begin + round(slowest / at_once + answering)
        self._all_updated = max(self._all_updated, updated)
        there = self._dram.write(access.lines * self._written[place], start)
        self._done[turn] = max(updated, self._lookup_free[group], there)
        self._atomics += 1
        self._last_sent = begin = max(begin, looked_up)
        self._asked += access.lines
        self.end = max(self.end, self._done[turn])
        return begin + self._atomic_latency, start

    def _hold_up(self, at: int, looking: int, updating: int) -> None:
        """Let the busy units of all groups look up and update for others, in the mean."""
        for group in range(len(self._atomic_free)):
            if self._lookup_free[group] > at:
                self._lookup_free[group] += looking
            if self._atomic_free[group] > at:
                self._atomic_free[group] += updating

    def fence(self, requester: Requester, at: int) -> int:
        """Return when all earlier accesses of the SM have arrived and the warp is notified."""
        lines = self._asked - requester.asked
        requester.asked = self._asked
        stores = max(self._last_sent, self._between_free)
        arrived = max(stores, self._l2_free, self._all_updated) if lines else at
        return self._fences.passed(lines, arrived, at)

    def _place(self, access: Access) -> int:
        """Return the index of an instruction's row; 0, the mean of all, without a row."""
        place = access.pc + 1
        return place if place < len(self._first) else 0

    def _fetch(
        self, sectors: int, source: Source, access: Access, requester: Requester, at: int
    ) -> int:
        """Return the arrival time of sectors from a source, requested at a time."""
        from_l2 = sectors * (1 - source.l1_hit)
        # A line with few requested bytes takes the L2 as long as a minimal request. Lines with all
        # requested sectors touched by the block before are not requested.
        lines = min(access.lines, sectors)
        self._asked += lines
        asked = max(from_l2, (1 - source.l1_hit) * lines * self._request_sectors)
        missing = source.l2_miss * (1 - source.l1_hit)
        # A sector in the far part alone is looked up in both parts and crosses the link. Half of
        # the data from DRAM crosses it, as of stored data, and of the data evicted by it.
        far = (1 - source.l1_hit - missing) * source.far
        looked_up = asked * (1 - source.l2_miss) * (1 + source.far) * self._l2_sector
        packet = self._l2_packet / self._l2_gain
        filled = (sectors + lines) * missing * packet * (1 + self._evicted)
        busy = round(looked_up + filled)
        self._l2_free = made_up(self._l2_free, at) + busy
        self._latency.note_busy(at, busy, 0)
        served = self._l2_free
        if missing + far:
            passing = filled + self._parts_met * (sectors + lines) * far * packet
            self._between_free = made_up(self._between_free, at) + round(passing)
            served = max(served, self._between_free)
        halves = max(float(lines), sectors / SECTORS_OF_A_HALF) * missing
        wanted = lines * (1 - source.l1_hit)
        self._hold_up(at, round(self._lookup * wanted + self._filling * halves), 0)
        if missing:
            self._dram.read(sectors, missing * source.moved, at)
            served = max(served, self._dram.free)
        return max(at, served) + self._latency.of(source, requester, access, sectors)


# A fence queries the parts of the L2 that were accessed, and the farthest determines its latency.
# An SM sends one query for warps that arrive shortly after each other. A later warp waits for the
# next query, sent at the earliest while the last answers are on their way back. All times are in
# ticks.


class Fences:
    """State of an SM's fences: time of its last query, and the earliest time of the next."""

    _alone: int
    _of_one: int
    _of_many: int
    _overlap: int
    _together: int  # ticks after the first warp, for others to share its query
    _begun: int
    _free: int

    def __init__(self, device: Device) -> None:
        latency = device.latency_cycles
        self._alone = ticks(latency.fence)
        self._of_one = ticks(latency.fence_of_one_line)
        self._of_many = ticks(latency.fence_of_many_lines)
        self._overlap = min(self._alone, ticks(latency.fence_overlap))
        self._together = self._alone - self._overlap
        self._begun = -1 - self._together
        self._free = 0

    def passed(self, lines: int, arrived: int, at: int) -> int:
        """Return when a warp that arrives at a time has passed.

        `lines` is the number of lines requested since its last fence; they `arrived` in the L2 at a
        time.
        """
        begin = self._begun if at <= self._begun + self._together else max(at, self._free)
        done = max(begin, at, arrived) + self._lasts(lines)
        self._begun = begin
        self._free = max(self._free, done - self._overlap)
        return done

    def _lasts(self, lines: int) -> int:
        """Return the duration of the answers: that from the farthest of randomly placed lines."""
        if not lines:
            return self._alone
        further = (lines - 1) / (lines + 1) * (self._of_many - self._of_one)
        return self._of_one + round(further)
