"""What blocks of a cluster send each other's mbarriers, as events of the receiving block.

An SM is simulated without the others of its cluster: they are taken to be as far as it is. What
comes to a block's mbarrier comes with what it sends itself to the same mbarrier of a peer. Without
that, bytes out of global memory come with the block's own arrival that expects them, and anything
else with the wait for its phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gpusim.prediction.streams.recorder import Recorded

COST, LINES, WAVEFRONTS, GAPS = 0, 1, 2, 4  # columns of a recorded access

Word = tuple[int, int]  # a block, and the place of an mbarrier in its shared memory


class Place(NamedTuple):
    """A recorded step of a warp, by its row, the phase of a barrier when it ran, and its role."""

    step: int
    row: int
    phase: int
    role: str


@dataclass
class Phases:
    """The phase that an mbarrier is in: expected and pending arrivals, pending bytes."""

    expected: int = 0
    pending: int = 0
    size: int = 0
    phase: int = 0

    def set(self, arrivals: int) -> None:
        """Begin again, with a number of arrivals for each phase."""
        self.expected = self.pending = arrivals
        self.size = self.phase = 0

    def count(self, arrivals: int, size: int) -> None:
        """Count arrivals, negative ones of threads that leave, and expected bytes."""
        self.expected += min(arrivals, 0)
        self.pending -= abs(arrivals)
        self.size += size
        if self.expected > 0 and self.pending <= 0 and self.size == 0:
            self.phase += 1
            self.pending = self.expected


SEND, ARRIVE, ASK = "send", "arrive", "ask"


class Received(NamedTuple):
    """Arrivals and bytes from a peer in a phase, and whether loaded from global memory."""

    phase: int
    arrivals: int
    size: int
    is_load: bool


@dataclass
class Peers:
    """The mbarriers of blocks: their phases, and events of peers at them."""

    phases: dict[Word, Phases] = field(default_factory=dict)
    received: dict[Word, list[Received]] = field(default_factory=dict)
    sends: dict[Word, list[Place]] = field(default_factory=dict)
    arrivals: dict[tuple[Word, int], Place] = field(default_factory=dict)
    waits: dict[tuple[Word, int], Place] = field(default_factory=dict)

    def of(self, word: Word) -> Phases:
        """Return the phases of an mbarrier."""
        return self.phases.setdefault(word, Phases())

    def receive(self, word: Word, arrivals: int, size: int, *, is_load: bool) -> None:
        """Count what comes from a peer."""
        of_word = self.of(word)
        event = Received(of_word.phase, arrivals, size, is_load)
        self.received.setdefault(word, []).append(event)
        of_word.count(arrivals, -size)

    def send(self, word: Word, step: int, row: int) -> None:
        """Note a step that sends to a peer's mbarrier, at the place of the block's own `word`."""
        place = Place(step, row, self.of(word).phase, SEND)
        if self.sends.setdefault(word, [])[-1:] != [place]:
            self.sends[word].append(place)

    def arrive(self, word: Word, step: int, row: int) -> None:
        """Note an arrival of the block's own."""
        phase = self.of(word).phase
        self.arrivals[word, phase] = Place(step, row, phase, ARRIVE)

    def wait(self, word: Word, step: int, row: int) -> None:
        """Note a wait that has found its phase ended, the one before the present one."""
        phase = self.of(word).phase - 1
        self.waits.setdefault((word, phase), Place(step, row, phase, ASK))

    def credit(self, block: int, recorded: Recorded) -> None:
        """Write what a block received into the columns of its own steps.

        A step that sends has it as its arrivals and bytes. An arrival has less bytes to wait for,
        and these, one at least, as `cost`; a wait has bytes, and arrivals as `cost`, beyond its
        own of 1.
        """
        for word in [one for one in self.received if one[0] == block]:
            for place, event in self._places(word):
                step = recorded.steps[place.step]
                at = step.rows == place.row
                for column, more in _more(place.role, event):
                    step.columns[column][0, at] += more
                step.columns[GAPS][0, at] = word[1]

    def _places(self, word: Word) -> Iterator[tuple[Place, Received]]:
        """Yield where each event is taken to happen."""
        events, sends = self.received[word], self.sends.get(word, [])
        for number, event in enumerate(events):
            own = sends[number * len(sends) // len(events)] if sends else None
            if own is None or own.phase > event.phase:
                own = self._of_phase(word, event)
            if own is not None:
                yield own, event

    def _of_phase(self, word: Word, event: Received) -> Place | None:
        name = word, event.phase
        order = (self.arrivals, self.waits) if event.is_load else (self.waits, self.arrivals)
        return next((one[name] for one in order if name in one), None)


def _more(role: str, event: Received) -> tuple[tuple[int, int], ...]:
    """Return what is added to the columns of a step with a role."""
    arrivals, size = event.arrivals, event.size
    if role == SEND:
        return (LINES, arrivals), (WAVEFRONTS, size)
    if role == ARRIVE:
        return (LINES, arrivals), (WAVEFRONTS, -size), (COST, max(1, size))
    return (COST, arrivals), (WAVEFRONTS, size)
