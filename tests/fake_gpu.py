"""A fake of `pycuda.driver`: memory in NumPy, kernels run by gpusim, a clock that can be set."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gpusim.catalogue import find
from gpusim.catalogue.registry import FLAG
from validate.compilers import Binary
from validate.twins import C_TYPES, OPERATIONS, Twin

BASE = 0x7F00_0000_0000
EXPRESSION = re.compile(r"(\w+)<([\w ]+), ([\w:]+)<[\w ]+>, (\d+), (\d+)>")


class FakeCompiler:
    """Passes name expressions through: the fake GPU reads them."""

    version = "fake 1.0"

    def __init__(self) -> None:
        self.compiled: list[Twin] = []

    def compile(self, twin: Twin, arch: str) -> Binary:
        assert arch == "sm_90a"
        self.compiled.append(twin)
        return Binary(twin.expression.encode(), twin.expression)


class Memory:
    """Memory at an address."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.bytes = address, np.full(size, 0x77, np.uint8)
        self.is_free = False

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        self.is_free = True


class Probe:
    """A microbenchmark: whatever it is, each warp takes as many cycles as LENGTH and rounds say."""

    def __init__(self, driver: FakeDriver, name: str) -> None:
        self.driver, self.name = driver, name
        length = re.search(r"(\d+)>", name)
        self.length = int(length[1]) if length else 1

    def set_attribute(self, attribute: int, value: int) -> None:
        assert attribute in (8, 14)  # dynamic shared memory, clusters of 16

    def __call__(self, *arguments: Any, grid: Any, block: Any, shared: int = 0) -> None:
        numbers = [int(a) for a in arguments if isinstance(a, np.number)]
        work = max(1, self.length) * sum([1, *(n for n in numbers if 0 < n < 2**33)])
        self.driver.now_us += 5.0 + work * grid[0] / 1000
        if isinstance(arguments[0], Memory) and len(arguments[0].bytes) < 2**20:
            stamps = self.driver.bytes_at(arguments[0]).view(np.int64)
            stamps[: len(stamps) // 4 * 4].reshape(-1, 4)[:] = [0, 100, 200, 100 + 2 * work]
            stamps[0::2], stamps[1::2] = 100, 100 + 4 * work


class FakeDriver:
    """What `PycudaBackend` uses of the module, for one GPU.

    `faults` names kernels that fault; `log` tells what was queued since `log` was last cleared.
    A launch takes `launch_us` of the fake's clock, whatever it does.
    """

    class Error(Exception):
        """The base of all of the driver's errors."""

    class Library:
        """The driver's functions that PyCUDA lacks: they do nothing."""

        def __getattr__(self, name: str) -> Any:
            return lambda *_: 0

    library = Library()

    class LaunchError(Error):
        """A kernel faulted."""

    class device_attribute:  # noqa: N801
        MULTIPROCESSOR_COUNT = 1
        L2_CACHE_SIZE = 2
        MAX_THREADS_PER_MULTIPROCESSOR = 3
        GLOBAL_L1_CACHE_SUPPORTED = 4

    class function_attribute:  # noqa: N801
        MAX_DYNAMIC_SHARED_SIZE_BYTES = 8

        def __new__(cls, value: int) -> int:
            return value

    def __init__(self, faults: tuple[str, ...] = (), launch_us: float = 10.0) -> None:
        self.faults, self.launch_us = faults, launch_us
        self.now_us = 0.0
        self.log: list[str] = []
        self.memories: list[Memory] = []
        self.wrong_launches: set[str] = set()
        driver = self

        class Event:
            def record(self) -> None:
                driver.log.append("event")
                self.at_us = driver.now_us

            def time_till(self, other: Event) -> float:
                return (other.at_us - self.at_us) / 1000

        class Context:
            @staticmethod
            def synchronize() -> None:
                driver.log.append("synchronize")

            def pop(self) -> None:
                driver.log.append("pop")

        class Device:
            def __init__(self, number: int) -> None:
                assert number == 0

            @staticmethod
            def count() -> int:
                return 1

            def make_context(self) -> Context:
                return Context()

            def compute_capability(self) -> tuple[int, int]:
                return 9, 0

            def name(self) -> str:
                return "Fake GPU"

            def get_attribute(self, attribute: int) -> int:
                return {1: 4, 2: 4096, 3: 1536, 4: 1}[attribute]

            def total_memory(self) -> int:
                return 2**30

        self.Event, self.Context, self.Device = Event, Context, Device

    def mem_alloc(self, size: int) -> Memory:
        # The flush's buffer is large, and nobody looks into it.
        memory = Memory(BASE + (len(self.memories) << 33), min(size, 2**26))
        self.memories.append(memory)
        return memory

    def bytes_at(self, pointer: Any, size: int | None = None) -> np.ndarray[Any, Any]:
        """Return the bytes from a pointer on."""
        number, offset = divmod(int(pointer) - BASE, 1 << 33)
        memory = self.memories[number]
        assert not memory.is_free, "freed memory is used"
        end = None if size is None else offset + size
        assert end is None or end <= len(memory.bytes), "outside the memory"
        return memory.bytes[offset:end]

    def memset_d8(self, pointer: Any, value: int, size: int) -> None:
        if size < 2**24:
            self.bytes_at(pointer, size)[:] = value

    def memcpy_htod(self, pointer: Any, array: np.ndarray[Any, Any]) -> None:
        self.bytes_at(pointer, array.nbytes)[:] = array.view(np.uint8).reshape(-1)

    def memcpy_dtoh(self, array: np.ndarray[Any, Any], pointer: Any) -> None:
        array.view(np.uint8).reshape(-1)[:] = self.bytes_at(pointer, array.nbytes)

    def memcpy_dtod(self, to: Any, pointer: Any, size: int) -> None:
        self.bytes_at(to, size)[:] = self.bytes_at(pointer, size).copy()

    def memcpy_dtod_async(self, to: Any, pointer: Any, size: int, stream: None) -> None:
        assert stream is None
        self.log.append("restore")
        self.memcpy_dtod(to, pointer, size)

    def get_driver_version(self) -> int:
        return 13000

    def module_from_buffer(self, cubin: bytes) -> FakeDriver:
        assert cubin
        return self

    def get_function(self, name: str) -> Any:
        if name.startswith(("read_all<", "wait<")):
            return self._service(name)
        return self._kernel(name) if EXPRESSION.fullmatch(name) else Probe(self, name)

    def _service(self, name: str) -> Any:
        def launch(*arguments: Any, grid: Any, block: Any) -> None:
            assert grid[0] * block[0] > 0
            self.log.append(name.partition("<")[0])
            is_wait = name.startswith("wait")
            self.now_us += int(arguments[0]) / 1000 if is_wait else 1000.0

        return launch

    def _kernel(self, name: str) -> Any:
        found = EXPRESSION.fullmatch(name)
        assert found, name
        entry = find(found[1])
        dtype = np.dtype(next(k for k, v in C_TYPES.items() if v == found[2]))
        operation = next(k for k, v in OPERATIONS.items() if v == found[3])
        block, coarse = int(found[4]), int(found[5])

        def launch(*arguments: Any, grid: Any, block: Any, shared: int) -> None:
            self.log.append(entry.name)
            self.now_us += self.launch_us
            if entry.name in self.faults:
                raise self.LaunchError("cuCtxSynchronize failed: an illegal memory access")
            given = []
            for part, argument in zip(entry.signature, arguments, strict=True):
                if isinstance(part, str):
                    raw, kind = self.bytes_at(argument), FLAG if part == "flags" else dtype
                    given.append(raw[: len(raw) // kind.itemsize * kind.itemsize].view(kind))
                    assert part != "flags" or not given[-1][: grid[0]].any(), (
                        "flags are not cleared"
                    )
                else:
                    assert isinstance(argument, part)
                    given.append(argument)
            kernel[grid, block, 0, shared, entry.default_cluster or 1](*given)

        kernel = entry.kernel(
            block, operation, dtype, coarse if entry.default_coarse is not None else None
        )
        return launch
