"""Registers that are used again get names of their own, and guards are known."""

from __future__ import annotations

from gpusim.sass.decode import Decoder, decoded
from gpusim.sass.flow import edges
from gpusim.sass.listing import row_of_text
from gpusim.sass.webs import Webs


def webs(*rows: str) -> Webs:
    micros = list(decoded([row_of_text(text) for text in rows], Decoder(0)))
    assert len(micros) == len(rows)
    return Webs(micros, edges(micros, {"top": 0}))


def test_a_register_written_anew_is_another_one() -> None:
    made = webs("MOV R0, 0x1", "MOV R1, R0", "MOV R0, 0x2", "MOV R2, R0", "EXIT")
    assert made.read(1, "R0") == made.written(0, 0, "R0")
    assert made.read(3, "R0") == made.written(2, 0, "R0")
    assert made.read(1, "R0") != made.read(3, "R0")


def test_what_a_guarded_row_writes_is_one_with_what_was_there_for_an_unguarded_use() -> None:
    made = webs("MOV R0, 0x1", "@P0 MOV R0, 0x2", "MOV R1, R0", "EXIT")
    assert made.written(0, 0, "R0") == made.written(1, 0, "R0") == made.read(2, "R0")


def test_under_the_same_guard_only_what_was_written_under_it_is_seen() -> None:
    made = webs(
        "MOV R0, 0x1", "@P0 MOV R0, 0x2", "@P0 MOV R1, R0", "@!P0 MOV R1, R0", "MOV R2, R1", "EXIT"
    )
    assert made.read(2, "R0") == made.written(1, 0, "R0")
    assert made.read(3, "R0") == made.written(0, 0, "R0")
    assert made.read(2, "R0") != made.read(3, "R0")
    assert made.written(2, 0, "R1") == made.written(3, 0, "R1") == made.read(4, "R1")


def test_a_guard_is_another_once_its_predicate_has_changed() -> None:
    made = webs(
        "MOV R0, 0x1",
        "@P0 MOV R0, 0x2",
        "ISETP.EQ.AND P0, PT, R5, RZ, PT",
        "@P0 MOV R1, R0",
        "EXIT",
    )
    assert made.read(3, "R0") == made.written(0, 0, "R0") == made.written(1, 0, "R0")


def test_both_guards_together_leave_nothing_of_what_was_there() -> None:
    made = webs(
        "MOV R0, 0x1", "MOV R3, R0", "@P0 MOV R0, 0x2", "@!P0 MOV R0, 0x3", "MOV R1, R0", "EXIT"
    )
    assert made.read(4, "R0") == made.written(2, 0, "R0") == made.written(3, 0, "R0")
    assert made.read(1, "R0") != made.read(4, "R0")


def test_round_a_loop_a_register_is_one() -> None:
    made = webs("IADD3 R0, R0, 0x1, RZ", "@P0 BRA `(top)", "MOV R1, R0", "EXIT")
    assert made.read(0, "R0") == made.written(0, 0, "R0") == made.read(2, "R0")
