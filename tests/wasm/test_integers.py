"""Integers of all widths and records in memory: CPython and compiled code compute the same."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typed_python import Compiled

from gpusim.wasm import memory
from gpusim.wasm.integers import as_i8, as_i64, as_u16, leading_zeros, popcount, trailing_zeros
from gpusim.wasm.memory import Record, i8, i16, i32, i64, u8, u16, u32
from gpusim.wasm.module import functions_of
from gpusim.wasm.sources import NotTranslatedError, external

LONG = st.integers(-(2**63), 2**63 - 1)
WIDTHS = ("u8", "u16", "u32", "i8", "i16", "i32", "i64")
LEAVES = st.sampled_from(("a", "b", "-1", "0", "1", "31", "0x7FFFFFFF", "-2147483648"))
_number = itertools.count()


def expressions() -> st.SearchStrategy[str]:
    """Texts of expressions of whole numbers `a` and `b`, each part of 64 bits."""

    def larger(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pair = st.tuples(part, st.sampled_from("+-*&|^"), part)
        shift = st.tuples(part, st.sampled_from(("<<", ">>")), part)
        bits = st.sampled_from(("popcount", "trailing_zeros", "leading_zeros"))
        cuts = st.sampled_from([f"as_{width}" for width in WIDTHS])
        return st.one_of(
            pair.map(lambda it: f"as_i64({it[0]} {it[1]} {it[2]})"),
            shift.map(lambda it: f"as_i64({it[0]} {it[1]} ({it[2]} & 63))"),
            st.tuples(bits, part).map(lambda it: f"{it[0]}({it[1]})"),
            st.tuples(cuts, part).map(lambda it: f"{it[0]}({it[1]})"),
            part.map(lambda it: f"~{it}"),
            st.tuples(part, part, part).map(lambda it: f"({it[0]} if {it[1]} < {it[2]} else 3)"),
        )

    return st.recursive(LEAVES, larger, max_leaves=12)


def written(text: str, folder: Path) -> ModuleType:
    """Return a module of a text."""
    path = folder / f"written_{next(_number)}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(expressions(), st.lists(st.tuples(LONG, LONG), min_size=4, max_size=12))
def test_random_expressions_of_integers_compute_as_in_cpython(
    tmp_path: Path, text: str, pairs: list[tuple[int, int]]
) -> None:
    head = "from gpusim.wasm.integers import *\n\ndef made(a: int, b: int) -> int:\n"
    made = written(f"{head}    return as_i64({text})\n", tmp_path).made
    run = Compiled(made)
    for a, b in pairs:
        assert run(a, b) == made(a, b)


@pytest.mark.parametrize(
    ("value", "ones", "below", "above"),
    [(0, 0, 64, 64), (1, 1, 0, 63), (40, 2, 3, 58), (-1, 64, 0, 0), (-(2**63), 1, 63, 0)],
)
def test_bits_are_counted_in_64(value: int, ones: int, below: int, above: int) -> None:
    assert (popcount(value), trailing_zeros(value), leading_zeros(value)) == (ones, below, above)


def test_a_cut_integer_has_the_sign_of_its_highest_bit() -> None:
    assert [as_i8(0x17F), as_i8(0x180), as_u16(-1)] == [127, -128, 65535]
    assert as_i64(2**63) == -(2**63)


# -- records ---------------------------------------------------------------------------------


class Everything(Record):
    """A field of each width, and another record."""

    byte: u8
    short: u16
    word: u32
    signed_byte: i8
    signed_short: i16
    signed_word: i32
    long: i64
    other: Everything

    def mixed(self) -> int:
        """All numbers as one."""
        small = self.byte + self.short * 3 + self.word * 5 + self.signed_byte * 7
        return as_i64(small + self.signed_short * 11 + self.signed_word * 13 + self.long)


COUNTER = Everything(4096)


def changed(at: int, value: int) -> int:
    """Set and change fields of three records; return what they add up to."""
    one = Everything(at)
    one.byte = value
    one.short = value >> 3
    one.word = value
    one.signed_byte = value
    one.signed_short = value
    one.signed_word = value
    one.long = value
    one.other = Everything(one.address + 64)
    one.other.word += one.signed_byte
    one.other.other = COUNTER
    one.other.other.long -= 1
    COUNTER.byte += 200
    return as_i64(one.mixed() + one.other.mixed() * 17 + COUNTER.mixed())


def copied(at: int, value: int) -> int:
    """Copy and fill bytes."""
    memory.fill(at, value, 24)
    memory.copy(at + 7, at + 3, 40)
    return Everything(at + 9).mixed()


@pytest.mark.parametrize("function", [changed, copied])
def test_records_are_read_and_written_as_in_cpython(function: Callable[..., Any]) -> None:
    """Also the memory that is left."""
    run = Compiled(function, (__name__,))
    held = run.memory
    start = bytes(range(256)) * 24

    @settings(max_examples=40)
    @given(LONG, st.integers(1024, 3000))
    def compare(value: int, at: int) -> None:
        own = bytearray(start)
        held[1024 : len(start)] = start[1024:]
        memory.use(own)
        assert run(at, value) == function(at, value)
        assert held[1024 : len(start)] == own[1024:]

    compare()


def test_a_record_has_no_gaps_between_its_fields() -> None:
    assert memory.size(Everything) == 26
    offsets = [memory.offset(Everything, name) for name in ("word", "signed_byte", "long", "other")]
    assert offsets == [3, 7, 14, 22]


# -- parts of larger modules -----------------------------------------------------------------


@external("elsewhere")
def doubled(value: u32) -> u32:
    """A function of the module around it."""
    return value * 2


def entry(at: Everything, value: u32) -> u32:
    """Call it for a field and a parameter."""
    return doubled(at.word) + doubled(value)


def test_functions_of_a_larger_module_have_32_bits_at_its_borders() -> None:
    text = functions_of({"start": entry}, ())
    assert text.startswith("(func $start (param $at.0 i32) (param $value.0 i32) (result i32)")
    assert text.count("call $elsewhere (i32.load offset=3") == 1
    assert text.count("call $elsewhere (local.get $value.0)") == 1
    assert "(func $elsewhere" not in text


def keeps(value: u32) -> int:
    value += 1
    return value * 2


def test_a_parameter_of_some_width_is_not_assigned_to() -> None:
    """Interpreted, it would not be cut."""
    with pytest.raises(NotTranslatedError, match="a parameter with a width"):
        functions_of({"keeps": keeps}, ())
