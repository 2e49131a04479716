"""Where the loops of a stream lie among its steps, of which iterations are extrapolated."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.prediction.clock.steps import MARKS, LoopMarks, Step
from gpusim.prediction.streams import SimulatedLoop

# A loop's first eighth and last twelfth are not like its other iterations; of a loop of fewer
# iterations than these no rate is noted.
FIRST_PART, LAST_PART = 8, 12
LEAST_MARKED = 12


@dataclass
class Marker:
    """Notes where a stream's loops lie among the steps, and what their iterations take."""

    made: list[LoopMarks] = field(default_factory=list)
    at: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    begun: dict[int, tuple[int, dict[int, int]]] = field(default_factory=dict)
    loops: list[tuple[SimulatedLoop, int, int, int]] = field(default_factory=list)

    def add(self, loop: SimulatedLoop) -> None:
        """Take note of a loop of which iterations are extrapolated."""
        begin = loop.simulated // FIRST_PART
        end = loop.simulated - loop.simulated // LAST_PART
        middle = (begin + end) // 2
        for mark, number in enumerate((begin, middle, end)):
            place = loop.first + number * loop.length
            self.at.setdefault(place, []).append((len(self.loops), mark))
        self.loops.append((loop, begin, middle, end))

    def note(self, place: int, step: Step, charges: dict[int, int]) -> None:
        """Note which step has the instruction at a place of the stream.

        `charges` are what all before it took.
        """
        for number, mark in self.at.get(place, ()):
            loop, begin, middle, end = self.loops[number]
            is_marked = loop.simulated >= LEAST_MARKED
            if is_marked:
                step.mark = MARKS * len(self.made) + mark
            if mark == 0:
                self.begun[number] = step.place, charges
            elif mark == 2:
                first, before = self.begun.pop(number)
                taken = {pc: spent - before.get(pc, 0) for pc, spent in charges.items()}
                self.made.append(
                    LoopMarks(
                        loop, first, step.place, end - begin, middle - begin, is_marked, taken
                    )
                )
