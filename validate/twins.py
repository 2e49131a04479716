"""The CUDA C++ twin of each kernel in the catalogue: its file, and its instantiation.

A twin stands in `kernels/`, in the file named as the Python module of its kernel, and bears the
kernel's name. A kernel without a twin is not measured. All twins have the same template parameters:
element type, operation, block size and coarse factor. So a new twin needs no row in any table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.catalogue import Entry, Setup, entries
from gpusim.errors import GpusimError
from gpusim.launch.configured import ConfiguredKernel

if TYPE_CHECKING:
    from gpusim.sass.kernels import CodeKernel

FOLDER = Path(__file__).parent
INCLUDED = FOLDER / "kernels"

C_TYPES = {
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}
OPERATIONS = {"sum": "combine::Sum", "max": "combine::Max", "min": "combine::Min"}


class TwinError(GpusimError):
    """A missing twin, or a twin that does not compile."""


@dataclass(frozen=True, order=True)
class Twin:
    """One instantiation of a kernel: its file, seen from this folder, and a name expression."""

    file: str
    expression: str

    @property
    def source(self) -> str:
        """The text of the file."""
        return (FOLDER / self.file).read_text(encoding="utf-8")


def twinned() -> tuple[Entry, ...]:
    """Return the kernels of the catalogue with a twin, in reading order."""
    return tuple(entry for entry in entries() if _is_declared(entry))


def file_of(entry: Entry) -> str:
    """Return the file of a kernel's twin; raises TwinError if there is none."""
    name = _file_name(entry)
    if not _is_declared(entry):
        raise TwinError(f"{entry.name} has no twin: validate/{name} does not declare it")
    return name


def _file_name(entry: Entry) -> str:
    return f"kernels/{entry.factory.__module__.rpartition('.')[2]}.cu"


def _is_declared(entry: Entry) -> bool:
    path = FOLDER / _file_name(entry)
    declared = rf"__global__ void {re.escape(entry.name)}\("
    return path.is_file() and bool(re.search(declared, path.read_text(encoding="utf-8")))


def configured(setup: Setup) -> ConfiguredKernel:
    """Return a launch of a kernel's twin, in nvcc's own code, for the simulator."""
    twin, launch = twin_of(setup), setup.launch
    kernel = _code_of(twin)
    return kernel[launch.grid, launch.block, 0, launch.dynamic_shared_bytes, launch.cluster]


@cache
def _code_of(twin: Twin) -> CodeKernel:
    """Return a twin's machine code, made once for each GPU."""
    from gpusim.sass.kernels import cuda_file

    return cuda_file(FOLDER / twin.file)[twin.expression]


def twin_of(setup: Setup) -> Twin:
    """Return the twin of a kernel for a launch; raises TwinError if there is none."""
    ctype = C_TYPES[setup.dtype.name]
    operation = f"{OPERATIONS[setup.operation]}<{ctype}>"
    expression = f"{setup.entry.name}<{ctype}, {operation}, {setup.block}, {setup.coarse}>"
    return Twin(file_of(setup.entry), expression)
