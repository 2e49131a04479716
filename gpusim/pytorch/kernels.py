"""Hooks of Triton: true lines, names and types of parameters, and predicted times.

A search takes the configuration of least predicted time; without predictions it runs each once, and
takes the first simulated one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from types import ModuleType
from typing import Any

from . import driver
from .lines import with_true_lines

_NOT_SIMULATED = "operation not supported"  # by the driver's text of CUDA_ERROR_NOT_SUPPORTED
# Types of elements in C; others by their width.
_TYPES = {
    "fp16": "half",
    "bf16": "unsigned short",
    "fp32": "float",
    "fp64": "double",
    "i1": "bool",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}


def _mend_lines(backend: Any = None, stages: Any = None, *_: Any) -> Any:
    """Mend the lines of PTX; called without stages, return its part of the cache's key."""
    if stages is None:
        return "gpusim: lines", "2"
    make = stages["ptx"]
    stages["ptx"] = lambda source, metadata: with_true_lines(make(source, metadata))
    return None


def _declare(kernel: Any) -> None:
    """Send the names and types of a kernel's parameters; a kernel from a cache may have none."""
    signature = getattr(kernel.src, "signature", {})
    if all(isinstance(kind, str) for kind in signature.values()):
        given = [(name, kind) for name, kind in signature.items() if kind != "constexpr"]
        words = (word for name, kind in given for word in (str(name), _c_type(kind)))
        driver.tell("declare", "\0".join((kernel.name, *words)))


def _c_type(kind: str) -> str:
    return f"{_TYPES.get(kind[1:], 'unsigned char')}*" if kind.startswith("*") else ""


def _do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Any = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **_: Any,
) -> Any:
    """Stand for triton.testing.do_bench: the predicted milliseconds of one call, NaN if unknown.

    The time between two events around the call has the overhead of its first launch. An earlier
    call compiles, and may search over configurations. As there, launches find an L2 that is full of
    zeros to be written back.
    """
    if not _Search.is_running:
        fn()
    time = predicted_ms(fn)
    if quantiles is not None:
        return time if len(quantiles) == 1 else [time] * len(quantiles)
    return [time] if return_mode == "all" else time


def predicted_ms(fn: Callable[[], Any]) -> float:
    """Return the predicted milliseconds between two events around a call."""
    from . import cuda

    begin, end = cuda.Event(), cuda.Event()
    driver.call("cuCtxSynchronize")
    driver.tell("zeroes", "1")
    begin.record()
    fn()
    end.record()
    driver.tell("zeroes", "0")
    return begin.elapsed_time(end)


def _in_words(config: Any) -> str:
    """Return a configuration without its default values."""
    given = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
    for name, usual in (("num_ctas", 1), ("maxnreg", None)):
        if getattr(config, name) != usual:
            given[name] = getattr(config, name)
    return ", ".join(f"{name}: {value}" for name, value in given.items())


class _Search:
    """The number of the last search over configurations, and whether one runs."""

    number, is_running = 0, False


def _with_configurations(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return Autotuner.run with a number for each search."""

    @wraps(run)
    def found(*args: Any, **kwargs: Any) -> Any:
        _Search.number += 1
        return run(*args, **kwargs)

    return found


def _with_configuration(bench: Callable[..., Any]) -> Callable[..., Any]:
    """Return Autotuner._bench with the configuration as a label of its launches."""

    @wraps(bench)
    def timed(tuner: Any, *args: Any, config: Any, **kwargs: Any) -> Any:
        driver.tell("try", f"{_Search.number}\0{_in_words(config)}")
        _Search.is_running = True
        try:
            times = bench(tuner, *args, config=config, **kwargs)
        except RuntimeError as error:
            if _NOT_SIMULATED not in str(error):
                raise
            return [math.inf] * 3
        finally:
            _Search.is_running = False
            driver.tell("try", "0\0")
        known = all(one == one for one in times)
        return times if known else [sys.float_info.max] * 3

    return timed


def install(triton: ModuleType) -> None:
    """Let Triton, just imported, send names, types and configurations."""
    from triton.compiler.compiler import CompiledKernel

    triton.knobs.runtime.add_stages_inspection_hook = _mend_lines
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = _do_bench
    tuner = triton.runtime.autotuner.Autotuner
    tuner.run, tuner._bench = _with_configurations(tuner.run), _with_configuration(tuner._bench)
    CompiledKernel._init_handles = _with_declaration(CompiledKernel._init_handles)


def _with_declaration(load: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(load)
    def loaded(kernel: Any, *args: Any) -> Any:
        if kernel.module is None:
            _declare(kernel)
        return load(kernel, *args)

    return loaded
