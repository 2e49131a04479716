"""Warps and blocks on the SM: state shared by schedulers and SM."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

from gpusim.prediction.clock.runs import Runs
from gpusim.prediction.clock.steps import Step
from gpusim.prediction.memory import Requester


def scheduler_of(block: int, warp: int, schedulers: int) -> int:
    """Return the number of a warp's scheduler."""
    return (block + warp) % schedulers


class Block:
    """A block on the SM: the number of its live warps, and the warps at its barrier."""

    __slots__ = ("live", "mbarriers", "met", "number", "waiting", "warps")

    number: int
    warps: int
    live: int
    met: int  # time at which the last arrived warp was counted
    waiting: list[Warp]
    mbarriers: list[Mbarrier]

    def __init__(self, number: int, warps: int) -> None:
        self.number = number
        self.warps = self.live = warps
        self.met = 0
        self.waiting = []
        self.mbarriers = []

    def mbarrier(self, word: int) -> Mbarrier:
        """Return the mbarrier of a word, a new one at first."""
        for one in self.mbarriers:
            if one.word == word:
                return one
        made = Mbarrier(word, self.warps)
        self.mbarriers.append(made)
        return made


class Mbarrier:
    """An mbarrier of a block: expected and pending arrivals, and pending bytes.

    `ends` are the times at which its phases end, known as soon as their last copy has begun and all
    have arrived; `latest` is the latest event of the present phase. `seen` is the number of the
    phase that each warp has waited for last. Of the `waiting` warps each continues at `earliest`.
    """

    __slots__ = (
        "earliest", "ends", "expected", "latest", "pending", "seen", "size", "waiting", "word",
    )  # fmt: skip

    word: int
    expected: int
    pending: int
    size: int
    latest: int
    ends: list[int]
    seen: list[int]
    waiting: list[Warp]
    earliest: list[int]

    def __init__(self, word: int, warps: int) -> None:
        self.word = word
        self.expected = self.pending = self.size = self.latest = 0
        self.ends = []
        self.seen = [0] * warps
        self.waiting = []
        self.earliest = []

    def set(self, arrivals: int) -> None:
        """Begin again, with a number of arrivals for each phase."""
        self.expected = self.pending = arrivals
        self.size = 0

    def count(self, arrivals: int, size: int, at: int) -> bool:
        """Count arrivals and expected bytes at a time; return whether this ends the phase.

        Negative arrivals are of threads that later phases do not expect.
        """
        if arrivals < 0:
            self.expected += arrivals
            arrivals = -arrivals
        self.pending -= arrivals
        self.size += size
        self.latest = max(self.latest, at)
        if self.pending > 0 or self.size != 0:
            return False
        self.ends.append(self.latest)
        self.pending = self.expected
        self.latest = 0
        return True

    def end_for(self, warp: Warp) -> int:
        """Return when the phase ends that a warp waits for; -1 if that is not known yet."""
        phase = self.seen[warp.number]
        if phase > len(self.ends):
            return -1
        return self.ends[phase - 1] if phase else 0


class Warp:
    """A warp on the SM: its next step, and the arrival times of its results."""

    __slots__ = (
        "block", "by_pc", "marks", "number", "order", "pipe", "place", "requester", "results",
        "scheduler", "seen", "spent", "step", "steps", "stored",
    )  # fmt: skip

    steps: Sequence[Step]
    place: int  # of the next one
    step: Step  # the next one
    pipe: int  # the pipe of that
    by_pc: bool
    spent: MutableSequence[int]  # stall ticks by reason: of equal warps before each step, or by pc
    marks: list[int]  # sum over equal warps of the times at each mark
    block: Block
    number: int
    requester: Requester
    order: int
    scheduler: int  # its number
    results: list[int]
    seen: int  # end of its accounted time
    stored: int  # completion of its last store to shared memory

    def __init__(
        self, runs: Runs, block: Block, requester: Requester, order: int, scheduler: int, now: int
    ) -> None:
        self.steps = runs.steps
        self.place = 0
        self.step = runs.steps[0]
        self.pipe = self.step.pipe
        self.by_pc = runs.by_pc
        self.spent = runs.spent
        self.marks = runs.marks
        self.block = block
        self.number = requester.number
        self.requester = requester
        self.order = order
        self.scheduler = scheduler
        self.results = [0] * runs.tags
        self.seen = now
        self.stored = 0

    def advance(self) -> None:
        """Advance to the next step."""
        self.place += 1
        self.step = self.steps[self.place]
        self.pipe = self.step.pipe
