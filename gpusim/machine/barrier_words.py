"""Barriers that are words of shared memory (mbarrier): the update by an arrival.

Both counts are stored as the complement to a power of two, so that the last arrival carries into
the phase, the highest bit; the pending count is reset then. A phase ends once no transactions are
pending either (PTX ISA, mbarrier). Since compute capability 9.0 they have 20 bits each, from bit 43
and from bit 1 on; before, they had 31 and 30 bits of the two halves. Source: the compilers' code
for mbarrier.init and mbarrier.pending_count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gpusim.typing import Array

U64 = np.uint64
COUNT = U64((1 << 20) - 1)
PENDING, EXPECTED = U64(43), U64(1)
HALF, LOW = U64(32), U64((1 << 30) - 1)
PHASE = U64(63)
# Between both counts. Where hardware has them is not documented.
PENDING_TRANSACTIONS, TRANSACTIONS = U64(21), U64((1 << 22) - 1)
ONE = U64(1)


def _phase_changes(now: Array, after: Array) -> Array:
    return np.asarray((now ^ after) >> PHASE, bool)


def _expected(now: Array) -> Array:
    return np.asarray((now >> EXPECTED & COUNT) << PENDING)


def arrive(now: Array, count: Array) -> Array:
    """Return the words after `count` arrivals.

    With pending transactions, the last arrival does not end the phase; it sets the lowest bit.
    """
    after = now + (count << PENDING)
    anew = after + _expected(now)
    has_come = _phase_changes(now, after)
    waits = has_come & ((now >> PENDING_TRANSACTIONS & TRANSACTIONS) != 0)
    return np.asarray(np.select([waits, has_come], [after ^ ONE << PHASE | ONE, anew], after))


def expect_transactions(now: Array, count: Array) -> Array:
    """Return the words with `count` more pending transactions; there may be fewer than none."""
    pending = (now >> PENDING_TRANSACTIONS) + count & TRANSACTIONS
    rest = now & ~(TRANSACTIONS << PENDING_TRANSACTIONS)
    return np.asarray(rest | pending << PENDING_TRANSACTIONS)


def complete_transactions(now: Array, count: Array) -> Array:
    """Return the words after `count` transactions; the last one ends a phase without arrivals."""
    after = expect_transactions(now, U64(0) - count)
    none_left = (after >> PENDING_TRANSACTIONS & TRANSACTIONS) == 0
    ended = (after ^ (ONE << PHASE | ONE)) + _expected(now)
    return np.asarray(np.where(none_left & (now & ONE != 0), ended, after))


def arrive_expecting(now: Array, count: Array) -> Array:
    """Return the words after an arrival that expects `count` more transactions."""
    return arrive(expect_transactions(now, count), np.ones_like(count))


def arrive_and_drop(now: Array, count: Array) -> Array:
    """Return words after arrivals of threads that later phases do not expect."""
    dropped = (now >> EXPECTED & COUNT) + count & COUNT
    return arrive(now & ~(COUNT << EXPECTED) | dropped << EXPECTED, count)


def arrive_in_halves(now: Array, count: Array) -> Array:
    """Return the words after `count` arrivals, with counts in the two halves."""
    after = now + (count << HALF)
    anew = after + ((now & LOW) + LOW + U64(1) << HALF)
    return np.asarray(np.where(_phase_changes(now, after), anew, after))


UPDATES: Mapping[str, Callable[[Array, Array], Array]] = {
    "arrive": arrive,
    "arrive_and_drop": arrive_and_drop,
    "arrive_expecting": arrive_expecting,
    "arrive_in_halves": arrive_in_halves,
    "expect_transactions": expect_transactions,
    "complete_transactions": complete_transactions,
}
