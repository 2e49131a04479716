"""Calls of CUDA's driver that PyCUDA lacks: tensor maps, and launches with an attribute."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

NAME = "libcuda.so.1"
MAP_BYTES = 128
NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
_UINT32 = 2  # CU_TENSOR_MAP_DATA_TYPE_UINT32
_PROGRAMMATIC = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute: the value is a union of 64 bytes."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("pad", ctypes.c_char * 4),
        ("value", ctypes.c_int),
        ("rest", ctypes.c_char * 60),
    )


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


class LibCuda:
    """The driver's library, in the context of this thread; `error` is raised for its errors."""

    def __init__(self, library: Any, error: type[Exception]) -> None:
        self._library, self._error = library, error

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise self._error(f"{name} returned {status}")

    def tensor_map(self, address: int, extents: Sequence[int], box: Sequence[int]) -> bytes:
        """Return a map of 32-bit words, the innermost dimension first, without a swizzle."""
        rank = len(extents)
        strides = [4 * extents[0]]
        for extent in extents[1:-1]:
            strides.append(strides[-1] * extent)
        made = ctypes.create_string_buffer(2 * MAP_BYTES)
        start = -ctypes.addressof(made) % 64
        self._call(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(ctypes.addressof(made) + start), _UINT32, rank,
            ctypes.c_void_p(address), (ctypes.c_uint64 * rank)(*extents),
            (ctypes.c_uint64 * len(strides))(*strides), (ctypes.c_uint32 * rank)(*box),
            (ctypes.c_uint32 * rank)(*[1] * rank), 0, 0, 0, 0,
        )  # fmt: skip
        return made.raw[start : start + MAP_BYTES]

    def launcher(self, cubin: bytes, name: str) -> Callable[..., None]:
        """Return a function that launches a kernel: pointers and 64-bit numbers, grid and block.

        With `is_programmatic` the launch may begin before the end of the one before it.
        """
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), cubin)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())

        def launch(*numbers: int, grid: int, block: int, is_programmatic: bool) -> None:
            values = [ctypes.c_uint64(number) for number in numbers]
            pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
            attribute = _Attribute(id=_PROGRAMMATIC, value=1)
            config = _Config(
                (grid, 1, 1), (block, 1, 1), 0, None, ctypes.pointer(attribute), is_programmatic
            )
            self._call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)

        return launch
