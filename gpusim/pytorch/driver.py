"""Calls of the driver's API by ctypes."""

from __future__ import annotations

import ctypes
import os
import sys

COMMAND = os.environ.get("GPUSIM_COMMAND", "run")
HAS_TIMES = COMMAND in ("predict", "report")
CHECKS_MEMORY = COMMAND == "check"
NOT_SUPPORTED = 801

_cuda = ctypes.CDLL("libcuda.so.1")
_said: set[str] = set()


def status(name: str, *arguments: object) -> int:
    """Call a function of the driver, and return its CUresult."""
    found: int = getattr(_cuda, name)(*arguments)
    return found


def call(name: str, *arguments: object) -> None:
    """Call a function of the driver; RuntimeError where it fails."""
    failed = status(name, *arguments)
    if failed:
        text = ctypes.c_char_p()
        status("cuGetErrorString", failed, ctypes.byref(text))
        words = (text.value or b"unknown error").decode()
        raise RuntimeError(f"CUDA error: {words} ({name} returned {failed})")


def attribute(number: int) -> int:
    """Return an attribute of the device by its number (CUdevice_attribute)."""
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value


def tell(kind: str, text: str = "") -> None:
    """Send gpusim a word about the program."""
    held = text.encode()
    _cuda.gpusim_tell(kind.encode(), held, ctypes.c_size_t(len(held)))


def remark(text: str) -> None:
    """Print a remark to standard error, once."""
    if text not in _said:
        _said.add(text)
        print(f"gpusim: {text}", file=sys.stderr)


def start() -> tuple[int, int]:
    """Begin to use the device; return the first address of its memory and that after the last."""
    context, addresses = ctypes.c_void_p(), (ctypes.c_uint64 * 2)()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("gpusimShareMemory", addresses)
    return addresses[0], addresses[1]


# Notes that the driver tells with its next request: values in memory, its allocation and its end.
has_values, allocated, freed = _cuda.gpusimHasValues, _cuda.gpusimAllocated, _cuda.gpusimFreed
has_values.argtypes = allocated.argtypes = (ctypes.c_uint64, ctypes.c_size_t)
freed.argtypes = (ctypes.c_uint64,)
