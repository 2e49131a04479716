"""Memory over a whole program: values, and the order of work on streams and of the host."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.checking.device_memory import MOST_FINDINGS, DeviceMemory, Work
from gpusim.checking.touched_memory import READ, UPDATED, WRITTEN, Touched
from gpusim.driver.order import NON_BLOCKING, Order

BEGIN, SIZE = 1 << 20, 400
EVERY = [(BEGIN, SIZE)]
ONE, TWO = 1, 2


class Program:
    """A process with memory at BEGIN, and two streams of its own."""

    def __init__(self, *, is_shared: bool = False, has_values: bool = True) -> None:
        self.order, self.memory = Order(), DeviceMemory()
        self.order.add_stream(ONE, 0)
        self.order.add_stream(TWO, NON_BLOCKING)
        self.memory.has_streams = True
        self.memory.add(BEGIN, SIZE, has_values=has_values, is_shared=is_shared)

    def work(self, stream: int, text: str = "work") -> Work:
        return Work(f"{text} on {stream}", self.order.submit(stream))

    def write(self, stream: int, rows: list[tuple[int, int]] = EVERY) -> list[str]:
        found = self.memory.write(rows, self.work(stream, "a copy"))
        return [one.message for one in found]

    def read(self, stream: int, rows: list[tuple[int, int]] = EVERY) -> list[str]:
        found = self.memory.read(rows, self.work(stream, "a copy"))
        return [one.message for one in found]

    def launch(self, stream: int, mark: int, begin: int = 0, count: int = 100) -> list[str]:
        marks = np.full(count, mark, np.uint8)
        touched = [(BEGIN, Touched(begin, 4, marks, {mark: (7,)}))]
        found = self.memory.launched(self.work(stream, "a launch"), touched)
        return [one.message for one in found]

    def host(self, *, writes: bool, place: int = 0) -> list[str]:
        found = self.memory.host_touched(BEGIN + place, writes=writes, clock=self.order.host)
        return [f"{one.rule}: {one.message}" for one in found]


def test_work_of_one_stream_is_in_order() -> None:
    program = Program()
    assert not program.write(ONE) + program.launch(ONE, READ) + program.write(ONE)


def test_two_streams_race_where_one_writes() -> None:
    program = Program()
    assert not program.read(ONE) + program.read(TWO)
    assert program.write(TWO) == [
        "a copy on 1 reads it and a copy on 2 writes it, unordered: byte 0 of an allocation of "
        "400 bytes"
    ]


def test_elements_apart_do_not_race_even_within_a_word() -> None:
    program = Program()
    assert not program.write(ONE, [(BEGIN, 101)]) + program.write(TWO, [(BEGIN + 101, 99)])
    assert "byte 100 of" in program.write(TWO, [(BEGIN + 100, 1)])[0]


def test_an_event_orders_two_streams() -> None:
    program = Program()
    program.write(ONE)
    program.order.record(5, ONE)
    program.order.order(TWO, 5)
    assert not program.write(TWO)
    program.launch(ONE, WRITTEN)
    program.order.order(TWO, 5)  # the event stands for the earlier work alone
    assert "a launch on 1 (line 7) writes it" in program.read(TWO)[0]


def test_the_host_that_waited_orders_what_it_gives_afterwards() -> None:
    program = Program()
    program.write(ONE)
    program.order.wait(ONE)
    assert not program.write(TWO)


@pytest.mark.parametrize(("stream", "races"), [(ONE, False), (TWO, True)])
def test_the_default_stream_orders_blocking_streams_alone(stream: int, races: bool) -> None:
    program = Program()
    program.write(0)
    assert bool(program.launch(stream, READ)) == races


def test_atomics_race_with_stores_alone() -> None:
    program = Program()
    assert not program.launch(ONE, UPDATED) + program.launch(TWO, UPDATED)
    assert "updates it" in program.launch(TWO, WRITTEN)[0]


@pytest.mark.parametrize(
    ("mark", "writes", "races"),
    [(WRITTEN, False, True), (READ, False, False), (READ, True, True), (UPDATED, False, False)],
)
def test_the_host_races_with_work_that_is_not_over(mark: int, writes: bool, races: bool) -> None:
    program = Program(is_shared=True)
    program.launch(ONE, mark, begin=40, count=10)
    assert not program.host(writes=writes)  # before the elements that are touched
    assert bool(program.host(writes=writes, place=44)) == races
    program.order.wait(ONE)
    assert not program.host(writes=writes, place=48)


def test_pages_are_guarded_until_the_host_has_waited() -> None:
    program = Program(is_shared=True)
    program.read(ONE)
    page = BEGIN // 4096 * 4096
    assert list(program.memory.guarded(program.order.host)) == [(page, 4096, True)]
    program.write(ONE)
    assert list(program.memory.guarded(program.order.host)) == [(page, 4096, False)]
    program.order.wait(ONE)
    assert list(program.memory.guarded(program.order.host)) == []


def test_copies_to_the_host_ask_for_values_and_copies_within_pass_them_on() -> None:
    program = Program(has_values=False)
    memory = program.memory
    memory.add(2 * BEGIN, SIZE, has_values=False, is_shared=False)
    program.write(ONE, [(BEGIN, 100)])
    memory.move_values([(2 * BEGIN + 50, 200)], [(BEGIN, 200)])

    def missing(address: int, size: int) -> list[str]:
        return [one.message for one in memory.copy_back([(address, size)], program.work(ONE))]

    assert not missing(BEGIN, 100)
    assert missing(BEGIN, SIZE) == [
        "work on 1 reads 300 uninitialised bytes, from byte 100 of an allocation of 400 bytes on"
    ]
    assert not missing(2 * BEGIN + 50, 100)
    assert "reads 1 uninitialised bytes" in missing(2 * BEGIN + 49, 2)[0]
    memory.launched_unseen()
    assert not missing(2 * BEGIN, SIZE)


def test_a_kernels_stores_give_values() -> None:
    program = Program(has_values=False)
    program.launch(ONE, WRITTEN, begin=0, count=99)
    values = program.memory.values(BEGIN)
    assert values is not None
    assert np.flatnonzero(~values.flags).tolist() == [99]
    program.launch(ONE, UPDATED, begin=396, count=1)
    assert program.memory.values(BEGIN) is None


def test_findings_are_said_once_and_not_without_end() -> None:
    program = Program()
    program.write(ONE)
    assert len(program.read(TWO)) == 1
    assert not program.read(TWO)
    found = [program.write(stream, [(BEGIN + k, 1)]) for k in range(400) for stream in (ONE, TWO)]
    assert sum(map(len, found)) < MOST_FINDINGS


def test_freed_memory_is_forgotten() -> None:
    program = Program()
    program.write(ONE)
    program.memory.remove(BEGIN)
    assert not program.write(TWO)
