"""nvcc for programs that run here: the wheels' or a toolkit's, with the shared runtime.

`python -m gpusim.driver.nvcc ARGUMENTS` takes nvcc's place in a build: architectures are
replaced by the simulated device's, fat binaries stay uncompressed, and lines are kept.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpusim.driver import shared_objects
from gpusim.errors import GpusimError, InputError
from gpusim.host.files import harmless
from gpusim.host.installation import install
from gpusim.sass import wheels

INSTALL = "the extra driver"
ARCHITECTURE = "GPUSIM_ARCHITECTURE"  # in the environment: sm_90a and the like
_DEFAULT_ARCHITECTURE = "sm_90a"
# Of programs whose kernels launch kernels: the device runtime is a source of ours.
DEVICE_RUNTIME = Path(__file__).parent / "native" / "device_runtime.cu"
_SEPARATELY = (
    "-rdc=true", "-rdc", "--relocatable-device-code=true", "--relocatable-device-code",
    "-lcudadevrt",
)  # fmt: skip
_OWN = re.compile(r"(-arch|--gpu-architecture|-gencode|--generate-code|-code|--gpu-code|-cudart)")
_LINKS_NOTHING = ("-c", "-dc", "-dw", "-cubin", "-ptx", "-E", "-M", "-MM", "-V", "-h", "-dryrun")
HEADERS = Path(__file__).parent / "include"


def compiler() -> Path:
    """Return nvcc's program; InputError where it is not installed."""
    for folder in wheels.folders("bin"):
        if (folder / "nvcc").is_file():
            return folder / "nvcc"
    raise InputError(f"nvcc, the compiler of whole programs, is not installed: {install('driver')}")


def arguments(given: Sequence[str], architecture: str) -> list[str]:
    """Return nvcc's arguments: the user's without architectures, with the shared runtime."""
    kept = list(_without_own(given))
    # With -arch=sm_90a nvcc 13.5 compiles for compute_90, too, which lacks wgmma.
    target = f"-gencode=arch={architecture.replace('sm', 'compute')},code={architecture}"
    own = [target, "-lineinfo", "--no-compress", *_host_compiler()]
    made = [*own, "-include", str(HEADERS / "cuda12.h"), *kept, f"-I{HEADERS / 'samples'}"]
    for folder in wheels.folders("include"):  # of wheels that lie apart from nvcc's
        if folder.is_dir() and folder.parent != compiler().parent.parent:
            made += ["-isystem", str(folder)]
    if not any(one in _LINKS_NOTHING or one.startswith("--version") for one in kept):
        made += ["-cudart", "shared", f"-L{shared_objects.folder()}", "-Xlinker", "-lcuda"]
    return made


def with_device_runtime(given: Sequence[str]) -> list[str]:
    """Return a build's arguments, with our device runtime where a program is linked with one."""
    is_separate = any(one in _SEPARATELY for one in given)
    if not is_separate or any(one in (*_LINKS_NOTHING, "-dlink", "-lib") for one in given):
        return [*given]
    kept = [one for one in given if one != "-lcudadevrt"]
    return [*kept, str(DEVICE_RUNTIME), "-rdc=true", "-cudadevrt", "none"]


def _without_own(given: Sequence[str]) -> Iterator[str]:
    waiting = iter(given)
    for one in waiting:
        match = _OWN.match(one)
        if match is None:
            yield one
        elif one == match[0]:
            next(waiting, None)


def _host_compiler() -> list[str]:
    """Return nvcc's option for the compiler of C++ where its own choice, g++, is missing."""
    if shutil.which("g++") is not None:
        return []
    found = next(shared_objects.compilers("c++", "clang++"), None)
    if found is None:
        raise InputError("there is no compiler of C++ for a program's host code; install g++")
    return ["-ccbin", found[0]]


def main() -> int:
    """Run nvcc with a build's own arguments, and return its exit code."""
    architecture = os.environ.get(ARCHITECTURE, _DEFAULT_ARCHITECTURE)
    try:
        given = with_device_runtime(sys.argv[1:])
        command = [str(compiler()), *arguments(given, architecture)]
    except GpusimError as error:
        sys.stderr.write(harmless(f"gpusim: {error}\n"))
        return 2
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
