"""Jobs: the launches of a kernel without its data, to be predicted on any device.

Catalogue kernels come with their launch rule and, for reductions, all passes; a user's own kernel
is one launch. `predict`, `rank` and `sweep` all start here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gpusim.catalogue import Request, Setup
from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.codegen.programs import prepare
from gpusim.errors import KernelFault, MissingElementsError
from gpusim.gpu import device as devices
from gpusim.gpu.device import Device
from gpusim.launch.configured import ConfiguredKernel
from gpusim.launch.description import LaunchDescription, described
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.machine import DEFAULT_STEP_LIMIT
from gpusim.prediction.predict import predict_prepared
from gpusim.prediction.records import Prediction, total_time_us
from gpusim.prediction.removals import Removal
from gpusim.prediction.uncertainty import Timed, gpu_kind
from gpusim.prediction.uncertainty.kinds import is_of_catalogue
from gpusim.prediction.workload import BUDGET, Budget

# Definition of useful bytes for a kernel outside the catalogue.
COMPULSORY = "sectors loaded and stored, each once"


@dataclass(frozen=True, eq=False)
class KernelLaunch:
    """A kernel with grid, block and arguments, for any device; `setup` if from the catalogue.

    `fill` returns the arguments with elements, for a launch whose course depends on them.
    """

    configured: ConfiguredKernel
    arguments: tuple[Any, ...]
    setup: Setup | None = None
    code: str | None = None
    fill: Callable[[], Sequence[Any]] | None = None
    _made: dict[ComputeCapability, Prepared] = field(default_factory=dict, init=False, repr=False)

    def prepared(self, cc: ComputeCapability) -> Prepared:
        """Return the launch for a GPU of compute capability `cc`."""
        if cc not in self._made:
            self._made[cc] = prepare(self.configured, self.arguments, cc, code=self.code)
        return self._made[cc]

    def filled(self) -> KernelLaunch:
        """Return the launch with elements in all of its arrays."""
        assert self.fill is not None
        return replace(self, arguments=tuple(self.fill()), fill=None)


@dataclass(frozen=True, eq=False)
class Job:
    """Launches one after the other on a stream.

    `elements_bytes` is the size of a catalogue kernel's n elements, without repeated reads or
    results of a pass; None for any other kernel, because it is unknown. `description` says where
    the launch's members are from.
    """

    name: str
    launches: tuple[KernelLaunch, ...]
    elements_bytes: int | None = None
    description: LaunchDescription | None = None

    @property
    def grid_is_open(self) -> bool:
        """Whether the first launch may have another grid: it need not follow from n and block."""
        setup = self.launches[0].setup
        return setup is None or setup.entry.grid_free

    def in_code(self, code: str | None) -> Job:
        """Return the job with machine code from a generator: lowering, nvcc or auto.

        None is the default of `generators.chosen`.
        """
        return replace(self, launches=tuple(replace(one, code=code) for one in self.launches))

    def on(
        self,
        device: str | Path | Device,
        *,
        l2: str = "cold",
        step_limit: int = DEFAULT_STEP_LIMIT,
        timeline: bool = False,
        budget: Budget = BUDGET,
        removals: Sequence[Removal] = (),
    ) -> Forecast:
        """Return the job's prediction on a device, with its first launch's timeline if requested.

        `l2` is the state of the L2 before the first launch, "cold" or "warm". Later launches read
        the output of the one before, present in the L2 as far as it fits. `budget` is that of
        `predict_prepared`.
        """
        gpu = devices.load(device)
        launches = list(self.launches)
        made = []
        for number, launch in enumerate(launches):
            settings: dict[str, Any] = {
                "l2": "warm" if number else l2,
                "step_limit": step_limit,
                "timeline": timeline and not number,
                "budget": budget,
                "removals": removals,
            }
            one, launches[number] = _predicted(launch, gpu, settings)
            made.append(one)
        return Forecast(replace(self, launches=tuple(launches)), tuple(made))


def _predicted(
    launch: KernelLaunch, gpu: Device, settings: Mapping[str, Any]
) -> tuple[Prediction, KernelLaunch]:
    """Return the prediction of a launch, and the launch: filled where elements decide its course.

    MissingElementsError where nothing fills it, or where it fails with what does.
    """
    try:
        return predict_prepared(launch.prepared(gpu.cc), gpu, **settings), launch
    except MissingElementsError as missing:
        if launch.fill is None:
            raise
        filled = launch.filled()
        try:
            made = predict_prepared(filled.prepared(gpu.cc), gpu, **settings)
        except KernelFault:
            raise missing from None
    return replace(made, depends_on_data=True), filled


@dataclass(frozen=True, eq=False)
class Forecast:
    """A job's predictions on one device, one for each launch."""

    job: Job
    predictions: tuple[Prediction, ...]

    @property
    def first(self) -> Prediction:
        """The first launch, with nearly all of the work in a reduction."""
        return self.predictions[0]

    @property
    def device(self) -> Device:
        """The device of the predictions."""
        return self.first.device

    @property
    def removals(self) -> tuple[Removal, ...]:
        """The mechanisms of lines that the job was predicted without."""
        setting = self.first.setting
        return () if setting is None else setting.removals

    @property
    def time_us(self) -> float:
        """Time of all launches and the gaps between them, in microseconds."""
        if len(self.predictions) == 1:
            return self.first.time_us
        return total_time_us(self.predictions)

    @property
    def interval_us(self) -> tuple[float, float]:
        """The prediction interval of 90 %, (low, high), in microseconds.

        Errors of the launches are taken to go together: the ends add up, as the times do.
        """
        alone = sum(prediction.time_us for prediction in self.predictions)
        low, high = map(sum, zip(*(one.interval_us for one in self.predictions), strict=True))
        return self.time_us * low / alone, self.time_us * high / alone

    @property
    def timed(self) -> Timed:
        """The job's time with all that a comparison with another one depends on."""
        prepared, device = self.first.prepared, self.device
        sizes = (value.size for value in prepared.arguments.values() if hasattr(value, "size"))
        return Timed(
            self.time_us,
            self.interval_us,
            (device.id, device.changed, device.ablations, self.removals),
            gpu_kind(device),
            NVCC if prepared.program.compiler else LOWERING,
            is_of_catalogue(prepared),
            (self.job.name, prepared.source_file, max(sizes, default=0)),
            self.first.launch.block,
        )

    @property
    def assumes_ordinary_operands(self) -> bool:
        """Whether elements without given values are assumed to be ordinary operands."""
        return any(prediction.assumes_ordinary_operands for prediction in self.predictions)

    @property
    def useful_bytes(self) -> int:
        """Bytes of a catalogue kernel's n elements; compulsory bytes of any other kernel.

        These are the distinct sectors loaded and the distinct sectors stored.
        """
        if self.job.elements_bytes is not None:
            return self.job.elements_bytes
        return sum(prediction.traffic.compulsory_bytes for prediction in self.predictions)

    @property
    def gbps(self) -> float:
        """Useful bytes over time, in GB/s (10^9 bytes): the effective bandwidth."""
        return self.useful_bytes / self.time_us / 1000

    @property
    def peak_fraction(self) -> float:
        """GB/s as a fraction of the DRAM bandwidth in the device's data sheet."""
        return self.gbps / self.device.bandwidth.dram_peak_gbps

    def to_dict(self) -> dict[str, Any]:
        """Return the job and its launches as plain data."""
        setup = self.job.launches[0].setup
        size = self.job.description.n if self.job.description is not None else None
        about = {
            "n": setup.n if setup else size and int(size.value),
            "operation": setup.operation if setup else None,
            "dtype": setup.dtype.name if setup else None,
            "defect": setup.entry.defect if setup else None,
        }
        return {
            "kernel": self.job.name,
            "device": self.device.name,
            "device_id": self.device.id,
            "without": [*sorted(self.device.ablations), *map(str, self.removals)],
            "set": dict(self.device.changed),
            **about,
            **described(self.job.description),
            "time_us": self.time_us,
            "interval_us": list(self.interval_us),
            "gbps": self.gbps,
            "peak_fraction": self.peak_fraction,
            "useful_bytes": self.useful_bytes,
            "useful_bytes_are": "n elements" if setup else COMPULSORY,
            "passes": [prediction.to_dict() for prediction in self.predictions],
        }


