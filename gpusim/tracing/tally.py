"""Tallies of a step: counts of lanes, wavefronts and sectors.

Numbers are shaped (copies or 1, warps) and computed when first requested. Steps with the same
masks share their counts, and accesses with the same addresses their wavefronts and sectors: an
array that is the same object for many steps is added up once.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gpusim.gpu import memory
from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.events import Step, Sums
from gpusim.tracing.copies import LastCopies
from gpusim.typing import Array

Kept = TypeVar("Kept")

NO_LANES = np.zeros((1, 0, 32), dtype=bool)
MOST_REMEMBERED = 1024  # accesses
MOST_COMPARED_BYTES = 1 << 15  # of addresses: looking larger ones up costs as much as computing


class Masks:
    """Counts of a step's active lanes, and of its lanes with a true predicate."""

    def __init__(self, active: Array, on: Array) -> None:
        self.active = active
        self.on = on

    @cached_property
    def one(self) -> Array:
        """One for each warp."""
        return np.ones((1, self.active.shape[1]), dtype=np.int64)

    @cached_property
    def active_lanes(self) -> Array:
        """Lanes that run the instruction."""
        return memory.lanes_in(self.active)

    @cached_property
    def lanes_on(self) -> Array:
        """Lanes that run the instruction with their guard true."""
        return self.active_lanes if self.on is self.active else memory.lanes_in(self.on)

    @cached_property
    def any_on(self) -> Array:
        """Whether a lane takes part."""
        return self.lanes_on > 0


class Access:
    """Wavefronts and sectors of an access: from its addresses and the participating lanes."""

    def __init__(self, instruction: Instruction, addresses: Array, on: Array, cc: int) -> None:
        self._instruction = instruction
        self._addresses = addresses
        self._on = on
        self._cc = cc

    @property
    def nbytes(self) -> int:
        """Bytes of its addresses and masks."""
        return self._addresses.nbytes + self._on.nbytes

    @property
    def is_large(self) -> bool:
        """Whether it is too large to be cached."""
        return self.nbytes > MOST_COMPARED_BYTES

    @property
    def key(self) -> tuple[Any, ...]:
        """A key for finding equal accesses."""
        addresses, on = self._addresses, self._on
        return addresses.shape, on.shape, addresses.tobytes(), on.tobytes()

    def forget(self) -> None:
        """Drop the addresses and keep the computed counts."""
        self._addresses = self._on = NO_LANES

    @cached_property
    def passes(self) -> tuple[Array, Array]:
        """Wavefronts of a shared-memory access, and the least it could take."""
        instruction = self._instruction
        assert instruction.memory is not None
        width = instruction.memory.width_bytes
        return memory.wavefronts(
            self._addresses, self._on, width, self._cc, is_load=instruction.is_load
        )

    @cached_property
    def conflicts(self) -> Array:
        """Wavefronts of a shared-memory access above the least it could take."""
        return self.passes[0] - self.passes[1]

    @cached_property
    def sectors(self) -> Array:
        """Sectors of a global access."""
        return memory.sectors(self._addresses, self._on)

    @cached_property
    def replays(self) -> Array:
        """Services of an atomic beyond the first."""
        return np.asarray(np.maximum(self._services() - 1, 0))

    def _services(self) -> Array:
        """Return the lanes with the same address, at most; for shared memory with the same bank."""
        found = self._instruction.memory
        if found is not None and found.space == "shared":
            by_word = OPS[self._instruction.op].by_word
            return memory.shared_atomic_wavefronts(self._addresses, self._on, by_word=by_word)
        return memory.same_address_lanes(self._addresses, self._on)


class Tally(NamedTuple):
    """The tally of an instruction's warps: their masks, their access, their lanes' decisions.

    Two are equal if they have the same mask and access objects.
    """

    masks: Masks
    access: Access | None = None
    decided: Masks | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of masks and addresses that it keeps."""
        return self.masks.on.nbytes + (0 if self.access is None else self.access.nbytes)

    @property
    def served(self) -> Access:
        """The access, with its wavefronts and sectors."""
        assert self.access is not None
        return self.access

    @property
    def divergent(self) -> Array:
        """Whether lanes that decide disagree."""
        assert self.decided is not None
        taken = self.decided.lanes_on
        return np.asarray((taken > 0) & (taken < self.decided.active_lanes))


class SummedMasks(NamedTuple):
    """Sums over steps in place of the counts of one: see `Masks`."""

    one: Array
    active_lanes: Array
    lanes_on: Array
    any_on: Array


class SummedAccess(NamedTuple):
    """Sums over accesses: see `Access`."""

    passes: tuple[Array, Array]
    conflicts: Array
    sectors: Array
    replays: Array


class SummedTally:
    """A tally of sums, one beside the other: the unit vectors of a counter's linear function.

    Counters are linear: a counter of sums is the sum of a counter.
    """

    nbytes = 0
    access = None

    def __init__(self) -> None:
        units = np.identity(len(Sums._fields), dtype=np.int64)[:, None]
        one = dict(zip(Sums._fields, units, strict=True))
        self.masks = SummedMasks(one["times"], one["active"], one["on"], one["any"])
        passes = one["wavefronts"], one["least"]
        self.served = SummedAccess(passes, passes[0] - passes[1], one["sectors"], one["replays"])
        self.divergent = one["divergent"]


class Seen:
    """Masks and accesses of steps, each kept once."""

    def __init__(self, cc_major: int, copies: LastCopies) -> None:
        self._cc = cc_major
        self._copies = copies
        self._last = Masks(NO_LANES, NO_LANES)
        self._masks: dict[Any, Masks] = {}
        self._accesses: dict[Any, Access] = {}

    def tally(self, step: Step) -> Tally:
        """Return a step's tally."""
        decided = None
        if step.taken is not None:
            by_guard = step.instruction.op == "BRA"
            decided = self._of(step.active if by_guard else step.on, step.taken)
        access = None if step.addresses is None else self._access(step)
        return Tally(self._of(step.active, step.on), access, decided)

    def _of(self, active: Array, on: Array) -> Masks:
        last = self._last
        if last.active is active and last.on is on:
            return last
        if active.nbytes + on.nbytes > MOST_COMPARED_BYTES:
            self._last = Masks(active, on)
        else:
            key = (active.shape, on.shape, active.tobytes(), on.tobytes())
            self._last = _remembered(self._masks, key, Masks(active, on))
        return self._last

    def _access(self, step: Step) -> Access:
        addresses, on = step.addresses, step.on
        assert addresses is not None
        found = step.instruction.memory
        is_global = found is not None and found.space == "global"
        if is_global:
            addresses = self._copies.of(step).addresses
        access = Access(step.instruction, addresses, on, self._cc)
        if access.is_large:
            return access
        if is_global and len(addresses) == 1:
            access = Access(step.instruction, _within_lines(addresses), on, self._cc)
        return _remembered(self._accesses, (step.pc, *access.key), access)


def _remembered(known: dict[Any, Kept], key: Any, new: Kept) -> Kept:
    """Return the entry of a key, else the new one; a full cache is cleared."""
    if len(known) >= MOST_REMEMBERED:
        known.clear()
    return known.setdefault(key, new)


def _within_lines(addresses: Array) -> Array:
    """Return addresses moved near zero by whole lines: they share sectors as before."""
    return np.asarray(addresses - (addresses[0, 0, 0] & -memory.LINE_BYTES))
