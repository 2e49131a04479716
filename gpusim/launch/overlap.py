"""Overlap of a launch with the ones before and after it: programmatic dependent launch."""

from __future__ import annotations

from typing import NamedTuple


class Overlap(NamedTuple):
    """Times of a launch: until all of its first blocks wait, and after its last trigger."""

    before_us: float = 0.0
    behind_us: float = 0.0
