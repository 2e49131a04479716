"""Kinds of predictions that differ in accuracy, each known before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from gpusim.gpu import device as devices
from gpusim.gpu.device import Device
from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.program.polling import spins
from gpusim.program.taint import tainted_registers

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
    """Return the kind of the GPUs with the errors that count for a kind."""
    return MEASURED if gpu == CALIBRATED else gpu


@cache
def _measured_capabilities() -> frozenset[ComputeCapability]:
    return frozenset(devices.load(name).cc for name in MEASURED_HERE)


CATALOGUE = "catalogue"
SPINNING = "spinning"
SHORT = "short"
SCATTERED_ATOMICS = "atomics by data"
ATOMICS = "atomics"
RANDOM_ACCESS = "random access"
DATA_BRANCHES = "branches by data"
REGULAR = "regular"

# A launch belongs to the first kind that applies.
KINDS: Mapping[str, str] = MappingProxyType(
    {
        CATALOGUE: "kernels of the catalogue, measured at other sizes",
        SPINNING: "blocks that spin on other blocks",
        SHORT: "launches shorter than twice the launch overhead",
        SCATTERED_ATOMICS: "atomics in global memory at addresses that depend on data",
        ATOMICS: "other atomics in global memory",
        RANDOM_ACCESS: "loads and stores in global memory at addresses that depend on data",
        DATA_BRANCHES: "branches that depend on data",
        REGULAR: "none of these",
    }
)

SAMPLED, EXTRAPOLATED, SUPPOSED = "sampled blocks", "extrapolated", "supposed elements"
# A launch may have several; kernels of the catalogue have them in their own kind.
UNKNOWNS: Mapping[str, str] = MappingProxyType(
    {
        SAMPLED: "representative blocks unlike the others",
        EXTRAPOLATED: "waves of blocks, or iterations of a loop, that were not simulated",
        SUPPOSED: "elements that are not given, supposed to be ordinary operands",
    }
)
SHORT_OVERHEADS = 2.0  # below it most of the time is launch overhead
_CATALOGUE_FOLDER = Path(__file__).parents[2] / "kernels"


def kind_of(prepared: Prepared, device: Device, time_us: float) -> str:
    """Return the kind of a prediction, the first of KINDS that applies."""
    if is_of_catalogue(prepared):
        return CATALOGUE
    found = mechanism(prepared)
    if found == SPINNING:
        return found
    is_short = time_us < SHORT_OVERHEADS * device.host.launch_overhead_us
    return SHORT if is_short else found


def is_of_catalogue(prepared: Prepared) -> bool:
    """Return whether a launch is of a kernel of the catalogue whose blocks do not wait for others.

    The launches that were measured for the intervals of the catalogue do not.
    """
    folder = Path(prepared.source_file).parent if prepared.source_file else None
    return folder == _CATALOGUE_FOLDER and not spins(prepared.program)


def mechanism(prepared: Prepared) -> str:
    """Return the first mechanism of KINDS in a program: one that its instructions show."""
    program = prepared.program
    if spins(program):
        return SPINNING
    arrays = {name for name, value in prepared.arguments.items() if getattr(value, "ndim", 0)}
    found = set()
    held = tainted_registers(program, arrays)
    for instruction, registers in zip(program.instructions, held, strict=True):
        found.add(_mechanism(instruction, registers))
    return next((kind for kind in KINDS if kind in found), REGULAR)


def _mechanism(instruction: Instruction, data: int) -> str:
    """Return the mechanism of an instruction; `data` has the registers that depend on data."""
    op, memory = OPS[instruction.op], instruction.memory
    by_data = bool(instruction.src) and bool(data >> instruction.src[0] & 1)
    if memory is not None and memory.space in ("global", "generic"):
        if op.kind == "atomic":
            return SCATTERED_ATOMICS if by_data else ATOMICS
        return RANDOM_ACCESS if op.access and by_data else REGULAR
    guard = instruction.guard
    branches = op.kind == "branch" and guard is not None and data >> guard & 1
    return DATA_BRANCHES if branches else REGULAR
