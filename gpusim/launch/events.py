"""Events of a run, reported as facts: a `Step` is one instruction run by a group of warps.

Observers listen to steps; they know nothing of each other, and the machine nothing of them. Without
observers no step is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpusim.errors import InputError
from gpusim.isa.ops import Instruction, Program
from gpusim.launch.grid import Launch
from gpusim.typing import Array


@dataclass(frozen=True)
class Placement:
    """The warps of the rows of a batch.

    A folded batch has one row per warp of a block and each row stands for that warp of
    every block in `blocks`: its arrays are shaped (copies, rows, 32), with one copy where
    all blocks agree. An unfolded batch has one row per warp of every block, and one copy.
    """

    blocks: Array  # linear block numbers
    warps_per_block: int
    folded: bool

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.warps_per_block if self.folded else self.warps_per_block * len(self.blocks)

    @property
    def copies(self) -> int:
        """Number of blocks that each row stands for."""
        return len(self.blocks) if self.folded else 1

    def block_of(self, rows: Array) -> Array:
        """Return the linear block numbers that rows stand for, shaped (copies, 1) or (1, rows)."""
        if self.folded:
            return self.blocks[:, None]
        return np.asarray(self.blocks[rows // self.warps_per_block])[None]

    def warp_of(self, rows: Array) -> Array:
        """Return each row's warp, as a block counts them."""
        return rows % self.warps_per_block


class Step(NamedTuple):
    """One instruction, run by the warps in `rows` of a batch.

    `active` is the active mask, `on` the lanes of it with a true predicate;
    both are shaped (copies or 1, len(rows), 32). `addresses` are byte addresses (within the
    block for shared memory), `taken` the lanes that take a branch or meet a true condition of the
    source; each is None for other instructions. `values` are the values of a store, `left` the
    final values of an atomic in shared memory after all lanes, `before` the elements before a sum
    of floating-point numbers and `added` what each lane adds, `swapped` the expected and the new
    value of a compare-and-swap (where compiled code writes steps down), `mask` is the operand with
    the lane mask of a shuffle, vote or warp barrier, as bits, `beside` the lanes of all barriers of
    a warp that meet at several places; all of these are to be broadcast. `sources` are the source
    lanes of a shuffle, `constants` the offsets in its bank of a load of constants with addresses in
    registers. A row may be
    a part of a warp: lanes that diverged run as rows of their own. `registers` reads a register of
    the rows, as the instruction leaves it, until the observer returns; None in compiled code.

    It is a tuple because one is made for every instruction: a dataclass takes four times as long.
    """

    pc: int
    instruction: Instruction
    placement: Placement
    rows: Array
    active: Array
    on: Array
    addresses: Array | None = None
    taken: Array | None = None
    values: tuple[Array, ...] = ()
    mask: Array | None = None
    left: Array | None = None
    sources: Array | None = None
    constants: Array | None = None
    registers: Callable[[int], Array] | None = None
    before: Array | None = None
    added: Array | None = None
    beside: Array | None = None
    swapped: tuple[Array, ...] = ()


class StepsOfWarps(NamedTuple):
    """Steps of single warps, as columns: n steps in the order of each warp.

    `pc` and `row` are shaped (n,), `active`, `on` and `taken` (n, 32). `addresses` (n, 32) are
    those of accesses to memory, `sources` (n, 32) the source lanes of shuffles. `accesses`,
    `shuffles` and `decides` (of `taken`), shaped (n,), mark the rows with such values.
    """

    pc: Array
    row: Array
    active: Array
    on: Array
    taken: Array
    decides: Array
    addresses: Array
    accesses: Array
    sources: Array
    shuffles: Array


class Sums(NamedTuple):
    """Sums over an instruction's steps, as columns of a table: None where there is nothing to sum.

    `times` are executions, `active` and `on` the lanes of their masks, `any` the executions with a
    lane that is on, `divergent` the ones with lanes that decide differently; of accesses there are
    wavefronts with the least they could take, sectors, and replays.
    """

    times: int
    active: int
    on: int
    any: int
    divergent: int | None = None
    wavefronts: int | None = None
    least: int | None = None
    sectors: int | None = None
    replays: int | None = None


class Touched(NamedTuple):
    """Accesses of one kind, "load" or "store", to an array by instructions of a source line."""

    line: int
    access: str
    array: str


class Accesses(NamedTuple):
    """Accesses to memory among steps, and loads of constants at offsets in registers.

    `at` is the index of the step. `passes` are wavefronts of shared memory, sectors of memory after
    the L1, of an atomic there the lanes of a word one by one, sector after sector, and different
    offsets of constants. `lines` are its 128-byte lines, an atomic's sectors; `wavefronts` the
    passes of a load that finds all of it in the L1. `gaps` counts the distances between lines up to
    `NEAR_BYTES`, up to `MIDDLE_BYTES` and beyond, eight bits each. `lowest` is the lowest line, or
    offset of constants, -1 without a lane. `is_one` marks atomics with one address in all lanes.
    Touched bytes lie in stretches without an untouched sector between them, `runs` of them for an
    access: the address of each one's `first` and `last` element, and its `lanes`. In local memory,
    addresses are offsets in the warp's own.
    """

    at: Array
    passes: Array
    lines: Array
    wavefronts: Array
    gaps: Array
    lowest: Array
    is_one: Array
    runs: Array
    first: Array
    last: Array
    lanes: Array


