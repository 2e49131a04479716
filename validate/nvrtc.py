"""NVIDIA's run-time compiler for the twins: CUDA C++ text in, machine code out.

`gpusim.sass` finds it and runs it, one process for each compilation; the simulator's machine code
is the hardware's.
"""

from __future__ import annotations

import base64
import ctypes
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpusim.sass import compiler, wheels

from . import twins

INSTALL = "pip install nvidia-cuda-nvrtc"


class NvrtcMissingError(twins.TwinError):
    """There is no compiler on this computer."""


@dataclass(frozen=True)
class Binary:
    """Machine code of one file, with the mangled name of each name expression."""

    cubin: bytes
    names: Mapping[str, str]


def library() -> Path:
    """Return the compiler's library; raises NvrtcMissingError if there is none."""
    try:
        return wheels.library()
    except wheels.CompilerMissingError:
        text = f"compiling the CUDA C++ kernels needs NVRTC: {INSTALL}"
        raise NvrtcMissingError(text) from None


@functools.cache
def version() -> str:
    """Return the compiler's version, such as 13.0."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    ctypes.CDLL(str(library())).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compile_file(
    file: str, expressions: Sequence[str], arch: str, extra: Sequence[str] = ()
) -> Binary:
    """Compile a file of this package for `arch`, such as sm_90, with these instantiations.

    Raises TwinError with the compiler's message for a compile error.
    """
    text = (twins.FOLDER / file).read_text(encoding="utf-8")
    options = [f"--gpu-architecture={arch}", "--std=c++17", f"--include-path={twins.INCLUDED}"]
    return compile_text(text, file, expressions, [*options, *extra])


def compile_text(
    text: str, file: str, expressions: Sequence[str], options: Sequence[str]
) -> Binary:
    """Compile CUDA C++; `file` is the name in the compiler's messages."""
    try:
        answer = compiler.answered(text, file, expressions, options, library())
    except compiler.CompileError as error:
        raise twins.TwinError(str(error)) from None
    return Binary(base64.b64decode(answer["cubin"]), answer["names"])
