"""Launches with more resident blocks, a full last wave, or code that is cached."""

from __future__ import annotations

from dataclasses import replace

from gpusim.launch.grid import WARP_SIZE
from gpusim.prediction.removals.registry import launch_mechanism
from gpusim.prediction.setting import Setting


@launch_mechanism("occupancy")
def occupancy(setting: Setting) -> Setting:
    """An SM holds as many blocks as its warp slots allow."""
    return occupancy_of_warps(setting)


def most_resident(setting: Setting) -> int:
    """Return how many blocks an SM would hold if its room for warps were the only limit."""
    warps = setting.device.sm.max_threads // WARP_SIZE
    return max(1, warps // setting.prepared.launch.warps_per_block)


@launch_mechanism("one-more-block")
def one_more_block(setting: Setting) -> Setting:
    """An SM holds one block more."""
    return replace(setting, resident=setting.resident + 1)


@launch_mechanism("tail")
def tail(setting: Setting) -> Setting:
    """The last wave of blocks is as full as the waves before it, with the same work in all."""
    sms, resident = setting.device.gpu.sms, setting.resident
    blocks = setting.prepared.launch.blocks
    waves = -(-blocks // (sms * resident))
    full = blocks / (waves * sms * resident)
    if waves == 1:
        return setting
    even = blocks / sms  # of an SM, if all had as many
    whole = (waves - 1) * resident
    return replace(setting, fraction=min(1.0, max(full, even / (whole + resident))))


@launch_mechanism("small-blocks")
def small_blocks(setting: Setting) -> Setting:
    """Blocks fill the room of an SM for warps, and starting them takes no time."""
    device = setting.device.without("block-launch")
    return replace(occupancy_of_warps(setting), device=device)


def occupancy_of_warps(setting: Setting) -> Setting:
    """Return a launch with as many blocks on an SM as it has room for warps."""
    return replace(setting, resident=max(setting.resident, most_resident(setting)))


@launch_mechanism("few-blocks")
def few_blocks(setting: Setting) -> Setting:
    """The same work fills all places of all SMs."""
    places = setting.device.gpu.sms * setting.resident
    return replace(setting, fraction=min(1.0, setting.prepared.launch.blocks / places))


@launch_mechanism("instruction-fetch")
def instruction_fetch(setting: Setting) -> Setting:
    """The instruction cache holds all of the code."""
    return replace(setting, code_is_cached=True)
