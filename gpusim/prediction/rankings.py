"""`gpusim.rank`: kernels in order of their time on a device.

The causes of the steps between kernels are found by the reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpusim.catalogue import Request, find
from gpusim.errors import GpusimError, InputError, shown_at_the_call
from gpusim.gpu import device as devices
from gpusim.gpu.device import Device
from gpusim.host.workers import ignored
from gpusim.launch.configured import ConfiguredKernel
from gpusim.launch.views import Shown
from gpusim.machine import DEFAULT_STEP_LIMIT
from gpusim.prediction.sweeps.jobs import Asked, Forecast, Job, job_of, own_job
from gpusim.prediction.uncertainty import Judgement, judged

Ranked = str | Request | Asked | ConfiguredKernel


@dataclass(frozen=True)
class Ranking(Shown, shown_as="ranking"):
    """Forecasts from slow to fast, and (kernel, reason) of each kernel that cannot run.

    `wrong` are the forecasts of kernels that do not do the work, each with its reason: they have
    no rank. `measured` are GB/s of the same launches on this GPU, by kernel, where they are known.
    """

    forecasts: Sequence[Forecast]
    failures: Sequence[tuple[str, str]] = ()
    wrong: Sequence[tuple[Forecast, str]] = ()
    measured: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Ranking of {len(self.forecasts)} kernels on {self.forecasts[0].device.name}>"

    def without(self, wrong: Mapping[str, str]) -> Ranking:
        """Return the ranking with kernels that are wrong apart, by the reason of each.

        InputError if none is left.
        """
        left = [one for one in self.forecasts if one.job.name not in wrong]
        apart = [(one, wrong[one.job.name]) for one in self.forecasts if one.job.name in wrong]
        if not left:
            name, reason = next(iter(wrong.items()))
            raise InputError(
                f"none of the kernels does its work ({name}: {reason}); gpusim predict has the "
                "time of one alone"
            )
        return replace(self, forecasts=left, wrong=(*self.wrong, *apart))

    def with_jobs(self, change: Callable[[Job], Job]) -> Ranking:
        """Return the ranking with the jobs of its forecasts changed."""
        return replace(
            self,
            forecasts=[replace(one, job=change(one.job)) for one in self.forecasts],
            wrong=[(replace(one, job=change(one.job)), why) for one, why in self.wrong],
        )

    def step(self, place: int) -> float:
        """Return the speedup of a kernel over the one before it."""
        return self.forecasts[place - 1].time_us / self.forecasts[place].time_us

    def is_tie(self, place: int) -> bool:
        """Return whether the order of a kernel and the one before it is uncertain."""
        return self.judged(place).is_tie

    def judged(self, place: int) -> Judgement:
        """Return the comparison of a kernel with the one before it."""
        return judged(self.forecasts[place - 1].timed, self.forecasts[place].timed)


@shown_at_the_call
def rank(
    kernels: Sequence[Ranked],
    *args: Any,
    device: str | Path | Device = "h200",
    l2: str = "cold",
    code: str | None = None,
    step_limit: int = DEFAULT_STEP_LIMIT,
    progress: Callable[[str], None] = ignored,
) -> Ranking:
    """Return kernels in order of their time on `device`, slowest first.

    `kernels` are names of the catalogue, for 2^24 elements, a `Request` each where size or block
    matter, or launches `kernel[grid, block]`, all of them with `args`. The other arguments are
    those of `gpusim.predict`; `progress` is called with the name of each finished kernel. Kernels
    that cannot run are among the `failures`, those with a known defect are `wrong`; raises the
    first GpusimError if none can run.
    """
    if not kernels:
        raise InputError("there are no kernels to rank; name one at least")
    gpu = devices.load(device)
    forecasts: list[Forecast] = []
    errors: list[tuple[str, GpusimError]] = []
    for kernel in kernels:
        try:
            job = _job(kernel, args).in_code(code)
            forecasts.append(job.on(gpu, l2=l2, step_limit=step_limit))
        except GpusimError as error:
            errors.append((_name(kernel), error))
        progress(_name(kernel))
    if not forecasts:
        raise errors[0][1]
    forecasts.sort(key=lambda one: (-one.time_us, one.job.name))
    ranking = Ranking(forecasts, [(name, str(error)) for name, error in errors])
    defects = {one.job.name: _defect(one) for one in forecasts}
    return ranking.without({name: defect for name, defect in defects.items() if defect})


def _defect(forecast: Forecast) -> str:
    setup = forecast.job.launches[0].setup
    return "" if setup is None or not setup.entry.defect else f"known defect: {setup.entry.defect}"


def _job(kernel: Ranked, args: Sequence[Any]) -> Job:
    if isinstance(kernel, ConfiguredKernel):
        return own_job(kernel, args)
    if isinstance(kernel, str):
        return job_of(Request(kernel, find(kernel).predicted_n))
    return job_of(kernel)


def _name(kernel: Ranked) -> str:
    if isinstance(kernel, ConfiguredKernel):
        return kernel.kernel.__name__
    return kernel if isinstance(kernel, str) else kernel.kernel
