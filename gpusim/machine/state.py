"""The state of a batch of blocks that run together.

Registers are arrays shaped (copies, rows, lanes), each axis 1 where the value does not vary
along it: a value common to every block, warp or lane is kept and computed once.

A batch starts *folded*: one row per warp of a block, standing for that warp of every block.
As long as all blocks take the same path, each instruction runs once for all of them. When
blocks disagree about a branch the batch is *unfolded*: one row per warp of every block.

Lanes of a warp that diverged are *splits* with a pc of their own. Splits of a warp join only at the
program's convergence barriers: a BSSY gives the lanes that run it a token, and BSYNC holds a split
until all lanes of the warp that have its token are there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Memory, Program
from gpusim.launch.events import Placement
from gpusim.launch.grid import WARP_SIZE, Launch
from gpusim.machine.pending_copies import BulkCopies, PendingCopies
from gpusim.program.liveness import Liveness
from gpusim.typing import Array

READY, AT_BARRIER, AT_CONVERGENCE, AT_WARP, AT_NAMED_BARRIER, AT_CLUSTER = range(6)
NAMED_BARRIERS = 16


@dataclass
class Splits:
    """Groups of lanes that run together. Arrays are by split; `mask` is (copies, splits, 32)."""

    row: Array
    pc: Array
    mask: Array
    state: Array
    last_run: Array

    def __len__(self) -> int:
        return len(self.pc)

    def take(self, which: Array) -> Splits:
        """Return some of the splits."""
        return Splits(
            self.row[which],
            self.pc[which],
            self.mask.take(which, axis=1),
            self.state[which],
            self.last_run[which],
        )

    def without(self, which: Array) -> Splits:
        """Return the splits except `which`."""
        if not len(which):
            return self
        keep = np.ones(len(self), dtype=bool)
        keep[which] = False
        return self.take(np.flatnonzero(keep))

    def remove(self, which: Array, lanes: Array) -> None:
        """Take lanes out of some splits; groups that hold the old masks keep them."""
        copies = max(len(self.mask), len(lanes))
        self.mask = np.broadcast_to(self.mask, (copies, *self.mask.shape[1:])).copy()
        self.mask[:, which] &= ~lanes

    def lanes(self, rows: int) -> Array:
        """Return the lanes that splits hold of each of `rows` rows, (copies, rows, 32)."""
        return lanes_of_bits(self.lane_bits(rows))

    def lane_bits(self, rows: int, which: Array | slice = slice(None)) -> Array:
        """Return the lanes that some splits hold of each of `rows` rows, as bits."""
        row, bits = self.row[which], bits_of_lanes(self.mask)[:, which]
        held = np.zeros((len(bits), rows), dtype=np.uint32)
        for of_copy, more in zip(held, bits, strict=True):
            np.add.at(of_copy, row, more)  # no two splits of a warp have a lane in common
        return held

    def joined(self, which: Array, *keys: Array) -> Splits:
        """Return the splits after merging those in `which` with equal keys, ready to run.

        It takes the place of the first of them.
        """
        if not len(which):
            return self
        union, _, first, _ = union_of_runs(self.mask.take(which, axis=1), *keys)
        self.state[which] = READY
        self.mask = self.mask.copy()
        self.mask[:, which[first]] = union
        stays = np.ones(len(self), dtype=bool)
        stays[which] = False
        stays[which[first]] = True
        return self.take(np.flatnonzero(stays))

    def extended(self, other: Splits) -> Splits:
        """Return these splits and the others after them."""
        copies = max(len(self.mask), len(other.mask))
        masks = [np.broadcast_to(s.mask, (copies, *s.mask.shape[1:])) for s in (self, other)]
        return Splits(
            np.concatenate([self.row, other.row]),
            np.concatenate([self.pc, other.pc]),
            np.concatenate(masks, axis=1),
            np.concatenate([self.state, other.state]),
            np.concatenate([self.last_run, other.last_run]),
        )


def bits_of_lanes(lanes: Array) -> Array:
    """Return the lanes along the last axis as bits of one number."""
    return np.packbits(lanes.reshape(-1)).view(np.uint32).reshape(lanes.shape[:-1])


def lanes_of_bits(bits: Array) -> Array:
    """Return the lanes that bits stand for, along an axis after the others."""
    return np.unpackbits(bits[..., None].view(np.uint8), axis=-1).view(bool)


def union_of_runs(mask: Array, *keys: Array) -> tuple[Array, Array, Array, Array]:
    """Unite the masks, shaped (copies, splits, 32), of splits with equal keys.

    Returns the unions, shaped (copies, runs, 32); the splits in the order of their keys; the
    first split of each run of equal ones; and the runs' sizes.
    """
    order = np.lexsort(keys)
    starts = np.zeros(len(order), dtype=bool)
    starts[:1] = True
    for key in keys:
        ordered = key[order]
        starts[1:] |= ordered[1:] != ordered[:-1]
    start = np.flatnonzero(starts)
    if len(start) == len(order):
        union = mask.take(order, axis=1)
    else:
        bits = bits_of_lanes(mask)[:, order]
        union = lanes_of_bits(np.bitwise_or.reduceat(bits, start, axis=1))
    return union, order, order[start], np.diff(start, append=len(order))


@once
def _copies(program: Program) -> bool:
    """Return whether a program has asynchronous copies."""
    return any(OPS[row.op].copies == "begins" for row in program.instructions)


class Batch:
    """Blocks that run together: placement, registers, splits, shared and local memory."""

    def __init__(self, program: Program, launch: Launch, blocks: Array, liveness: Liveness) -> None:
        self.program = program
        self.liveness = liveness
        self.launch = launch
        warps = launch.warps_per_block
        self.placement = Placement(blocks, warps, folded=True)
        self.registers: list[Array | None] = [None] * program.registers
        self.private: set[int] = set()  # registers with unshared arrays
        for number, value in (*program.immediates.items(), *program.initial.items()):
            self.registers[number] = np.asarray(value).reshape(1, 1, 1)
        self.thread = np.arange(warps * WARP_SIZE).reshape(1, warps, WARP_SIZE)
        exists = self.thread < launch.threads_per_block
        self.splits = Splits(
            row=np.arange(warps),
            pc=np.zeros(warps, dtype=np.int64),
            mask=exists,
            state=np.zeros(warps, dtype=np.int64),
            last_run=np.zeros(warps, dtype=np.int64),
        )
        self.tokens: list[Array] = [np.zeros((1, 1, 1), dtype=np.int64)] * program.barriers
        self.set_aside: list[Array] = []  # tokens that lanes keep in registers, one a level
        self._tokens_given = 0
        # Threads that came to a named barrier without waiting there, by barrier and block.
        self.arrivals = np.zeros((NAMED_BARRIERS, 1), dtype=np.int64)
        # Lanes that have arrived at the barrier of their cluster, and those whose phase is over.
        self.arrived, self.passed = np.zeros((2, len(blocks) * warps, WARP_SIZE), dtype=bool)
        size = program.addressable_shared(launch.dynamic_shared_bytes)
        self.shared = np.zeros((len(blocks), -(-size // 16) * 16), dtype=np.uint8)
        self.local: Array | None = None
        if program.local_bytes:
            self.local = np.zeros(
                (len(blocks), warps, WARP_SIZE, -(-program.local_bytes // 16) * 16), dtype=np.uint8
            )
        self.clock = 0
        self.bulk_copies = BulkCopies()
        self.copies = PendingCopies(len(blocks) * warps * WARP_SIZE if _copies(program) else 0)

    def bytes_of(self, memory: Memory) -> int:
        """Return the bytes of shared or local memory that an access without a size may touch."""
        dynamic = self.launch.dynamic_shared_bytes
        if not memory.by_address:
            return dynamic
        if memory.space == "shared":
            return self.program.addressable_shared(dynamic)
        return self.program.local_bytes

    @property
    def rows(self) -> int:
        """Number of rows that registers have."""
        return self.placement.rows

    @property
    def block_of_row(self) -> Array:
        """Position in `placement.blocks` of each row, shaped (copies or 1, rows or 1, 1)."""
        if self.placement.folded:
            return np.arange(self.placement.copies).reshape(-1, 1, 1)
        rows = np.arange(self.rows) // self.placement.warps_per_block
        return rows.reshape(1, -1, 1)

    @property
    def block_number(self) -> Array:
        """Linear block number of each row, shaped like `block_of_row`."""
        return self.placement.blocks[self.block_of_row]

    @property
    def rows_of_cluster(self) -> int:
        """Number of rows of a cluster; its blocks follow each other, each with all of its warps."""
        return self.launch.cluster_blocks * self.placement.warps_per_block

    @property
    def rank_of_row(self) -> Array:
        """Rank of each row's block in its cluster, shaped like `block_of_row`."""
        return self.block_of_row % self.launch.cluster_blocks

    def is_diverged(self) -> bool:
        """Return whether a warp is in more than one split."""
        rows = self.splits.row
        return len(rows) > 1 and bool(np.bincount(rows).max() > 1)

    def kept_registers(self) -> list[Array | None]:
        """Return the registers as they are: none of these arrays will change."""
        self.private.clear()
        return list(self.registers)

    def new_tokens(self, count: int) -> Array:
        """Return tokens that were not given before."""
        self._tokens_given += count
        return np.arange(self._tokens_given - count, self._tokens_given) + 1

    def thread_number(self) -> Array:
        """Linear thread number within the block, shaped (1, rows, 32)."""
        if self.placement.folded:
            return self.thread
        return np.tile(self.thread, (1, len(self.placement.blocks), 1))

    def unfold(self) -> None:
        """Give every warp of every block a row of its own."""
        copies, warps = self.placement.copies, self.placement.warps_per_block
        self.placement = Placement(self.placement.blocks, warps, folded=False)

        def spread(value: Array) -> Array:
            if value.shape[:2] == (1, 1):
                return value
            full = np.broadcast_to(value, (copies, warps, value.shape[2]))
            return full.reshape(1, copies * warps, value.shape[2])

        self.registers = [None if value is None else spread(value) for value in self.registers]
        self.private.clear()
        self.tokens = [spread(token) for token in self.tokens]
        self.set_aside = [spread(token) for token in self.set_aside]
        self.arrivals = np.repeat(self.arrivals, copies, axis=1)
        splits, count = self.splits, len(self.splits)
        mask = np.broadcast_to(splits.mask, (copies, count, WARP_SIZE))
        self.splits = Splits(
            row=(splits.row + np.arange(copies)[:, None] * warps).reshape(-1),
            pc=np.tile(splits.pc, copies),
            mask=mask.reshape(1, copies * count, WARP_SIZE).copy(),
            state=np.tile(splits.state, copies),
            last_run=np.tile(splits.last_run, copies),
        )
        if self.local is not None:
            self.local = self.local.reshape(1, copies * warps, *self.local.shape[2:])
