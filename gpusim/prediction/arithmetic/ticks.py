"""The clock's unit of time: a sixteenth of a cycle of the SM."""

from __future__ import annotations

TICKS = 16  # per cycle: intervals of fractional cycles stay integers


def ticks(cycles: float) -> int:
    """Return cycles as a whole number of ticks."""
    return round(cycles * TICKS)
