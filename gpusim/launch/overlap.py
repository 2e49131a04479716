"""What of a launch may overlap the launches before and behind it, with programmatic dependence."""

from __future__ import annotations

from typing import NamedTuple


class Overlap(NamedTuple):
    """Times of a launch: until all of its first blocks wait, and after its last trigger."""

    before_us: float = 0.0
    behind_us: float = 0.0
