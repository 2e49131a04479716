"""Warp streams: what each warp of a block runs, in columns, and nothing but what a clock needs.

A loop whose iterations are all alike is kept once, with how often it runs. Blocks with the
same streams form a class.
"""

from gpusim.prediction.streams import constants
from gpusim.prediction.streams.classes import BlockClass, Classes, nearest
from gpusim.prediction.streams.classification import classify
from gpusim.prediction.streams.probe import touched_by, without_results
from gpusim.prediction.streams.recorder import Recorder
from gpusim.prediction.streams.stream import (
    MOST_BEHIND,
    BlockStream,
    Loop,
    SimulatedLoop,
    WarpStream,
)
from gpusim.prediction.streams.stretches import Stretches, TouchRecorder
from gpusim.program.taint import refuse_missing_elements

__all__ = [
    "MOST_BEHIND",
    "BlockClass",
    "BlockStream",
    "Classes",
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
    "without_results",
]
