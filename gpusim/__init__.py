"""gpusim: simulates GPU kernels, instruction by instruction, without a GPU.

`from gpusim import cuda` gives the dialect; `gpusim.trace(kernel[grid, block], *args)` runs
a kernel and counts, `gpusim.predict(kernel[grid, block], *args, device="h200")` predicts
and explains its time on a GPU, and `gpusim.check(kernel[grid, block], *args)` finds its errors.
`gpusim.rank` orders kernels by their time, `gpusim.sweep` makes a table of predictions,
`gpusim.tune` finds the best launch of a kernel.
`gpusim.cuda_file("kernels.cu")["name"]` is a kernel of CUDA C++.
"""

from __future__ import annotations

import importlib

from gpusim.version import __version__

TYPE_CHECKING = False  # importing it takes longer than all else here
if TYPE_CHECKING:
    from typing import Any

    from gpusim import cuda
    from gpusim.checking.check import check
    from gpusim.checking.findings import Findings
    from gpusim.compiler.signatures import (
        boolean,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
        void,
    )
    from gpusim.errors import GpusimError
    from gpusim.gpu.device import Device
    from gpusim.launch.arguments import array_spec
    from gpusim.launch.events import Observer
    from gpusim.launch.grid import ComputeCapability
    from gpusim.prediction.clock.spans import SpanObserver
    from gpusim.prediction.predict import predict
    from gpusim.prediction.rankings import rank
    from gpusim.prediction.records import Prediction
    from gpusim.prediction.sweeps.sweep import sweep
    from gpusim.prediction.tuned import tune
    from gpusim.sass.kernels import cuda_file, cuda_source
    from gpusim.tracing.records import Trace
    from gpusim.tracing.trace import trace

__all__ = [
    "ComputeCapability",
    "Device",
    "Findings",
    "GpusimError",
    "Observer",
    "Prediction",
    "SpanObserver",
    "Trace",
    "__version__",
    "array_spec",
    "boolean",
    "check",
    "cuda",
    "cuda_file",
    "cuda_source",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "predict",
    "rank",
    "sweep",
    "trace",
    "tune",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "void",
]

# Loaded on first use: `gpusim list` needs neither the compiler nor the machine, and an
# interrupt before `__main__` runs is a traceback.
_LAZY = {
    "ComputeCapability": "gpusim.launch.grid",
    "Device": "gpusim.gpu.device",
    "Findings": "gpusim.checking.findings",
    "GpusimError": "gpusim.errors",
    "Observer": "gpusim.launch.events",
    "Prediction": "gpusim.prediction.records",
    "SpanObserver": "gpusim.prediction.clock.spans",
    "Trace": "gpusim.tracing.records",
    "array_spec": "gpusim.launch.arguments",
    "check": "gpusim.checking.check",
    "cuda_file": "gpusim.sass.kernels",
    "cuda_source": "gpusim.sass.kernels",
    "load_ipython_extension": "gpusim.cli.magics",  # IPython calls it: %load_ext gpusim
    "predict": "gpusim.prediction.predict",
    "rank": "gpusim.prediction.rankings",
    "sweep": "gpusim.prediction.sweeps.sweep",
    "trace": "gpusim.tracing.trace",
    "tune": "gpusim.prediction.tuned",
    # numba's types, as in `from numba import float32`.
    **dict.fromkeys(
        ("boolean", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
         "float32", "float64", "void"),
        "gpusim.compiler.signatures",
    ),
}  # fmt: skip


_UNLISTED = {"TYPE_CHECKING", "annotations", "importlib"}  # for this file alone


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - _UNLISTED)


def __getattr__(name: str) -> Any:
    if name == "cuda":
        return importlib.import_module("gpusim.cuda")
    if name not in _LAZY:
        raise AttributeError(f"module 'gpusim' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)
