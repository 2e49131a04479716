"""A launch without one mechanism of one source line: the clock's replay gives its cost.

Streams, costs and the share of memory are edited; addresses and classes of the launch stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpusim.launch.removal import Removal
from gpusim.prediction.bounds import SPINNING
from gpusim.prediction.records import Prediction
from gpusim.prediction.removals.registry import REMOVALS, parse, removed
from gpusim.prediction.sampling import simulate_all
from gpusim.prediction.setting import Setting

__all__ = ["REMOVALS", "Removal", "Replay", "Setting", "parse", "played_us", "removed", "replay"]


@dataclass(frozen=True)
class Replay:
    """A launch without a mechanism: its time, and the fraction of the launch's time it saves."""

    removal: Removal
    time_us: float
    saves: float

    @property
    def speedup(self) -> float:
        """How many times as fast the launch is."""
        return 1 / (1 - self.saves)

    def to_dict(self) -> dict[str, Any]:
        """Return the replay as plain data."""
        return {
            "without": str(self.removal),
            "time_us": self.time_us,
            "saves": self.saves,
            "speedup": self.speedup,
        }


def replay(prediction: Prediction, removal: Removal) -> Replay:
    """Play a launch again without a mechanism; classes and addresses are the prediction's.

    Raises DeviceError for a line without instructions.
    """
    assert prediction.setting is not None
    time_us = played_us(prediction, removed(removal, prediction.setting))
    time_us = min(time_us, prediction.time_us)
    return Replay(removal, time_us, 1 - time_us / prediction.time_us)


def played_us(prediction: Prediction, setting: Setting) -> float:
    """Return the time of a prediction's launch in another setting, in microseconds."""
    assert prediction.setting is not None
    cycles = prediction.cycles
    if not setting.is_simulated_as(prediction.setting):
        work = setting.workload()
        cycles = simulate_all(
            setting.device, setting.memory, work, setting.resident, demand=setting.demand
        ).cycles
    cycles, _ = setting.spread(cycles, prediction.bounds)
    clock = setting.device.gpu.sm_clock_mhz
    waiting = [bound.time_us for bound in prediction.bounds if bound.name == SPINNING]
    overhead = prediction.time_us - prediction.cycles / clock
    return max([cycles / clock, *waiting]) + overhead
