"""Programs of CUDA C++ files: compiled one by one, linked, and kept while no file changes.

A program in several files is often given by the one with its `main`. Undefined symbols are looked
up in the files beside it without a main.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gpusim.cuda_cpp.host_headers import HOST_HEADERS
from gpusim.cuda_cpp.includes import read
from gpusim.cuda_cpp.source_text import plain_text
from gpusim.driver import nvcc, shared_objects
from gpusim.errors import InputError
from gpusim.host import processes
from gpusim.host.disk_cache import program_place
from gpusim.host.files import refusing
from gpusim.sass import wheels
from gpusim.sass.compiler import Options
from gpusim.sass.missing_headers import with_folders_around
from gpusim.sass.symbols import cpp_name

SUFFIXES = (".cu", ".cpp", ".cc", ".cxx", ".c")
_LIBRARY = re.compile(
    r"fatal error: "
    r"(cublas|cudnn|cufft|cufile|cusolver|cusparse|cutensor|nccl|npp|nvjpeg)\w*\.h"
)
_HEADER = re.compile(r"fatal error: (\S+): No such file")
_UNDEFINED = re.compile(r"undefined reference to [`'](.+?)'", re.IGNORECASE)
_MAIN = re.compile(r"\bmain\s*\(")
_NO_MAIN = re.compile(r"undefined (?:reference to|symbol:) [`']?main\b")
_OF_GRIDS = "'cudaCG"  # functions of the device runtime that synchronise a grid
_VOTES = nvcc.HEADERS / "votes_without_masks.h"
_TEXTURES = nvcc.HEADERS / "texture_references.h"
_WITHOUT_MASKS = "Instruction 'vote' without '.sync'"
_OF_OTHER_FILES = "ptxas fatal   : Unresolved extern"
_DYNAMIC_PARALLELISM = "requires separate compilation mode"
_NO_MEMBER = re.compile(r'namespace "thrust" has no member "(\w+)"')
_TEXTURE_REFERENCE = re.compile(
    r"error: texture is not a template|identifier \"cudaBindTexture\w*\" is undefined"
)
_SEPARATELY, _OPENMP = "-rdc=true", "-Xcompiler=-fopenmp"
_NATIVE = Path(__file__).parent / "native"
_OF_DEVICE_RUNTIME = "__cudaCDP2"  # the begin of functions that kernels launch kernels by
# Sources of ours in place of libraries, by the begin of their functions.
_OWN = {_OF_DEVICE_RUNTIME: str(nvcc.DEVICE_RUNTIME), "curand": str(_NATIVE / "curand.cu")}
_IN_THEIR_PLACE = "-lcurand"
# A project's own helpers of CUDA's samples are taken before the stand-ins for them. What stands in
# for headers of the host's compiler, for device code, is not sought: nvcc has these.
_NOT_SOUGHT = frozenset(one for one in HOST_HEADERS if not one.startswith("helper_")) | {
    one.name for one in wheels.OWN_HEADERS.iterdir()
}
_LONGEST_S = 600
_MOST_LINES, _MOST_FILES, _MOST_SOURCE_BYTES = 20, 500, 1 << 22

Told = Callable[[str], None]


class _FailedError(Exception):
    """nvcc fails; its argument is nvcc's output."""


def built(files: Sequence[str], options: Sequence[str], architecture: str, told: Told) -> Path:
    """Return the program of some files, compiled again where one or a header has changed.

    `told` takes a remark on files that were not given. InputError with the compiler's own words
    where it does not compile.
    """
    wanted = " ".join([*map(os.path.abspath, files), *options, architecture])
    made = program_place("programs", hashlib.sha256(wanted.encode()).hexdigest()[:16])
    kept = made.with_suffix(".files")
    if _is_current(made, kept):
        return made
    with refusing(made), tempfile.TemporaryDirectory(dir=made.parent) as folder:
        build = _Build(Path(folder), [*options], architecture)
        try:
            build.link(files, told)
        except _FailedError as error:
            raise InputError(_explained(str(error).strip().splitlines(), files)) from None
        build.program.chmod(0o700)
        build.program.replace(made)
        _keep_states(kept, build.read())
    return made


