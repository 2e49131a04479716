"""Stall reasons by Nsight Compute's names: meaning and remedy."""

from __future__ import annotations

from typing import NamedTuple


class Stall(NamedTuple):
    """The meaning of a stall reason, and its remedy."""

    meaning: str
    remedy: str


# Nsight Compute's names ("Warp Stall Sampling" in its documentation), in our own words.
STALLS: dict[str, Stall] = {
    "selected": Stall("issues an instruction", "fewer instructions"),
    "not_selected": Stall("eligible, another warp is selected", "fewer instructions"),
    "wait": Stall("fixed-latency dependency", "more independent instructions"),
    "short_scoreboard": Stall(
        "dependency on LDS, SHFL, S2R, MUFU or LDC", "fewer of these in the dependency chain"
    ),
    "long_scoreboard": Stall(
        "dependency on global or local memory", "more loads in flight per thread"
    ),
    "mio_throttle": Stall(
        "full queue of shared memory, SHFL and LDC", "fewer of these, or fewer bank conflicts"
    ),
    "lg_throttle": Stall("full queue of global and local memory", "fewer or wider global accesses"),
    "math_pipe_throttle": Stall("busy execution pipe", "fewer instructions of one pipe"),
    "barrier": Stall(
        "sibling warps not yet at the barrier", "smaller blocks, more resident blocks"
    ),
}
