"""From microbenchmarks to a device file: measured values with their method, all others kept.

The driver's attributes of the GPU are taken over; the remaining values come from the device file
that serves as the pattern, as estimates if that is of another GPU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpusim.cli import output
from gpusim.errors import GpusimError, InputError, did_you_mean
from gpusim.gpu import device as devices
from gpusim.gpu.device import GROUPS, KEYS, Device, Fact
from gpusim.host.files import shown

from .backend import PycudaBackend
from .bench import Bench
from .measure import today
from .probes import PROBES, Probe
from .records import Machine

# Keys of a device file, and the driver's attribute for each.
ATTRIBUTES = {
    "gpu.sms": "MULTIPROCESSOR_COUNT",
    "sm.max_threads": "MAX_THREADS_PER_MULTIPROCESSOR",
    "sm.max_blocks": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "sm.registers": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "sm.shared_bytes": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "sm.shared_reserved_bytes": "RESERVED_SHARED_MEMORY_PER_BLOCK",
    "capacity.l2_bytes": "L2_CACHE_SIZE",
}

# Keys of effects that a GPU may lack; any other measured as 0 was hidden by noise.
MAY_BE_ZERO = {
    *("latency_cycles.l2_far", "latency_cycles.l2_places", "capacity.l2_far_fraction"),
    *("capacity.l1_without_lines_bytes", "interval_cycles.store_joined"),
}


@dataclass
class Calibration:
    """Results of the probes on one GPU: values with their method, notes, failed probes.

    `reported` are the driver's attributes.
    """

    machine: Machine
    values: dict[str, float] = field(default_factory=dict)
    reported: dict[str, devices.Value] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def refused(self) -> dict[str, str]:
        """Return keys whose measured value a device file does not take, and why."""
        found = {}
        for key, number in self.values.items():
            value = _of_type(number, KEYS[key].type)
            if not KEYS[key].allows(value):
                found[key] = f"measured as {number:g}; expected {KEYS[key].expected}"
            elif value == 0 and key not in MAY_BE_ZERO:
                found[key] = "measured as 0: the effect was smaller than the noise"
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        return {
            "machine": vars(self.machine),
            "values": self.values,
            "reported": self.reported,
            "methods": self.methods,
            "notes": self.notes,
            "failed": self.failed,
        }


def chosen_probes(names: Sequence[str]) -> list[Probe]:
    """Return the probes of these names in running order; InputError for unknown names."""
    known = [probe.name for probe in PROBES]
    for name in names:
        if name not in known:
            near = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise InputError(f"{shown(name)} is not a probe{near}")
    return [probe for probe in PROBES if probe.name in names]


def calibrate(
    backend: PycudaBackend, pattern: Device, probes: Sequence[Probe] | None = None
) -> Calibration:
    """Run probes, by default all; a failing one is reported and left out.

    Probes that need values of others take them from the pattern, if it is of this GPU.
    """
    found = Calibration(backend.machine(pattern.id, today()), reported=reported_by_driver(backend))
    bench = Bench(backend)
    is_same = found.reported["gpu.name"] == pattern.name
    if probes is not None and is_same:
        bench.values = _measured_before(pattern)
    for probe in PROBES if probes is None else probes:
        try:
            with backend.naming(probe.name):
                measured = probe.measure(bench)
        except GpusimError as error:
            found.failed[probe.name] = str(error).splitlines()[0]
            output.complain(f"{probe.name}: {error}")
            continue
        for key, value in zip(probe.keys, measured, strict=True):
            bench.values[key] = found.values[key] = round(float(value), 3)
            found.methods[key] = probe.method
            before = f" (before: {pattern.facts[key].value:g})" if is_same else ""
            output.write(f"{key} = {found.values[key]:g}{before}\n")
    found.notes = bench.notes
    return found


def _measured_before(device: Device) -> dict[str, float]:
    """Return the measured values of a device file."""
    return {key: float(fact.value) for key, fact in device.facts.items() if fact.kind == "measured"}


def reported_by_driver(backend: PycudaBackend) -> dict[str, devices.Value]:
    """Return the keys of a device file known to the driver."""
    attributes = {key: backend.attribute(name) for key, name in ATTRIBUTES.items()}
    reported: dict[str, devices.Value] = {
        key: value for key, value in attributes.items() if value is not None
    }
    cached = backend.attribute("GLOBAL_L1_CACHE_SUPPORTED")
    if cached is not None:
        reported["capacity.l1_caches_global"] = bool(cached)
    reported["gpu.name"] = backend.gpu_name.removeprefix("NVIDIA ")
    reported["gpu.compute_capability"] = backend.compute_capability
    reported["gpu.memory_bytes"] = backend.memory_bytes
    return reported


def device_file(found: Calibration, pattern: Device) -> str:
    """Return a device file in TOML: measured values with their method, then reported ones.

    Raises InputError if the pattern does not fit the GPU.
    """
    where = f"gpusim validate calibrate, {found.machine.gpu}, {found.machine.date}"
    is_same = found.reported.get("gpu.name", pattern.name) == pattern.name
    facts = {
        key: fact if is_same else _estimate(fact, pattern.name)
        for key, fact in pattern.facts.items()
        if not fact.is_by_rule
    }
    for key, value in found.reported.items():
        if not is_same or facts[key].value != value:
            facts[key] = _fact(key, value, "exact", f"{where}: reported by the CUDA driver")
    if found.machine.sm_clock_mhz and not is_same:
        clock = found.machine.sm_clock_mhz
        facts["gpu.sm_clock_mhz"] = _fact(
            "gpu.sm_clock_mhz", clock, "measured", f"{where}: a wait of known cycles"
        )
    refused = found.refused()
    for key, number in found.values.items():
        if key not in refused:
            value = _of_type(number, KEYS[key].type)
            facts[key] = _fact(key, value, "measured", f"{where}: {found.methods[key]}")
    return toml(facts, found.machine.gpu)


def _fact(key: str, value: devices.Value, kind: str, source: str) -> Fact:
    return Fact(value, KEYS[key].unit, kind, source)


def _estimate(fact: Fact, name: str) -> Fact:
    """Return another GPU's value as an estimate."""
    source = f"no microbenchmark on this GPU; as the {name}: {fact.source}"
    return replace(fact, kind="unmeasured", source=source)


def _of_type(value: float, kind: str) -> Any:
    """Return a number for a file: three digits, two decimals at most; the rest is noise."""
    return round(value) if kind == "int" else float(f"{round(value, 2):.3g}")


def toml(facts: Mapping[str, Fact], title: str) -> str:
    """Return a device file that `gpusim.gpu.device.load` reads."""
    lines = [f"# {title}"]
    for group in GROUPS:
        lines += ["", f"[{group}]"]
        for key, fact in facts.items():
            if key.partition(".")[0] == group:
                parts = f"value = {_toml_value(fact.value)}, kind = {json.dumps(fact.kind)}"
                name = key.partition(".")[2]
                lines.append(f"{name} = {{ {parts}, source = {json.dumps(fact.source)} }}")
    return "\n".join(lines) + "\n"


def _toml_value(value: devices.Value) -> str:
    if isinstance(value, bool | str):
        return json.dumps(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
