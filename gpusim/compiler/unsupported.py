"""Words of numba.cuda that the dialect lacks, each with its replacement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from gpusim.errors import GpusimError

_ARRAYS = "pass NumPy arrays to the kernel as they are: they hold the results"
_STREAMS = "remove it: launch with kernel[grid, block](...)"
_TIMES = "gpusim.predict has the time of a launch"
_DEVICES = "there is no GPU here; the GPU is an argument of gpusim.predict"

INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(
        ("to_device", "device_array", "device_array_like", "pinned_array", "pinned_array_like",
         "mapped_array", "mapped_array_like", "managed_array", "pinned", "as_cuda_array",
         "from_cuda_array_interface", "is_cuda_array"),
        _ARRAYS,
    ),
    **dict.fromkeys(("stream", "default_stream", "external_stream"), _STREAMS),
    **dict.fromkeys(("event", "event_elapsed_time", "profile_start", "profile_stop"), _TIMES),
    **dict.fromkeys(
        ("current_context", "get_current_device", "select_device", "list_devices", "gpus",
         "close", "detect", "require_context"),
        _DEVICES,
    ),
    "const": "pass the array as a parameter; numbers around the kernel are constants",
    "selp": "write a if condition else b",
    "nanosleep": "remove it: it only changes the time",
    "cbrt": "write math.copysign(abs(x) ** (1.0 / 3.0), x)",
    "lanemask_lt": "write (np.uint32(1) << cuda.laneid) - 1",
    "cg": "wait at cuda.syncthreads() or cuda.syncwarp(mask)",
    "random": "fill an array with NumPy's random numbers and pass it",
    "fp16": "compute in float32",
    "libdevice": "use the functions of math",
    "reduce": "write it as a kernel; `gpusim list` names some",
    "atomic.inc": "write cuda.atomic.add, or wrap around in a loop with cuda.atomic.cas",
    "atomic.dec": "write cuda.atomic.sub, or wrap around in a loop with cuda.atomic.cas",
    "atomic.nanmax": "write cuda.atomic.max; it ignores NaN",
    "atomic.nanmin": "write cuda.atomic.min; it ignores NaN",
    "atomic.compare_and_swap": "write cuda.atomic.cas(array, index, compare, value)",
}  # fmt: skip


class AbsentWordError(GpusimError, AttributeError):
    """A word of numba.cuda, or none, that the dialect lacks."""


def absent(owner: str, name: str, known: Iterable[str]) -> AbsentWordError:
    """Return the error for `owner.name`, with the replacement if there is one."""
    instead = INSTEAD.get(f"{owner}.{name}".removeprefix("cuda."))
    if instead is None:
        near = get_close_matches(name, [word for word in known if word[:1] != "_"], n=1)
        instead = f"did you mean {owner}.{near[0]}?" if near else "docs/dialect.md lists its words"
    return AbsentWordError(f"{owner} has no {name!r} here: {instead}")
