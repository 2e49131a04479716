"""The shared objects in place of CUDA's: compiled once, kept on disk.

They lie in the user's cache, in a folder of their own that is on no path of the system's.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpusim.errors import InputError
from gpusim.host import processes
from gpusim.host.disk_cache import program_place
from gpusim.host.files import refusing

SOURCES = Path(__file__).parent / "native"
DRIVER, RUNTIMES = "libcuda.so.1", ("libcudart.so.13",)
_DRIVER_SOURCES = (
    "wire",
    "driver",
    "conditions",
    "graph_memory",
    "earlier_launches",
    "linker",
    "virtual_memory",
)
INSTALL = "install gcc or clang, or pip install ziglang"
_FLAGS = ("-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-std=gnu11")
_EXPORTED = "global: cuda*; __cuda*; gpusim_*; local: *;"  # of the runtime
# A configured build calls the compiler by its path again, in a later run.
BUILDS = "bin"
_NVCC = f'#!/bin/sh\nexec "{sys.executable}" -m gpusim.driver.nvcc "$@"\n'
_LONGEST_S = 300


def folder() -> Path:
    """Return the folder with the shared objects, made where they are not there yet.

    InputError where there is no compiler of C, or where it fails.
    """
    if sys.platform != "linux":
        raise InputError("programs run only on Linux: CUDA's driver is a shared object there")
    place = program_place("driver", _digest())
    if not (place / RUNTIMES[-1]).exists():
        with refusing(place), tempfile.TemporaryDirectory(dir=place.parent) as made:
            _build(Path(made))
            _keep(Path(made), place)
    return place


def _keep(made: Path, place: Path) -> None:
    """Move a finished folder to its place, unless another process was first."""
    try:
        made.rename(place)
        made.mkdir()  # for the caller to remove
    except OSError:
        if not place.exists():
            raise


def _digest() -> str:
    """Return a digest of the sources, the flags and the interpreter."""
    digest = hashlib.sha256(" ".join((*_FLAGS, _EXPORTED, _NVCC)).encode())
    for file in sorted(SOURCES.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _build(made: Path) -> None:
    driver = made / DRIVER
    sources = [SOURCES / f"{name}.c" for name in _DRIVER_SOURCES]
    _compile([*map(str, sources), f"-Wl,-soname,{DRIVER}", "-lpthread", "-ldl"], driver)
    for name in RUNTIMES:
        wanted = ["-Wl,-rpath,$ORIGIN", f"-Wl,-soname,{name}", f"-L{made}", f"-l:{DRIVER}"]
        versions = made / f"{name}.map"
        versions.write_text(f"{name} {{ {_EXPORTED} }};\n")
        versioned = f"-Wl,--version-script={versions}"
        _compile([str(SOURCES / "runtime.c"), *wanted, versioned], made / name)
        (made / "libcudart.so").symlink_to(name)
    (made / "libcuda.so").symlink_to(DRIVER)
    script = made / BUILDS / "nvcc"
    script.parent.mkdir()
    script.write_text(_NVCC)
    script.chmod(0o755)


def _compile(arguments: list[str], to: Path) -> None:
    compiler = next(compilers("cc", "gcc", "clang"), None)
    if compiler is None:
        raise InputError(
            f"the driver library is built once, and there is no C compiler for it; {INSTALL}"
        )
    try:
        command = [*compiler, *_FLAGS, *arguments, "-o", str(to)]
        done = processes.run(command, _LONGEST_S, to.parent)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"the compiler {compiler[0]} cannot be run: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[:5]
        raise InputError(f"the compiler {compiler[0]} fails on the driver: {' / '.join(said)}")


def compilers(*names: str) -> Iterator[list[str]]:
    """Yield the compilers that are there: of these names, then that of the `ziglang` wheel."""
    variable = os.environ.get("CC" if "cc" in names else "CXX")
    for name in filter(None, (variable, *names)):
        found = shutil.which(name)
        if found is not None:
            yield [found]
    if importlib.util.find_spec("ziglang") is not None:
        yield [sys.executable, "-m", "ziglang", "cc" if "cc" in names else "c++"]
