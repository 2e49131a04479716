"""Steps of a program's warps on a device: those of equal warps are built once.

Launches that follow each other with the same program on the same device share them, such as the
sizes of a sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gpusim.gpu.device import Device
from gpusim.isa.ops import Program
from gpusim.prediction.clock.additions import Seen
from gpusim.prediction.clock.code_fetch import CodeFetch, ConstantFetch
from gpusim.prediction.clock.issue import Issue, issues
from gpusim.prediction.clock.step_builder import Fetching, steps_of_warps
from gpusim.prediction.clock.warp_steps import WarpSteps
from gpusim.prediction.streams import WarpStream

MOST_KEPT = 200_000  # steps, of four bytes each beside the distinct ones


class ProgramSteps:
    """Builds the steps of warps of a program on a device with an L2 in state `l2`.

    `issued` are the program's instructions where they differ from the device's own;
    `code_is_cached` leaves out the fetch of code. The first block on an SM has `unlike_later` steps
    if it waits for cold code or constants.
    """

    def __init__(
        self,
        program: Program,
        device: Device,
        l2: str,
        issued: Sequence[Issue] | None = None,
        *,
        code_is_cached: bool = False,
    ) -> None:
        self._issues = issues(program, device) if issued is None else issued
        self._code = CodeFetch(program, device, l2, is_cached=code_is_cached)
        self._constants = ConstantFetch(program, device, l2)
        self.unlike_later = self._code.unlike_later or self._constants.unlike_later
        self._made: dict[tuple[bytes, bool], WarpSteps] = {}
        self._seen = Seen(self._issues)
        self._built = 0

    def of(self, warps: Sequence[tuple[WarpStream, bool]]) -> list[WarpSteps]:
        """Return the steps of warps, of a block that is the first on its SM or of a later one.

        Those of many warps are built in less time together.
        """
        keys = [(warp.key, is_first) for warp, is_first in warps]
        missing = {key: one for key, one in zip(keys, warps, strict=True) if key not in self._made}
        made = steps_of_warps([self._fetching(*one) for one in missing.values()], self._seen)
        self._made.update(zip(missing, made, strict=True))
        self._built += sum(len(one.steps) for one in made)
        if self._built > MOST_KEPT:
            program_steps.cache_clear()  # for this launch alone
        return [self._made[key] for key in keys]

    def _fetching(self, warp: WarpStream, is_first: bool) -> Fetching:
        code = self._code.of(warp, is_first=is_first)
        return Fetching(warp, code, self._constants.of(warp, is_first=is_first))


@lru_cache(maxsize=1)
def program_steps(program: Program, device: Device, l2: str) -> ProgramSteps:
    """Return the steps of a program on a device: those of the launch before, if they are few."""
    return ProgramSteps(program, device, l2)
