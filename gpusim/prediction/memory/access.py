"""An access to a unit, and the warp that requests it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Access(NamedTuple):
    """An instruction's request to a unit.

    `cost` is its wavefronts, sectors or an atomic's passes; `fresh` its sectors that miss the L1;
    `written` the sectors it is the first to store to; `lines` its 128-byte lines (an atomic's
    sectors), with `wavefronts` passes of the data stage. It `joins` if it waits for another warp's
    fetch, and `pends` if its block requested its most recent sector so shortly before that the
    fetch may be in flight. `draws` is its number of latencies, including loads in flight; the next
    warp's load is `apart` lines away. `places` is the number of its lines that hit or miss
    independently. `pc` is the instruction.

    Atomics on floating-point numbers (`is_float`) are distinct from integer ones, and
    compare-and-swap (`is_swap`) from others. An atomic `is_whole` if it updates each word of its
    sectors once, a store if it covers its sectors completely. `words` is the number of 32-bit words
    of each lane. For a special register or constant, `cost` is the latency in ticks and `lines` the
    number of distinct values requested by lanes.

    `word` is an mbarrier's place in shared memory, 0 for none: its instructions have arrivals as
    `lines` and expected bytes as `wavefronts`, a wait for its next phase 1 as `lines`. A bulk copy
    has its bytes as `wavefronts`; the rest is of each of its pieces.
    """

    cost: int = 0
    fresh: int = 0
    written: int = 0
    lines: int = 0
    wavefronts: int = 0
    joins: bool = False
    draws: float = 1.0
    apart: int = 0
    pends: bool = False
    pc: int = -1
    is_float: bool = False
    is_swap: bool = False
    is_whole: bool = False
    words: int = 1
    places: float = 1.0
    word: int = 0


NO_ACCESS = Access()


@dataclass(slots=True)
class Requester:
    """State of a warp that determines the latencies of its fetches.

    `block` and `number` identify the warp; `is_first` marks a block of the first wave; `waits`
    counts fetches waited for. A warp that has waited for a fetch `is_apart` from the others of its
    block until the next barrier. `slot` and `served` are the data-stage slot and the completion
    time of its last access, `looked_up` the time of its last constant lookup, `asked` the SM's
    count of requested lines at its last fence, `there` the arrival time of its last fetch.
    """

    block: int
    number: int
    is_first: bool = False
    waits: int = 0
    is_apart: bool = False
    slot: int = 0
    served: int = 0
    looked_up: int = 0
    asked: int = 0
    there: int = 0

    def wait(self) -> None:
        """Record that the warp waits for its fetch."""
        self.waits += 1
        self.is_apart = True