class Omitted(NamedTuple):
    """Omitted iterations of a loop: after the first `at` steps, the last `period` steps repeat.

    They run `times` more times; each time the stretches of bytes that they touch lie `strides`
    further. At least twice `kept` such iterations are reported before, and after.
    """

    at: int
    period: int
    times: int
    kept: int
    strides: Array


class Steps(NamedTuple):
    """Steps of single warps in compiled code as columns, in the order of each warp.

    Of each step there are `pc`, the `row` of the batch, the active mask `lanes` as bits, whether a
    lane of it `is_on` (of a computation, always), and whether one `is_taken` by a branch. `opened`
    are barriers: the number of steps here before, and the position of the block in the batch.
    Iterations are `omitted` only for observers that all take `omitted_steps`.
    """

    placement: Placement
    pc: Array
    row: Array
    lanes: Array
    is_on: Array
    is_taken: Array
    accesses: Accesses
    opened: Array
    omitted: Omitted | None = None


@dataclass(frozen=True)
class Ran:
    """A batch in compiled code: sums by pc instead of steps.

    `tables`, shaped (tables, warps, sums), are shared by blocks, the table of each given. `sums`,
    the same object for each launch of a program, has the columns of each pc. `touched` marks the
    32-byte sectors of global memory, from number `first_sector` on, that accesses touched, in this
    batch or before. `steps` are those of the blocks that observers watch.
    """

    placement: Placement
    tables: Array
    table_of_block: Array
    sums: Mapping[int, Sums]
    first_sector: int
    touched: Mapping[Touched, Array]
    steps: StepsOfWarps


@dataclass(frozen=True)
class BarrierOpened:
    """Blocks with all live lanes at a barrier, about to continue after it.

    It is reported right after the step `after`, the arrival or exit of the last lanes.
    `rows` are the waiting warps, or parts of warps, and `pcs` the pc of each.
    For numbered barriers `numbers` are the numbers by row, `threads` the expected counts of
    threads, 0 for all of the block, and `lanes`, (rows, 32), the waiting lanes: such a barrier
    opens for the threads that wait at it, not for all of a block.
    """

    placement: Placement
    rows: Array
    pcs: Array
    after: Step
    numbers: Array | None = None
    threads: Array | None = None
    lanes: Array | None = None

    @property
    def blocks(self) -> Array:
        """Linear numbers of the blocks, in order."""
        return np.unique(self.placement.block_of(self.rows))


@dataclass(frozen=True)
class BarrierArrived:
    """Threads that arrived at named barriers without waiting (PTX bar.arrive).

    It is reported right after their `step`, and before the barriers open; `numbers` has one for
    each of the step's rows.
    """

    step: Step
    numbers: Array


class Observer:
    """Listens to a launch: `begin`, then the events batch by batch, then `end`.

    Every hook does nothing here: an analysis overrides the hooks it needs, and events without a
    listener cost nothing. A batch that is unfolded reports its further steps with another placement
    of the same blocks. `batch_end` comes after its last.
    """

    omitted_steps = False  # whether iterations that are alike may be omitted from compiled steps

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch."""

    def step(self, step: Step) -> None:
        """Handle one step."""

    def watched(self) -> Mapping[int, int]:
        """Return the blocks with steps of interest in compiled code, and the most steps of each."""
        return {}

    def ran(self, ran: Ran) -> None:
        """Handle sums of steps that are not reported one by one.

        A launch runs in compiled code only if each observer of its steps overrides this or
        `compiled_steps`.
        """

    def compiled_steps(self, steps: Steps) -> None:
        """Handle steps of a batch in compiled code, thousands at a time.

        An observer that overrides this instead of `ran` receives all of them.
        """

    def barrier_opened(self, opened: BarrierOpened) -> None:
        """Handle an opened barrier."""

    def barrier_arrived(self, arrived: BarrierArrived) -> None:
        """Record that threads arrived at a barrier without waiting."""

    def batch_end(self, blocks: Array) -> None:
        """Handle the end of these blocks."""

    def end(self) -> None:
        """Handle the end of the launch."""


def require_observers(observers: Sequence[object], kind: type) -> None:
    """Raise InputError for an observer that is not of type `kind`: it would receive no events."""
    for one in observers:
        if not isinstance(one, kind):
            given = f"the class {one.__name__}" if isinstance(one, type) else f"{one!r}"
            raise InputError(
                f"observers are objects of subclasses of {kind.__name__} "
                f"({kind.__module__}), not {given}"
            )


def hooks(observers: Sequence[Observer], name: str) -> list[Callable[..., None]]:
    """Return the hook of that name of each observer that overrides it."""
    empty = getattr(Observer, name)
    return [getattr(o, name) for o in observers if getattr(type(o), name, empty) is not empty]
