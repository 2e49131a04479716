"""Compilation of twins to machine code: by nvcc of the CUDA toolkit, else by NVRTC.

Both are NVIDIA's; versions differ in their code, so measurements name theirs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from . import nvrtc, twins
from .twins import Twin, TwinError

_KERNEL_SECTION = re.compile(rb"\.text\.(\w+)")


@dataclass(frozen=True)
class Binary:
    """Machine code with one kernel, and the kernel's name in it."""

    cubin: bytes
    name: str


class Compiler(Protocol):
    """A compiler from twins to machine code."""

    @property
    def version(self) -> str:
        """Name and version, such as "nvcc 13.0"."""

    def compile(self, twin: Twin, arch: str) -> Binary:
        """Return machine code for `arch`, such as sm_90; TwinError for a compile error."""


class Nvcc:
    """The compiler of the CUDA toolkit, a program."""

    def __init__(self, program: str) -> None:
        self._program = program

    @property
    def version(self) -> str:
        """Name and version."""
        ran = subprocess.run([self._program, "--version"], capture_output=True, text=True)
        found = re.search(r"V(\d+\.\d+\.\d+)", ran.stdout)
        return f"nvcc {found[1] if found else 'of unknown version'}"

    def compile(self, twin: Twin, arch: str) -> Binary:
        """Compile a unit with the one instantiation."""
        with tempfile.TemporaryDirectory() as folder:
            unit, out = Path(folder) / "unit.cu", Path(folder) / "unit.cubin"
            unit.write_text(
                f'#include "{twin.file}"\nvoid *twin = (void *){twin.expression};\n',
                encoding="utf-8",
            )
            options = [
                f"-arch={arch}",
                "-O3",
                "-std=c++17",
                "-I",
                str(twins.FOLDER),
                "-I",
                str(twins.INCLUDED),
            ]
            ran = subprocess.run(
                [self._program, *options, "-cubin", "-o", str(out), str(unit)],
                capture_output=True,
                text=True,
            )
            if ran.returncode:
                raise TwinError(f"{twin.expression} does not compile:\n{ran.stderr.strip()}")
            cubin = out.read_bytes()
        return Binary(cubin, _only_kernel(cubin, twin))


class Nvrtc:
    """The run-time compiler, a library."""

    @property
    def version(self) -> str:
        """Name and version."""
        return f"NVRTC {nvrtc.version()}"

    def compile(self, twin: Twin, arch: str) -> Binary:
        """Compile the twin's file with the one instantiation."""
        made = nvrtc.compile_file(twin.file, [twin.expression], arch)
        return Binary(made.cubin, made.names[twin.expression])


class Stored:
    """Stored machine code of another process: nothing is compiled."""

    def __init__(self, folder: Path) -> None:
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        self.version: str = index["version"]
        self._made = {
            (file, expression): Binary((folder / cubin).read_bytes(), name)
            for file, expression, cubin, name in index["made"]
        }

    def compile(self, twin: Twin, arch: str) -> Binary:
        """Return the stored machine code of a twin."""
        return self._made[twin.file, twin.expression]


def store(made: Mapping[Twin, Binary], version: str, folder: Path) -> None:
    """Store machine code for `Stored`."""
    rows = []
    for number, (twin, binary) in enumerate(sorted(made.items())):
        (folder / f"{number}.cubin").write_bytes(binary.cubin)
        rows.append([twin.file, twin.expression, f"{number}.cubin", binary.name])
    index = {"version": version, "made": rows}
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")


def _only_kernel(cubin: bytes, twin: Twin) -> str:
    names = {str(name, "ascii") for name in _KERNEL_SECTION.findall(cubin)}
    if len(names) != 1:
        raise TwinError(f"{twin.expression}: {len(names)} kernels where one was to be made")
    return names.pop()


def here() -> Compiler:
    """Return this computer's compiler; NvrtcMissingError if there is none."""
    program = shutil.which("nvcc")
    if program:
        return Nvcc(program)
    nvrtc.library()
    return Nvrtc()


def quick() -> Compiler:
    """Return NVRTC if installed, a tenth of nvcc's time, else `here`."""
    try:
        nvrtc.library()
    except nvrtc.NvrtcMissingError:
        return here()
    return Nvrtc()
