"""Random kernels run as the thread-per-lane runner says, with numbers computed one at a time.

A round of `kernels` is `compiled.TOGETHER` kernels, each in both generators' code; a round of
`predictions` is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import lane_runner
import numpy as np
from c_numbers import C
from random_kernels import NEAR, UNORDERED, RandomKernel, random_kernel

import gpusim
from gpusim.codegen.generators import LOWERING
from gpusim.codegen.programs import prepare
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run

DEVICES = ("k40m", "v100", "gtx1650", "rtx3080", "rtx4090", "h200")
PREDICTED = ("cycles", "stalls", "lines", "bounds", "instructions", "traffic")
GENERATIONS = ("3.5", "6.0", "7.5", "8.6", "9.0")


def reference(made: RandomKernel) -> list[Any]:
    """Return the arguments as the thread-per-lane runner leaves them."""
    arguments = made.arguments()
    lane_runner.run(made.kernel, made.grid, made.block, 0, *arguments, arithmetic=C)
    return arguments


def simulated(made: RandomKernel, level: str, cc: str, *, traced: bool) -> list[Any]:
    """Return the arguments as the machine leaves them, counting or with nobody listening."""
    arguments = made.arguments()
    launch = made.kernel[made.grid, made.block]
    if traced:
        gpusim.trace(launch, *arguments, level=level, cc=cc, code=LOWERING)
    else:
        run(prepare(launch, arguments, ComputeCapability.parse(cc), level, code=LOWERING))
    return arguments


def is_as_it_should_be(name: str, wanted: Any, given: Any) -> bool:
    """Return whether an array holds what it should: some of them in any order, one nearly."""
    if name in UNORDERED:
        return np.array_equal(np.sort(wanted), np.sort(given))
    if name == NEAR:
        with np.errstate(all="ignore"):  # what float32 has no room for may be its largest number
            largest = np.finfo(np.float32).max
            a, b = (np.where(np.abs(x) >= largest * 0.999, np.sign(x) * np.inf, x)
                    for x in (wanted, given))  # fmt: skip
        return np.allclose(a, b, rtol=1e-5, atol=1e-30, equal_nan=True)
    return np.array_equal(wanted, given, equal_nan=wanted.dtype.kind == "f")


def differences(seed: int) -> list[str]:
    """Return what is wrong with a seed's kernel: its arrays, or its predictions."""
    made = random_kernel(seed)
    return lowered_differences(made, reference(made)) + unlike_predictions(made)


def lowered_differences(made: RandomKernel, expected: Sequence[Any]) -> list[str]:
    """Return which arrays of a kernel come out differently, and how it was run."""
    choose = Random(made.seed)
    found = []
    for level in ("O0", "O3"):
        cc, traced = choose.choice(GENERATIONS), choose.random() < 0.5
        for name, wanted, given in zip(
            made.kernel.source.parameters,
            expected,
            simulated(made, level, cc, traced=traced),
            strict=True,
        ):
            if not is_as_it_should_be(name, wanted, given):
                found.append(f"seed {made.seed}: {name} at {level}, {cc}, traced: {traced}")
    return found


def unlike_predictions(made: RandomKernel) -> list[str]:
    """Return what is wrong with a kernel's prediction: twice it is the same, and takes a while."""
    device = Random(f"predictions {made.seed}").choice(DEVICES)
    one, other = (
        gpusim.predict(
            made.kernel[made.grid, made.block], *made.arguments(), device=device, code=LOWERING
        )
        for _ in range(2)
    )
    if any(getattr(one, of) != getattr(other, of) for of in PREDICTED):
        return [f"seed {made.seed}: two predictions for {device} differ"]
    return [] if 0 < one.time_us < 1e6 else [f"seed {made.seed}: {one.time_us} us on {device}"]


def predict(random: Random, folder: Path) -> None:
    """Predict a kernel twice; AssertionError with what is wrong."""
    found = unlike_predictions(random_kernel(random.randrange(2**31)))
    assert not found, "\n".join(found)


ATTACKS = {"predictions": predict}
