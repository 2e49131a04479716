"""How a launch goes on in time: which blocks run together, and when each begins."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.launch.grid import Launch

ONE_AFTER_THE_OTHER = 1e-8  # lives, in which blocks begin that begin together


@dataclass(frozen=True)
class Course:
    """How a launch goes on: so many blocks `at_once`, on so many `sms`.

    DRAM fetches grains, which are `under_way` for so many lives of a block, and the L2 keeps so
    many bytes of sectors that were stored in part until it reads the rest.
    """

    launch: Launch
    at_once: int
    sms: int
    grain_bytes: int
    partial_bytes: float
    under_way: float = 0.0

    @property
    def life(self) -> float:
        """How much later each block begins than the one before, in lives of a block.

        The first ones begin together and the last one ends with the launch; evenly between.
        """
        return max(ONE_AFTER_THE_OTHER, (self.length - 1) / self.launch.blocks)

    @property
    def length(self) -> float:
        """How long the launch takes, in lives of a block."""
        return max(1.0, self.launch.blocks / self.at_once)

    @property
    def warps(self) -> float:
        """How many warps of an SM run at a time, on the mean."""
        return self.at_once / self.sms * self.launch.warps_per_block

    @property
    def is_alike(self) -> bool:
        """Whether the next launch has its blocks on the same SMs: where all begin together.

        Of more blocks an H200 begins elsewhere the next time.
        """
        return self.launch.blocks <= self.at_once

    @property
    def grid(self) -> tuple[tuple[int, int], ...]:
        """Extent of each dimension of the grid, and by how much block numbers differ along it."""
        x, y, z = self.launch.grid
        return ((x, 1), (y, x), (z, x * y))
