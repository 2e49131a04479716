"""Barriers that are words of shared memory (mbarrier), as `machine/barrier_words.py` has them."""

from __future__ import annotations

from gpusim.wasm.integers import as_i64
from gpusim.wasm.memory import i64

_COUNT, _LOW, _TRANSACTIONS = (1 << 20) - 1, (1 << 30) - 1, (1 << 22) - 1
_EXPECTED, _PENDING_TRANSACTIONS, _HALF, _PENDING = 1, 21, 32, 43
_PHASE = -(1 << 63)


def _expected(word: i64) -> int:
    """Return the expected count in the place of the pending one."""
    return (word >> _EXPECTED & _COUNT) << _PENDING


def _transactions(word: i64) -> int:
    return word >> _PENDING_TRANSACTIONS & _TRANSACTIONS


def arrived(word: i64, count: i64) -> i64:
    """Return the word after a number of arrivals."""
    after = as_i64(word + (count << _PENDING))
    if (word ^ after) & _PHASE == 0:
        return after
    return after ^ _PHASE | 1 if _transactions(word) else as_i64(after + _expected(word))


def dropped(word: i64, count: i64) -> i64:
    """Return the word after arrivals of threads that later phases do not expect."""
    expected = (word >> _EXPECTED & _COUNT) + count & _COUNT
    return arrived(word & ~(_COUNT << _EXPECTED) | expected << _EXPECTED, count)


def arrived_in_halves(word: i64, count: i64) -> i64:
    """Return the word after a number of arrivals, with counts in the two halves."""
    after = as_i64(word + (count << _HALF))
    if (word ^ after) & _PHASE == 0:
        return after
    return as_i64(after + ((word & _LOW) + _LOW + 1 << _HALF))


def expecting(word: i64, count: i64) -> i64:
    """Return the word with more pending transactions."""
    pending = _transactions(word) + count & _TRANSACTIONS
    return word & ~(_TRANSACTIONS << _PENDING_TRANSACTIONS) | pending << _PENDING_TRANSACTIONS


def arrived_expecting(word: i64, count: i64) -> i64:
    """Return the word after an arrival that expects more transactions."""
    return arrived(expecting(word, count), 1)


def completed(word: i64, count: i64) -> i64:
    """Return the word after a number of transactions."""
    after = expecting(word, -count)
    if not word & 1 or _transactions(after):
        return after
    return as_i64((after ^ (_PHASE | 1)) + _expected(word))
