"""Predictions of measured launches, computed on all cores, beside a bare roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from gpusim.catalogue import Request, find
from gpusim.codegen.generators import LOWERING
from gpusim.errors import GpusimError
from gpusim.gpu import device as devices
from gpusim.host.workers import Listener, ignored, worked_out
from gpusim.prediction.records import Prediction, total_time_us
from gpusim.prediction.sweeps.jobs import catalogue_job, own_job

from . import twins
from .records import Case, Measurement

# Predictions kept by one process: those of a case, for reuse by the next cases.
KEPT_PREDICTIONS = 16


@dataclass(frozen=True)
class Compared:
    """One case: measured time, prediction and roofline bound (us)."""

    kernel: str
    case: Case
    measured_us: float
    predicted_us: float
    roofline_us: float

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted_us / self.measured_us - 1

    @property
    def roofline_error(self) -> float:
        """Relative error of the roofline bound."""
        return self.roofline_us / self.measured_us - 1


@dataclass(frozen=True)
class Refused:
    """A case without a prediction, and the reason."""

    kernel: str
    case: Case
    reason: str


Result = Compared | Refused


def predictions(kernel: str, case: Case, device: str, code: str = LOWERING) -> list[Prediction]:
    """Return the predictions of a case's launches, in order; later ones have a warm L2.

    `code` is "lowering" for the Python kernel, "nvcc" for its twin in CUDA C++, the measured code.
    """
    setups = case.setups(find(kernel))
    return [
        _of_launch(Request.of(setup), "warm" if number else case.l2, device, code)
        for number, setup in enumerate(setups)
    ]


@lru_cache(maxsize=KEPT_PREDICTIONS)
def _of_launch(request: Request, l2: str, device: str, code: str) -> Prediction:
    """Return the prediction of a single launch; several cases share their first one."""
    if code == LOWERING:
        return catalogue_job(request).in_code(LOWERING).on(device, l2=l2).first
    setup = request.setup()
    return own_job(twins.configured(setup), setup.specs, setup.filled).on(device, l2=l2).first


def compared(measured: Measurement, device: str, code: str = LOWERING) -> Result:
    """Return a timed measurement beside its prediction."""
    assert measured.time_us is not None
    case = measured.case
    try:
        passes = predictions(measured.kernel, case, device, code)
    except GpusimError as error:
        return Refused(measured.kernel, case, str(error).splitlines()[0])
    gpu = devices.load(device)
    size_bytes = case.n * np.dtype(case.dtype).itemsize
    time = total_time_us(passes)
    roofline = gpu.host.launch_overhead_us + size_bytes / gpu.bandwidth.dram_peak_gbps / 1000
    if case.scope == "copy and all":
        copy = 2 * size_bytes / gpu.bandwidth.dram_gbps / 1000 + gpu.host.pass_gap_us
        time, roofline = time + copy, roofline + copy
    return Compared(measured.kernel, case, measured.time_us, time, roofline)


def compare(
    times: Sequence[Measurement],
    device: str,
    code: str = LOWERING,
    *,
    workers: int | None = None,
    done: Listener = ignored,
) -> list[Result]:
    """Return measurements beside their predictions, in order, without untimed ones.

    `device` is a device file's name, `code` the generator of the machine code, `workers` a number
    of processes; `done` is called for each finished launch.
    """
    timed = [one for one in times if one.time_us is not None]
    groups: dict[tuple[object, ...], list[Measurement]] = {}
    for one in timed:
        case = one.case
        key = (one.kernel, case.n, case.block, case.dtype, case.grid, case.coarse)
        groups.setdefault(key, []).append(one)
    pieces = list(groups.values())
    found: dict[Measurement, Result] = {}
    for number, results in worked_out(
        partial(_of_group, device=device, code=code), pieces, workers
    ):
        found.update(zip(pieces[number], results, strict=True))
        for _ in results:
            done(pieces[number][0].kernel)
    return [found[one] for one in timed]


def _of_group(group: Sequence[Measurement], device: str, code: str) -> list[Result]:
    """Return cases with common launches, each beside its prediction."""
    return [compared(one, device, code) for one in group]
