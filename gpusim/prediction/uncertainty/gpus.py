"""Kinds of GPUs, by what is known of them before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from gpusim.gpu import device as devices
from gpusim.gpu.device import Device
from gpusim.launch.grid import ComputeCapability

MEASURED, GENERATION, DESCRIBED, OLDER = "measured", "generation", "described", "older"
CALIBRATED = "calibrated"

# A GPU belongs to the first kind that applies.
GPUS: Mapping[str, str] = MappingProxyType(
    {
        MEASURED: "measured with microbenchmarks",
        GENERATION: "not measured, of the generation of a measured one",
        OLDER: "not measured, older than those with published microbenchmarks",
        DESCRIBED: "not measured, known by data sheets and published microbenchmarks",
    }
)
# A GPU of a user's own file: no launch on it was measured here, it has the errors of MEASURED ones.
CALIBRATED_NOTE = "calibrated with microbenchmarks"
MEASURED_HERE = ("h200",)  # device files of measured GPUs
FIRST_MEASURED = ComputeCapability(7, 0)  # Volta: Jia et al. 2018, arXiv 1804.06826


def gpu_kind(device: Device) -> str:
    """Return the kind of a GPU, the first of GPUS that applies, or CALIBRATED."""
    if is_measured(device):
        held = (devices.load(name).facts for name in MEASURED_HERE)
        return MEASURED if device.facts in held else CALIBRATED
    if device.cc in _measured_capabilities():
        return GENERATION
    return OLDER if device.cc < FIRST_MEASURED else DESCRIBED


def is_measured(device: Device) -> bool:
    """Return whether most numbers of a device were measured on it, and none was changed."""
    if device.changed or device.ablations:
        return False
    kinds = [fact.kind for fact in device.facts.values()]
    return kinds.count("measured") > kinds.count("estimated") + kinds.count("unmeasured")


def errors_of(gpu: str) -> str:
    """Return the kind of the GPUs whose errors count for a kind."""
    return MEASURED if gpu == CALIBRATED else gpu


@cache
def _measured_capabilities() -> frozenset[ComputeCapability]:
    return frozenset(devices.load(name).cc for name in MEASURED_HERE)
