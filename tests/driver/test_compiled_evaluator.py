"""Device memory at addresses of a program's own is within reach of the compiled evaluator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from gpusim.driver.arena import BEGIN
from gpusim.launch.prepared import Place
from gpusim.machine.compiled import arrays
from gpusim.machine.storage import allocate


def test_arrays_at_high_addresses_are_near_in_linear_memory() -> None:
    given = {"x": np.zeros(1000, np.uint8), "y": np.zeros(1000, np.uint8)}
    places = {"x": Place(BEGIN, BEGIN), "y": Place(BEGIN + 9216, BEGIN + 9216)}
    made = cast(Any, SimpleNamespace(end=100))
    held = allocate(given, places=places)
    assert arrays.first_address(held) == BEGIN
    assert arrays.arrays_end(made, held) == 512 + 9216 + 1000


def test_an_array_without_an_address_stands_behind_those_with_one() -> None:
    given = {"x": np.zeros(1000, np.uint8), "own": np.zeros(8, np.uint8)}
    held = allocate(given, places={"x": Place(BEGIN, BEGIN)})
    assert BEGIN + 1000 < held["own"].address < BEGIN + (1 << 20)
