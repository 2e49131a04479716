"""Programmatic dependence: what of a launch may overlap the launches before and behind it.

A launch with `cudaLaunchAttributeProgrammaticStreamSerialization` starts once all blocks before it
have executed `griddepcontrol.launch_dependents` or ended; at `griddepcontrol.wait` its threads wait
for the end of the launch before.
"""

from __future__ import annotations

from gpusim.gpu.device import Device
from gpusim.isa.ops import Program
from gpusim.launch.overlap import Overlap
from gpusim.launch.prepared import Prepared
from gpusim.prediction.clock.spans import Span, SpanObserver
from gpusim.prediction.predict import predict_prepared
from gpusim.prediction.workload import Budget

# Extrapolated iterations have no spans: all are simulated, up to so many.
_WHOLE = Budget(iterations=1 << 16)


def _rows(program: Program, mnemonic: str) -> frozenset[int]:
    rows = enumerate(program.instructions)
    return frozenset(pc for pc, row in rows if mnemonic in row.text)


class DependenceRecorder(SpanObserver):
    """Finds when warps come to the waits and triggers of a program, in cycles."""

    def __init__(self, program: Program) -> None:
        self._waits, self._triggers = _rows(program, "ACQBULK"), _rows(program, "PREEXIT")
        self.begin(0)

    @property
    def is_wanted(self) -> bool:
        """Whether the program waits for the launch before, or lets the next one start."""
        return bool(self._waits or self._triggers)

    def begin(self, blocks: int) -> None:
        """Forget an earlier simulation."""
        self._waited: dict[tuple[int, int], float] = {}
        self._triggered: dict[int, float] = {}
        self._first_end = float("inf")
        self._blocks, self._cycles = blocks, 0.0

    def span(self, span: Span) -> None:
        """Note a wait or a trigger."""
        if span.pc in self._waits:
            self._waited.setdefault((span.block, span.warp), span.start)
        if span.pc in self._triggers:
            self._triggered[span.block] = max(self._triggered.get(span.block, 0.0), span.end)

    def block_ended(self, block: int, cycle: float) -> None:
        """Note the first block's end: blocks that start behind it are of another wave."""
        self._first_end = min(self._first_end, cycle)

    def end(self, cycles: float) -> None:
        """Note the end of the last block."""
        self._cycles = cycles

    def overlap(self, time_us: float) -> Overlap:
        """Return the times in a kernel that takes so long.

        Without a trigger in each block nothing is behind it.
        """
        first = [at for at in self._waited.values() if at <= self._first_end]
        has_all = len(self._triggered) == self._blocks > 0
        behind = self._cycles - max(self._triggered.values()) if has_all else 0.0
        return Overlap(
            *(part * time_us / self._cycles for part in (max(first, default=0.0), behind))
        )


def overlap_of(prepared: Prepared, device: Device, kernel_us: float) -> Overlap:
    """Return what of a launch with a known time may overlap its neighbours."""
    recorder = DependenceRecorder(prepared.program)
    if not recorder.is_wanted:
        return Overlap()
    predict_prepared(prepared, device, observers=(recorder,), budget=_WHOLE)
    return recorder.overlap(kernel_us)