class Difference(NamedTuple):
    """What a launch does otherwise than another one, or why that is not known."""

    text: str
    is_wrong: bool = True


class Asked(Protocol):
    """A request for a kernel outside the catalogue: frozen data that makes a job."""

    @property
    def kernel(self) -> str:
        """The kernel's name in the table."""

    @property
    def n(self) -> int | None:
        """The number of elements, None if the launch does not depend on it."""

    @property
    def block(self) -> int | str | None:
        """Threads of a block."""

    @property
    def operation(self) -> str | None:
        """The operation, if there is a choice."""

    @property
    def dtype(self) -> Any:
        """The type of the elements, if there is a choice."""

    @property
    def passes(self) -> str:
        """One launch, or all."""

    def sized(self, n: int | None, block: int | str | None) -> Asked:
        """Return the request with another size and block."""

    def with_values(self, values: Mapping[str, int | str]) -> Asked:
        """Return the request with another block or grid, and values of its parameters.

        InputError for parameters that it does not have.
        """

    def job(self) -> Job:
        """Return the job; raises GpusimError if there is none."""

    def difference(self, first: Any, device: str, code: str | None) -> Difference | None:
        """Return what it does otherwise than the first launch, None for nothing."""


def job_of(request: Request | Asked) -> Job:
    """Return the job of a request; raises GpusimError if there is none."""
    return catalogue_job(request) if isinstance(request, Request) else request.job()


def catalogue_job(request: Request) -> Job:
    """Return the job of a catalogue kernel: its first launch, or all passes of a reduction.

    Raises InputError or LaunchError if the kernel does not support the request.
    """
    setups = request.setups()
    launches = [
        KernelLaunch(setup.configured, setup.specs, setup, fill=setup.filled) for setup in setups
    ]
    return Job(request.kernel, tuple(launches), setups[0].n * setups[0].dtype.itemsize)


def own_job(
    configured: ConfiguredKernel,
    arguments: Sequence[Any],
    fill: Callable[[], Sequence[Any]] | None = None,
) -> Job:
    """Return a single launch of any kernel as a job; `fill` returns its arguments with elements."""
    name = configured.kernel.__name__
    return Job(name, (KernelLaunch(configured, tuple(arguments), fill=fill),))
