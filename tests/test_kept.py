"""What is worked out once is kept for what was used last."""

from __future__ import annotations

from dataclasses import replace

from gpusim.host.kept import MOST_KEPT, Recent, once
from gpusim.isa.ops import Instruction, Program


def program_of(*ops: str) -> Program:
    return Program("k", tuple(Instruction(op) for op in ops), registers=0)


def test_each_program_is_looked_at_once_however_alike_they_are() -> None:
    """An equal one is another: to compare them would take longer than to look."""
    seen: list[Program] = []

    @once
    def length(program: Program) -> int:
        seen.append(program)
        return len(program.instructions)

    first, second = program_of("NOP", "EXIT"), program_of("NOP", "EXIT")
    assert [length(one) for one in (first, second, first, second)] == [2, 2, 2, 2]
    assert [id(one) for one in seen] == [id(first), id(second)]


def test_programs_that_came_long_ago_are_let_go() -> None:
    seen: list[str] = []
    looked = once(lambda program: seen.append(program.name))
    programs = [replace(program_of("EXIT"), name=str(n)) for n in range(MOST_KEPT + 1)]
    for program in (*programs, programs[-1], programs[0]):
        looked(program)
    assert seen == [*map(str, range(MOST_KEPT + 1)), "0"]


def test_a_full_mapping_lets_go_of_what_was_unused_longest() -> None:
    kept: Recent[str, int] = Recent(2)
    kept["first"], kept["second"] = 1, 2
    assert (kept.used("first"), kept.used("third")) == (1, None)
    kept["third"] = 3
    assert list(kept.items()) == [("first", 1), ("third", 3)]
    kept["first"] = 4
    kept["fourth"] = 5
    assert list(kept) == ["first", "fourth"]
