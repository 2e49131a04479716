"""Detection of endless loops in compiled code: a repeated state, or too many iterations.

A module calls `Progress` for each warp after some backward branches, or after many turns of all
warps without a store. A repeated state with unchanged memory is endless: NumPy then names the
waiting threads. Any other loop may continue up to a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gpusim.errors import BarrierError, NoProgressError
from gpusim.isa.ops import Program
from gpusim.machine.compiled import layout
from gpusim.machine.compiled.arrays import arrays_begin
from gpusim.machine.compiled.memory import BatchMemory
from gpusim.machine.no_progress import Standing, deadlock, never_ends, too_long
from gpusim.machine.warps import state
from gpusim.machine.warps.state import SPLIT_BYTES, SPLITS
from gpusim.machine.warps.turns import MOST_IDLE
from gpusim.program.decisions import decisions
from gpusim.program.loops import yielding
from gpusim.typing import Array

FIRST_TURNS = 1_000_000  # backward branches of a warp, or turns, before the first state is kept
IDLE_YIELDING = 1 << 14  # splits to run without a write before lanes that wait go on
TURNS_OF_EACH = 32  # of a list of splits, one goes to the split that has waited longest
MOST_LOOKS, MOST_LOOKED_BYTES = 512, 1 << 28  # at states, one after the other
# Backward branches of a warp, times the step limit: some ten seconds of a loop of few instructions.
TIMES_THE_LIMIT = 512


PLACES = {
    state.AT_BARRIER: "barrier",
    state.AT_NAMED_BARRIER: "named barrier",
    state.AT_CLUSTER: "cluster",
    state.AT_CONVERGENCE: "convergence",
    **dict.fromkeys((state.AT_WARP, state.AT_COLLECTION, state.AT_MASK, state.AT_COLLECT), "mask"),
}


class EndlessError(Exception):
    """Warps in an endless loop, unless further blocks end it."""


def most_turns(step_limit: int) -> int:
    """Return the most backward branches of a warp, or turns of blocks."""
    return min(step_limit * TIMES_THE_LIMIT, 2**31 - 1)


def first_turns(step_limit: int) -> int:
    """Return the backward branches of a warp, or turns of blocks, before the first sample."""
    return min(step_limit, FIRST_TURNS)


class Progress:
    """The samples of the warps of one run, at a `place` in linear memory."""

    def __init__(self, program: Program, file: str, place: BatchMemory, step_limit: int) -> None:
        self._program, self._file, self._place = program, file, place
        self._most = most_turns(step_limit)
        self._left = self._most - first_turns(step_limit)
        self._watched: dict[int, _Watched] = {}  # by row
        self._looks = 0
        # The most splits to run without a write: few where lanes of a warp may wait for others.
        self._may_yield = bool(yielding(program).any())
        self.most_idle = IDLE_YIELDING if self._may_yield else MOST_IDLE
        self._waiting: set[tuple[int, int, int]] = set()

    def of_warp(self, memory: Array, address: int) -> int:
        """Return the number of backward branches of a warp until its next sample.

        Raises EndlessError for an endless one, NoProgressError beyond the limit.
        """
        warp = _Warp(memory, address, self._place)
        watched = self._watched.get(warp.row)
        if watched is None:
            if any(never_ends(self._program, pc) for pc in warp.pcs):
                raise EndlessError("warps loop for ever")
            above = warp.row - self._place.warps
            self._watched = {row: one for row, one in self._watched.items() if row > above}
            watched = self._watched[warp.row] = _Watched(MOST_LOOKS)
        if not watched.left:
            raise self._too_long([warp])
        watched.look(warp.state, lambda: self._held(memory))
        if self._may_yield and not watched.left and self._is_held_up(warp):
            raise EndlessError("lanes wait for lanes that yield")
        return 0 if watched.left else self._left

    def of_all(self, memory: Array) -> int:
        """Return the number of steps of all warps, in turns, before the next sample.

        The state is sampled after one call, two, four and so on. Raises EndlessError as `of_warp`
        does, and for blocks that further blocks may join.
        """
        place, at = self._place, state.place("steps")
        steps = int(memory[at : at + 4].view(np.uint32)[0])
        if not place.is_last and steps >= place.most_steps:
            raise EndlessError("other blocks join them")
        if steps >= self._most:
            raise self._too_long([one for one in self._all(memory) if one.pcs])
        at = state.place("idle")
        idle = int(memory[at : at + 4].view(np.uint32)[0])
        if idle >= self.most_idle and self._held_up(memory):
            raise EndlessError("lanes wait for lanes that yield")
        watched = self._watched.get(0)
        if watched is None:
            self._looks += 1
            size = place.held * place.made.warp_bytes
            looks = min(MOST_LOOKS, MOST_LOOKED_BYTES // size + 4)
            watched = _Watched(looks if self._looks.bit_count() == 1 else 1)
            self._watched[0] = watched
            self._waiting = self._held_up(memory)
        watched.look(self._states(memory), lambda: self._held(memory))
        if watched.left:  # by the next one, every split that may run has had its turn
            at = state.place("held")
            return TURNS_OF_EACH * max(1, int(memory[at : at + 4].view(np.uint32)[0]))
        del self._watched[0]
        if self._waiting and self._waiting & self._held_up(memory):
            raise EndlessError("lanes wait for lanes that yield")
        more = (self._most if place.is_last else place.most_steps) - steps
        return min(more, max(steps, place.first_look))

    def deadlock(self, memory: Array) -> BarrierError | None:
        """Return the fault of warps of which none can go on.

        None for lanes of a mask that wait at several instructions: they may meet.
        """
        place, made = self._place, self._place.made
        ends = [*made.starts[1:], made.length]
        standing = []
        for warp in self._all(memory):
            alike = [(mask, block) for block, _, at, mask in warp.splits if at >= state.AT_MASK]
            if len({mask for mask, _ in alike}) < len(set(alike)):
                return None
            number, block = warp.row % place.warps, warp.row // place.warps
            for code, lanes, at, _ in warp.splits:
                pc = made.starts[code] if at >= state.AT_WARP else ends[code] - 1
                found = int(place.placement.blocks[block]), number, lanes.bit_count(), pc
                standing.append(Standing(*found, PLACES[at]))
        return deadlock(self._program, standing)

    def _is_held_up(self, warp: _Warp) -> bool:
        """Return whether lanes wait at a convergence barrier beside lanes in a loop that yields.

        Clocks or waits that double may keep its states apart.
        """
        yields, states = yielding(self._program), [held for _, _, held, _ in warp.splits]
        spins = (
            held == state.READY and yields[pc] for pc, held in zip(warp.pcs, states, strict=True)
        )
        return state.AT_CONVERGENCE in states and any(spins)

    def _held_up(self, memory: Array) -> set[tuple[int, int, int]]:
        """Return the waiting lanes of warps that are held up: row, block of code and mask."""
        return {
            (one.row, code, lanes)
            for one in (self._all(memory) if self._may_yield else ())
            if self._is_held_up(one)
            for code, lanes, held, _ in one.splits
            if held == state.AT_CONVERGENCE
        }

    def _all(self, memory: Array) -> list[_Warp]:
        size, first = self._place.made.warp_bytes, self._place.warps_at
        return [_Warp(memory, first + n * size, self._place) for n in range(self._place.held)]

    def _states(self, memory: Array) -> bytes:
        """Return the states of all warps, as `_Warp` has them."""
        place = self._place
        end = place.warps_at + place.held * place.made.warp_bytes
        held = memory[place.warps_at : end].reshape(place.held, -1)
        count = held[:, :4].copy().view(np.int32)
        most = int(count.max())
        splits = held[:, SPLITS : SPLITS + most * SPLIT_BYTES].copy().view(np.int32)
        splits = splits.reshape(place.held, most, SPLIT_BYTES // 4)[:, :, :3]
        splits[np.arange(most) >= count] = 0
        deciding = decisions(self._program).registers
        registers = (
            at
            for register, at in place.made.registers.items()
            if at.base == "warp" and register in deciding
        )
        parts = (held[:, at.offset : at.offset + at.bytes] for at in registers)
        return b"".join(part.tobytes() for part in (count, splits, *parts))

    def _too_long(self, warps: Sequence[_Warp]) -> NoProgressError:
        numbers = self._place.placement.blocks[[one.row // self._place.warps for one in warps]]
        pcs = [pc for one in warps for pc in one.pcs]
        ran = f"{self._most:,} iterations"
        return too_long(self._program, pcs, numbers, self._file, ran)

    def _held(self, memory: Array) -> bytes | None:
        """Return the arrays, shared and local memory; None if too large to be copied."""
        place = self._place
        begin = arrays_begin(place.made)
        if place.notes_at - begin > MOST_LOOKED_BYTES:
            return None
        parts = memory[begin : place.notes_at], memory[place.local_at : place.shared_end]
        return b"".join(part.tobytes() for part in parts)


class _Watched:
    """The first state of some warps, and the memory when that state was last repeated."""

    def __init__(self, left: int) -> None:
        self.left = left
        self._state: bytes | None = None
        self._held: bytes | None = None

    def look(self, found: bytes, held: Callable[[], bytes | None]) -> None:
        """Compare a state with the first one; EndlessError if both are equal, memory included."""
        self.left -= 1
        if self._state is None:
            self._state = found
        elif found == self._state:
            before, self._held = self._held, held()
            if before is not None and before == self._held:
                raise EndlessError("warps loop for ever")


class _Warp:
    """A warp in linear memory: its row, the pcs of its splits, and all of its state."""

    def __init__(self, memory: Array, address: int, place: BatchMemory) -> None:
        held = memory[address : address + place.made.warp_bytes]
        words = held.view(np.int32)
        self.row = int(words[layout.ROW // 4])
        count = int(words[0])
        words = words[SPLITS // 4 :][: count * SPLIT_BYTES // 4]
        splits = words.reshape(count, SPLIT_BYTES // 4)[:, :3]
        # Their block of code, lanes, state, and what they wait for.
        self.splits = words.view(np.uint32).reshape(count, SPLIT_BYTES // 4).tolist()
        self.pcs = [place.made.starts[block] for block in splits[:, 0].tolist()]
        registers = place.made.registers.values()
        parts = (held[at.offset : at.offset + at.bytes] for at in registers if at.base == "warp")
        self.state = b"".join(part.tobytes() for part in (splits, *parts))
