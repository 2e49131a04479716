"""Warp streams: the instructions of each warp of a block in columns, as input of the clock.

Loops of equal iterations are stored once, with an iteration count. Blocks with equal streams form a
class. Times are left to `clock`.
"""

from gpusim.prediction.streams import constants
from gpusim.prediction.streams.array_specs import refuse_missing_elements, with_fast_paths
from gpusim.prediction.streams.classes import BlockClass, Classes, nearest
from gpusim.prediction.streams.classification import classify
from gpusim.prediction.streams.instruction_table import MOST_BEHIND, InstructionTable
from gpusim.prediction.streams.probe import touched_by, with_own_results, without_results
from gpusim.prediction.streams.recorder import Recorder
from gpusim.prediction.streams.stream import BlockStream, Loop, SimulatedLoop, WarpStream
from gpusim.prediction.streams.stretches import Stretches, TouchRecorder

__all__ = [
    "MOST_BEHIND",
    "BlockClass",
    "BlockStream",
    "Classes",
    "InstructionTable",
    "Loop",
    "Recorder",
    "SimulatedLoop",
    "Stretches",
    "TouchRecorder",
    "WarpStream",
    "classify",
    "constants",
    "nearest",
    "refuse_missing_elements",
    "touched_by",
    "with_fast_paths",
    "with_own_results",
    "without_results",
]
