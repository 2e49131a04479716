"""A real GPU through PyCUDA: one method, `measure(kernel, launch) -> Measurement`.

Results come first: outputs are poisoned before and checked after, on fresh random data. Then the
time between events, of launches queued behind other work on the GPU: behind a read that empties the
L2 cache, or, for a warm L2, behind the launch itself and a wait.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gpusim.catalogue import REDUCTION, Entry, Setup, oracle
from gpusim.catalogue.oracle import Expected
from gpusim.errors import GpusimError
from gpusim.host.installation import install
from gpusim.launch.grid import ComputeCapability

from . import compilers, libcuda, twins
from .arrays import Arrays, Ready
from .compilers import Compiler
from .records import Case, Machine, Measurement
from .statistics import summary

# The L2 is emptied by reading this many times its size, and never less than the second.
FLUSH_TIMES = 5
FLUSH_LEAST = 2**29
# A wait long enough for the host to queue the work behind it.
WAIT_CYCLES = 250_000
WARM_UP_US = 300_000.0
TARGET_US = 60_000.0
FEWEST, MOST = 15, 51
BYTES_PER_READ = 16


READ_ALL = twins.Twin("kernels/service.cu", "read_all<int4>")
WAIT = twins.Twin("kernels/service.cu", "wait<long long>")

Launch = tuple[Any, Ready]  # the driver's function, and its arguments


class GpuMissingError(GpusimError):
    """PyCUDA or the GPU is not there."""


class CudaError(GpusimError):
    """The GPU or its driver refused something, or a kernel faulted; the message names it."""


class Backend(Protocol):
    """Anything that can measure a kernel."""

    def measure(self, kernel: Entry, launch: Case) -> Measurement:
        """Return time and correctness of a launch; raises CudaError if the GPU refuses it."""


class PycudaBackend:
    """The first GPU of this computer.

    `driver` is the module `pycuda.driver`, and may be a fake of it. The GPU is kept busy for
    `warm_up_us` before a measurement.
    """

    def __init__(
        self,
        driver: Any = None,
        compiler: Compiler | None = None,
        seed: int | None = None,
        warm_up_us: float = WARM_UP_US,
        fewest: int = FEWEST,
        most: int = MOST,
    ) -> None:
        self._warm_up_us, self._fewest, self._most = warm_up_us, fewest, most
        self.driver = pycuda_driver() if driver is None else driver
        self._compiler = compilers.here() if compiler is None else compiler
        with self.naming("the GPU"):
            device = self._device = self.driver.Device(0)
            self._context = device.make_context()
            major, minor = device.compute_capability()
            self.arch = ComputeCapability(major, minor).target
            self.compute_capability = f"{major}.{minor}"
            self.gpu_name = str(device.name())
            self.memory_bytes = int(device.total_memory())
            self.sms = self.attribute("MULTIPROCESSOR_COUNT") or 1
            l2 = self.attribute("L2_CACHE_SIZE") or 0
            self._flush_bytes = max(FLUSH_TIMES * l2, FLUSH_LEAST)
            self._flush = self.driver.mem_alloc(self._flush_bytes)
            self.driver.memset_d8(self._flush, 0, self._flush_bytes)
            self._never = self.driver.mem_alloc(16)
        self._binaries: dict[twins.Twin, compilers.Binary] = {}
        self._functions: dict[twins.Twin, Any] = {}
        with self.naming("the flush"):
            self._read_all = self.function(READ_ALL)
            self._wait_kernel = self.function(WAIT)
        self._arrays = Arrays(self.driver, np.random.default_rng(seed))
        self._expected: dict[tuple[Any, ...], Expected] = {}
        self._warm_up()

    def has(self, kernel: Entry) -> bool:
        """Return whether the GPU has the instructions of a kernel."""
        least, own = map(ComputeCapability.parse, (kernel.least_cc, self.compute_capability))
        return own >= least

    def measure(self, kernel: Entry, launch: Case) -> Measurement:
        """Return time and correctness of a launch; raises CudaError if the GPU refuses it."""
        setups = launch.setups(kernel)
        with self.naming(kernel.name):
            copies = self._copies(setups)
            results, wrong = self._check(copies[0], launch)
            times = self._times(copies, launch)
            self._arrays.restore_all(setups[0])
        median, low, high = summary(times)
        return Measurement(kernel.name, launch, median, low, high, len(times), results, wrong)

    def launch_once(self, kernel: Entry, launch: Case) -> int:
        """Launch a kernel once, for a profiler; return the number of wrong results."""
        with self.naming(kernel.name):
            return self._check(self._copies(launch.setups(kernel))[0], launch)[1]

    def machine(self, device: str, date: str) -> Machine:
        """Return this computer's facts for a file of measurements."""
        driver, memory_clock = reported_by_nvidia_smi()
        version = self.driver.get_driver_version()
        return Machine(
            gpu=self.gpu_name,
            device=device,
            source="measured by gpusim validate run",
            compute_capability=self.compute_capability,
            driver=driver,
            cuda=f"{version // 1000}.{version % 1000 // 10}",
            compiler=self._compiler.version,
            sm_clock_mhz=self.clock_mhz(),
            memory_clock_mhz=memory_clock,
            date=date,
        )

    def attribute(self, name: str) -> int | None:
        """Return a GPU attribute from the driver; None for an unknown name."""
        known = getattr(self.driver.device_attribute, name, None)
        return None if known is None else int(self._device.get_attribute(known))

    def libcuda(self) -> libcuda.LibCuda:
        """Return the driver's library, for calls that PyCUDA lacks."""
        library = getattr(self.driver, "library", None) or ctypes.CDLL(libcuda.NAME)
        return libcuda.LibCuda(library, self.driver.Error)

    def launcher(self, twin: twins.Twin) -> Callable[..., None]:
        """Return a function that launches a twin by the driver's library, compiled once."""
        self.compile_all([twin])
        made = self._binaries[twin]
        return self.libcuda().launcher(made.cubin, made.name)

    def clock_mhz(self) -> float:
        """Return the SM clock in MHz, from a wait of known cycles."""
        cycles = 20_000_000
        with self.naming("the clock"):
            times = self.timed(partial(self.wait, WAIT_CYCLES), partial(self.wait, cycles), 3)
        return round(cycles / min(times), 1)

    def close(self) -> None:
        """Release the GPU."""
        self._context.pop()

    def compile_all(self, wanted: Iterable[twins.Twin]) -> None:
        """Compile several twins in parallel, one per processor."""
        missing = sorted(set(wanted) - set(self._binaries))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = pool.map(lambda twin: self._compiler.compile(twin, self.arch), missing)
            self._binaries.update(zip(missing, made, strict=True))

    def compile_all_of(self, pairs: Iterable[tuple[Entry, Case]]) -> None:
        """Compile the twins of these launches."""
        self.compile_all(
            twins.twin_of(setup) for kernel, case in pairs for setup in case.setups(kernel)
        )

    def store(self, folder: Path) -> None:
        """Store all compiled code in a folder, for another process."""
        compilers.store(self._binaries, self._compiler.version, folder)

    def function(self, twin: twins.Twin) -> Any:
        """Return the twin as loaded on the GPU, compiled once."""
        if twin not in self._functions:
            self.compile_all([twin])
            made = self._binaries[twin]
            module = self.driver.module_from_buffer(made.cubin)
            self._functions[twin] = module.get_function(made.name)
        return self._functions[twin]

    @contextmanager
    def naming(self, name: str) -> Iterator[None]:
        """Turn the driver's errors into CudaError with a name in front."""
        try:
            yield
        except self.driver.Error as error:
            raise CudaError(f"{name}: {error}") from error

    def _copies(self, setups: Sequence[Setup]) -> list[list[Launch]]:
        """Return the launches on each copy of the arrays."""
        if self._arrays.is_new(setups[0]):
            self._expected.clear()
        functions = [self.function(twins.twin_of(setup)) for setup in setups]
        return [
            list(zip(functions, launches, strict=True)) for launches in self._arrays.ready(setups)
        ]

    def _check(self, launches: Sequence[Launch], case: Case) -> tuple[int, int]:
        """Run once with poisoned outputs; return the numbers of results and of wrong ones.

        For all passes together, the result is the one final value.
        """
        self._arrays.poison([ready for _, ready in launches])
        self._clear(launches)
        self._send_all(launches)
        self.driver.Context.synchronize()
        found = self._arrays.results(launches[-1][1])
        return len(found), int(np.count_nonzero(self._oracle(launches, case).wrong(found)))

    def _oracle(self, launches: Sequence[Launch], case: Case) -> Expected:
        """Return the expected results; NumPy computes them once for kernels with equal division.

        The bound on rounding is proportional to the number of additions.
        """
        setup = launches[0][1].setup
        if case.scope == "single":
            additions = setup.additions
            chunk = setup.chunk * setup.cluster
            key = (setup.entry.family.name, setup.operation, setup.clusters, chunk)
        else:
            additions = sum(ready.setup.additions for _, ready in launches)
            key = ("whole", setup.operation, 1, setup.n)
        if key not in self._expected:
            self._expected[key] = (
                oracle.reduce_blocks(self._arrays.data, setup.operation, key[2], key[3], 1)
                if setup.entry.family is REDUCTION
                else setup.entry.family.oracle(setup, self._arrays.data)
            )
        made = self._expected[key]
        if made.tolerance is None or setup.entry.family is not REDUCTION:
            return made
        return replace(made, tolerance=made.tolerance * additions)

    def _times(self, copies: Sequence[Sequence[Launch]], case: Case) -> list[float]:
        """Return the times of many repetitions, in microseconds; the copies in rotation."""
        setup = copies[0][0][1].setup
        rotation = itertools.cycle(range(len(copies)))
        copy = 0

        def cold() -> None:
            nonlocal copy
            copy = next(rotation)
            self._arrays.restore(setup, copy)
            self._clear(copies[copy])
            self.empty_l2()

        def warm() -> None:
            nonlocal copy
            copy = next(rotation)
            self._clear(copies[copy])
            self._send_all(copies[copy])
            self._clear(copies[copy])
            self.wait(WAIT_CYCLES)

        def work() -> None:
            self._send_all(copies[copy])

        before = warm if case.l2 == "warm" else cold
        first = self.timed(before, work, 2)
        wanted = int(TARGET_US / max(min(first), 1.0))
        return self.timed(before, work, max(self._fewest, min(self._most, wanted)))

    def timed(
        self, before: Callable[[], None], work: Callable[[], None], repetitions: int
    ) -> list[float]:
        """Return the times of `work`, in microseconds, each time queued behind `before`.

        A repetition is queued after the one before has ended. With all queued at once, an H200
        starts every other launch 0.3 to 0.7 us late, for any kernel.
        """
        start, end = self.driver.Event(), self.driver.Event()
        times = []
        for _ in range(repetitions):
            before()
            start.record()
            work()
            end.record()
            self.driver.Context.synchronize()
            times.append(start.time_till(end) * 1000.0)
        return times

    def _clear(self, launches: Sequence[Launch]) -> None:
        self._arrays.clear([ready for _, ready in launches])

    def _send_all(self, launches: Sequence[Launch]) -> None:
        for function, ready in launches:
            launch = ready.setup.launch
            function(
                *ready.arguments,
                grid=launch.grid,
                block=launch.block,
                shared=launch.dynamic_shared_bytes,
            )

    def empty_l2(self) -> None:
        """Queue a read of several times the L2's size."""
        words = np.uint64(self._flush_bytes // BYTES_PER_READ)
        self._read_all(
            self._flush, words, self._never, grid=(8 * self.sms, 1, 1), block=(256, 1, 1)
        )

    def wait(self, cycles: int) -> None:
        """Queue a wait without memory accesses."""
        self._wait_kernel(np.int64(cycles), self._never, grid=(1, 1, 1), block=(1, 1, 1))

    def _warm_up(self) -> None:
        """Keep the GPU busy until its clocks have risen."""
        with self.naming("the warm-up"):
            spent = 0.0
            while spent < self._warm_up_us:
                spent += sum(self.timed(lambda: None, self.empty_l2, 100)) + 1.0


def pycuda_driver() -> Any:
    """Return PyCUDA's driver module, initialised; GpuMissingError names the missing part."""
    try:
        driver = importlib.import_module("pycuda.driver")
    except ImportError as error:
        raise GpuMissingError(f"measuring needs PyCUDA ({error}): {install('gpu')}") from None
    try:
        driver.init()
        if not driver.Device.count():
            raise GpuMissingError("measuring needs an NVIDIA GPU: there is none here")
    except driver.Error as error:
        raise GpuMissingError(f"measuring needs an NVIDIA GPU: {error}") from None
    return driver


def reported_by_nvidia_smi() -> tuple[str, float | None]:
    """Return the driver's version and the memory clock, as far as available."""
    query = "--query-gpu=driver_version,clocks.mem"
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        version, clock = ran.stdout.splitlines()[0].split(",")
        return version.strip(), float(clock)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return "", None
