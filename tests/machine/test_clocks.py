"""Clocks of warps: the smallest one, words that blocks pass on, parked polls, lines of memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typed_python import Linked

from gpusim.machine.compiled import layout
from gpusim.machine.warps import accesses, clocks, convergence
from gpusim.machine.warps.clocks import NEVER, PACE, Timed
from gpusim.machine.warps.state import ALL_LANES, AT_WORD, IN, LAUNCH, OUT, READY, Long, Warp, Word
from gpusim.wasm import memory

BYTES, WARPS, WARP_BYTES, TIMED_AT = 1 << 17, 40000, 4096, 1024
CLOCKS, WINNERS, WORDS, POLLS, LINES, DELAYS = (60000 + 2000 * n for n in range(6))
FUNCTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        clocks.set_clock, clocks.keep_lines, clocks.fetch_lines, clocks.serve, clocks.poll,
        clocks.poll_served, clocks.park, clocks.write_words,
        accesses.counted, accesses.new_set, convergence.hold,
    )
}  # fmt: skip
BESIDE = "\n".join((
    "(func $progress (param i32) (result i32) (i32.const 0))",
    "(func $start (param i32)) (func $warp (param i32 i32))",
    "(func $appended (param i32 i32)) (func $removed (param i32 i32 i32))",
    "(func $united (param i32 i32 i32)) (func $opened (param i32))",
    layout.vector_code(),
))  # fmt: skip


class Machine:
    """The functions of clocks, interpreted or compiled, in the same memory."""

    def __init__(self, linked: Linked | None) -> None:
        self._linked = linked
        memory.use(bytearray(BYTES) if linked is None else linked.memory)
        if linked is not None:
            linked.memory[:BYTES] = bytes(BYTES)
        LAUNCH.warps_at, LAUNCH.warp_bytes, LAUNCH.blocks = WARPS, WARP_BYTES, 4
        LAUNCH.warps = 3
        PACE.timed_at, PACE.leaves, PACE.clocks, PACE.winners = TIMED_AT, 4, CLOCKS, WINNERS
        PACE.words, PACE.polls, PACE.word_mask = WORDS, POLLS, 63
        PACE.lines, PACE.line_count, PACE.first_line, PACE.delays = LINES, 64, 8, DELAYS
        PACE.apart, PACE.wake_after, PACE.running, PACE.next = 23, 7, 3, NEVER

    def __call__(self, name: str, *arguments: int) -> Any:
        """Call a function; warps are given as addresses."""
        if self._linked is not None:
            return self._linked.call(name, *arguments)
        kinds = FUNCTIONS[name].__annotations__
        given = [
            Warp(one) if kinds[parameter] == "Warp" else one
            for one, parameter in zip(arguments, kinds, strict=False)
        ]
        return FUNCTIONS[name](*given)

    def at(self, place: int, clock: int) -> int:
        """Return the address of a warp with one split, at a time of its clock."""
        warp = Warp(WARPS + WARP_BYTES * place)
        warp.splits = 1
        timed(warp.address).clock = clock
        return warp.address


@pytest.fixture(params=["interpreted", "compiled"])
def machine(request: pytest.FixtureRequest, linked: Linked) -> Machine:
    return Machine(linked if request.param == "compiled" else None)


@pytest.fixture(scope="module")
def linked() -> Linked:
    return Linked(FUNCTIONS, ("gpusim.machine.warps", "gpusim.wasm"), BESIDE)


def timed(warp: int) -> Timed:
    return Timed(warp + TIMED_AT)


def name_words(*words: int) -> int:
    """Let as many lanes as there are words have their addresses; return these lanes."""
    for lane, word in enumerate(words):
        Long(IN + 8 * lane).value = word
    return (1 << len(words)) - 1


def served(machine: Machine, clock: int, *words: int) -> int:
    """Return when an atomic of a warp is served."""
    machine("serve", machine.at(0, clock), name_words(*words))
    return int(PACE.served)


def test_the_smallest_of_all_clocks_is_kept(machine: Machine) -> None:
    """Of equal ones it is that of the first warp."""
    firsts = []
    for place, clock in ((0, 50), (1, 40), (2, 40), (3, 60), (1, NEVER), (2, 70), (0, NEVER)):
        machine("set_clock", place, clock)
        firsts.append(int(Word(WINNERS + 4).value))
    assert firsts[3:] == [1, 2, 0, 3]


def test_atomics_on_one_word_are_served_one_after_the_other(machine: Machine) -> None:
    """Each of its lanes takes 23 ticks; the word with the most lanes of a warp counts."""
    assert served(machine, 90, 64) == 90
    assert served(machine, 100, 64) == 113
    assert served(machine, 100, 72) == 100
    assert served(machine, 105, 72, 64, 64) == 136
    assert served(machine, 106, 64) == 136 + 2 * 23


def test_a_poll_comes_after_atomics_in_progress(machine: Machine) -> None:
    served(machine, 90, 64)
    for clock, word, expected in ((100, 64, 113 + 7), (113, 64, 113), (100, 72, 100)):
        machine("poll_served", machine.at(1, clock), name_words(word))
        assert PACE.served == expected


def polled(machine: Machine, warp: int, pc: int, word: int, value: int) -> bool:
    """Let the first lane of a warp poll a word; return whether that was in vain."""
    Word(OUT).value = value
    machine("poll", warp, pc, name_words(word), 1, 0)
    return bool(PACE.is_vain)


def test_a_poll_is_vain_if_it_finds_the_same_again(machine: Machine) -> None:
    warp = machine.at(0, 10)
    asked = (3, 64, 5), (3, 64, 5), (3, 64, 6), (3, 72, 6), (4, 72, 6), (4, 72, 6)
    assert [polled(machine, warp, *one) for one in asked] == [
        False, True, False, False, False, True,
    ]  # fmt: skip


def test_a_parked_warp_is_woken_by_a_write_of_its_word_alone(machine: Machine) -> None:
    """It goes on `wake_after` the write, but not before it polled."""
    warps = machine.at(0, 10), machine.at(1, 90)
    for warp, word in zip(warps, (64, 68), strict=True):
        polled(machine, warp, 3, word, 0)
        machine("park", warp, 0, 5, ALL_LANES, 0)
    states = []
    for word, at in ((72, 20), (64, 30), (64, 40), (68, 50)):
        machine("write_words", name_words(word), at)
        states.append([Warp(warp).split(0).state for warp in warps])
    assert states == [[AT_WORD, AT_WORD], [READY, AT_WORD], [READY, AT_WORD], [READY, READY]]
    assert [timed(warp).clock for warp in warps] == [37, 90]
    assert [Long(CLOCKS + 8 * place).value for place in range(2)] == [37, 90]
    assert PACE.next == 36  # of equal clocks the first warp's comes before that of the running one


def test_a_line_comes_late_once(machine: Machine) -> None:
    """A warp that touches a new line and an old one waits for the new one."""
    warp = machine.at(0, 10)
    Warp(warp).row = 2 * 3 + 1
    Long(DELAYS + 8 * (1 * 4 + 2)).value = 99  # of the second load, in the third block
    late = []
    for words in ((1024, 1028), (1028, 1152), (1152, 1024), (1 << 40,)):
        machine("fetch_lines", warp, name_words(*words), 1)
        late.append(int(PACE.late))
    assert late == [99, 99, 0, 0]
