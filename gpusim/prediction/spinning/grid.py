"""A grid whose blocks wait for each other: blocks start as others end, in the device's order."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.errors import FaultPlace, InputError, NoProgressError
from gpusim.gpu.device import Device
from gpusim.launch.events import Observer
from gpusim.launch.prepared import Prepared
from gpusim.machine import run
from gpusim.machine.compiled.by_clock import Ended, Standing, run_by_clock
from gpusim.machine.compiled.instance import LeftError
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.spinning.completion_times import CompletionTimes, is_even
from gpusim.prediction.spinning.unloaded_timing import pace_of
from gpusim.prediction.streams import without_results
from gpusim.typing import Array

# Waves simulated at most: the first alone is no sample of the steady state.
WAVES = 1.5
FEW_BLOCKS = 64  # blocks that have ended before the first test for a steady rate


class Grid:
    """The blocks of a launch on a device that holds `at_once` of them.

    `observers` hear of the `watched` blocks alone.
    """

    def __init__(
        self,
        prepared: Prepared,
        device: Device,
        at_once: int,
        l2: str,
        *,
        watched: Sequence[int] = (),
        observers: Sequence[Observer] = (),
    ) -> None:
        self.blocks = prepared.launch.blocks
        self.at_once = min(self.blocks, at_once)
        self._prepared = prepared
        most = int(WAVES * self.at_once) + self.at_once + FEW_BLOCKS + 2
        self._pace = pace_of(prepared, device, l2, min(self.blocks, most))
        self._last_store = ticks(device.latency_cycles.last_store)
        self._watched, self._observers = watched, observers
        self._looked_at = 0
        self.ended: list[int] = []  # the watched blocks that have ended

    def run(self, step_limit: int) -> CompletionTimes:
        """Run blocks until all have ended, or until their end times can be extrapolated.

        Raises NoProgressError for a deadlock, or after `step_limit` backward branches of a warp,
        and InputError for a launch that has no compiled form.
        """
        ended = self._run(step_limit)
        if ended.standing is not None:
            raise _no_progress(self._prepared, ended.standing, is_too_long=ended.is_too_long)
        watched = set(self._watched)
        self.ended = [block for block in ended.blocks.tolist() if block in watched]
        return CompletionTimes(ended.at + self._last_store, self.blocks, self.at_once)

    def _run(self, step_limit: int) -> Ended:
        prepared, watched = self._prepared, self._watched
        limits, observers = (self.at_once, step_limit), self._observers
        try:
            return run_by_clock(prepared, self._pace, *limits, self._following, watched, observers)
        except (LeftError, NotDerivedError) as error:
            if isinstance(error, LeftError):  # a fault has its own message
                run(without_results(prepared), step_limit=step_limit)
            raise InputError(
                f"{prepared.kernel} has blocks that wait for other blocks, and no compiled form "
                f"({error}): how long they take is not simulated"
            ) from error

    def _following(self, blocks: Array, ends: Array) -> int:
        """Return the number of ended blocks for the next question, -1 if they are enough.

        Enough to extrapolate the others are those that end at a steady rate, or some waves with the
        watched blocks of these.
        """
        ended, waves = len(ends), int(WAVES * self.at_once)
        following = max(FEW_BLOCKS, 2 * self._looked_at)
        if ended >= following:
            self._looked_at = ended
            if is_even(ends.tolist()):
                return -1
            following = 2 * ended
        if ended >= waves and {b for b in self._watched if b < waves}.issubset(blocks.tolist()):
            return -1
        return min(following, max(waves, ended + 1))


def _no_progress(prepared: Prepared, at: Standing, *, is_too_long: bool) -> NoProgressError:
    """Return the error for blocks in a deadlock, or beyond the step limit."""
    instructions = prepared.program.instructions
    lines = sorted({instructions[pc].line for pc in at.pcs})
    where = ", ".join(map(str, lines[:4]))
    text = f"blocks {at.blocks.min()} to {at.blocks.max()} are at line {where} and "
    if is_too_long:
        text += "do not end; if the kernel only needs longer, raise the step limit"
    else:
        text += "wait for words that no running block writes"
    return NoProgressError(text, FaultPlace(lines[0], int(at.blocks.min())))
