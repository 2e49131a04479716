"""`gpusim.trace`: run a kernel and keep what it did to the machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpusim.launch import Launch


@dataclass(frozen=True)
class LineCounters:
    """One source line: how often warps ran it, with how many lanes, and every counter.

    `executions` counts warps running the line, `active_lanes` is the mean number of lanes
    that did (0 to 32).
    """

    line: int
    text: str
    executions: int
    active_lanes: float
    counters: dict[str, int]


@dataclass(frozen=True)
class WarpCounters:
    """Every counter of one warp of one block."""

    block: int
    warp: int
    counters: dict[str, int]


@dataclass(frozen=True)
class Execution:
    """One instruction run once by one warp (or by those of its lanes that came together).

    `occurrence` counts, from 0, how often this warp ran this pc before: the iteration of a
    loop. Sequences of 32 are by lane. `addresses` are byte addresses from the start of the
    array `array` (`element_bytes` an element, `width_bytes` a lane's access), None
    for what is no memory access; `taken` are the lanes that take a branch, or for which a
    conditional of the source (op ".IF") is true. `wavefronts` and `least_wavefronts` are for shared
    memory, `sectors` for global memory.
    """

    pc: int
    line: int
    op: str
    warp: int
    occurrence: int
    active: tuple[bool, ...]
    on: tuple[bool, ...]
    space: str | None = None
    array: str | None = None
    element_bytes: int = 0
    width_bytes: int = 0
    addresses: tuple[int, ...] | None = None
    banks: tuple[int, ...] | None = None
    wavefronts: int = 0
    least_wavefronts: int = 0
    sectors: int = 0
    taken: tuple[bool, ...] | None = None


@dataclass(frozen=True)
class Finding:
    """What to make of the counters: a sentence that names the line and the cause."""

    kind: str
    line: int
    message: str


@dataclass(frozen=True)
class Trace:
    """What one launch did. `counters` are plain ints over all blocks.

    `warps` and `executions` are those of block `block_index`.
    """

    kernel: str
    launch: Launch
    lowering: str
    cc: str
    counters: dict[str, int]
    lines: list[LineCounters]
    warps: list[WarpCounters]
    executions: list[Execution]
    block_index: int
    source_file: str
    findings: list[Finding] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return what `gpusim trace --json` prints."""
        raise NotImplementedError
