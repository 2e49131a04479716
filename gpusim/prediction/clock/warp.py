"""A warp and a block on the SM: the state that schedulers and the SM share."""

from __future__ import annotations

from gpusim.prediction.clock.runs import Runs
from gpusim.prediction.memory import Requester


def scheduler_of(block: int, warp: int, schedulers: int) -> int:
    """Return the number of the scheduler that a warp of a block is given to."""
    return (block + warp) % schedulers


class Block:
    """A block on the SM: how many of its warps still run, and who waits at its barrier."""

    __slots__ = ("live", "met", "number", "waiting")

    def __init__(self, number: int, warps: int) -> None:
        self.number = number
        self.live = warps
        self.met = 0  # when the last warp that came has been counted
        self.waiting: list[Warp] = []


class Warp:
    """A warp on the SM: which step it comes to, and when each result will be there."""

    __slots__ = (
        "block", "marks", "number", "order", "pipe", "requester", "results", "scheduler", "seen",
        "spent", "step", "stored",
    )  # fmt: skip

    def __init__(
        self, runs: Runs, block: Block, requester: Requester, order: int, scheduler: int, now: int
    ) -> None:
        self.step = runs.work.steps[0]  # the one that it comes to
        self.pipe = self.step.pipe  # what that needs
        self.spent = runs.spent  # by reason, ticks that warps like it waited before each step
        self.marks = runs.marks  # the sum of the times at which warps like it came by each mark
        self.block = block
        self.number = requester.number
        self.requester = requester
        self.order = order
        self.scheduler = scheduler  # its number
        self.results = [0] * runs.work.tags
        self.seen = now  # until when its life is accounted for
        self.stored = 0  # when its last store to shared memory is through
