"""Inter-block synchronisation: a grid whose blocks spin on words of others, run in time order.

The order of blocks and the length of each wait follow from the program; a full clock is elsewhere.
"""

from gpusim.prediction.spinning.completion_times import CompletionTimes
from gpusim.prediction.spinning.grid import Grid
from gpusim.prediction.spinning.recorded_blocks import RecordedBlocks, recorded_blocks

__all__ = ["CompletionTimes", "Grid", "RecordedBlocks", "recorded_blocks"]
