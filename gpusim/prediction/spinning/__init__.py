"""Blocks that wait for words of other blocks: the grid is run as time goes by on the device.

Who waits for whom, and for how long, follows from what the blocks themselves do.
"""

from gpusim.prediction.spinning.ends import Ends
from gpusim.prediction.spinning.grid import Grid
from gpusim.prediction.spinning.watched import Watched, watched

__all__ = ["Ends", "Grid", "Watched", "watched"]
