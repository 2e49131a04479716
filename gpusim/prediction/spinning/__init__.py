"""Inter-block synchronisation: a grid whose blocks spin on words of others, run in time order.

The order of blocks and the length of each wait follow from the program; a full clock is elsewhere.
"""

from gpusim.prediction.spinning.ends import Ends
from gpusim.prediction.spinning.grid import Grid
from gpusim.prediction.spinning.watched import Watched, watched

__all__ = ["Ends", "Grid", "Watched", "watched"]
