"""Launches whose warps run in the order of their clocks, of which some blocks are resident.

Blocks begin as others end, in the order of their numbers. Steps are recorded of watched blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpusim.gpu.memory import LINE_BYTES
from gpusim.launch.events import Observer, Placement, hooks
from gpusim.launch.prepared import Prepared
from gpusim.machine.banks import allocated
from gpusim.machine.compiled import arrays, evaluator, layout, modules
from gpusim.machine.compiled.instance import Instance, LeftError, StandsStillError
from gpusim.machine.compiled.memory import BatchMemory, aligned
from gpusim.machine.compiled.recorded_steps import ROW
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.context import Context
from gpusim.machine.pace import Pace
from gpusim.machine.state import Batch
from gpusim.machine.warps import clocks
from gpusim.machine.warps.state import AT_WORD, MOST_SPLITS, READY, SPLIT_BYTES, SPLITS
from gpusim.program.liveness import Liveness
from gpusim.typing import Array
from gpusim.wasm.memory import fields_of, packed

WORDS_A_WARP = 4  # of the table of words that atomics change
LEAST_WORDS = 1024
IsEnough = Callable[[Array, Array], int]


class Standing(NamedTuple):
    """Where blocks stand: the pcs of their splits, parked polls first; the block of each warp."""

    pcs: list[int]
    blocks: Array


@dataclass(frozen=True)
class Ended:
    """The blocks that have ended, in that order, and when: in ticks.

    `standing` is where blocks stand that make no progress, `is_too_long` whether a warp has taken
    too many backward branches; None if enough blocks have ended.
    """

    blocks: Array
    at: Array
    standing: Standing | None = None
    is_too_long: bool = False


class _TooLongError(LeftError):
    """A warp has taken more backward branches than the limit."""


def run_by_clock(
    prepared: Prepared,
    pace: Pace,
    at_once: int,
    step_limit: int,
    is_enough: IsEnough,
    watched: Sequence[int] = (),
    observers: Sequence[Observer] = (),
) -> Ended:
    """Run the blocks of a launch that `pace` has delays of, `at_once` at a time.

    `is_enough` is given the blocks that have ended and when, and returns the number of ends until
    it is called again, below 0 for enough. `observers` hear of the `watched` blocks that have
    begun. Arrays stay as they were.

    Raises LeftError for a launch that has no compiled form, or for a fault.
    """
    program = prepared.program
    one = Batch(program, prepared.launch, np.zeros(1, np.int64), Liveness(program))
    context = Context(one, prepared.arguments, allocated(prepared))
    with np.errstate(all="ignore"):
        variant = evaluator.variant_of(context, prepared.cc.major, observers, pacing=pace.pacing)
        run = _Run(context, modules.compiled(variant).new_instance(), pace, at_once, watched)
        try:
            return run.result(step_limit, is_enough, observers)
        finally:
            run.instance.close()


class _Run:
    def __init__(
        self,
        context: Context,
        instance: Instance,
        pace: Pace,
        at_once: int,
        watched: Sequence[int],
    ) -> None:
        self._context, self.instance, self._pace = context, instance, pace
        self._made: Translation = instance.made
        begin = arrays.arrays_end(self._made, context.allocations, arrays.MOST_ADDRESSED)
        blocks = np.arange(pace.delays.shape[1])
        self._watched = np.array([one for one in sorted(watched) if one < len(blocks)], np.int64)
        self._place = BatchMemory(self._made, context, begin, blocks, at_once)
        self._lay_out(begin)

    def _lay_out(self, arrays_end: int) -> None:
        """Make room for clocks, words, lines of memory, delays and the ends of blocks."""
        place, pace = self._place, self._pace
        leaves = max(2, 1 << (place.held - 1).bit_length())
        words = max(LEAST_WORDS, 1 << (WORDS_A_WARP * place.held - 1).bit_length())
        self._begin = aligned(place.end, 64)
        # The smallest address of a line: the arrays' shift is a multiple of a line.
        first = arrays.first_address(self._context.allocations)
        lines = -(-(arrays_end - arrays.arrays_begin(self._made)) // LINE_BYTES)
        self._settings = {
            "begin": pace.begin,
            "barrier": pace.barrier,
            "turnover": pace.turnover,
            "wake_after": pace.wake_after,
            "apart": pace.apart,
            "first_line": first // LINE_BYTES,
            "line_count": lines,
            "leaves": leaves,
            "timed_at": self._made.timed_at,
            "timed_bytes": self._made.timed_bytes,
            "word_mask": words - 1,
            "next_look": 0,
        }
        at = self._begin
        for name, size in {
            "clocks": 8 * leaves,
            "winners": 4 * leaves,
            "words": clocks.SERVED_BYTES * words,
            "polls": 4 * words,
            "lines": lines,
            "delays": pace.delays.nbytes,
            "ends": clocks.END_BYTES * place.blocks,
        }.items():
            self._settings[name] = at
            at = aligned(at + size, 16)
        place.end = at

    def result(
        self,
        step_limit: int,
        is_enough: IsEnough,
        observers: Sequence[Observer],
    ) -> Ended:
        """Run the blocks."""
        place, instance = self._place, self.instance
        if place.end > arrays.MOST_ADDRESSED:
            raise LeftError("a launch larger than linear memory")

        def looks(warp: int) -> int:
            if warp:
                raise _TooLongError
            return is_enough(self._ends["block"], self._ends["at"])

        self._bring()
        standing, is_too_long = None, False
        try:
            instance.run(place, self._context, 0, step_limit, looks=looks)
        except (StandsStillError, _TooLongError) as error:
            standing, is_too_long = self._standing(), isinstance(error, _TooLongError)
        self._tell(observers)
        return Ended(self._ends["block"].copy(), self._ends["at"].copy(), standing, is_too_long)

    def _bring(self) -> None:
        """Copy the launch into the memory."""
        place, instance, pace = self._place, self.instance, self._pace
        instance.bring(place, self._context, in_chunks=True)
        memory = instance.memory
        entries = place.entries(memory)
        entries[self._watched, 3] = 1
        for (gaps, late), at in self._made.times.items():
            latency = int(pace.latencies[late]) if late >= 0 else 0
            memory[at : at + 8].view(np.int64)[0] = int(pace.gaps[list(gaps)].sum()) + latency
        delays = self._settings["delays"]
        memory[delays : delays + pace.delays.nbytes].view(np.int64)[:] = pace.delays.reshape(-1)
        names = fields_of(clocks.Paced)
        held = packed(clocks.Paced, **{name: self._settings.get(name, 0) for name in names})
        memory[clocks.PACED : clocks.PACED + len(held)] = np.frombuffer(held, np.uint8)

    def _value(self, name: str) -> int:
        at, kind, _ = fields_of(clocks.Paced)[name]
        held = self.instance.memory[clocks.PACED + at : clocks.PACED + at + kind.bytes]
        return int(held.view(f"i{kind.bytes}")[0])

    @property
    def _ends(self) -> Array:
        """The ends of blocks so far."""
        at, count = self._settings["ends"], self._value("ended")
        held = self.instance.memory[at : at + clocks.END_BYTES * count]
        return held.view([("at", "<i8"), ("block", "<u4"), ("unused", "<u4")])

    def _standing(self) -> Standing:
        """Return where the blocks stand."""
        place, made = self._place, self._made
        held = self.instance.memory[place.warps_at :][: place.held * made.warp_bytes]
        words = held.view(np.int32).reshape(place.held, -1)
        splits = words[:, SPLITS // 4 :][:, : SPLIT_BYTES // 4 * MOST_SPLITS]
        splits = splits.reshape(place.held, MOST_SPLITS, -1)[:, :, [0, 2]]
        block, polled = words[:, layout.ROW // 4] // place.warps, words[:, made.timed_at // 4 + 4]
        live = np.arange(MOST_SPLITS) < words[:, :1]
        starts, state = np.array(made.starts)[np.where(live, splits[:, :, 0], 0)], splits[:, :, 1]
        pcs = np.where(state == AT_WORD, polled[:, None] - 1, starts)
        order = np.select([state == AT_WORD, state == READY], [0, 1], 2)[live].argsort(
            kind="stable"
        )
        return Standing(pcs[live][order].tolist(), block[live[:, 0]])

    def _tell(self, observers: Sequence[Observer]) -> None:
        """Report the steps of the watched blocks that have begun."""
        begun = self._watched[self._watched < self._value("begun")]
        place, records = self._place, self._place.records
        if not len(begun) or records is None:
            return
        placement = Placement(begun, place.warps, folded=False)
        for runs, _, _ in records.taken:
            block, warp = np.divmod(runs[:, ROW], place.warps)
            runs[:, ROW] = place.warps * np.searchsorted(begun, block) + warp
        program, shift = self._context.batch.program, self.instance.shift
        for steps in records.steps(program, self._made, placement, shift, whole=True):
            for listener in hooks(observers, "compiled_steps"):
                listener(steps)
        for ending in hooks(observers, "batch_end"):
            ending(begun)