class _Build:
    """A program's objects in a folder, each with the list of files that it is made from."""

    def __init__(self, folder: Path, options: list[str], architecture: str) -> None:
        self.program = folder / "program"
        self._folder, self._architecture = folder, architecture
        self._options = [one for one in options if one != _IN_THEIR_PLACE]
        self._objects: dict[str, Path] = {}
        self._folders: dict[str, None] = {}
        # Without the wheel's device runtime, the linker says whether kernels launch kernels.
        self._library = "none"

    def link(self, files: Sequence[str], told: Told) -> None:
        """Compile the files, and others around them with undefined symbols, to the program."""
        files = [*files]
        while True:
            try:
                self._compile_and_link(files)
            except _FailedError as error:
                more = self._missing(str(error), files)
                own = [one for one in _own_sources(str(error)) if one not in files]
                if own:
                    files += own
                elif more:
                    names = ", ".join(os.path.relpath(one) for one in more)
                    told(f"also compiled, for definitions missing in the files given: {names}")
                    files += more
                elif not self._has_new_option(str(error)):
                    raise
            else:
                return

    def read(self) -> Iterator[str]:
        """Yield the names of all files that the objects are made from."""
        for made in self._objects.values():
            listed = made.with_suffix(".d").read_text(encoding="utf-8")
            yield from listed.partition(":")[2].replace("\\\n", " ").split()

    def _compile_and_link(self, files: Sequence[str]) -> None:
        for file in files:
            if file not in self._objects:
                made = self._folder / f"{len(self._objects)}.o"
                sought = [] if file in _OWN.values() else [file]
                around = [f"-I{folder}" for folder in _folders_around(sought, self._options)]
                self._folders.update(dict.fromkeys(one[2:] for one in around))
                listed = ["-c", "-MD", "-MF", str(made.with_suffix(".d")), "-o", str(made)]
                self._run([*self._options, *around, *listed, file])
                self._objects[file] = made
        objects = [str(self._objects[file]) for file in files]
        self._run([*self._options, *objects, "-cudadevrt", self._library, "-o", str(self.program)])

    def _run(self, given: Sequence[str]) -> None:
        command = [str(nvcc.compiler()), *nvcc.arguments(given, self._architecture)]
        try:
            done = processes.run(command, _LONGEST_S, self._folder)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"nvcc cannot be run: {error}") from None
        if done.returncode:
            raise _FailedError(done.stderr + done.stdout)

    def _has_new_option(self, said: str) -> bool:
        """Add an option without which the program does not compile; False where there is none."""
        if _OF_GRIDS in said and self._library == "none":
            self._library = "static"
            return True
        calls_openmp = any(n.startswith(("omp_", "GOMP_")) for n in _UNDEFINED.findall(said))
        is_separate = _OF_OTHER_FILES in said or _DYNAMIC_PARALLELISM in said
        wanted = [_SEPARATELY] * is_separate + [_OPENMP] * calls_openmp
        # Headers of CUDA 12's thrust include more of each other.
        headers = filter(_is_of_thrust, sorted(set(_NO_MEMBER.findall(said))))
        wanted += [f"-include=thrust/{name}.h" for name in headers]
        wanted += [f"-include={_VOTES}"] * (_WITHOUT_MASKS in said)
        wanted += [f"-include={_TEXTURES}"] * bool(_TEXTURE_REFERENCE.search(said))
        new = [option for option in wanted if option not in self._options]
        self._options += new
        if new:
            self._objects.clear()
        return bool(new)

    def _missing(self, said: str, files: Sequence[str]) -> list[str]:
        """Return files around the given ones that define functions which the linker misses."""
        names = {_name(found) for found in _UNDEFINED.findall(said)} - {""}
        known = {os.path.realpath(one) for one in files}
        found: list[str] = []
        for path in self._files_around(files) if names else ():
            if os.path.realpath(path) in known:
                continue
            text = plain_text(read(path))
            defined = {name for name in names if _defines(text, name)}
            if defined and not _MAIN.search(text):
                found.append(str(path))
                names -= defined
        return found

    def _files_around(self, files: Sequence[str]) -> Iterator[Path]:
        """Yield sources beside the given ones, and beside the headers or in a `src` there."""
        own = dict.fromkeys(Path(file).resolve().parent for file in files)
        given = [Path(one[2:]).resolve() for one in self._options if one.startswith("-I")]
        headers = [*given, *(Path(one).resolve() for one in self._folders)]
        beside = [other for one in headers for other in (one, one.parent / "src")]
        for folder in dict.fromkeys([*own, *beside]):
            there = sorted(folder.iterdir())[:_MOST_FILES] if folder.is_dir() else []
            yield from (
                path
                for path in there
                if path.suffix in SUFFIXES
                and path.is_file()
                and path.stat().st_size <= _MOST_SOURCE_BYTES
            )


