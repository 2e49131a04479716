"""Kinds of GPUs, by what is known of them before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from gpusim.gpu import device as devices
from gpusim.gpu.device import Device
from gpusim.launch.grid import ComputeCapability

MEASURED, GENERATION, DESCRIBED, OLDER = "measured", "generation", "described", "older"

# A GPU belongs to the first kind that applies.
GPUS: Mapping[str, str] = MappingProxyType(
    {
        MEASURED: "measured with microbenchmarks",
        GENERATION: "not measured, of the generation of a measured one",
        OLDER: "not measured, older than those with published microbenchmarks",
        DESCRIBED: "not measured, known by data sheets and published microbenchmarks",
    }
)
MEASURED_HERE = ("h200",)  # device files of measured GPUs
FIRST_MEASURED = ComputeCapability(7, 0)  # Volta: Jia et al. 2018, arXiv 1804.06826


def gpu_kind(device: Device) -> str:
    """Return the kind of a GPU, the first of GPUS that applies."""
    if is_measured(device):
        return MEASURED
    if device.cc in _measured_capabilities():
        return GENERATION
    return OLDER if device.cc < FIRST_MEASURED else DESCRIBED


def is_measured(device: Device) -> bool:
    """Return whether most numbers of a device were measured on it, and none was changed."""
    if device.changed or device.ablations:
        return False
    kinds = [fact.kind for fact in device.facts.values()]
    return kinds.count("measured") > kinds.count("estimated") + kinds.count("unmeasured")


@cache
def _measured_capabilities() -> frozenset[ComputeCapability]:
    return frozenset(devices.load(name).cc for name in MEASURED_HERE)
