"""torch.compile's tracing: without places for results, and with a device guard of CUDA in C++."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes as without_modes

_CUDA, _META = 1, 14  # of c10::DeviceType
_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
_NO_ACCELERATOR = "Cannot access accelerator device"  # by autograd's engine


def install() -> None:
    """Let torch.compile trace tensors on the device."""
    _guard_device()
    torch.compile = _tracing(torch.compile)


def _guard_device() -> None:
    """Register the guard of meta tensors, which does nothing, for CUDA: the CPU build has none.

    Dynamo and autograd ask C++ for one with tensors that have a device and no memory.
    """
    for library in (Path(torch.__file__).parent / "lib").glob("libc10.*"):
        kinds: Any = ctypes.c_void_p * (_META + 1)
        registry = kinds.in_dll(ctypes.CDLL(str(library)), _REGISTRY)
        registry[_CUDA] = registry[_META]


def _tracing(compiles: Callable[..., Any]) -> Callable[..., Any]:
    """Return torch.compile with calls that are traced without the placing of results."""

    @wraps(compiles)
    def compiled(model: Any = None, **options: Any) -> Any:
        made = compiles(model, **options)
        if isinstance(made, torch.nn.Module):
            vars(made)["forward"] = _traced(made.forward)
        return made if model is None or isinstance(made, torch.nn.Module) else _traced(made)

    return compiled


def _traced(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            with without_modes():
                return call(*args, **kwargs)
        except RuntimeError as error:
            if _NO_ACCELERATOR not in str(error):
                raise
        raise NotImplementedError(
            "torch.compile is simulated without a backward pass: PyTorch's autograd engine asks "
            "its CUDA library for streams; call it under torch.no_grad()"
        )

    return called
