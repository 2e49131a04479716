"""Units shared by the schedulers of an SM; each serves requests in order.

The data stage passes the wavefronts of shared and global memory; after it is the memory hierarchy
(`prediction.memory`). All times are in ticks.
"""

from __future__ import annotations

from collections.abc import Callable

from gpusim.gpu.device import Device
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.clock.steps import READS, Action
from gpusim.prediction.memory import Access, GlobalMemory, MemoryShare, Requester
from gpusim.prediction.memory.measured import BULK_PIECE_BYTES, DATA_STAGE_SLOTS


class Units:
    """The units of one SM."""

    memory: GlobalMemory
    constants_there: int  # arrival of a launch's first constants
    noticed: int  # from the end of an mbarrier's phase to a warp that waits for it
    _peer_arrival: int  # from a peer's store or arrival to an mbarrier
    _engine_free: int  # the engine of bulk copies, for loads
    _engine_sent: int  # and for stores
    _bulk_load: int
    _bulk_store: int
    _bulk_load_interval: int
    _bulk_store_interval: int
    _box_load: int
    _box_store: int
    _box_line: int
    _multicast: int
    _multicast_whole: int
    _network_free: int  # between the SMs of a cluster
    _peer: int
    _peer_byte: float
    _peer_sector: float
    _peer_atomic: float
    _mbarrier: int
    _loaded_byte: float
    _stored_byte: float
    _barrier_free: int
    _read_free: list[int]
    _data_free: list[int]
    _shared_latency: int
    _shared_step: int
    _shuffle_latency: int
    _atomic_latency: int
    _wavefront: int
    _miss_line: float
    _store_conflict: int
    _conflicts_cost: bool
    _request: int
    _shuffle: int
    _address: int
    _lookup: int
    _atomic_pass: int
    _swap_pass: int
    _arrival: int
    _queued_arrival: int
    _queued_arrivals: int
    _barrier: int
    _barrier_warp: float

    def __init__(self, device: Device, share: MemoryShare) -> None:
        self.memory = GlobalMemory(device, share)
        self.constants_there = 0
        self._device = device
        self._barrier_free = 0
        self._read_free = [0] * len(READS)
        self._data_free = [0] * DATA_STAGE_SLOTS
        self._set_latencies()
        self._set_intervals()
        self._set_barriers()
        self._set_bulk_copies()

    def _set_latencies(self) -> None:
        latency = self._device.latency_cycles
        self._shared_latency = ticks(latency.shared_load)
        self._shared_step = ticks(latency.shared_wavefront)
        self._shuffle_latency = ticks(latency.shuffle)
        self._atomic_latency = ticks(latency.shared_atomic)

    def _set_intervals(self) -> None:
        interval, free = self._device.interval_cycles, self._device.ablations
        self._wavefront = ticks(interval.shared_wavefront)
        self._miss_line = interval.l1_miss_line * TICKS
        self._store_conflict = ticks(interval.shared_store_conflict)
        self._conflicts_cost = "bank-conflicts" not in free
        self._request = ticks(interval.lsu_sm)
        self._shuffle = ticks(interval.shuffle)
        self._address = ticks(interval.adu)
        self._lookup = ticks(interval.constant_lookup)
        is_free = "atomics" in free
        self._atomic_pass = 0 if is_free else ticks(interval.shared_atomic_pass)
        self._swap_pass = 0 if is_free else ticks(interval.shared_swap_pass)

    def _set_barriers(self) -> None:
        latency, interval = self._device.latency_cycles, self._device.interval_cycles
        counts = "barriers" not in self._device.ablations
        self._arrival = ticks(latency.barrier_per_warp) if counts else 0
        self._queued_arrival = ticks(latency.barrier_per_queued_warp) if counts else 0
        self._barrier = ticks(interval.barrier) if counts else 0
        self._barrier_warp = interval.barrier_per_warp * TICKS if counts else 0.0
        queues = self._device.queue.lsu_depth * self._device.sm.schedulers
        self._queued_arrivals = queues * self._arrival

    def _set_bulk_copies(self) -> None:
        latency, interval = self._device.latency_cycles, self._device.interval_cycles
        rates = self._device.bandwidth
        self._engine_free = self._engine_sent = 0
        self.noticed = ticks(latency.phase_noticed)
        self._bulk_load, self._bulk_store = ticks(latency.bulk_load), ticks(latency.bulk_store)
        self._bulk_load_interval = ticks(interval.bulk_load)
        self._bulk_store_interval = ticks(interval.bulk_store)
        self._mbarrier = ticks(interval.mbarrier_arrival)
        self._loaded_byte = TICKS / rates.bulk_load_bytes_per_cycle
        self._stored_byte = TICKS / rates.bulk_store_bytes_per_cycle
        self._box_load, self._box_store = ticks(latency.box_load), ticks(latency.box_store)
        self._box_line = ticks(interval.box_line)
        self._network_free = 0
        self._peer_arrival, self._peer = ticks(latency.peer_arrival), ticks(latency.peer_load)
        self._multicast = ticks(latency.multicast)
        self._multicast_whole = self._multicast + ticks(latency.l2)
        self._peer_sector = interval.peer_sector * TICKS
        self._peer_byte = self._peer_sector / SECTOR_BYTES
        self._peer_atomic = interval.peer_atomic_sector * TICKS

    def serve(
        self, action: Action, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        """Serve an access; return the arrival of its result and the start of service.

        Service starts no sooner than `after`, that of its scheduler's request before.
        """
        return _SERVES[action](self, access, warp, now, behind)

    def _not_served(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        raise AssertionError("the instruction has no unit of the SM")

    # -- special registers, constants and barriers -------------------------------------

    def _special_register(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        begin = self._turn(0, access, now)
        return max(begin, self.constants_there) + access.cost, begin

    def _constant(self, access: Access, warp: Requester, now: int, behind: int) -> tuple[int, int]:
        """Look constants up: in order for one warp, interleaved with other warps."""
        begin = self._turn(1, access, now)
        start = begin if begin > warp.looked_up else warp.looked_up
        warp.looked_up = start + access.lines * self._lookup
        further = (access.lines - 1) * self._lookup
        return max(start, self.constants_there) + access.cost + further, begin

    def _turn(self, unit: int, access: Access, now: int) -> int:
        """Return the start of a read; special registers and constants have a unit each."""
        begin = max(now, self._read_free[unit])
        self._read_free[unit] = begin + access.lines * self._address
        return begin

    def arrive(self, now: int, *, again: bool) -> int:
        """Count a warp at its barrier; return the time at which it is counted.

        Once the schedulers' queues are full of others it takes less time, unless the scheduler
        sends warps of one block in succession: `again`.
        """
        begin = now if now > self._barrier_free else self._barrier_free
        is_quick = begin - now > self._queued_arrivals and not again
        self._barrier_free = begin + (self._queued_arrival if is_quick else self._arrival)
        return self._barrier_free

    def release(self, now: int, warps: int) -> None:
        """Let the opening of a barrier of some warps occupy the data stage."""
        busy = max(self._barrier, round(self._barrier_warp * warps))
        for slot, free in enumerate(self._data_free):
            self._data_free[slot] = max(free, now) + busy

    # -- shared memory and shuffles ----------------------------------------------------

    def _stage(self, now: int, busy: int, warp: Requester, behind: int) -> int:
        """Occupy a slot of the data stage for a time; return the start.

        Accesses of a warp go in turn. One without an active lane takes its turn as well.
        """
        least = self._request if busy else TICKS
        busy = DATA_STAGE_SLOTS * (busy if busy > least else least)
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
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        passes = access.cost if self._conflicts_cost else min(access.cost, 1)
        start = self._stage(now, passes * self._wavefront, warp, behind)
        there = start + self._shared_latency + (access.words - 1) * TICKS
        return (there + (passes - 1) * self._shared_step if passes > 1 else there), start

    def _shared_store(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        passes = access.cost if self._conflicts_cost else min(access.cost, 1)
        if access.words > passes > 0:
            passes = access.words
        busy = self._wavefront + (passes - 1) * self._store_conflict if passes else 0
        start = self._stage(now, busy, warp, behind)
        return warp.served, start

    def _shuffle_lanes(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        start = self._stage(now, self._shuffle, warp, behind)
        return start + self._shuffle_latency, start

    def _shared_atomic(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        """Serve an atomic pass by pass; passes of other warps interleave."""
        takes = self._swap_pass if access.is_swap else self._atomic_pass
        more = max(0, access.cost - 1) * takes
        start = self._stage(
            now, self._request + more // DATA_STAGE_SLOTS if access.cost else 0, warp, behind
        )
        return start + self._atomic_latency + more, start

    # -- global memory -----------------------------------------------------------------

    def _global_load(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        passes = access.wavefronts
        if passes and not access.cost:
            start = self._stage(now, self._request, warp, behind)
            begin = self._across(passes * self._peer_sector, start)
            there, _ = self.memory.load(access, warp, begin)
            return there, begin
        busy = passes * self._wavefront
        if access.lines > passes:
            busy = max(busy, round(self.memory.lines_past_l1(access) * self._miss_line))
        start = self._stage(now, busy, warp, behind)
        there, start = self.memory.load(access, warp, start)
        there += (access.words - 1) * TICKS
        return (there + (passes - 1) * self._shared_step if passes > 1 else there), start

    def _global_store(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        if access.wavefronts and not access.cost:
            start = self._stage(now, self._request, warp, behind)
            return 0, self._across(access.wavefronts * self._peer_sector, start)
        start = self._stage(now, access.wavefronts * self._wavefront, warp, behind)
        return 0, self.memory.store(access, start)

    def _global_atomic(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        if access.wavefronts and not access.cost:
            start = self._stage(now, self._request, warp, behind)
            begin = self._across(access.wavefronts * self._peer_atomic, start)
            return begin + self._peer, begin
        start = self._stage(now, self._request if access.cost else 0, warp, behind)
        return self.memory.atomic(access, start)

    # -- the network between the SMs of a cluster --------------------------------------

    def from_peer(self, size: int) -> int:
        """Return the time until bytes of a peer and their arrival are there."""
        return self._peer_arrival + round(size * self._peer_byte)

    def _across(self, busy: float, at: int) -> int:
        """Send bytes to another SM; return when they begin to leave."""
        begin = max(at, self._network_free)
        self._network_free = begin + round(busy)
        return begin

    def _arrive_at_peer(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        """Serve arrivals and transactions at an mbarrier of another block."""
        start = self._stage(now, self._mbarrier if access.cost else 0, warp, behind)
        return max(start, self._network_free) + self._peer_arrival, start

    def _copy_to_peer(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        """Send a bulk copy to another block; return its arrival."""
        begin = max(now, self._engine_sent)
        self._across(access.cost * self._peer_byte, begin)
        self._engine_sent = begin + self._bulk_load_interval
        return self._network_free + self._peer_arrival, now

    # -- mbarriers and bulk copies -----------------------------------------------------

    def _arrive_at_mbarrier(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        """Serve the arrivals of a warp: its lanes' are added up before."""
        start = self._stage(now, self._mbarrier if access.cost else 0, warp, behind)
        if access.cost > 1:  # bytes that peers load
            there = start + self._multicast_whole + round(access.cost * self._loaded_byte)
            return there, start
        return start + self._atomic_latency, start

    def _ask_mbarrier(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        """Read an mbarrier's word, of one address."""
        start = self._stage(now, self._wavefront if access.cost else 0, warp, behind)
        return start + self._shared_latency + (access.words - 1) * TICKS, start

    def _load_in_bulk(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        """Request a bulk copy piece by piece; return the arrival of the last."""
        begin = at = max(now, self._engine_free)
        there = 0
        left = access.wavefronts
        while left > 0:
            there = max(there, self.memory.bulk_load(access, warp, at))
            at += round(min(left, BULK_PIECE_BYTES) * self._loaded_byte)
            left -= BULK_PIECE_BYTES
        self._engine_free = max(at, begin + self._bulk_load_interval)
        return max(there, at) + self._bulk_load, now

    def _load_box(self, access: Access, warp: Requester, now: int, behind: int) -> tuple[int, int]:
        """Request a box by a tensor map: a line of it takes the engine some time at least."""
        begin = max(now, self._engine_free)
        there, _ = self._load_in_bulk(access, warp, now, behind)
        pieces = max(1, -(-access.wavefronts // BULK_PIECE_BYTES))
        least = begin + access.lines * pieces * self._box_line
        self._engine_free = max(self._engine_free, least)
        return max(there, least + self._bulk_load) + self._box_load, now

    def _load_for_all(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        """Request a bulk copy for several blocks of the cluster."""
        there, start = self._load_in_bulk(access, warp, now, behind)
        return there + self._multicast, start

    def _store_box(self, access: Access, warp: Requester, now: int, behind: int) -> tuple[int, int]:
        """Send a box by a tensor map; return when all of it has been read."""
        there, start = self._store_in_bulk(access, warp, now, behind)
        return there + self._box_store, start

    def _store_in_bulk(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        """Send a bulk copy piece by piece; return when all of it has been read."""
        begin = at = max(now, self._engine_sent)
        left = access.wavefronts
        while left > 0:
            at = max(at, self.memory.store(access, at))
            at += round(min(left, BULK_PIECE_BYTES) * self._stored_byte)
            left -= BULK_PIECE_BYTES
        self._engine_sent = max(at, begin + self._bulk_store_interval)
        return at + self._bulk_store, now

    def _wait_for_stores(
        self, access: Access, warp: Requester, now: int, behind: int
    ) -> tuple[int, int]:
        return max(self.memory.fence(warp, now), self._network_free), now


# By action. A table of methods bound to their units could not be compiled.
_SERVES: tuple[Callable[[Units, Access, Requester, int, int], tuple[int, int]], ...] = tuple(
    {
        Action.SHARED_LOAD: Units._shared_load,
        Action.SHARED_STORE: Units._shared_store,
        Action.SHUFFLE: Units._shuffle_lanes,
        Action.GLOBAL_LOAD: Units._global_load,
        Action.GLOBAL_STORE: Units._global_store,
        Action.SHARED_ATOMIC: Units._shared_atomic,
        Action.GLOBAL_ATOMIC: Units._global_atomic,
        Action.SPECIAL_REGISTER: Units._special_register,
        Action.CONSTANT: Units._constant,
        Action.FENCE: Units._wait_for_stores,
        Action.MBARRIER_SET: Units._shared_store,
        Action.MBARRIER_ARRIVE: Units._arrive_at_mbarrier,
        Action.MBARRIER_WAIT: Units._ask_mbarrier,
        Action.BULK_LOAD: Units._load_in_bulk,
        Action.BULK_STORE: Units._store_in_bulk,
        Action.BOX_LOAD: Units._load_box,
        Action.BOX_STORE: Units._store_box,
        Action.MULTICAST: Units._load_for_all,
        Action.PEER_COPY: Units._copy_to_peer,
        Action.PEER_ARRIVE: Units._arrive_at_peer,
    }.get(action, Units._not_served)
    for action in Action
)
