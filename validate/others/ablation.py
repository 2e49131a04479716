"""Ablations: what each law of the memory is worth, by launches of this folder predicted without it.

    python -m validate.others.ablation [SECONDS]    writes ablation.csv

A law is switched off by numbers of the device file with which it has no effect. The launches are
cheap ones, one of a kernel, with nvcc's code and a cold L2; none begins after SECONDS (600). A law
that moves none of them is not refuted: its kernels are others.
"""

from __future__ import annotations

import csv
import hashlib
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from gpusim.gpu import device as devices
from gpusim.prediction.predict import predict

from ..table import rows_of, table
from .compare import configured
from .errors import MEASURED, PREDICTED, by_launch
from .plans import KERNELS, LAST, SEEN, Launch

ABLATIONS = Path(__file__).parent / "ablation.csv"
COLUMNS = (
    "law", "part", "launches", "moved", "better", "worse", "mean_error", "mean_error_without",
)  # fmt: skip
CHEAP_S = 1.0  # of CPU
LAUNCHES = 300
MOVED = 0.01  # of the prediction


@dataclass(frozen=True)
class Law:
    """A law with the numbers that switch it off."""

    name: str
    keys: Mapping[str, float] = field(default_factory=dict)


_H200 = devices.load("h200")
_L1, _BW = _H200.capacity, _H200.bandwidth
LAWS = (
    Law("two parts of the L2", {"capacity.l2_parts": 1}),
    Law("an L1 under random accesses", {
        "capacity.l1_random_kept_fraction": _L1.l1_kept_fraction,
        "capacity.l1_random_lost_fraction": _L1.l1_lost_fraction,
    }),
    Law("L2 latency by the address", {"latency_cycles.l2_places": 0}),
    Law("L2 latency under load", {"bandwidth.l2_latency_growth": 0}),
    Law("DRAM latency under load", {
        "bandwidth.dram_latency_growth": 0, "bandwidth.dram_latency_growth_by_writes": 0,
    }),
    Law("distribution of the DRAM's latency", {
        "latency_cycles.dram_least": _H200.latency_cycles.dram, "latency_cycles.dram_deviation": 0,
    }),
    Law("DRAM bandwidth at random addresses", {
        "bandwidth.dram_scattered_gbps": _BW.dram_gbps,
        "bandwidth.dram_scattered_lines_gbps": _BW.dram_gbps,
        "bandwidth.dram_scattered_writes_gbps": _BW.dram_gbps,
    }),
    Law("DRAM turnaround from reads to writes", {
        "bandwidth.dram_write_factor": 1, "bandwidth.dram_write_alone_factor": 1,
    }),
    Law("least bytes of an L2 request", {"bandwidth.l2_request_bytes": 32}),
    Law("stores of whole sectors", {
        "bandwidth.l2_whole_stores_per_cycle": _BW.l2_stores_per_cycle,
    }),
    Law("L1 misses line by line", {"interval_cycles.l1_miss_line": 0.01}),
    Law("neighbouring stores combined", {"interval_cycles.store_joined": 0}),
    Law("atomics on whole sectors", {"interval_cycles.global_atomic_whole_sector": 1}),
    Law("reads beside saturated atomics", {
        "interval_cycles.global_atomic_read": 0, "interval_cycles.global_atomic_miss": 0,
    }),
    Law("wait for the last store", {"latency_cycles.last_store": 1}),
    Law("spread of launches over the SMs", {"latency_cycles.launch_spread": 0}),
)  # fmt: skip


def sample() -> list[Launch]:
    """Return the largest cheap launch of kernels drawn by hash, those measured last in front."""
    measured, largest = by_launch(MEASURED), dict[str, int]()
    for row in rows_of(PREDICTED):
        name, n = row["kernel"], int(row["n"])
        is_cheap = not row["refused"] and float(row["seconds"]) <= CHEAP_S
        if row["code"] == "nvcc" and is_cheap and (name, n) in measured:
            largest[name] = max(n, largest.get(name, 0))
    names = sorted(largest, key=lambda name: (KERNELS[name].part == SEEN, _draw(name)))
    return [KERNELS[name].at(largest[name]) for name in names[:LAUNCHES]]


def _draw(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def main(seconds: float) -> None:
    """Predict the sample with and without each law, and write the table."""
    gpus = {law.name: _H200.having(dict(law.keys)) for law in (Law(""), *LAWS)}
    measured, began = by_launch(MEASURED), time.monotonic()
    found: list[tuple[Launch, float, dict[str, float]]] = []
    for launch in sample():
        if time.monotonic() - began > seconds:
            break
        kernel, given = configured(launch, "nvcc"), launch.specified()
        times = {law: predict(kernel, *given, device=gpu).time_us for law, gpu in gpus.items()}
        found.append((launch, float(measured[launch.key]["cold_us"]), times))
    with ABLATIONS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for law in LAWS:
            for part in (SEEN, LAST):
                of = [one for one in found if one[0].kernel.part == part]
                if of:
                    writer.writerow([law.name, part, len(of), *worth(law.name, of)])


def worth(law: str, found: list[tuple[Launch, float, dict[str, float]]]) -> list[object]:
    """Return launches moved, better and worse, and the mean errors with and without a law."""
    errors = [
        (abs(times[""] / us - 1), abs(times[law] / us - 1), abs(times[law] / times[""] - 1))
        for _, us, times in found
    ]
    moved = [(own, other) for own, other, by in errors if by > MOVED]
    better = sum(own < other for own, other in moved)
    means = (f"{100 * fmean(column):.2f}" for column in list(zip(*errors, strict=True))[:2])
    return [len(moved), better, len(moved) - better, *means]


def ablations() -> list[str]:
    """What each law of the memory is worth: launches nearer to and farther from the hardware."""
    rows = [
        (
            row["law"], row["part"], row["launches"], row["moved"], row["better"], row["worse"],
            f"{float(row['mean_error']):.1f}%", f"{float(row['mean_error_without']):.1f}%",
        )
        for row in rows_of(ABLATIONS)
    ]  # fmt: skip
    head = ("law", "part", "launches", "moved", "better", "worse", "mean error", "without it")
    return table(head, rows, text=2)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0)
