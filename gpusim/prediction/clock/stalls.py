"""Stall reasons, by Nsight Compute's names."""

from __future__ import annotations

STALLS = (
    "selected",
    "not_selected",
    "wait",
    "short_scoreboard",
    "long_scoreboard",
    "mio_throttle",
    "lg_throttle",
    "math_pipe_throttle",
    "barrier",
)
(SELECTED, NOT_SELECTED, WAIT, SHORT, LONG, MIO, LG, MATH, BARRIER) = range(len(STALLS))
REASONS = len(STALLS)
