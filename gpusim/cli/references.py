"""A kernel by its name: of the catalogue, or `FILE.py:FUNCTION`, `FILE.cu:KERNEL`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from gpusim.errors import InputError
from gpusim.host import files

CACHES = (".nbc", ".db")  # of numba-cuda and tinygrad
BINARY = (".cubin", *CACHES)
NOTEBOOK = ".ipynb"
CODE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".hpp", NOTEBOOK, *BINARY)
PYTHON = ".py"
MAX_SOURCE_BYTES = 2**22  # hundreds of times the size of usual files


@dataclass(frozen=True)
class Reference:
    """A kernel's name as `text`, and its parts; `file` is "" for one of the catalogue.

    `kernel` is "" where the file alone is named: it then has one kernel.
    """

    text: str
    file: str = ""
    kernel: str = ""

    @classmethod
    def of(cls, text: str) -> Reference:
        """Return the parts of a name. A path without a known ending is a file of Python."""
        for suffix in (*CODE_SUFFIXES, PYTHON):
            before, colon, kernel = text.partition(f"{suffix}:")
            if colon:
                return cls(text, before + suffix, kernel.strip())
            if text.endswith(suffix):
                return cls(text, text)
        if "/" not in text and "\\" not in text:
            return cls(text, kernel=text)
        path, colon, kernel = text.rpartition(":")
        return cls(text, path, kernel) if colon else cls(text, text)

    def only(self, names: Collection[str]) -> str:
        """Return the name of a file's only kernel; InputError where it has none or several."""
        if len(names) == 1:
            return next(iter(names))
        listed = f": {', '.join(names)}" if names else ""
        raise InputError(
            f"{self.path} has {len(names)} kernels{listed}; name one, {self.path}:NAME"
        )

    @property
    def path(self) -> Path:
        """The file's path."""
        return Path(self.file)

    @property
    def plain_kernel(self) -> str:
        """The kernel's name without namespace and template arguments."""
        return self.kernel.partition("<")[0].rpartition("::")[2]

    @property
    def is_binary(self) -> bool:
        """Whether the file has machine code and no source."""
        return self.file.endswith(BINARY)

    @property
    def is_code(self) -> bool:
        """Whether the kernel is CUDA C++ or machine code.

        Strings of a Python file without kernels of the dialect may hold CUDA C++.
        """
        return self.file.endswith(CODE_SUFFIXES) or (
            self.path.suffix == PYTHON and self.path.is_file() and _holds_cuda(self.path)
        )


def _holds_cuda(path: Path) -> bool:
    from gpusim.cli import numba_files
    from gpusim.cuda_cpp.embedded import cuda_of

    text = files.source(path, MAX_SOURCE_BYTES, again=True)
    return not numba_files.has_kernels(text) and bool(cuda_of(text, str(path)))
