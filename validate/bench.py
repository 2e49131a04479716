"""The bench of microbenchmarks: probes compiled, launched, and timed in cycles or us."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpusim.typing import Array

from .arrays import Buffer
from .backend import CudaError, PycudaBackend
from .libcuda import NON_PORTABLE_CLUSTER
from .statistics import quantile
from .twins import Twin

REPETITIONS = 5
PORTABLE_CLUSTER = 8  # blocks in a cluster, of every GPU with clusters


class Bench:
    """A GPU with memory for the probes' numbers.

    `values` are the keys measured so far, `notes` further findings.
    """

    def __init__(self, backend: PycudaBackend) -> None:
        self.backend = backend
        self.driver = backend.driver
        self.sms = backend.sms
        self.clock_mhz = backend.clock_mhz()
        self.notes: dict[str, Any] = {}
        self.values: dict[str, float] = {}
        self._stamps, self._room, self._map = (Buffer(self.driver) for _ in range(3))

    def probe(self, file: str, expression: str) -> Any:
        """Return a kernel of `probe_kernels/`."""
        return self.backend.function(Twin(f"probe_kernels/{file}.cu", expression))

    def prepare(self, file: str, *expressions: str) -> None:
        """Compile kernels of a file side by side; `probe` finds them compiled."""
        self.backend.compile_all(Twin(f"probe_kernels/{file}.cu", one) for one in expressions)

    def allow_cluster(self, file: str, expression: str, blocks: int) -> Any:
        """Return a kernel of `probe_kernels/`, allowed in clusters of so many blocks."""
        kernel = self.probe(file, expression)
        if blocks > PORTABLE_CLUSTER:
            attribute = self.driver.function_attribute(NON_PORTABLE_CLUSTER)
            kernel.set_attribute(attribute, 1)
        return kernel

    def tensor_map(self, memory: Any, extents: tuple[int, int], box: tuple[int, int]) -> Any:
        """Return memory with a tensor map of an array of 32-bit words."""
        encoded = self.backend.libcuda().tensor_map(int(memory), extents, box)
        place = self._map.of(len(encoded))
        self.driver.memcpy_htod(place, np.frombuffer(encoded, np.uint8))
        return place

    def row_us(
        self, file: str, expressions: Sequence[str], *numbers: int, launches: int, grid: int,
        block: int, is_programmatic: bool,
    ) -> float:  # fmt: skip
        """Return the median time of launches in a row, of kernels in turn.

        With `is_programmatic` each depends so on the one before.
        """
        twins = [Twin(f"probe_kernels/{file}.cu", one) for one in expressions]
        launchers = [self.backend.launcher(twin) for twin in twins]

        def work() -> None:
            for number in range(launches):
                launch = launchers[number % len(launchers)]
                launch(
                    *numbers, grid=grid, block=block,
                    is_programmatic=is_programmatic and number > 0,
                )  # fmt: skip

        before = partial(self.backend.wait, 250_000)
        with self.backend.naming(file):
            work()
            return quantile(self.backend.timed(before, work, 15), 0.5)

    def known(self, *keys: str) -> float:
        """Return the sum of measured keys; CudaError names a missing one."""
        for key in keys:
            if key not in self.values:
                raise CudaError(f"{key}, which it needs, was not measured")
        return sum(self.values[key] for key in keys)

    def stamps(self, numbers: int) -> Any:
        """Return memory for `numbers` 64-bit numbers, all zero."""
        memory = self._stamps.of(8 * numbers)
        self.driver.memset_d8(memory, 0, 8 * numbers)
        return memory

    def buffer(self, size: int) -> Any:
        """Return memory of `size` bytes."""
        return self._room.of(size)

    def read(self, memory: Any, numbers: int) -> Array:
        """Return `numbers` 64-bit numbers from the GPU."""
        found = np.empty(numbers, np.int64)
        self.driver.memcpy_dtoh(found, memory)
        return found

    def told(
        self,
        file: str,
        expression: str,
        numbers: int,
        *arguments: Any,
        grid: int = 1,
        block: int = 32,
        shared: int = 0,
        before: Callable[[], None] = lambda: None,
    ) -> Array:
        """Return a probe's output: `numbers` 64-bit numbers, at its first argument."""
        kernel = self.probe(file, expression)
        with self.backend.naming(expression):
            if shared:
                attribute = self.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
                kernel.set_attribute(attribute, shared)
            memory = self.stamps(numbers)
            before()
            kernel(memory, *arguments, grid=(grid, 1, 1), block=(block, 1, 1), shared=shared)
            return self.read(memory, numbers)

    def span(
        self,
        file: str,
        expression: str,
        *arguments: Any,
        threads: int = 32,
        before: Callable[[], None] = lambda: None,
    ) -> float:
        """Return cycles from the first warp's start to the last one's end; minimum of several."""
        return min(self.spans(file, expression, *arguments, threads=threads, before=before))

    def spans(
        self,
        file: str,
        expression: str,
        *arguments: Any,
        threads: int = 32,
        before: Callable[[], None] = lambda: None,
    ) -> list[float]:
        """Return cycles from the first warp's start to the last one's end, several times.

        The probe's first argument is the array for the two cycle counts of each warp of its block.
        """
        kernel = self.probe(file, expression)
        warps = -(-threads // 32)
        found = []
        with self.backend.naming(expression):
            for _ in range(REPETITIONS):
                memory = self.stamps(2 * warps)
                before()
                kernel(memory, *arguments, grid=(1, 1, 1), block=(threads, 1, 1))
                stamps = self.read(memory, 2 * warps).reshape(warps, 2)
                ran = stamps[stamps[:, 1] > 0]
                found.append(float(ran[:, 1].max() - ran[:, 0].min()))
        return found

    def step(
        self,
        file: str,
        template: str,
        *arguments: Any,
        threads: int = 32,
        lengths: tuple[int, int] = (16, 32),
        iterations: int = 64,
    ) -> float:
        """Return cycles per additional step of a probe, without those of loop and clock reads.

        `template` has LENGTH in place of the number of steps in the loop.
        """
        short, long = (
            self.span(
                file,
                template.replace("LENGTH", str(length)),
                np.int32(iterations),
                *arguments,
                threads=threads,
            )
            for length in lengths
        )
        return (long - short) / (iterations * (lengths[1] - lengths[0]))

    def time_us(
        self,
        kernel: Any,
        *arguments: Any,
        grid: int,
        block: int,
        shared: int = 0,
        cold: bool = True,
        launches: int = 1,
        repetitions: int = 15,
    ) -> float:
        """Return the median time of a launch between events, or of several in a row."""
        launch = partial(kernel, *arguments, grid=(grid, 1, 1), block=(block, 1, 1), shared=shared)

        def work() -> None:
            for _ in range(launches):
                launch()

        before = self.backend.empty_l2 if cold else partial(self.backend.wait, 250_000)
        with self.backend.naming("a probe"):
            work()
            return quantile(self.backend.timed(before, work, repetitions), 0.5)

    def ring(self, memory: Any, nodes: int, apart: int) -> int:
        """Write a ring of pointers in random order; return the first node's address."""
        order = np.random.default_rng(7).permutation(nodes).astype(np.uint64)
        where = np.uint64(int(memory)) + order * np.uint64(apart)
        words = np.zeros(nodes * apart // 8, np.uint64)
        words[(order * np.uint64(apart // 8)).astype(np.int64)] = np.roll(where, -1)
        self.driver.memcpy_htod(memory, words)
        return int(where[0])
