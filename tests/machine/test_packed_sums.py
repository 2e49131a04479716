"""Sums that atomic operations form in memory: packed, flushed, and of what is no number."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.machine import packed_sums
from gpusim.machine.storage import update_atomically

F32, F64, U32, U64 = np.float32, np.float64, np.uint32, np.uint64
pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")


def test_single_precision_in_global_memory_has_no_subnormal_numbers() -> None:
    tiny, least = F32(1e-40), np.finfo(F32).tiny
    memory = np.array([1, tiny, least, -tiny], F32)
    index = np.arange(4)
    values = np.array([tiny, least, -1.5 * least, -tiny], F32)
    update_atomically(memory, index, "add_flushed", [values], wants_old=False)
    assert memory.tolist() == [1, least, 0, 0]
    assert np.signbit(memory).tolist() == [False, False, True, True]


def test_sums_of_ordinary_numbers_are_what_they_were() -> None:
    memory = np.zeros(2, F32)
    old = update_atomically(
        memory, np.array([0, 0, 1]), "add_flushed", [np.array([1, 2, 3], F32)], wants_old=True
    )
    assert memory.tolist() == [3, 3]
    assert old is not None
    assert old.tolist() == [0, 1, 0]


def test_a_nan_of_double_precision_is_the_values_own_or_the_memorys() -> None:
    quiet, other, signaling = 0x7FF8 << 48, (1 << 64) - 1, (0x7FF0 << 48) + 1
    infinity = 0x7FF0 << 48
    memory = np.array([1, quiet, quiet, infinity, 0], U64).view(F64)
    values = np.array([signaling, other, 0, infinity | 1 << 63, 0], U64).view(F64)
    update_atomically(memory, np.arange(5), "add_doubles", [values], wants_old=False)
    assert memory.view(U64).tolist() == [signaling, other, quiet, 0xFFF8 << 48, 0]


def test_halves_of_a_word_are_added_each_for_itself() -> None:
    now = np.array([[1.5, 65504], [np.inf, 2.0**-24]], np.float16).view(U32)[:, 0]
    value = np.array([[2.25, 65504], [-np.inf, 2.0**-24]], np.float16).view(U32)[:, 0]
    with np.errstate(over="ignore"):
        made = packed_sums.add_halves(now, value)
    assert [hex(word) for word in made.tolist()] == ["0x7c004380", "0x27fff"]


def test_brain_halves_are_rounded_to_nearest_even() -> None:
    # 1 + 2^-8 is a tie between 1 and 1 + 2^-7; 1 + 2^-7 + 2^-8 is one that goes up.
    now = np.array([0x3F80_3F80, 0x3F81_3F81], U32)
    value = np.array([0x3B80_3B81, 0x3B80_FFFF], U32)
    made = packed_sums.add_brain_halves(now, value)
    assert [hex(word) for word in made.tolist()] == ["0x3f803f81", "0x3f827fff"]


def test_floats_of_a_word_are_added_each_for_itself() -> None:
    now = np.array([1, 1e-40, 3, np.nan], F32).view([("low", "<u8"), ("high", "<u8")])
    value = np.array([2, 0, -3, 1], F32).view(now.dtype)
    made = packed_sums.add_floats(now, value).view(F32)
    assert made[:3].tolist() == [3, 0, 0]
    assert made.view(U32)[3] == 0x7FFFFFFF
