"""Hooks of Triton's compiler: true lines, and the names and types of a kernel's parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from . import driver
from .lines import with_true_lines

# Types of elements in C; those that C lacks by their width.
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
    """Mend the lines of PTX; called without stages, return what the cache's key has of it."""
    if stages is None:
        return "gpusim: lines", "1"
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


def install(triton: ModuleType) -> None:
    """Let Triton, just imported, send what its machine code does not hold."""
    from triton.compiler.compiler import CompiledKernel

    triton.knobs.runtime.add_stages_inspection_hook = _mend_lines
    CompiledKernel._init_handles = _with_declaration(CompiledKernel._init_handles)


def _with_declaration(load: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(load)
    def loaded(kernel: Any, *args: Any) -> Any:
        if kernel.module is None:
            _declare(kernel)
        return load(kernel, *args)

    return loaded
