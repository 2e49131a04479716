"""Steps that NumPy's machine ran of a batch, as columns: an entry for each warp of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpusim.launch.events import Placement
from gpusim.typing import Array

# Columns of an access, with their types.
TYPES: Mapping[str, type[np.generic]] = {
    "cost": np.int32,
    "lines": np.int32,
    "wavefronts": np.int32,
    "lowest": np.int64,
    "gaps": np.int32,
    "constant": np.int32,
}


@dataclass(frozen=True)
class StepColumns:
    """Instructions of a batch by index: the `rows` of warps, and `contents`, shaped (copies, n).

    `accesses` are the indices of accesses; of these there are the warp's `times` and, as `values`,
    the columns of TYPES, shaped (copies, accesses).
    """

    placement: Placement
    rows: Array
    contents: Array
    accesses: Array
    times: Array
    values: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.rows)
