"""An access as units serve it, and the warp that asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Access(NamedTuple):
    """What an instruction asks of a unit.

    `cost` is its wavefronts, sectors or an atomic's passes, `fresh` its sectors that miss the
    L1, `written` those that it is the first to store to, `lines` its 128-byte lines (an atomic's
    sectors), which pass the data stage in so many `wavefronts`; it `joins` where it waits for what
    another warp fetches, and `pends` where its block began to fetch the last of its sectors so
    shortly before that they may be under way. `draws` is how many latencies it has, with those of
    the loads that are under way; the next warp's load lies so many lines `apart`. So many `places`
    of its lines are in a cache, or not, each for itself. `pc` is which instruction it is.
    Atomics on floating-point numbers are told from those on integers, and compare-and-swap (a
    `swap`) from others; one `is_whole` that updates each word of its sectors once, and a store that
    has all of each. A lane gives or gets so many 32-bit `words`. A special register or constant has
    its latency in ticks for `cost`, and `lines` for how many different ones its lanes want.
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


NO_ACCESS = Access()


@dataclass(slots=True)
class Requester:
    """What the latencies of a warp's fetches depend on: its block, its number there, its past.

    A warp that has waited for a fetch `is_apart` from the others of its block, until the next
    barrier. Its block may be among the first on the SMs. Its last access had a `slot` of the data
    stage and was `served` at a time; its last constant was `looked_up`. When its last fence began
    the SM had `asked` for so many lines. What it fetched last is `there` at a time.
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
        """Take note that the warp waits for what it has fetched."""
        self.waits += 1
        self.is_apart = True
