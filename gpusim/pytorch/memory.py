"""Device memory for tensors: kept for later tensors of the same size.

Under `gpusim check` nothing is kept: each tensor has memory of its own, without values at first.
Small tensors take it from reserved addresses, without a call of the simulator for each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from . import driver

BEGIN, END = driver.start()
MOST_KEPT = 1 << 30  # bytes of freed memory
_OUT_OF_MEMORY = 2
_LEAST = 16  # bytes, so that a tensor without elements has a place
_RESERVED, _SMALL = 64 << 20, 1 << 20  # bytes of addresses, and of a tensor at most in them
_ALIGNMENT, _APART = 512, 8192  # so that an access behind a tensor meets no other
_data_ptr = torch._C.TensorBase.data_ptr


class Use:
    """Bytes of tensors, bytes kept for later tensors, and the peak of tensors' bytes."""

    allocated = kept = peak = 0


class _Reserved:
    """Addresses that no tensor has had."""

    begin = end = 0


_kept: dict[int, list[int]] = {}
_types: dict[int, Any] = {}


def is_there(tensor: torch.Tensor) -> bool:
    """Return whether a tensor lies in device memory."""
    try:
        address = _data_ptr(tensor) or tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # a tensor without storage
        return False
    return bool(BEGIN <= address < END)


def empty(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor in device memory without values."""
    elements = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if not elements:
        least: torch.Tensor = torch.frombuffer(_block(_LEAST), dtype=torch.uint8).view(dtype)
        return least[:0].as_strided(size, stride)
    block = _block(elements * dtype.itemsize)
    flat: torch.Tensor = torch.frombuffer(block, dtype=dtype)
    return flat.as_strided(size, stride)


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in device memory, with the strides of a dense tensor."""
    if not tensor.is_contiguous():
        tensor = tensor.clone(memory_format=torch.preserve_format)
    made = empty(tensor.size(), tensor.stride(), tensor.dtype)
    made.copy_(tensor)
    written(made)
    return made


def extent(tensor: torch.Tensor) -> int:
    """Return the bytes from a tensor's first element to its last."""
    if tensor.is_contiguous():
        return int(tensor.numel() * tensor.itemsize)
    steps = zip(tensor.size(), tensor.stride(), strict=True)
    return int(1 + sum((n - 1) * s for n, s in steps)) * tensor.itemsize if tensor.numel() else 0


def written(tensor: torch.Tensor) -> None:
    """Let the driver know that a tensor's bytes have values."""
    size = extent(tensor)
    if size:
        driver.has_values(_data_ptr(tensor), size)


def to_device(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor from the host to the device."""
    source = tensor if tensor.is_contiguous() else tensor.clone(memory_format=torch.preserve_format)
    made = empty(source.size(), source.stride(), source.dtype)
    _transfer("cuMemcpyHtoD_v2", made, source)
    return made


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor from the device to the host."""
    if extent(tensor) != tensor.numel() * tensor.itemsize:
        tensor = copied(tensor)  # gathered on the device first
    made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    _transfer("cuMemcpyDtoH_v2", made, tensor)
    return made


def _transfer(name: str, target: torch.Tensor, source: torch.Tensor) -> None:
    size = extent(source)
    if size:
        to, origin = ctypes.c_void_p(_data_ptr(target)), ctypes.c_void_p(_data_ptr(source))
        driver.call(name, to, origin, ctypes.c_size_t(size))


def give_back() -> None:
    """Free the memory that is kept for later tensors."""
    for addresses in _kept.values():
        for address in addresses:
            driver.freed(address)
        addresses.clear()
    Use.kept = 0


def _block(size: int) -> Any:
    """Return a buffer of device memory, freed with its last tensor."""
    kept = _kept.get(size)
    if kept:
        address = kept.pop()
        Use.kept -= size
    else:
        address = _taken(size)
    Use.allocated += size
    Use.peak = max(Use.peak, Use.allocated)
    made = _types.get(size) or _types.setdefault(size, _buffer_type(size))
    return made.from_address(address)


def _taken(size: int) -> int:
    wanted = -(-size // _ALIGNMENT) * _ALIGNMENT + _APART
    if size <= _SMALL and (_Reserved.end - _Reserved.begin >= wanted or _reserve()):
        address = _Reserved.begin
        _Reserved.begin += wanted
        driver.allocated(address, size)
        return address
    return _from_driver(size)


def _reserve() -> bool:
    address = ctypes.c_uint64()
    failed = driver.status(
        "cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(_RESERVED), *_ANYWHERE
    )
    _Reserved.begin, _Reserved.end = address.value, address.value + _RESERVED * (not failed)
    return not failed


_ANYWHERE = ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0)


def _from_driver(size: int) -> int:
    address = ctypes.c_uint64()
    wanted = "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size)
    if driver.status(*wanted) == _OUT_OF_MEMORY:
        give_back()
    failed = 0 if address.value else driver.status(*wanted)
    if failed == _OUT_OF_MEMORY:
        raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size:,} bytes.")
    if failed:
        driver.call(*wanted)
    return address.value


def _buffer_type(size: int) -> Any:
    def lost(block: Any) -> None:
        _lose(ctypes.addressof(block), size)

    array: Any = ctypes.c_char * size
    return type("Block", (array,), {"__del__": lost})


def _lose(address: int, size: int) -> None:
    Use.allocated -= size
    if driver.CHECKS_MEMORY or Use.kept + size > MOST_KEPT:
        driver.freed(address)
    else:
        _kept.setdefault(size, []).append(address)
        Use.kept += size
