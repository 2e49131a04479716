"""A launch as it was before it ran: it can be run again, for its steps or on another GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.codegen.programs import prepare
from gpusim.launch.configured import ConfiguredKernel
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.machine.storage import with_copies

MOST_BYTES = 2**25  # of arrays that a trace keeps, a second time


@dataclass(frozen=True, eq=False)
class Repeat:
    """A launch with its arguments, `level` and `code` as given.

    Its arrays are copies from before the run; views of one array overlap as the originals do.
    """

    configured: ConfiguredKernel
    arguments: tuple[Any, ...]
    level: str
    code: str | None

    def prepared(self, cc: ComputeCapability) -> Prepared:
        """Return the launch for a GPU of a compute capability, on arrays of its own."""
        return prepare(self.configured, _copied(self.arguments), cc, self.level, code=self.code)


def repeat_of(
    configured: ConfiguredKernel, args: Sequence[Any], level: str, code: str | None
) -> Repeat | None:
    """Return a launch to be repeated, None where its arrays have more than MOST_BYTES."""
    size = sum(one.nbytes for one in args if isinstance(one, np.ndarray))
    return Repeat(configured, _copied(args), level, code) if size <= MOST_BYTES else None


def _copied(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments with copies of their arrays."""
    named = {str(place): value for place, value in enumerate(args)}
    made, _ = with_copies(named, named.keys(), are_filled=True)
    return tuple(made.values())
