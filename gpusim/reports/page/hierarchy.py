"""The chart of the memory hierarchy: requests, sectors, hit rates and bytes of each level."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.traffic import Traffic
from gpusim.reports.page.strip import hit_rates
from gpusim.reports.quantities import volume
from gpusim.tracing.records import Trace


@dataclass(frozen=True)
class Flow:
    """Bytes between a level and the one above it; `part` is of the largest flow."""

    name: str
    volume: str
    part: float


@dataclass(frozen=True)
class Level:
    """A level of the hierarchy: its figures with their names and kinds, and flows from above."""

    name: str
    figures: tuple[tuple[str, str, str], ...]
    flows: tuple[Flow, ...] = ()


def levels(trace: Trace, traffic: Traffic | None) -> tuple[tuple[Level, ...], tuple[Level, ...]]:
    """Return the levels of global memory from the warps to DRAM, and shared memory beside them."""
    exact = _counts(trace)
    shared = Level(
        "Shared memory",
        (
            ("requests", f"{exact['shared_requests']:,}", "exact"),
            ("wavefronts", f"{exact['wavefronts']:,}", "exact"),
            ("excessive wavefronts", f"{exact['conflicts']:,}", "exact"),
            *_atomics(exact["shared_atomics"]),
        ),
    )
    beside = (shared,) if any(value != "0" for _, value, _ in shared.figures) else ()
    flows = _flows(exact, traffic)
    largest = max((size for group in flows for _, size in group), default=0.0) or 1.0

    def drawn(group: list[tuple[str, float]]) -> tuple[Flow, ...]:
        return tuple(Flow(name, volume(size), size / largest) for name, size in group if size)

    first: list[tuple[str, str, str]] = [
        ("load requests", f"{exact['global_load_requests']:,}", "exact"),
        ("store requests", f"{exact['global_store_requests']:,}", "exact"),
        ("sectors loaded", f"{exact['global_load_sectors']:,}", "exact"),
        ("sectors stored", f"{exact['global_store_sectors']:,}", "exact"),
        *_atomics(exact["global_atomics"]),
    ]
    if traffic is None:
        return (Level("Global memory", tuple(first), drawn(flows[0])),), beside
    in_l1, in_l2 = hit_rates(traffic)
    return (
        Level("L1", (*first, ("hit rate", in_l1, "model")), drawn(flows[0])),
        Level(
            "L2",
            (
                *_l2_reads(traffic),
                ("hit rate of loads", in_l2, "model"),
                (
                    "dirty bytes at the end",
                    volume(max(0.0, traffic.written_bytes - traffic.written_back_bytes)),
                    "model",
                ),
            ),
            drawn(flows[1]),
        ),
        Level(
            "DRAM",
            (
                ("bytes read", volume(traffic.moved_bytes + traffic.own_bytes), "model"),
                ("bytes written", volume(traffic.written_back_bytes), "model"),
                ("compulsory bytes", volume(traffic.compulsory_bytes), "exact"),
            ),
            drawn(flows[2]),
        ),
    ), beside


def _l2_reads(traffic: Traffic) -> list[tuple[str, str, str]]:
    """Return the sectors that the L2 reads, and the parts that they are the sum of."""
    for_loads = (traffic.l2_bytes + traffic.dram_bytes) / SECTOR_BYTES
    parts = {
        "sectors read": traffic.l2_lookup_sectors + traffic.own_sectors,
        "of loads": for_loads,
        "again in the far partition": traffic.l2_lookup_sectors - for_loads,
        "code, constants, parameters": traffic.own_sectors,
    }
    return [(name, f"{count:,.0f}", "model") for name, count in parts.items() if count >= 0.5]


def _atomics(count: int) -> tuple[tuple[str, str, str], ...]:
    return (("atomics", f"{count:,}", "exact"),) if count else ()


def _counts(trace: Trace) -> dict[str, int]:
    def total(*names: str) -> int:
        return sum(trace.counters.get(name, 0) for name in names)

    return {
        "shared_requests": total("shared_load_instructions", "shared_store_instructions"),
        "wavefronts": total("shared_load_wavefronts", "shared_store_wavefronts"),
        "conflicts": total("shared_load_bank_conflicts", "shared_store_bank_conflicts"),
        **{
            name: total(name)
            for name in (
                "shared_atomics", "global_load_requests", "global_store_requests",
                "global_load_sectors", "global_store_sectors", "global_atomics",
            )
        },
    }  # fmt: skip


def _flows(exact: dict[str, int], traffic: Traffic | None) -> list[list[tuple[str, float]]]:
    """Return name and bytes of the flows above each level."""
    sectors = [
        ("loaded", float(SECTOR_BYTES * exact["global_load_sectors"])),
        ("stored", float(SECTOR_BYTES * exact["global_store_sectors"])),
    ]
    if traffic is None:
        return [sectors]
    return [
        sectors,
        [
            ("loaded", float(traffic.l2_bytes + traffic.dram_bytes)),
            ("stored", float(traffic.written_bytes)),
        ],
        [
            ("read", float(traffic.moved_bytes + traffic.own_bytes)),
            ("written back", float(traffic.written_back_bytes)),
        ],
    ]
