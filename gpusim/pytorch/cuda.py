"""Stand-ins for functions of `torch.cuda`: the device's properties, streams, events and memory."""

from __future__ import annotations

import atexit
import ctypes
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from . import driver, memory
from .driver import attribute, call
from .placing import DEVICE, Generator, Operations

_TIMING_OFF, _NON_BLOCKING = 2, 1


class Stream:
    """A stream of the driver; as a context it is the current one."""

    device_index, device_type = 0, 1
    current: list[Stream] = []  # noqa: RUF012 - of the process

    def __init__(self, device: Any = None, priority: int = 0, *, handle: int | None = None) -> None:
        if handle is None:
            made = ctypes.c_void_p()
            call("cuStreamCreate", ctypes.byref(made), _NON_BLOCKING)
            handle = made.value or 0
        self.cuda_stream = self.stream_id = handle
        self.device, self.priority = DEVICE, priority

    def __enter__(self) -> Stream:
        self.current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.current.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    @property
    def handle(self) -> ctypes.c_void_p:
        """The stream as the driver takes it."""
        return ctypes.c_void_p(self.cuda_stream)

    def synchronize(self) -> None:
        """Wait for the work on it."""
        call("cuStreamSynchronize", self.handle)

    def query(self) -> bool:
        """Return whether its work is done, as it is when it is given."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event on it."""
        made = Event() if event is None else event
        made.record(self)
        return made

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event."""
        call("cuStreamWaitEvent", self.handle, event.handle, 0)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for another stream's."""
        self.wait_event(stream.record_event())


DEFAULT = Stream(handle=0)
Stream.current.append(DEFAULT)


class Event:
    """An event of the driver; times between events are predicted, where they are known."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, **_: Any) -> None:
        self.handle = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(self.handle), 0)
        self.operations = 0
        self.cuda_event = self.handle.value

    def record(self, stream: Stream | None = None) -> None:
        """Record it on a stream, the current one without it."""
        self.operations = Operations.count
        call("cuEventRecord", self.handle, (stream or Stream.current[-1]).handle)

    def synchronize(self) -> None:
        """Wait for the work before it."""
        call("cuEventSynchronize", self.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream's later work wait for it."""
        (stream or Stream.current[-1]).wait_event(self)

    def query(self) -> bool:
        """Return whether the work before it is done."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Return predicted milliseconds up to another event; NaN where they are not known."""
        if not is_known(end.operations - self.operations):
            return math.nan
        time = ctypes.c_float()
        call("cuEventElapsedTime", ctypes.byref(time), self.handle, end.handle)
        return time.value


def is_known(operations: int) -> bool:
    """Return whether a time is predicted, with this number of PyTorch's own operations in it."""
    if not driver.HAS_TIMES:
        driver.remark(
            f"times are NaN: gpusim {driver.COMMAND} does not predict; gpusim predict does"
        )
    elif operations:
        driver.remark(
            f"a time is NaN: it has PyTorch's own operations in it, such as {Operations.last}, "
            "which the processor computes"
        )
    return driver.HAS_TIMES and not operations


class _Current:
    """The device as a context: there is one alone."""

    def __init__(self, *_: Any) -> None:
        self.idx = 0

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_PROPERTIES = {
    "major": 75,
    "minor": 76,
    "multi_processor_count": 16,
    "warp_size": 10,
    "L2_cache_size": 38,
    "clock_rate": 13,
    "memory_clock_rate": 36,
    "memory_bus_width": 37,
    "max_threads_per_block": 1,
    "max_threads_per_multi_processor": 39,
    "regs_per_multiprocessor": 82,
    "shared_memory_per_block": 8,
    "shared_memory_per_block_optin": 97,
    "shared_memory_per_multiprocessor": 81,
}


