"""Marks of extrapolated loops among the steps of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.prediction.clock.steps import MARKS, LoopMarks
from gpusim.prediction.streams import SimulatedLoop

# The first eighth and the last twelfth of a loop are warm-up and tail; in a shorter loop than this
# no rate is measured.
FIRST_PART, LAST_PART = 8, 12
LEAST_MARKED = 12


@dataclass
class Marker:
    """Records the steps of a stream's loops, and the ticks of their iterations.

    `marks` are the numbers of marks by the step's place.
    """

    marks: dict[int, int] = field(default_factory=dict)
    made: list[LoopMarks] = field(default_factory=list)
    at: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    begun: dict[int, tuple[int, dict[int, int]]] = field(default_factory=dict)
    loops: list[tuple[SimulatedLoop, int, int, int]] = field(default_factory=list)

    def add(self, loop: SimulatedLoop) -> None:
        """Add a loop with extrapolated iterations."""
        begin = loop.simulated // FIRST_PART
        end = loop.simulated - loop.simulated // LAST_PART
        middle = (begin + end) // 2
        for mark, number in enumerate((begin, middle, end)):
            place = loop.first + number * loop.length
            self.at.setdefault(place, []).append((len(self.loops), mark))
        self.loops.append((loop, begin, middle, end))

    def note(self, place: int, step: int, charges: dict[int, int]) -> None:
        """Record the place of the step of the instruction at a position of the stream.

        `charges` are the ticks of everything before it, by pc.
        """
        for number, mark in self.at.get(place, ()):
            loop, begin, middle, end = self.loops[number]
            is_marked = loop.simulated >= LEAST_MARKED
            if is_marked:
                self.marks[step] = MARKS * len(self.made) + mark
            if mark == 0:
                self.begun[number] = step, charges
            elif mark == 2:
                first, before = self.begun.pop(number)
                taken = {pc: spent - before.get(pc, 0) for pc, spent in charges.items()}
                self.made.append(
                    LoopMarks(loop, first, step, end - begin, middle - begin, is_marked, taken)
                )
