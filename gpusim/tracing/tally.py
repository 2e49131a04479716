"""Tallies of a step: counts of lanes, wavefronts and sectors.

Numbers are shaped (copies or 1, warps) and computed when first requested.
"""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpusim.gpu import memory
from gpusim.isa.ops import OPS
from gpusim.launch.events import Step, Sums
from gpusim.typing import Array


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

    def __init__(self, step: Step, cc_major: int) -> None:
        assert step.addresses is not None
        self._instruction, self._cc = step.instruction, cc_major
        self._addresses, self._on = step.addresses, step.on

    @cached_property
    def passes(self) -> tuple[Array, Array]:
        """Wavefronts of a shared-memory access, and the least it could take."""
        instruction = self._instruction
        assert instruction.memory is not None
        width = instruction.memory.width_bytes
        return memory.wavefronts(
            self._addresses, self._on, width, self._cc, is_load=instruction.is_load
        )

    @property
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


class Tally:
    """The tally of a step's warps: their masks, their access, their lanes' decisions."""

    def __init__(self, step: Step, cc_major: int) -> None:
        self._step, self._cc = step, cc_major
        self.masks = Masks(step.active, step.on)

    @cached_property
    def served(self) -> Access:
        """The access, with its wavefronts and sectors."""
        return Access(self._step, self._cc)

    @property
    def bulk_sectors(self) -> Array:
        """Sectors that a bulk copy moves."""
        return self._step.values[2]

    @property
    def divergent(self) -> Array:
        """Whether lanes that decide disagree."""
        step = self._step
        assert step.taken is not None
        decided = Masks(step.active if step.instruction.op == "BRA" else step.on, step.taken)
        return np.asarray((decided.lanes_on > 0) & (decided.lanes_on < decided.active_lanes))


def of_sums() -> Any:
    """Return a tally of sums side by side: the unit vectors of a counter's linear function.

    Counters are linear: a counter of sums is the sum of a counter.
    """
    units = np.identity(len(Sums._fields), dtype=np.int64)[:, None]
    one = dict(zip(Sums._fields, units, strict=True))
    masks = SimpleNamespace(
        one=one["times"], active_lanes=one["active"], lanes_on=one["on"], any_on=one["any"]
    )
    passes = one["wavefronts"], one["least"]
    served = SimpleNamespace(
        passes=passes,
        conflicts=passes[0] - passes[1],
        sectors=one["sectors"],
        replays=one["replays"],
    )
    return SimpleNamespace(
        masks=masks, served=served, divergent=one["divergent"], bulk_sectors=one["sectors"]
    )
