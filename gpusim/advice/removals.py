"""The removal of an advice: the mechanism that its rule names, of its lines or of the launch."""

from __future__ import annotations

from gpusim.advice.records import Advice
from gpusim.advice.registry import mechanism_of
from gpusim.launch.removal import Removal
from gpusim.prediction.removals.registry import REMOVALS


def removal_of(advice: Advice) -> Removal | None:
    """Return what the launch goes without when it is played again, None for nothing."""
    name = mechanism_of(advice.kind)
    if name is None:
        return None
    return Removal(name, advice.places if REMOVALS.all()[name].of_a_line else ())
