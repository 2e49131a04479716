"""A launch without one mechanism of one source line: the clock's replay gives its cost.

Streams, costs and the share of memory are edited; addresses and classes of the launch stay.
"""

from __future__ import annotations

from gpusim.launch.removal import Removal
from gpusim.prediction.removals.registry import REMOVALS, parse, removed
from gpusim.prediction.removals.replays import Replay, played_us, replay
from gpusim.prediction.setting import Setting

__all__ = ["REMOVALS", "Removal", "Replay", "Setting", "parse", "played_us", "removed", "replay"]
