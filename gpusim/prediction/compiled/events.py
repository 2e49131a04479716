"""The agenda of the compiled clock: its event queue and event loop.

Events follow the order of SimPy's queue and processes (`clock.processes`): by time, at equal times
in the order of scheduling.
"""

from __future__ import annotations

from bisect import insort

from gpusim.prediction.clock.event_queue import NEVER
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor
from gpusim.prediction.clock.warp import Block

RUN, WAKE, END_BLOCK = range(3)


class Events:
    """An event queue: entries are (-time, -sequence number, kind, number), latest first."""

    coming: list[tuple[int, int, int, int]]
    said: int
    # By scheduler: the sequence number and the time of its next run.
    alarms: list[int]
    alarms_at: list[int]
    woken: list[list[int]]
    ending: list[Block]

    def __init__(self, schedulers: int) -> None:
        self.coming = []
        self.said = 0
        self.alarms = [0] * schedulers
        self.alarms_at = [0] * schedulers
        self.woken = []
        self.ending = []

    def next(self) -> int:
        """Return the time of the next event, NEVER for an empty queue."""
        return -self.coming[-1][0] if self.coming else NEVER

    def wake(self, at: int, schedulers: list[int]) -> None:
        """Let schedulers, given by number, check their warps at a time, in this order."""
        self._say(at, WAKE, len(self.woken))
        self.woken.append(schedulers)

    def end_block(self, at: int, block: Block) -> None:
        """End a block on the SM at a time."""
        self._say(at, END_BLOCK, len(self.ending))
        self.ending.append(block)

    def run_again(self, at: int, scheduler: int) -> None:
        """Let a scheduler run at a time, in place of its earlier appointment."""
        self.alarms_at[scheduler] = at
        if at < NEVER:
            self._say(at, RUN, scheduler)
            self.alarms[scheduler] = self.said
        else:
            self.alarms[scheduler] = 0

    def _say(self, at: int, kind: int, number: int) -> None:
        self.said += 1
        insort(self.coming, (-at, -self.said, kind, number))


def play(sm: StreamingMultiprocessor, events: Events) -> None:
    """Play an SM from the start of its first block to the end of its last; `events` its agenda."""
    for number in range(len(sm.schedulers)):
        events.run_again(0, number)
    sm.start_blocks(0)
    while events.coming:
        before, name, kind, number = events.coming[-1]
        del events.coming[-1]
        now = -before
        if kind == END_BLOCK:
            sm.end_block(events.ending[number], now)
        elif kind == WAKE:
            for scheduler in events.woken[number]:
                if events.alarms_at[scheduler] > now:
                    events.run_again(now, scheduler)
        elif events.alarms[number] == -name:
            events.run_again(sm.schedulers[number].run(now), number)
