"""From microbenchmarks to a device file: what is measured is written with how, the rest is kept.

Numbers that no benchmark of `probes` measures (what the data sheet says, what the driver
tells, estimates) come from the driver or from the device file that serves as the pattern.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpusim import device as devices
from gpusim.device import GROUPS, KEYS, Device, Fact
from gpusim.errors import GpusimError

from .backend import PycudaBackend
from .bench import Bench
from .measure import today
from .probes import PROBES
from .records import Machine


@dataclass
class Calibration:
    """What the probes found on one GPU: values with their method, notes, probes that failed."""

    machine: Machine
    values: dict[str, float] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        return {
            "machine": vars(self.machine),
            "values": self.values,
            "methods": self.methods,
            "notes": self.notes,
            "failed": self.failed,
        }


def calibrate(backend: PycudaBackend, device: str) -> Calibration:
    """Run every probe; one that fails is told and left out."""
    found = Calibration(backend.machine(device, today()))
    bench = Bench(backend)
    for probe in PROBES:
        try:
            with backend.naming(probe.name):
                measured = probe.measure(bench)
        except GpusimError as error:
            found.failed[probe.name] = str(error).splitlines()[0]
            print(f"{probe.name}: {error}", file=sys.stderr, flush=True)
            continue
        for key, value in zip(probe.keys, measured, strict=True):
            found.values[key] = round(float(value), 3)
            found.methods[key] = probe.method
            print(f"{key} = {found.values[key]:g}", flush=True)
    found.notes = bench.notes
    return found


def device_file(found: Calibration, pattern: Device) -> str:
    """Return a device file in TOML: measured numbers with their method, the others as they were."""
    facts = dict(pattern.facts)
    where = f"gpusim validate calibrate, {found.machine.gpu}, {found.machine.date}"
    for key, value in found.values.items():
        if key in KEYS and KEYS[key].allows(_of_type(value, KEYS[key].type)):
            source = f"{where}: {found.methods[key]}"
            facts[key] = Fact(_of_type(value, KEYS[key].type), KEYS[key].unit, "measured", source)
    return toml(facts, found.machine.gpu)


def _of_type(value: float, kind: str) -> Any:
    return round(value) if kind == "int" else float(f"{value:.4g}")


def toml(facts: Mapping[str, Fact], title: str) -> str:
    """Return a device file that `gpusim.device.load` reads."""
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