def _own_sources(said: str) -> list[str]:
    """Return the sources of ours with functions that the linker misses."""
    names = _UNDEFINED.findall(said)
    return [file for begin, file in _OWN.items() if any(n.startswith(begin) for n in names)]


def _is_of_thrust(name: str) -> bool:
    """Return whether thrust has a header of a name."""
    folders = [*wheels.folders("include"), nvcc.compiler().parent.parent / "include"]
    places = [folder / below for folder in folders for below in ("cccl/thrust", "thrust")]
    return any((place / f"{name}.h").is_file() for place in places)


def _name(found: str) -> str:
    """Return the name of a function or variable that a linker names, without its scope."""
    plain = cpp_name(found) if found.startswith("_Z") else found
    return plain.partition("(")[0].partition("<")[0].rpartition("::")[2].strip()


def _defines(text: str, name: str) -> bool:
    """Return whether a text seems to define a function, or a variable for other files."""
    function = rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*(?:const\s*)?(?:noexcept\s*)?\{{"
    variable = rf"^(?!.*\bextern\b).*\b__(?:device|constant|managed)__\b.*\b{re.escape(name)}\b"
    return re.search(function, text) is not None or (
        re.search(variable, text, re.MULTILINE) is not None
    )


def _folders_around(files: Sequence[str], given: Sequence[str]) -> Iterator[str]:
    """Yield folders above the files with headers that they lack."""
    folders = tuple(one[2:] for one in given if one.startswith("-I"))
    seen = dict.fromkeys(folders)
    for file in map(Path, files):
        if file.suffix in SUFFIXES:
            options = Options(includes=folders)
            found = with_folders_around(read(file), str(file), options, _NOT_SOUGHT)
            yield from (one for one in found.includes if one not in seen)
            seen.update(dict.fromkeys(found.includes))


def without_main(files: Sequence[str]) -> str:
    """Return the refusal of files that are no program."""
    has = "has no main function, and is" if len(files) == 1 else "have no main function, and are"
    return (
        f"{', '.join(files)} {has} no program; "
        f"gpusim trace {files[0]}:KERNEL (or predict, check, report) takes one kernel"
    )


def _explained(lines: Sequence[str], files: Sequence[str]) -> str:
    """Return the reason why files do not make a program, from nvcc's lines."""
    for line in lines:
        if _NO_MAIN.search(line):
            return without_main(files)
        if found := _LIBRARY.search(line):
            return (
                f"the program uses {found[1]}, one of NVIDIA's libraries of kernels, which reach "
                "the driver by internal tables: these are not supported (your own kernels run)"
            )
        header = _HEADER.search(line)
        if header is not None and (wheel := wheels.wheel_of(header[1])):
            return f"nvcc does not compile it:\n{line}\n{header[1]} is in: pip install {wheel}"
        if _OF_DEVICE_RUNTIME in line:
            return (
                "kernels that launch kernels are simulated, but not this function of the device "
                f"runtime:\n{line}"
            )
    wrong = [line for line in lines if "error" in line or "undefined" in line.lower()] or lines
    return "nvcc does not compile it:\n" + "\n".join(wrong[:_MOST_LINES])


def _keep_states(kept: Path, names: Iterator[str]) -> None:
    """Keep the states of the files that a program was compiled from."""
    own = [str(shared_objects.folder()), str(nvcc.compiler())]
    states = {name: wheels.stamp(Path(name)) for name in (*names, *own) if Path(name).exists()}
    kept.write_text(json.dumps(states), encoding="utf-8")


def _is_current(made: Path, kept: Path) -> bool:
    """Return whether a program is there, and the files that it was compiled from are the same."""
    try:
        states = json.loads(kept.read_text(encoding="utf-8"))
        return made.exists() and all(wheels.stamp(Path(f)) == s for f, s in states.items())
    except (OSError, ValueError):
        return False
