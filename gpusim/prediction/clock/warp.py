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

    __slots__ = ("live", "met", "number", "waiting")

    number: int
    live: int
    met: int  # time at which the last arrived warp was counted
    waiting: list[Warp]

    def __init__(self, number: int, warps: int) -> None:
        self.number = number
        self.live = warps
        self.met = 0
        self.waiting = []


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
        """Go on to the next step."""
        self.place += 1
        self.step = self.steps[self.place]
        self.pipe = self.step.pipe
