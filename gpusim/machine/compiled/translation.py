"""A program's translation to WebAssembly, with the places of its values in linear memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.launch.events import Sums, Touched
from gpusim.machine.compiled import linking
from gpusim.machine.compiled.linking import Shared
from gpusim.machine.compiled.segment import Place
from gpusim.typing import Array, DType


@dataclass
class Translation:
    """A module's text, and the places of registers, constants and sums in its memory.

    `starts` are the pcs of basic blocks. `registers` lie in a warp's memory, and so do `specials`,
    special registers by the pc that reads them first; `cells` are constants of the launch, by
    place: a pc, or a bank and an offset. `arrays` are named in the program. `sums` are those of a
    warp, by pc and name, as indices of 64-bit words (`rows_of_sums` by pc, once requested); block k
    has executions and lanes at words 2 k and 2 k + 1. `jumps` are places of tables of jump targets,
    with the pcs, `banks` those of entries of constant banks that are indexed, from a first byte to
    an end (None for all), `orders` those of paths to order-dependent atomics. A warp's queue of
    asynchronous copies lies at `queue_at`, 0 if there are none. Where warps take turns as in
    NumPy's machine (`shared.in_order`), the keys of a warp's splits lie at `keys_at`, flags of
    basic blocks at `flags_at`; `awaits`: warps wait for others. Results of barriers are listed at
    `reductions_at`, a warp counts arrivals at named barriers at `arrivals_at`, and has its part of
    a cluster at `cluster_at`; bulk copies are kept at `bulk_at`, the number of a warp's groups of
    them at `groups_at`; they are 0 without any. The operands and results of instructions with
    `many` lie at places of their own. `touched` are the accesses with marks of their
    sectors. With race detection, `ran_at` has a byte for each instruction, set if its basic block
    ran (only for the block's first), and then a byte for each, set if it ran for some lane (with a
    guard or a possible fault); `lowest_at` are the places of the lowest element to which several
    threads add, counted from 1, by the pc of a sum. `constants` are the cells as `memory.py` sets
    them, `begun` the initial warps of the last launch, with the properties of it that they depend
    on. A warp has its clock at `timed_at`, in `timed_bytes`; `times` are the cells with sums of
    times: of the gaps after some pcs, and of the latency of one, or -1 (`pace_code.py`).
    """

    text: str = ""
    starts: list[int] = field(default_factory=list)
    registers: dict[int, Place] = field(default_factory=dict)
    specials: dict[int, Place] = field(default_factory=dict)
    cells: dict[Any, Place] = field(default_factory=dict)
    arrays: list[str] = field(default_factory=list)
    sums: dict[tuple[int, str], int] = field(default_factory=dict)
    jumps: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    banks: dict[tuple[int, int, int | None], int] = field(default_factory=dict)
    orders: list[int] = field(default_factory=list)
    operands: dict[int, list[DType]] = field(default_factory=dict)
    touched: list[Touched] = field(default_factory=list)
    constants: Any = None
    begun: Any = None
    rows_of_sums: dict[int, Sums] = field(default_factory=dict)
    length: int = 0
    warp_bytes: int = 0
    sum_count: int = 0
    ran_at: int = 0
    lowest_at: dict[int, int] = field(default_factory=dict)
    queue_at: int = 0
    shared: Shared = linking.PLAIN
    keys_at: int = 0
    flags_at: int = 0
    awaits: bool = False
    reductions_at: int = 0
    arrivals_at: int = 0
    cluster_at: int = 0
    bulk_at: int = 0
    groups_at: int = 0
    timed_at: int = 0
    timed_bytes: int = 0
    times: dict[tuple[tuple[int, ...], int], int] = field(default_factory=dict)
    many: dict[int, tuple[int, int]] = field(default_factory=dict)
    widest: int = 1  # words of a lane's access to local memory
    end: int = 0

    @cached_property
    def jump_tables(self) -> list[tuple[int, Array]]:
        """The place and the bytes of each table of jump targets: numbers of basic blocks, or -1."""
        starts = {pc: number for number, pc in enumerate(self.starts)}
        blocks = ((at, [starts.get(pc, -1) for pc in to]) for at, to in self.jumps.values())
        return [(at, np.array(to, np.int32).view(np.uint8)) for at, to in blocks]
