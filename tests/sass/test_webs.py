"""Registers that are used again get names of their own, and guards are known."""

from __future__ import annotations

from gpusim.sass.decoding import Context, decoded
from gpusim.sass.flow import edges
from gpusim.sass.listing import row_of_text
from gpusim.sass.webs import Webs


def webs(*rows: str, **labels: int) -> Webs:
    micros = list(decoded([row_of_text(text) for text in rows], Context(0)))
    assert len(micros) == len(rows)
    return Webs(micros, edges(micros, {"top": 0, **labels}))


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


CALLED_TWICE = (
    "MOV R0, 0x1", "MOV R20, 0x30", "CALL.REL.NOINC `(f)", "MOV R1, R0",
    "MOV R0, 0x2", "MOV R20, 0x70", "CALL.REL.NOINC `(f)", "MOV R2, R0",
)  # fmt: skip


def test_what_a_function_leaves_alone_comes_back_to_its_own_caller() -> None:
    made = webs(*CALLED_TWICE, "EXIT", "MOV R9, R5", "RET.REL.NODEC R20 `(top)", f=9)
    assert made.read(3, "R0") == made.written(0, 0, "R0")
    assert made.read(7, "R0") == made.written(4, 0, "R0")
    assert made.read(3, "R0") != made.read(7, "R0")
    assert made.read(10, "R20") == made.written(1, 0, "R20") == made.written(5, 0, "R20")


def test_what_a_function_writes_is_its_own_behind_the_call() -> None:
    made = webs(*CALLED_TWICE, "EXIT", "MOV R0, 0x3", "RET.REL.NODEC R20 `(top)", f=9)
    assert made.read(3, "R0") == made.read(7, "R0") == made.written(9, 0, "R0")
    assert made.written(0, 0, "R0") != made.read(3, "R0")


def test_what_a_function_may_write_is_one_with_what_its_callers_have() -> None:
    made = webs(*CALLED_TWICE, "EXIT", "@P0 MOV R0, 0x3", "RET.REL.NODEC R20 `(top)", f=9)
    assert made.read(3, "R0") == made.written(0, 0, "R0") == made.written(9, 0, "R0")


def test_a_function_that_another_calls_comes_back_to_that_one() -> None:
    inner = "MOV R20, R21", "CALL.REL.NOINC `(g)", "RET.REL.NODEC R22 `(top)"
    rows = *CALLED_TWICE, "EXIT", *inner, "MOV R1, 0x5", "RET.REL.NODEC R20 `(top)"
    made = webs(*rows, f=9, g=12)
    assert made.read(3, "R0") == made.written(0, 0, "R0")
    assert made.read(3, "R0") != made.read(7, "R0")
    assert made.reached == frozenset(range(14))


def test_under_a_guard_a_call_knows_what_its_lanes_hold() -> None:
    rows = "MOV R0, 0x1", "@P0 MOV R0, 0x2", "@P0 CALL.REL.NOINC `(f)", "@P0 MOV R1, R0"
    made = webs(*rows, "EXIT", "MOV R9, R5", "RET.REL.NODEC R20 `(top)", f=5)
    assert made.read(3, "R0") == made.written(1, 0, "R0")
    assert made.read(3, "R0") != made.written(0, 0, "R0")


def test_what_is_written_beside_a_guard_was_written_under_its_value_before() -> None:
    made = webs(
        "MOV R0, 0x1", "@P0 LOP3.LUT P0, R0, R1, R2, RZ, 0xc0, !PT", "@!P0 MOV R3, R0", "EXIT"
    )
    assert made.written(0, 0, "R0") == made.written(1, 1, "R0") == made.read(2, "R0")
