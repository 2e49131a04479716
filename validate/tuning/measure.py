"""Measures the candidates of `gpusim tune` on the H200 that is there.

    python -m validate.tuning.measure FOLDER [SECONDS]

writes `catalogue.json`, a file of measurements, and `others.csv`, the latter for SECONDS at most.
It needs nvcc and PyCUDA.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.errors import GpusimError
from gpusim.gpu import device as devices
from gpusim.launch.grid import WARP_SIZE
from gpusim.prediction.sweeps.choices import BLOCKS, FULL_WAVES

from .. import files
from ..backend import PycudaBackend
from ..measure import measure_all, median_of
from ..others.measure import Codes, Copy, compiled, queued, write
from ..others.plans import Launch
from ..records import Measurements
from ..statistics import summary
from .candidates import is_grid_stride, of_any_block, of_catalogue, with_block

DEVICE = "h200"
ROUNDS, REPETITIONS, COPIES = 3, 15, 4
STRIDE, RTOL = 5, 1e-4
COLUMNS = "kernel", "n", "block", "grid", "registers", "cold_us", "cold_low", "cold_high"


def catalogue(path: Path) -> None:
    """Write the times of the catalogue's candidates, the medians of the rounds so far."""
    pairs, rounds = of_catalogue(DEVICE), []
    for number in range(ROUNDS):
        rounds.append(measure_all(pairs, DEVICE, _ignored))
        files.write(path, median_of(rounds))
        print(f"{len(pairs)} launches of the catalogue, round {number + 1}", flush=True)


def _ignored(_: Measurements) -> None:
    pass


def others(path: Path, seconds: float) -> None:
    """Write the times of other kernels in blocks and grids of several sizes.

    Kernels of all files come early: the seconds may end before the last of them.
    """
    backend = PycudaBackend()
    found: list[list[Any]] = []
    ends = time.perf_counter() + seconds
    with compiled(backend.driver, "all") as codes:
        machine = backend.machine(DEVICE, time.strftime("%Y-%m-%d"))
        said = (
            f"{machine.gpu}, driver {machine.driver}, CUDA {machine.cuda}, {machine.compiler}, "
            f"{machine.sm_clock_mhz:.0f} MHz, {machine.date}: microseconds of a launch with a cold "
            f"L2, the median of {REPETITIONS}, with 10th and 90th percentile."
        )
        launches = list(of_any_block())
        for launch in (one for first in range(STRIDE) for one in launches[first::STRIDE]):
            if time.perf_counter() > ends:
                break
            try:
                with backend.naming(str(launch.key)):
                    found += timed_candidates(backend, codes, launch)
            except GpusimError as error:  # the context may be lost
                print("STOPPED", error, flush=True)
                break
            write(str(path), said, COLUMNS, found)
    print(f"{len(found)} launches of others", flush=True)


def timed_candidates(backend: PycudaBackend, codes: Codes, launch: Launch) -> Iterator[list[Any]]:
    """Yield the rows of a kernel's candidates, except ones with other results than the launch.

    The launch's own results are compared with NumPy's by `validate.others.measure`.
    """
    began = time.perf_counter()
    filled, function = launch.filled(), codes.function(launch)
    copies = [Copy(backend.driver, launch, filled) for _ in range(COPIES)]
    queued(function, launch, copies[0])
    backend.driver.Context.synchronize()
    wanted = _sums(copies[0].results(filled))
    copies[0].restore()
    for one in _candidates(launch, function.num_regs, backend.sms):
        plan, fresh = one.plan, Copy(backend.driver, one, filled)
        queued(function, one, fresh)
        backend.driver.Context.synchronize()
        sums = _sums(fresh.results(filled))
        fresh.free()
        if not np.allclose(sums, wanted, rtol=RTOL, equal_nan=True):
            print("WRONG", one.key, plan.block, plan.grid, sums, "for", wanted, flush=True)
            continue
        times = _cold_times(backend, function, one, copies)
        numbers = plan.block, plan.grid, function.num_regs
        yield [*one.key, *numbers, *(f"{us:.3f}" for us in summary(times))]
    for copy in copies:
        copy.free()
    print(*launch.key, f"{time.perf_counter() - began:.1f} s", flush=True)


def _sums(results: Sequence[Any]) -> list[float]:
    """Return the sum of the magnitudes of each array: elements may come in any order."""
    arrays = (np.asarray(one) for one in results if isinstance(one, np.ndarray))
    return [float(np.abs(one.astype(np.float64)).sum()) for one in arrays]


def _candidates(launch: Launch, registers: int, sms: int) -> Iterator[Launch]:
    """Yield a launch in other blocks; in full waves of them, if it loops over its grid."""
    for block in BLOCKS:
        if is_grid_stride(launch.kernel):
            wave = sms * resident_blocks(block, registers)
            grids: Sequence[int | None] = [wave * waves for waves in FULL_WAVES]
        else:
            grids = [None]
        for grid in grids:
            made = with_block(launch, block, grid)
            if made is not None and resident_blocks(block, registers):
                yield made


def resident_blocks(block: int, registers: int) -> int:
    """Return the blocks that an SM holds at once, of a kernel without shared memory."""
    sm, warps = devices.load(DEVICE).sm, block // WARP_SIZE
    each = -(-registers * WARP_SIZE // sm.register_unit) * sm.register_unit
    return min(sm.max_threads // block, sm.max_blocks, sm.registers // (each * warps))


def _cold_times(
    backend: PycudaBackend, function: Any, launch: Launch, copies: Sequence[Copy]
) -> list[float]:
    found: list[float] = []
    for number in range(REPETITIONS):
        copy = copies[number % len(copies)]

        def before(copy: Copy = copy) -> None:
            copy.restore()
            backend.empty_l2()

        found += backend.timed(before, partial(queued, function, launch, copy), 1)
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    np.seterr(all="ignore")
    catalogue(folder / "catalogue.json")
    others(folder / "others.csv", float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"))
