"""What arithmetic reads of each bank of the register file, even registers and odd ones."""

from __future__ import annotations

from gpusim.sass import translate
from gpusim.sass.decoding import Context, decoded
from gpusim.sass.listing import row_of_text
from gpusim.sass.register_banks import bank_reads

assert translate


def reads(*texts: str) -> list[tuple[int, ...]]:
    rows = [row_of_text(text) for text in texts]
    return bank_reads(rows, list(decoded(rows, Context(0))))


def test_even_and_odd_registers_lie_in_a_bank_each() -> None:
    """What is written is not read; zeros, numbers, predicates and uniform registers lie nowhere."""
    assert reads("FFMA R1, R2, R4, R6") == [(3, 0)]
    assert reads("FFMA R2, R2, R3, R5") == [(1, 2)]
    assert reads("ISETP.GE.AND P0, PT, R3, R5, PT") == [(0, 2)]
    assert reads("IMAD.MOV.U32 R7, RZ, RZ, R4") == [(1, 0)]
    assert reads("FFMA R1, R2, UR4, -R3") == [(1, 1)]
    assert reads("IADD3 R4, R4, 0x1, RZ") == [(1, 0)]


def test_a_register_that_is_named_twice_is_read_once() -> None:
    """64 FFMA of this form in turn take an H200 a slot each."""
    assert reads("FFMA R5, R2, R5, R2") == [(1, 1)]
    assert reads("FFMA R1, R2.reuse, R4, R6", "FFMA R3, R2, R5, R2") == [(3, 0), (1, 1)]


def test_an_operand_that_is_reused_is_not_read_again_at_its_place() -> None:
    assert reads("FFMA R1, R2.reuse, R4, R6", "FFMA R3, R2, R5, R7") == [(3, 0), (0, 2)]
    assert reads("FFMA R1, R2.reuse, R4, R6", "FFMA R3, R4, R2, R7") == [(3, 0), (2, 1)]


def test_an_operand_is_kept_until_its_bank_is_read_at_its_place() -> None:
    """R8 takes the place of R2, R7 does not; what finds R2 keeps it no longer unless it says so."""
    kept, other, again = "FADD R1, R2.reuse, R3", "FADD R5, R7, R3", "FADD R9, R2, R3"
    assert reads(kept, other, again) == [(1, 1), (0, 2), (0, 1)]
    assert reads(kept, "FADD R5, R8, R3", again)[2] == (1, 1)
    assert reads(kept, again, again) == [(1, 1), (0, 1), (1, 1)]


def test_each_pipe_keeps_operands_of_its_own() -> None:
    """Multiplication is one pipe, of integers and of floating-point numbers."""
    kept = "FFMA R1, R2.reuse, R4, R6"
    assert reads(kept, "LOP3.LUT R3, R8, R2, R6, 0xc0, !PT", "IMAD R5, R2, R4, R6")[1:] == [
        (3, 0),
        (2, 0),
    ]


def test_what_other_units_read_is_not_counted() -> None:
    assert reads("MUFU.EX2 R1, R2", "DFMA R2, R4, R6, R2") == [(), ()]
