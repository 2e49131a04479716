"""From a step to the elements it accesses: their numbers, threads and names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpusim.checking.access import Access
from gpusim.checking.clocks import Clocks
from gpusim.checking.element_access import BLOCK_SHIFT, LOCATION_SHIFT, ElementAccess, Heard
from gpusim.isa.ops import (
    ANY_ARRAY,
    LOCAL_HIGH,
    OPS,
    RANK_SHIFT,
    SHARED_HIGH,
    Instruction,
    Memory,
    Program,
)
from gpusim.launch.events import Placement, Step
from gpusim.launch.grid import Launch
from gpusim.machine.storage import FIRST_ADDRESS, Allocation
from gpusim.typing import Array

LARGEST_ELEMENT = 8
WIDEST_ACCESS, WORD = 16, 4  # bytes


class Values(NamedTuple):
    """Of each element of an array's memory, `each` bytes long, whether it has a value."""

    flags: Array
    each: int


# Arrays without values by name, with those elements that have some already, or None.
Uninitialised = Mapping[str, Values | None]
# The memories behind a generic address, each with the name of its accesses.
WINDOWS = {"shared": "shared", "local": "local", "global": ANY_ARRAY}
LANES = np.arange(32)


@dataclass(frozen=True)
class Layout:
    """The division of a launch's memories into elements, one per entry of a shadow.

    An element has as many bytes as the narrowest access to its memory. Arrays named in
    `uninitialised` have no values yet, wholly or by their `Values`.
    """

    program: Program
    launch: Launch
    allocations: Mapping[str, Allocation]
    uninitialised: Uninitialised = field(default_factory=dict)

    @cached_property
    def element_bytes(self) -> dict[str, int]:
        """Bytes of an element, by memory."""
        sizes = dict.fromkeys(WINDOWS, LARGEST_ELEMENT)
        for row in self.program.instructions:
            if row.memory is not None and self.may_race(row):
                for space in WINDOWS if row.memory.space == "generic" else (row.memory.space,):
                    sizes[space] = min(sizes[space], row.memory.dtype.itemsize)
        return sizes

    @cached_property
    def _written(self) -> frozenset[str]:
        """Names of arrays to which the program stores, under any alias, or should have stored."""
        names = frozenset[str]().union(
            *(
                row.memory.places
                for row in self.program.instructions
                if row.memory is not None
                and row.memory.space in ("global", "generic")
                and OPS[row.op].kind != "load"
            )
        )
        if not names.isdisjoint((ANY_ARRAY, "generic")):
            return frozenset(self.allocations)
        found = [*names & set(self.allocations), *self.uninitialised]
        stored = [self.allocations[name].extent for name in found]
        return frozenset(
            name
            for name, one in self.allocations.items()
            if any(one.extent.start < s.stop and s.start < one.extent.stop for s in stored)
        )

    def may_race(self, row: Instruction) -> bool:
        """Return whether an access may race: not one to an array that is only read."""
        memory = row.memory
        assert memory is not None
        if memory.space != "global" or memory.name == ANY_ARRAY:
            return True
        return memory.name in self._written

    def holds_nothing(self, element: Array) -> Array:
        """Return a mask of elements of global memory without values before the launch."""
        found = np.zeros(len(element), dtype=bool)
        each = self.element_bytes["global"]
        for name, values in self.uninitialised.items():
            extent = self.allocations[name].extent
            first, last = (
                address - self.first_address for address in (extent.start, extent.stop - 1)
            )
            inside = (element >= first // each) & (element <= last // each)
            if values is not None:
                place = np.maximum(element * each - first, 0) // values.each
                inside &= ~values.flags[np.minimum(place, len(values.flags) - 1)]
            found |= inside
        return found

    @cached_property
    def own_shared(self) -> int:
        """Elements of a block's own shared memory, without the system's and padding after them."""
        own = self.program.shared_bytes + self.launch.dynamic_shared_bytes
        return -(-own // self.element_bytes["shared"])

    def may_hold_nothing(self, element: Array) -> Array:
        """Return a mask of elements in a block's own shared memory."""
        return np.asarray(element % max(self.sizes["shared"], 1) < self.own_shared)

    @cached_property
    def first_address(self) -> int:
        """The address of the first element of global memory."""
        first = min((one.start for one in self.allocations.values()), default=FIRST_ADDRESS)
        return first // LARGEST_ELEMENT * LARGEST_ELEMENT

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Elements of global memory, of a block's shared and of a thread's local memory."""
        end = max((one.stop for one in self.allocations.values()), default=FIRST_ADDRESS)
        shared = self.program.addressable_shared(self.launch.dynamic_shared_bytes)
        sizes = {
            "global": -(-(end - self.first_address) // WORD) * WORD,  # swaps may overhang
            "shared": -(-shared // WIDEST_ACCESS) * WIDEST_ACCESS,  # loads may overhang
            "local": self.program.local_bytes,
        }
        return {space: -(-size // self.element_bytes[space]) for space, size in sizes.items()}

    def name(self, memory: Memory, element: int) -> tuple[str, int]:
        """Return array and index of an element of a shadow."""
        address = element % max(self.sizes[memory.space], 1) * self.element_bytes[memory.space]
        first, name, each = memory.base, memory.name, memory.numbered_bytes
        if memory.space == "global":
            name = name if name != ANY_ARRAY else self._holder(address + self.first_address)
            first = self.allocations[name].address - self.first_address
            each = max(each, self.allocations[name].array.dtype.itemsize)
        elif memory.space == "shared":
            name, first = self.program.shared_array(memory, [address])
        return name, (address - first) // each

    def name_at(self, access: Access, location: int) -> tuple[str, int]:
        """Return array and index of an access's location: an element, and the memory's number."""
        memory = access.instruction.memory
        assert memory is not None
        if memory.space == "generic":
            space = "shared" if location >> LOCATION_SHIFT else "global"
            memory = replace(memory, space=space, name=WINDOWS[space])
        return self.name(memory, location & ((1 << LOCATION_SHIFT) - 1))

    def _holder(self, address: int) -> str:
        """Return the array of an address, or the last one that begins before it."""
        before = [one for one in self.allocations.values() if one.address <= address]
        return max(before, key=lambda one: one.address).name


def threads_of(placement: Placement) -> Array:
    """Return block and thread of each lane, packed, shaped (copies, rows, 32)."""
    warps = placement.warps_per_block
    blocks = placement.blocks.astype(np.int64)[:, None, None] << BLOCK_SHIFT
    threads = blocks + np.arange(warps * 32).reshape(1, warps, 32)
    return threads if placement.folded else threads.reshape(1, -1, 32)


@dataclass(frozen=True)
class Spread:
    """A step's lanes that are on, laid out in a row: `shape` is (copies, rows of the step, 32)."""

    step: Step
    shape: tuple[int, int, int]

    @cached_property
    def _on(self) -> Array | None:
        """The lanes that are on, None where all are."""
        return None if self.step.on.all() else np.broadcast_to(self.step.on, self.shape)

    def flat(self, values: Array) -> Array:
        """Return the values of the lanes that are on."""
        full = np.broadcast_to(values, self.shape)
        return full.reshape(-1) if self._on is None else full[self._on]

    @property
    def rows(self) -> Array:
        """Return the row of each lane that is on."""
        return self.flat(self.step.rows[None, :, None])

    def of_rows(self, values: Array) -> Array:
        """Return a number that each row has, for the lanes that are on; one where all agree."""
        mine = values[self.step.rows]
        if (mine == mine[0]).all():
            return np.asarray(mine[0])
        return self.flat(mine[None, :, None])


def by_memory(step: Step, shared_start: int, *, in_clusters: bool) -> Iterator[Step]:
    """Yield an access by generic addresses as accesses to each memory that it touches.

    Those of shared memory count from its begin, `in_clusters` without the rank of a block.
    """
    assert step.addresses is not None
    assert step.instruction.memory is not None
    window, within = step.addresses >> 32, step.addresses & 0xFFFFFFFF
    shared, local = window == SHARED_HIGH, window == LOCAL_HIGH
    inside = within & (1 << RANK_SHIFT) - 1 if in_clusters else within
    for space, mine, addresses in (
        ("shared", shared, inside - shared_start),
        ("local", local, within),
        ("global", ~shared & ~local, step.addresses),
    ):
        on = step.on & mine
        if on.any():
            memory = replace(step.instruction.memory, space=space, name=WINDOWS[space])
            yield step._replace(
                instruction=replace(step.instruction, memory=memory), on=on, addresses=addresses
            )


def owners(step: Step, copies: int, *, by_lane: bool) -> Array:
    """Return the block (or thread) that owns each lane's memory, numbered within the batch."""
    placement = step.placement
    copy = np.arange(copies)[:, None, None]
    row = step.rows[None, :, None]
    if by_lane:
        return np.asarray((copy * placement.rows + row) * 32 + LANES)
    return copy if placement.folded else row // placement.warps_per_block


def element_access_of(
    step: Step,
    time: int,
    clocks: Clocks,
    threads: Array,
    element: Array,
    elements_each: int,
    shape: tuple[int, int, int],
) -> ElementAccess:
    """Return a step's touch: `element` is each lane's first of `elements_each` elements."""
    spread = Spread(step, shape)
    repeated = _repeater(elements_each)
    first = repeated(spread.flat(element))
    if elements_each > 1:
        first = first + np.tile(np.arange(elements_each), len(first) // elements_each)
    pairs = clocks.pairs
    return ElementAccess(
        time,
        first,
        repeated(spread.flat(threads[: shape[0], step.rows])),
        repeated(spread.of_rows(clocks.barrier)),
        repeated(spread.of_rows(clocks.warp_sync)),
        None if pairs is None else _pairs(spread, pairs, elements_each),
        lambda: _values(step, spread, elements_each),
        step.placement.copies // shape[0],
        _memory_number(step),
        _heard(spread, clocks, repeated),
        None if clocks.cluster is None else clocks.cluster.heard(repeated(spread.rows)),
    )


def _memory_number(step: Step) -> int:
    memory = step.instruction.memory
    return 0 if memory is None or memory.space == "global" else int(step.placement.blocks[0]) + 1


def _repeater(count: int) -> Callable[[Array], Array]:
    """Return a function that repeats each lane's number for its elements."""

    def repeated(values: Array) -> Array:
        return values if count == 1 or not values.ndim else np.repeat(values, count)

    return repeated


def _heard(spread: Spread, clocks: Clocks, repeated: Callable[[Array], Array]) -> Heard | None:
    if clocks.meetings is None:
        return None
    return Heard(clocks.meetings.known, repeated(spread.rows))


def _pairs(spread: Spread, pairs: Array, count: int) -> Array:
    rows = np.broadcast_to(spread.step.rows[None, :, None], spread.shape)
    lanes = np.broadcast_to(LANES, spread.shape)
    found: Array = pairs[spread.flat(rows), spread.flat(lanes)]
    return np.repeat(found, count, axis=0) if count > 1 else found


def _values(step: Step, spread: Spread, count: int) -> Array:
    """Return the values stored to each element, (copies, elements).

    Blocks that touch the same elements may store different values.
    """
    shape = spread.shape
    copies = max(1, *(len(value) // shape[0] for value in step.values))
    alike = [
        np.broadcast_to(value, (copies * shape[0], *shape[1:])).reshape(copies, *shape)
        for value in step.values
    ]
    columns = [np.stack([spread.flat(v[n]) for v in alike], axis=1) for n in range(copies)]
    found = np.repeat(np.stack(columns), count // len(step.values), axis=2)
    return np.asarray(found.reshape(copies, -1))
