"""nvcc for programs that run here: the wheels' or a toolkit's, with the shared runtime.

`python -m gpusim.driver.nvcc ARGUMENTS` takes nvcc's place in a build: architectures are
replaced by the simulated device's, fat binaries stay uncompressed, and lines are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpusim.driver import shared_objects
from gpusim.errors import GpusimError, InputError
from gpusim.host.disk_cache import DiskCache
from gpusim.sass import wheels
from gpusim.sass.compiler import Options
from gpusim.sass.includes import read
from gpusim.sass.missing_headers import with_folders_around

INSTALL = "pip install 'gpusim[driver]'"
ARCHITECTURE = "GPUSIM_ARCHITECTURE"  # in the environment: sm_90 and the like
_DEFAULT_ARCHITECTURE = "sm_90"
_OWN = re.compile(r"(-arch|--gpu-architecture|-gencode|--generate-code|-code|--gpu-code|-cudart)")
_LINKS_NOTHING = ("-c", "-dc", "-dw", "-cubin", "-ptx", "-E", "-M", "-MM", "-V", "-h", "-dryrun")
_LIBRARY = re.compile(
    r"fatal error: "
    r"(cublas|cudnn|cufft|cufile|curand|cusolver|cusparse|cutensor|nccl|npp|nvjpeg)\w*\.h"
)
_HEADERS = Path(__file__).parent / "include"
_LONGEST_S = 600
_MOST_LINES = 20


def compiler() -> Path:
    """Return nvcc's program; InputError where it is not installed."""
    for folder in wheels.folders("bin"):
        if (folder / "nvcc").is_file():
            return folder / "nvcc"
    raise InputError(f"nvcc is not installed, which compiles whole programs: {INSTALL}")


def arguments(given: Sequence[str], architecture: str) -> list[str]:
    """Return nvcc's arguments: the user's without architectures, with the shared runtime."""
    kept = list(_without_own(given))
    own = [f"-arch={architecture}", "-lineinfo", "--no-compress", *_host_compiler()]
    made = [*own, "-include", str(_HEADERS / "cuda12.h"), *kept, f"-I{_HEADERS / 'samples'}"]
    if not any(one in _LINKS_NOTHING or one.startswith("--version") for one in kept):
        folder = shared_objects.folder()
        made += ["-cudart", "none", f"-L{folder}", "-lcudart", "-Xlinker", "-lcuda"]
    return made


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


def built(files: Sequence[str], options: Sequence[str], architecture: str) -> Path:
    """Return the program of some files, compiled anew where one or a header has changed.

    InputError with the compiler's own words where it does not compile.
    """
    wanted = " ".join([*map(os.path.abspath, files), *options, architecture])
    place = DiskCache("programs", 1 << 30).folder
    place.mkdir(parents=True, exist_ok=True)
    made = place / hashlib.sha256(wanted.encode()).hexdigest()[:16]
    kept = made.with_suffix(".files")
    if _is_current(made, kept):
        return made
    with tempfile.TemporaryDirectory(dir=place) as folder:
        program = Path(folder) / "program"
        around = [f"-I{folder}" for folder in _folders_around(files, options)]
        command = arguments([*options, *around, *files, "-o", str(program)], architecture)
        if len(files) == 1:  # of several, nvcc's list of headers is that of the last one
            command += ["-MD", "-MF", str(Path(folder) / "headers")]
        done = _run([str(compiler()), *command])
        if done.returncode:
            lines = (done.stderr + done.stdout).strip().splitlines()
            _refuse_library(lines)
            wrong = [line for line in lines if "error" in line or "undefined" in line] or lines
            raise InputError("nvcc does not compile it:\n" + "\n".join(wrong[:_MOST_LINES]))
        program.replace(made)
        if len(files) == 1:
            _keep_states(kept, (Path(folder) / "headers").read_text(encoding="utf-8"))
    return made


def _folders_around(files: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    """Yield folders above the files with headers that they lack."""
    given = tuple(one[2:] for one in options if one.startswith("-I"))
    seen = dict.fromkeys(given)
    for file in map(Path, files):
        if file.suffix in (".cu", ".cpp", ".cc", ".cxx", ".c"):
            found = with_folders_around(read(file), str(file), Options(includes=given))
            yield from (one for one in found.includes if one not in seen)
            seen.update(dict.fromkeys(found.includes))


def _refuse_library(lines: Sequence[str]) -> None:
    """Raise InputError where a library of kernels by NVIDIA is missing, which would not run."""
    for line in lines:
        if found := _LIBRARY.search(line):
            raise InputError(
                f"the program uses {found[1]}, one of NVIDIA's libraries of kernels, which reach "
                "the driver by internal tables: these are not imitated (kernels of one's own run)"
            )


def _keep_states(kept: Path, listed: str) -> None:
    """Keep the states of the files that a program was compiled from, of a list for make."""
    names = listed.partition(":")[2].replace("\\\n", " ").split()
    own = [str(shared_objects.folder()), str(compiler())]
    states = {name: wheels.stamp(Path(name)) for name in (*names, *own) if Path(name).exists()}
    kept.write_text(json.dumps(states), encoding="utf-8")


def _is_current(made: Path, kept: Path) -> bool:
    """Return whether a program is there, and the files that it was compiled from are the same."""
    try:
        states = json.loads(kept.read_text(encoding="utf-8"))
        return made.exists() and all(wheels.stamp(Path(f)) == s for f, s in states.items())
    except (OSError, ValueError):
        return False


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            list(command),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LONGEST_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"nvcc cannot be run: {error}") from None


def main() -> int:
    """Run nvcc with a build's own arguments, and return its exit code."""
    architecture = os.environ.get(ARCHITECTURE, _DEFAULT_ARCHITECTURE)
    try:
        command = [str(compiler()), *arguments(sys.argv[1:], architecture)]
    except GpusimError as error:
        sys.stderr.write(f"gpusim: {error}\n")
        return 2
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
