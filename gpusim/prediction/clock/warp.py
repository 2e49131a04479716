"""A warp and a block on the SM: the state that schedulers and the SM share."""

from __future__ import annotations

from gpusim.prediction.clock.runs import Runs
from gpusim.prediction.clock.steps import Step
from gpusim.prediction.memory import Requester


def scheduler_of(block: int, warp: int, schedulers: int) -> int:
    """Return the number of the scheduler that a warp of a block is given to."""
    return (block + warp) % schedulers


class Block:
    """A block on the SM: how many of its warps still run, and who waits at its barrier."""

    __slots__ = ("live", "met", "number", "waiting")

    number: int
    live: int
    met: int  # when the last warp that came has been counted
    waiting: list[Warp]

    def __init__(self, number: int, warps: int) -> None:
        self.number = number
        self.live = warps
        self.met = 0
        self.waiting = []


class Warp:
    """A warp on the SM: which step it comes to, and when each result will be there."""

    __slots__ = (
        "block", "marks", "number", "order", "pipe", "requester", "results", "scheduler", "seen",
        "spent", "step", "stored",
    )  # fmt: skip

    step: Step  # the one that it comes to
    pipe: int  # what that needs
    spent: list[int]  # ticks that warps like it waited before each step, by reason
    marks: list[int]  # the sum of the times at which warps like it came by each mark
    block: Block
    number: int
    requester: Requester
    order: int
    scheduler: int  # its number
    results: list[int]
    seen: int  # until when its life is accounted for
    stored: int  # when its last store to shared memory is through

    def __init__(
        self, runs: Runs, block: Block, requester: Requester, order: int, scheduler: int, now: int
    ) -> None:
        self.step = runs.steps[0]
        self.pipe = self.step.pipe
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
