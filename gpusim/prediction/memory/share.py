"""What one SM has of L2 and DRAM, and where the sectors come from that its blocks fetch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """Where sectors come from that a block touches first: fractions of them.

    `l2_miss` of them come from DRAM, the others from the L2. For the first blocks on the SMs
    `first_l2_miss` are as late as DRAM: those that run together wait for one fetch. For later
    blocks `l1_hit` lie in the SM's L1, where an earlier one brought them.
    """

    l2_miss: float
    first_l2_miss: float = 1.0
    l1_hit: float = 0.0


@dataclass(frozen=True)
class MemoryShare:
    """What one SM has of the device: bytes per cycle from DRAM and L2, and how busy others are.

    `whole` says where fresh sectors come from, `by_pc` where those do that an instruction
    fetches. `written_back` is the fraction of written sectors that goes on to DRAM before the
    launch ends; one takes DRAM `write_factor` times as long as one that is read. `busiest` of the
    `sms` get as many blocks as this one, the others one less; `first_wave` is the fraction of the
    blocks that runs from the beginning on. `concurrent_atomics` is how many atomics of an
    instruction the L2 does at a time.
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
    concurrent_atomics: Mapping[int, float] = field(default_factory=dict)

    def source(self, pc: int) -> Source:
        """Return where an instruction's sectors come from."""
        return self.by_pc.get(pc, self.whole)

    def gain(self, left: int, resident: int) -> float:
        """Return how much more than its share an SM has while `left` of its blocks remain.

        Where other SMs have no blocks left, those that have share what there is.
        """
        if left > resident or not left:
            return 1.0
        others = (self.sms - self.busiest) * (left - 1)
        return left * self.sms / (self.busiest * left + others)