def properties(device: Any = 0) -> SimpleNamespace:
    """Return the device's properties."""
    name, total = ctypes.create_string_buffer(256), ctypes.c_size_t()
    call("cuDeviceGetName", name, 256, 0)
    call("cuDeviceTotalMem_v2", ctypes.byref(total), 0)
    found = {name: attribute(number) for name, number in _PROPERTIES.items()}
    return SimpleNamespace(
        name=name.value.decode(), total_memory=total.value, gcnArchName="", **found
    )


def _set_stream(stream: Stream) -> None:
    Stream.current[-1] = stream


def _reset_peak(device: Any = None) -> None:
    memory.Use.peak = memory.Use.allocated


def _memory_info(device: Any = None) -> tuple[int, int]:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


_GENERATOR = Generator("cuda")


def _seed(seed: int) -> None:
    _GENERATOR.manual_seed(seed)


def _no_graphs() -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            "torch.cuda's graphs are not simulated: launch the kernels one by one"
        )

    return refuse


def _nothing() -> Callable[..., None]:
    """Return a function without effect: another each time, as Dynamo distinguishes functions."""

    def nothing(*_: Any, **__: Any) -> None: ...

    return nothing


_FUNCTIONS: dict[str, Any] = {
    "is_available": lambda: True,
    "is_initialized": lambda: True,
    "_lazy_init": _nothing(),
    "init": _nothing(),
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "set_device": _nothing(),
    "_exchange_device": lambda device: 0,
    "_maybe_exchange_device": lambda device: 0,
    "device": _Current,
    "device_of": type("device_of", (_Current,), {}),
    "_DeviceGuard": type("_DeviceGuard", (_Current,), {}),
    "get_device_name": lambda device=None: properties().name,
    "get_device_capability": lambda device=None: (attribute(75), attribute(76)),
    "get_device_properties": properties,
    "is_bf16_supported": lambda *_, **__: attribute(75) >= 8,
    "synchronize": lambda device=None: call("cuCtxSynchronize"),
    "Stream": Stream,
    "Event": Event,
    "ExternalStream": lambda handle, device=None: Stream(handle=handle),
    "stream": lambda stream: Stream.current[-1] if stream is None else stream,
    "current_stream": lambda device=None: Stream.current[-1],
    "default_stream": lambda device=None: DEFAULT,
    "set_stream": _set_stream,
    "is_current_stream_capturing": lambda: False,
    "CUDAGraph": _no_graphs(),
    "graph": _no_graphs(),
    "empty_cache": memory.give_back,
    "memory_allocated": lambda device=None: memory.Use.allocated,
    "max_memory_allocated": lambda device=None: memory.Use.peak,
    "memory_reserved": lambda device=None: memory.Use.allocated + memory.Use.kept,
    "max_memory_reserved": lambda device=None: memory.Use.allocated + memory.Use.kept,
    "reset_peak_memory_stats": _reset_peak,
    "mem_get_info": _memory_info,
    "ipc_collect": _nothing(),
    "default_generators": (_GENERATOR,),  # for seeds of kernels; tensors use the processor's
    "manual_seed": _seed,
    "manual_seed_all": _seed,
    "seed": torch.seed,
    "initial_seed": torch.initial_seed,
    "get_rng_state": lambda device=None: torch.get_rng_state(),
    "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
}
_IN_C: dict[str, Any] = {
    "_cuda_getCurrentRawStream": lambda device: Stream.current[-1].cuda_stream,
    "_cuda_getDevice": lambda: 0,
    "_cuda_setDevice": _nothing(),
    "_cuda_exchangeDevice": lambda device: 0,
    "_cuda_maybeExchangeDevice": lambda device: 0,
}


def install() -> None:
    """Let `torch.cuda` answer for the simulated device."""
    torch.cuda._initialized = True
    atexit.register(lambda: driver.tell("computed", str(Operations.count)))
    for name, function in _FUNCTIONS.items():
        setattr(torch.cuda, name, function)
    for name, function in _IN_C.items():
        setattr(torch._C, name, function)
    for name in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, name, _nothing())
