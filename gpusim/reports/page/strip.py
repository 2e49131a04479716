"""The strip on top of a kernel's page: its time, its limiter and what it takes of the GPU."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.isa.ops import Program
from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.prediction.traffic import Traffic
from gpusim.reports.quantities import duration, interval, percent, rate, volume
from gpusim.tracing.records import Trace

NONE = "none"


@dataclass(frozen=True)
class Fact:
    """A figure of the strip with its name, and a note below."""

    name: str
    value: str
    note: str = ""


def strip(trace: Trace, program: Program, forecast: Forecast | None) -> tuple[Fact, ...]:
    """Return the figures of a launch, those of its time first."""
    timed = () if forecast is None else _timed(forecast)
    prepared = trace.prepared
    shared = program.shared_bytes if prepared is None else prepared.block_shared_bytes
    return (
        *timed,
        Fact("registers", str(program.register_estimate), "per thread"),
        Fact("shared memory", volume(shared) if shared else NONE, "per block" if shared else ""),
        *(() if forecast is None else _caches(forecast.first.traffic)),
    )


def _timed(forecast: Forecast) -> tuple[Fact, ...]:
    first = forecast.first
    limiter, held = first.limiter, first.occupancy
    return (
        Fact(
            "duration",
            duration(forecast.time_us),
            f"{forecast.device.name}, model; 90 %: {interval(*forecast.interval_us)}",
        ),
        Fact(
            "limiter",
            limiter.name,
            f"{percent(limiter.time_us / first.time_us, 0)} of the duration",
        ),
        Fact(
            "useful bandwidth",
            rate(forecast.gbps),
            f"{percent(forecast.peak_fraction)} of the DRAM's peak",
        ),
        Fact(
            "occupancy",
            percent(held.fraction, 0),
            f"{held.blocks} blocks per SM, limited by {held.limit}",
        ),
        Fact("waves", f"{first.waves:,.2f}", f"{first.launch.blocks:,} blocks"),
    )


def hit_rates(traffic: Traffic) -> tuple[str, str]:
    """Return the hit rates of L1 and L2; of the L2 those of the loads that reach it."""
    requested, below = traffic.l1_requested_sectors, traffic.l2_bytes + traffic.dram_bytes
    return (
        percent(traffic.l1_hit_sectors / requested) if requested else NONE,
        percent(traffic.l2_bytes / below) if below else NONE,
    )


def _caches(traffic: Traffic) -> tuple[Fact, ...]:
    first, second = hit_rates(traffic)
    return Fact("L1 hit rate", first, "model"), Fact("L2 hit rate", second, "model, of loads")
