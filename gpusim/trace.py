from gpusim.records import *  # noqa: F403
