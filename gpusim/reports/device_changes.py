"""The changes made to a device beside its device file (`--without`, `--set`), in words."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.gpu.device import KEYS, Device
from gpusim.prediction.removals import Removal


def device_changes(device: Device, removals: Sequence[Removal] = ()) -> str:
    """Return "without barriers, with latency_cycles.l2 = 250 cycles", "" for a GPU as it is.

    `removals` are the mechanisms that single lines go without.
    """
    without = " and ".join([*sorted(device.ablations), *map(str, removals)])
    numbers = " and ".join(
        f"{key} = {value} {KEYS[key].unit}".rstrip() for key, value in device.changed
    )
    parts = [f"without {without}"] if without else []
    return ", ".join([*parts, *([f"with {numbers}"] if numbers else [])])
