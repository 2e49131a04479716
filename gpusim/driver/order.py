"""The order of a program's work: work that has certainly ended before other work begins.

A clock of vectors: for each stream the number of its latest work that is over. Work follows its
stream, the default stream where it is a blocking one, events waited for, and all that the host
knew to be over when it gave the work (CUDA C++ Programming Guide, "Asynchronous Concurrent
Execution"; Lamport; Mattern).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

DEFAULT, NON_BLOCKING = 0, 1

Clock = dict[int, int]


class Stamp(NamedTuple):
    """A piece of work: its stream, its number there, and its predecessors, itself included."""

    stream: int
    turn: int
    clock: Mapping[int, int]

    def is_before(self, clock: Mapping[int, int]) -> bool:
        """Return whether the work has ended according to this clock."""
        return clock.get(self.stream, 0) >= self.turn


@dataclass
class _Stream:
    clock: Clock = field(default_factory=dict)
    follows: bool = True  # whether it waits for the default stream


@dataclass
class Order:
    """The streams of a process, its events, and its host."""

    host: Clock = field(default_factory=dict)
    _streams: dict[int, _Stream] = field(default_factory=lambda: {DEFAULT: _Stream()})
    _events: dict[int, Clock] = field(default_factory=dict)

    @property
    def has_streams(self) -> bool:
        """Whether work may run on another stream than the default one."""
        return len(self._streams) > 1

    def add_stream(self, number: int, flags: int) -> None:
        """Take note of a new stream."""
        self._streams[number] = _Stream(follows=not flags & NON_BLOCKING)

    def submit(self, stream: int) -> Stamp:
        """Return the place of new work on a stream."""
        held = self._stream(stream)
        clock = self._over(stream)
        _join(clock, self.host)
        clock[stream] = turn = held.clock.get(stream, 0) + 1
        held.clock = clock
        return Stamp(stream, turn, clock)

    def record(self, event: int, stream: int) -> None:
        """Let an event stand for a stream's work so far."""
        self._events[event] = _joined(self._over(stream), self.host)

    def order(self, stream: int, event: int) -> None:
        """Let a stream wait for an event."""
        held = self._stream(stream)
        held.clock = _joined(held.clock, self._events.get(event, {}))

    def wait(self, stream: int) -> None:
        """Let the host wait for a stream."""
        _join(self.host, self._over(stream))

    def wait_for_event(self, event: int) -> None:
        """Let the host wait for an event."""
        _join(self.host, self._events.get(event, {}))

    def wait_for_all(self) -> None:
        """Let the host wait for all streams."""
        for one in self._streams.values():
            _join(self.host, one.clock)

    def _stream(self, number: int) -> _Stream:
        return self._streams.setdefault(number, _Stream())

    def _over(self, number: int) -> Clock:
        """Return, as a new clock, what is over before work that is now given to a stream."""
        held = self._stream(number)
        made = dict(held.clock)
        if number == DEFAULT:
            for one in self._streams.values():
                if one.follows:
                    _join(made, one.clock)
        elif held.follows:
            _join(made, self._streams[DEFAULT].clock)
        return made


def _join(clock: Clock, other: Mapping[int, int]) -> None:
    for stream, turn in other.items():
        if turn > clock.get(stream, 0):
            clock[stream] = turn


def _joined(clock: Mapping[int, int], other: Mapping[int, int]) -> Clock:
    made = dict(clock)
    _join(made, other)
    return made
