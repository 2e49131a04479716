"""torch.compile on the simulated device: Inductor's kernels in Triton, forward; experimental.

Inductor takes a tensor's device from Python, and places memory and streams by functions of PyTorch
in C++ that its CPU build lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch._dynamo import device_interface, testing
from torch._inductor import config, select_algorithm
from torch._inductor.fx_passes import joint_graph
from torch._inductor.runtime import benchmarking
from torch.utils._python_dispatch import _disable_current_modes as without_modes

from . import cuda, memory
from .kernels import predicted_ms
from .placing import Placing


def _strided(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
    with without_modes():
        return memory.empty(tuple(size), tuple(stride), dtype)


def _benchmark(_: Any, call: Callable[[], Any], *args: Any, **options: Any) -> float:
    """Return the predicted milliseconds of a call; a candidate without a time is never chosen."""
    time = predicted_ms(call)
    return math.inf if math.isnan(time) else time


def _placing(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        with Placing():
            return call(*args, **kwargs)

    return called


def _with_placing(compile_fx: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiler whose graphs run with places for their results."""

    @wraps(compile_fx)
    def made(*args: Any, **kwargs: Any) -> Any:
        graph = compile_fx(*args, **kwargs)

        return torch._dynamo.disable(_placing(graph))

    return made


def install(compile_fx: Any) -> None:
    """Let Inductor compile for the simulated device."""
    torch._C._dynamo.guards._empty_strided_cuda = _strided
    config.compile_threads = 1
    config.use_static_cuda_launcher = False
    config.triton.autotune_at_compile_time = False
    # Its patterns of attention and padding are traced with tensors made on the device.
    joint_graph.lazy_init = lambda *_: None
    testing.rand_strided = select_algorithm.rand_strided = _placing(testing.rand_strided)
    benchmarking.InductorBenchmarker.benchmark_gpu = _benchmark
    interface: Any = device_interface.CudaInterface
    interface.get_raw_stream = staticmethod(lambda _: cuda.Stream.current[-1].cuda_stream)
    compile_fx.compile_fx = _with_placing(compile_fx.compile_fx)
