"""NVIDIA's run-time compiler, through ctypes: CUDA C++ text in, machine code out.

It comes with the CUDA toolkit, and alone as a package from PyPI; it needs no GPU.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.metadata
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import twins

INSTALL = "pip install nvidia-cuda-nvrtc"
WHEELS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


class NvrtcMissingError(twins.TwinError):
    """There is no compiler on this computer."""


@dataclass(frozen=True)
class Binary:
    """Machine code of one file, with the name in it of each name expression."""

    cubin: bytes
    names: Mapping[str, str]


def _candidates() -> Iterator[str]:
    for wheel in WHEELS:
        try:
            files = importlib.metadata.files(wheel) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name.startswith(("libnvrtc.so", "nvrtc64_")) and "alt" not in file.name:
                yield str(file.locate())
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if variable in os.environ:
            yield from map(str, sorted(Path(os.environ[variable]).glob("lib64/libnvrtc.so*")))
    yield from map(str, sorted(Path("/usr/local/cuda/lib64").glob("libnvrtc.so*")))
    found = ctypes.util.find_library("nvrtc")
    if found:
        yield found


@functools.cache
def library() -> ctypes.CDLL:
    """Return the compiler's library; NvrtcMissingError where there is none."""
    for candidate in _candidates():
        try:
            # Not every build looks for its own second half where it lies itself.
            for builtins in Path(candidate).parent.glob("libnvrtc-builtins.so*"):
                ctypes.CDLL(str(builtins))
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise NvrtcMissingError(f"compiling the CUDA C++ kernels needs NVRTC: {INSTALL}")


def version() -> str:
    """Return the compiler's version, such as 13.0."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"{major.value}.{minor.value}"


def compile_file(
    file: str, expressions: Sequence[str], arch: str, extra: Sequence[str] = ()
) -> Binary:
    """Compile a file of this package for `arch`, such as sm_90, with these instantiations.

    TwinError with the compiler's own words where it does not compile.
    """
    text = (twins.FOLDER / file).read_text(encoding="utf-8")
    options = [f"--gpu-architecture={arch}", "--std=c++17", f"--include-path={twins.INCLUDED}"]
    return compile_text(text, file, expressions, [*options, *extra])


def compile_text(
    text: str, file: str, expressions: Sequence[str], options: Sequence[str]
) -> Binary:
    """Compile CUDA C++; `file` is what the compiler calls it in its messages."""
    nvrtc = library()
    program = ctypes.c_void_p()
    _check(
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), file.encode(), 0, None, None)
    )
    try:
        for expression in expressions:
            _check(nvrtc.nvrtcAddNameExpression(program, expression.encode()))
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        code = nvrtc.nvrtcCompileProgram(program, len(options), given)
        if code:
            raise twins.TwinError(f"{file} does not compile:\n{_log(program)}")
        size = ctypes.c_size_t()
        _check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        cubin = ctypes.create_string_buffer(size.value)
        _check(nvrtc.nvrtcGetCUBIN(program, cubin))
        names = {expression: _lowered(program, expression) for expression in expressions}
        return Binary(cubin.raw, names)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _lowered(program: ctypes.c_void_p, expression: str) -> str:
    name = ctypes.c_char_p()
    _check(library().nvrtcGetLoweredName(program, expression.encode(), ctypes.byref(name)))
    return (name.value or b"").decode()


def _log(program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    _check(library().nvrtcGetProgramLogSize(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(library().nvrtcGetProgramLog(program, text))
    return text.value.decode(errors="replace").strip()


def _check(code: int) -> None:
    if code:
        describe = library().nvrtcGetErrorString
        describe.restype = ctypes.c_char_p
        raise twins.TwinError(f"NVRTC: {describe(code).decode()}")
