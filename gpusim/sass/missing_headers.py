"""Headers that are left out where only what a kernel reaches is compiled.

Libraries that device code does not name are empty, frameworks are stand-ins, and headers that are
nowhere found are empty too, unless they might decide what is compiled.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from gpusim.cuda_cpp.host_headers import CPP, FRAMEWORKS, HOST_HEADERS
from gpusim.cuda_cpp.includes import included, includes, plain, read
from gpusim.sass.compiler import Headers, Options, folders_of

_FRAMEWORK_FOLDERS = ("ATen/", "THC/", "c10/", "pybind11/", "torch/")
# Libraries of the host: nothing of theirs decides what is compiled for a device.
_HOST_LIBRARIES = (
    "EGL/", "GL/", "GLES2/", "GLES3/", "GLFW/", "X11/", "arpa/", "boost/", "cupti", "hip/", "hsa/",
    "netinet/", "nvperf_", "opencv2/", "rocm_smi/", "rocprofiler", "sys/", "vulkan/",
)  # fmt: skip
_STAND_IN = "#include <words_of_frameworks.h>\n"
_OF_STD = "#include <words_of_std.h>\n"
# Libraries of the host and of kernels: NVRTC does not take all of their headers.
_LIBRARIES = ("thrust", "cub")
_OF_HEADERS = (  # names of folders
    "include", "inc", "common", "Common", "utils", "common/inc", "Common/inc", "common/include",
)  # fmt: skip
_MOST_LEVELS = 4
# Files at the top of a project, and how far up and in how many of its folders headers are sought.
_TOPS = (".git", ".hg", "CMakeLists.txt", "Makefile", "setup.py", "pyproject.toml", "LICENSE")
_MOST_PARENTS, _MOST_FOLDERS = 8, 2_000
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b(.*)$", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_OF_COMPILERS = re.compile(
    r"__\w+|_?WIN(?:32|64)|_MSC_VER|_?N?DEBUG|CUDA_VERSION|CUDART_VERSION|defined"
)


def left_out(
    texts: Mapping[str, str], folders: Sequence[str], libraries: Sequence[Path]
) -> Headers:
    """Return contents for headers that texts, by their paths, include.

    `folders` are those of the user's headers, `libraries` those of all others.
    """
    clean = {path: plain(text) for path, text in texts.items()}
    words = {library: _uses(clean, library) for library in _LIBRARIES}
    contents: dict[str, str] = {}
    missing: list[str] = []
    for name, beside in _names(clean):
        library = name.partition("/")[0]
        if name in FRAMEWORKS.split() or name.startswith(_FRAMEWORK_FOLDERS):
            contents[name] = _STAND_IN
        elif name in CPP.split():
            contents[name] = _OF_STD
        elif name.startswith(_HOST_LIBRARIES) or words.get(library) is False:
            contents[name] = ""
        elif name not in HOST_HEADERS and not _is_there(name, [*beside, *folders, *libraries]):
            missing.append(name)
    if missing and not _decides_nothing(clean):
        missing = []
    return Headers(contents={**contents, **dict.fromkeys(missing, "")}, missing=tuple(missing))


def with_folders_around(
    text: str, file: str, options: Options, known: Collection[str] = HOST_HEADERS
) -> Options:
    """Return options with the nearest folders around a file that have headers it lacks.

    A build names them with -I: a folder above, one of `include`, `common` and the like in it, or
    any of a project, which has a file such as `.git` or `CMakeLists.txt` at its top. `known` ones
    are not looked for.
    """
    while True:
        lacking = _lacking(text, file, options, known)
        more: dict[str, None] = {}
        for folder in _folders_around(file) if lacking else ():
            there = [name for name in lacking if _is_there(name, [folder])]
            more.update({str(folder): None} if there else {})
            lacking = [name for name in lacking if name not in there]
        if not more:
            return options
        options = replace(options, includes=(*options.includes, *more))


def _lacking(text: str, file: str, options: Options, known: Collection[str]) -> list[str]:
    """Return the headers that a text and its headers name and that no folder of theirs has."""
    folders = folders_of(file, options)
    found = includes(text, folders, options.definitions).found
    beside = [*folders, *(str(path.parent) for path in found)]
    wanted = {name for one in [text, *map(read, found)] for name in included(plain(one))}
    return [name for name in sorted(wanted) if name not in known and not _is_there(name, beside)]


def _folders_around(file: str) -> Iterator[Path]:
    """Yield folders where a build might have a file's headers, the nearest first."""
    parents = list(Path(file).resolve().parents)
    for above in parents[1 : _MOST_LEVELS + 1]:
        yield from (above, *(above / name for name in _OF_HEADERS))
    tops = [one for one in parents[:_MOST_PARENTS] if any((one / name).exists() for name in _TOPS)]
    if tops:
        walk = islice(os.walk(tops[-1]), _MOST_FOLDERS)
        inside = sorted(Path(folder) for folder, _, _ in walk)
        yield from sorted(inside, key=lambda one: -_shared_parts(one, parents[0]))


def _shared_parts(one: Path, other: Path) -> int:
    return len(os.path.commonpath([one, other]))


def _names(clean: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of headers once each, with the folders of the including files."""
    found: dict[str, list[str]] = {}
    for path, text in clean.items():
        for name in included(text):
            found.setdefault(name, []).append(str(Path(path).parent))
    yield from found.items()


def _is_there(name: str, folders: Sequence[str | Path]) -> bool:
    return any((Path(folder) / name).is_file() for folder in folders)


def _uses(clean: Mapping[str, str], library: str) -> bool:
    named = re.compile(rf"\b{library}\s*::")
    return any(named.search(text) for text in clean.values())


def _decides_nothing(clean: Mapping[str, str]) -> bool:
    """Return whether all that conditions ask about is defined in the texts or by compilers."""
    joined = "\n".join(clean.values())
    known = set(_DEFINED.findall(joined))
    asked = {word for condition in _CONDITION.findall(joined) for word in _WORD.findall(condition)}
    return all(word in known or _OF_COMPILERS.fullmatch(word) for word in asked)
