"""Where the compiler, the disassembler and their headers are: wheels from PyPI, or a toolkit."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from gpusim.errors import GpusimError
from gpusim.host.installation import install

INSTALL = "the extra nvcc"
ELSEWHERE = "on macOS and Windows, use Linux in a container or WSL"
OWN_HEADERS = Path(__file__).parent / "include"
FIRST_HEADERS = Path(__file__).parent / "instead"  # of headers that NVRTC does not take as they are

# Headers that people include, by the wheel that carries them.
WHEEL_OF_HEADER = {
    "cuda_fp16.h": "nvidia-cuda-runtime",
    "cuda_bf16.h": "nvidia-cuda-runtime",
    "cuda_runtime.h": "nvidia-cuda-runtime",
    "cuda_pipeline.h": "nvidia-cuda-runtime",
    "cooperative_groups.h": "nvidia-cuda-runtime nvidia-cuda-crt",
    "cooperative_groups/": "nvidia-cuda-runtime nvidia-cuda-crt",
    "cub/": "nvidia-cuda-cccl nvidia-cuda-runtime nvidia-cuda-crt",
    "cuda/": "nvidia-cuda-cccl nvidia-cuda-runtime nvidia-cuda-crt",
    "thrust/": "nvidia-cuda-cccl nvidia-cuda-runtime nvidia-cuda-crt",
    "crt/": "nvidia-cuda-crt",
    "mma.h": "nvidia-cuda-crt nvidia-cuda-runtime",
    "curand_kernel.h": "nvidia-curand nvidia-cuda-runtime nvidia-cuda-crt",
    "curand.h": "nvidia-curand",
}


class CompilerMissingError(GpusimError):
    """The compiler or the disassembler is not installed."""


def folders(wanted: str) -> Iterator[Path]:
    """Yield the folders of that name in wheels and toolkits."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec is not None else []:
        yield from sorted(Path(root).glob(f"*/{wanted}"), reverse=True)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if variable in os.environ:
            yield Path(os.environ[variable]) / wanted
    yield Path("/usr/local/cuda") / wanted


@functools.cache
def library() -> Path:
    """Return the compiler's library; CompilerMissingError where there is none."""
    for name, pattern in (("lib", "libnvrtc.so*"), ("lib64", "libnvrtc.so*"), ("bin", "nvrtc64_*")):
        for folder in folders(name):
            found = [file for file in sorted(folder.glob(pattern)) if "alt" not in file.name]
            if found:
                return found[-1]
    raise CompilerMissingError(_missing("the compiler (NVRTC)"))


@functools.cache
def disassembler() -> Path:
    """Return the disassembler's program; CompilerMissingError where there is none."""
    for folder in folders("bin"):
        for name in ("nvdisasm", "nvdisasm.exe"):
            if (folder / name).is_file():
                return folder / name
    found = shutil.which("nvdisasm")
    if found:
        return Path(found)
    raise CompilerMissingError(_missing("the disassembler (nvdisasm)"))


def are_there() -> bool:
    """Return whether both the compiler and the disassembler are installed."""
    try:
        return bool(library()) and bool(disassembler())
    except CompilerMissingError:
        return False


def _missing(what: str) -> str:
    text = f"{what} is not installed; CUDA C++ needs {INSTALL}: {install('nvcc')}"
    return f"{text} ({ELSEWHERE})" if sys.platform != "linux" else text


def headers() -> list[Path]:
    """Return the folders of headers: of wheels or a toolkit, between two of the package's own."""
    found = [folder for folder in folders("include") if folder.is_dir()]
    libraries = [folder / "cccl" for folder in found if (folder / "cccl").is_dir()]
    return [FIRST_HEADERS, *libraries, *found, OWN_HEADERS]


def stamp(path: Path) -> str:
    """Return a stamp that tells builds of a file apart."""
    state = path.resolve().stat()
    return f"{path.name} {state.st_size} {state.st_mtime_ns}"


def wheel_of(header: str) -> str | None:
    """Return the wheels that carry a header."""
    for name, wheel in WHEEL_OF_HEADER.items():
        if header == name or (name.endswith("/") and header.startswith(name)):
            return wheel
    return None
