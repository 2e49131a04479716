"""Ablations: the time that each mechanism costs a job, by prediction without it.

Each one takes as long as the first prediction; its data rank the mechanisms beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.gpu.device import ABLATIONS, Device
from gpusim.isa.ops import OPS
from gpusim.launch.grid import WARP_SIZE
from gpusim.prediction.records import Prediction
from gpusim.prediction.removals import played_us
from gpusim.prediction.streams import WarpStream
from gpusim.prediction.sweeps.jobs import Forecast

SHARED_BYTES_PER_WAVEFRONT = 128


@dataclass(frozen=True)
class Ablation:
    """A mechanism, the job's time without it, and the fraction of the job's time that saves."""

    mechanism: str
    time_us: float
    saves: float

    def to_dict(self) -> dict[str, Any]:
        """Return the ablation as plain data."""
        return {"mechanism": self.mechanism, "time_us": self.time_us, "saves": self.saves}


def suspects(forecast: Forecast) -> dict[str, float]:
    """Return the mechanisms present in a job, likeliest first.

    Values are estimates, from the first launch, of the fraction of time at stake; only their order
    is meaningful.
    """
    first = forecast.first
    kinds = {OPS[one.op].kind for one in first.prepared.program.instructions}
    bounds = {bound.name: bound.time_us / first.time_us for bound in first.bounds}
    guesses = {
        "bank-conflicts": _conflicts(first),
        "barriers": first.stalls.get("barrier", 0.0),
        "divergence": _divergence(first),
        "bandwidth": max(bounds.get("L2", 0.0), bounds.get("DRAM", 0.0)),
        "atomics": 1.0 if "atomic" in kinds else 0.0,
        "block-launch": bounds.get("block launch", 0.0),
        "launch-overhead": forecast.device.host.launch_overhead_us / forecast.time_us,
    }
    left = {name: guesses[name] for name in ABLATIONS if name not in forecast.device.ablations}
    found = [(name, guess) for name, guess in left.items() if guess > 0]
    return dict(sorted(found, key=lambda pair: (-pair[1], pair[0])))


def ablations(
    forecast: Forecast, mechanisms: Sequence[str], *, progress: Callable[[str], None] | None = None
) -> list[Ablation]:
    """Return a job's time without each of the mechanisms, the largest saving first.

    The launches are played again, with the classes and addresses of the forecast. `progress` is
    called with the name of each completed mechanism.
    """
    made = []
    for mechanism in mechanisms:
        device = forecast.device.without(mechanism)
        changed = [_played(one, mechanism, device) for one in forecast.predictions]
        time_us = replace(forecast, predictions=tuple(changed)).time_us
        made.append(Ablation(mechanism, time_us, 1 - time_us / forecast.time_us))
        if progress is not None:
            progress(mechanism)
    return sorted(made, key=lambda one: (one.time_us, one.mechanism))


def _played(prediction: Prediction, mechanism: str, device: Device) -> Prediction:
    """Return a prediction with its time on a device without a mechanism."""
    if mechanism == "launch-overhead":  # no effect on cycles: nothing to simulate again
        time_us = prediction.cycles / device.gpu.sm_clock_mhz
    else:
        assert prediction.setting is not None
        time_us = played_us(prediction, replace(prediction.setting, device=device))
    return replace(prediction, device=device, time_us=time_us)


def _warps(prediction: Prediction) -> Iterator[tuple[int, WarpStream]]:
    """Yield each class's warps, with its number of blocks."""
    for one in prediction.classes.classes:
        for warp in one.stream.warps:
            yield one.blocks, warp


def conflict_wavefronts(prediction: Prediction) -> int:
    """Return the excess wavefronts of shared loads and stores over their width's minimum."""
    program = prediction.prepared.program
    least = np.zeros(len(program.instructions), dtype=np.int64)
    for pc, instruction in enumerate(program.instructions):
        found = instruction.memory
        if found and found.space == "shared" and OPS[instruction.op].kind != "atomic":
            least[pc] = -(-WARP_SIZE * found.width_bytes // SHARED_BYTES_PER_WAVEFRONT)
    added = 0
    for blocks, warp in _warps(prediction):
        fewest = least[warp.pc]
        added += blocks * int(
            warp.times @ np.where(fewest > 0, np.maximum(warp.cost - fewest, 0), 0)
        )
    return added


def _conflicts(prediction: Prediction) -> float:
    """Return the data stage's time for excess wavefronts, as a fraction of the duration."""
    device = prediction.device
    cycles = conflict_wavefronts(prediction) * device.interval_cycles.shared_wavefront
    return cycles / min(device.gpu.sms, prediction.launch.blocks) / prediction.cycles


def _divergence(prediction: Prediction) -> float:
    """Return the fraction of instructions saved by a warp of its longest lane alone."""
    longest = sum(blocks * int(warp.by_lane().max()) for blocks, warp in _warps(prediction))
    return 1 - longest / prediction.instructions
