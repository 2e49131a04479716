"""The schedule of blocks over a launch: residency, and the start of each block."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.launch.grid import Launch

ONE_AFTER_THE_OTHER = 1e-8  # block durations: between starts within one wave


@dataclass(frozen=True)
class Schedule:
    """The schedule of a launch: `at_once` resident blocks on `sms` SMs.

    DRAM fetches take `under_way` block durations; `partial_bytes` is the L2's capacity for
    partially stored sectors before it reads their rest.
    """

    launch: Launch
    at_once: int
    sms: int
    grain_bytes: int
    partial_bytes: float
    under_way: float = 0.0

    @property
    def life(self) -> float:
        """Time between starts of consecutive blocks, in block durations.

        The first wave begins together and the last block ends with the launch; evenly between.
        """
        return max(ONE_AFTER_THE_OTHER, (self.length - 1) / self.launch.blocks)

    @property
    def length(self) -> float:
        """Duration of the launch in block durations."""
        return max(1.0, self.launch.blocks / self.at_once)

    @property
    def warps(self) -> float:
        """Mean number of resident warps of an SM."""
        return self.at_once / self.sms * self.launch.warps_per_block

    @property
    def is_alike(self) -> bool:
        """Whether the next launch has its blocks on the same SMs: true for a single wave.

        An H200 distributes the blocks of a larger grid differently the next time.
        """
        return self.launch.blocks <= self.at_once
