"""A kernel by its name: of the catalogue, `FILE.py:FUNCTION`, or `FILE.cu:KERNEL`.

A `Reference` is the name parsed, with what its file has: the source, the kernels, and the launch in
a comment, `// gpusim: grid=ceil(n/256) block=256 args=float32[n],n`. The comment stands before the
kernel, or names it with `kernel=NAME`; options of the command line replace its members.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.errors import InputError, did_you_mean
from gpusim.host import files
from gpusim.host.files import shown
from gpusim.launch.description import Origin

if TYPE_CHECKING:
    from gpusim.cli.host_launches import FileLaunch
    from gpusim.cuda import Kernel
    from gpusim.launch.configured import MachineCode
    from gpusim.sass.kernels import CodeFile

CACHES = (".nbc", ".db")  # of numba-cuda and tinygrad
BINARY = (".cubin", *CACHES)
NOTEBOOK = ".ipynb"
CODE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".hpp", NOTEBOOK, *BINARY)
PYTHON = ".py"
MAX_BYTES = 1 << 26  # of any source

# Keys of the comment, by the destination of the option with that meaning.
KEYS = {
    "grid": "grid", "block": "block", "n": "n", "shared-bytes": "shared_bytes", "args": "arg",
    "cluster": "cluster", "kernel": "kernel",
}  # fmt: skip
_COMMENT = re.compile(r"^[ \t]*(?://|#)[ \t]*gpusim:[ \t]*(\S.*)$", re.MULTILINE)
_NEXT_KERNEL = re.compile(
    r"__global__[^;{}]*?\b(?!__launch_bounds__|void\b)(\w+)\s*\((?!\s*\d)|^[ \t]*def[ \t]+(\w+)",
    re.MULTILINE,
)


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

    @property
    def path(self) -> Path:
        """The file's path."""
        return Path(self.file)

    @property
    def is_binary(self) -> bool:
        """Whether the file has machine code and no source."""
        return self.file.endswith(BINARY)

    @property
    def is_code(self) -> bool:
        """Whether the kernel is CUDA C++ or machine code.

        Strings of a Python file without kernels of the dialect may hold CUDA C++.
        """
        if self.path.suffix != PYTHON or not self.path.is_file():
            return self.file.endswith(CODE_SUFFIXES)
        from gpusim.cli.python_files import dialects
        from gpusim.cuda_cpp.embedded import cuda_of

        text = files.source(self.path, files.MAX_PYTHON_BYTES, again=True)
        return not dialects(text) and bool(cuda_of(text, str(self.path)))

    @property
    def source(self) -> str:
        """The file's text, "" for machine code."""
        return "" if self.is_binary else files.source(self.path, MAX_BYTES, again=True)

    @property
    def launch(self) -> FileLaunch | None:
        """The kernel's launch in a comment of the file, the first one; None without any.

        Without a kernel's name it is the file's first launch.
        """
        from gpusim.cli.host_launches import FileLaunch

        text = self.source if self.path.is_file() else ""
        plain = self.kernel.partition("<")[0].rpartition("::")[2]
        for match in _COMMENT.finditer(text):
            behind = _NEXT_KERNEL.search(text, match.end())
            following = (behind[1] or behind[2]) if behind is not None else ""
            line = text.count("\n", 0, match.start()) + 1
            found = _options(match[1], self.path, line)
            if found.pop("kernel", following) == plain or not self.kernel:
                return FileLaunch(found, Origin.COMMENT, line)
        return None

    def made(self, chosen: Namespace) -> Kernel | MachineCode:
        """Return the kernel, compiled with the options given; InputError where there is none.

        A template without arguments is made as host code makes it, for the block that is given.
        """
        if not self.is_code:
            from gpusim.cli.python_files import kernel_of_file

            return kernel_of_file(self.path, self.kernel, getattr(chosen, "values", None) or {})
        from gpusim.cli.host_launches import instance
        from gpusim.cli.inputs import only

        self._refuse_the_lowering(getattr(chosen, "code", None))
        file = self._code_file(chosen)
        name = self.kernel or only(file.names, self.path)
        block = getattr(chosen, "block", None)
        if block is None and (kept := self.launch) is not None:
            block = kept.options.get("block")
        return file[instance(file, name, block) or name]

    def all_made(self, chosen: Namespace) -> dict[str, Callable[[], Kernel | MachineCode]]:
        """Return the file's kernels by name, each made on first use."""
        if not self.is_code:
            from gpusim.cli.python_files import kernels_of_file

            found = kernels_of_file(self.path)
            return {name: partial(found.__getitem__, name) for name in found}
        file = self._code_file(chosen)
        return {name: partial(file.__getitem__, name) for name in _names(file)}

    def _code_file(self, chosen: Namespace) -> CodeFile:
        """Return the kernels of CUDA C++ or machine code, compiled with the options given."""
        if self.file.endswith(CACHES):
            from gpusim.driver.caches import cache_file

            return cache_file(self.path)
        from gpusim.sass.kernels import cuda_file

        return cuda_file(
            self.file,
            includes=getattr(chosen, "include", None) or (),
            definitions=getattr(chosen, "define", None) or (),
            standard=getattr(chosen, "std", None) or "c++17",
            values=getattr(chosen, "values", None),
            debug=getattr(chosen, "debug", False),
        )

    def _refuse_the_lowering(self, code: str | None) -> None:
        from gpusim.codegen import generators

        if code and generators.chosen(code) == generators.LOWERING:
            kind = "machine code" if self.is_binary else "CUDA C++"
            raise InputError(f"--code lowering is for Python kernels; {self.file} is {kind}")


def _names(file: CodeFile) -> Iterator[str]:
    """Yield the names of a file's kernels in C++; of templates with arguments."""
    from gpusim.cli.host_launches import instance
    from gpusim.cuda_cpp.example_instances import example_instance
    from gpusim.sass.kernels import CudaSource
    from gpusim.sass.symbols import cpp_name, named

    for symbol in file.names:
        name = cpp_name(symbol)
        if named(name, dict.fromkeys(file.names)) != [symbol]:
            name = symbol  # in C++ it means another kernel too
        if not isinstance(file, CudaSource):
            yield name
        elif name in file.templates:
            example = example_instance(name, file.templates[name], file.declarations)
            yield from file.spelled(instance(file, name) or example)
        else:
            yield from file.spelled(name)


def _options(words: str, path: Path, line: int) -> dict[str, str | list[str]]:
    """Return the options of a comment; InputError for words that it cannot have."""
    made: dict[str, str | list[str]] = {}
    for word in words.split():
        key, equals, value = word.partition("=")
        if key not in KEYS or not equals or not value:
            raise InputError(
                f"{path}, line {line}: {shown(word)!r} in a launch is not understood"
                f"{did_you_mean(key, KEYS)}; write grid=64 block=256 args=float32[4096],4096 "
                f"(keys: {', '.join(KEYS)})"
            )
        made[KEYS[key]] = list(_arguments(value)) if key == "args" else value
    return made


def _arguments(text: str) -> Iterator[str]:
    """Yield arguments between commas, except those within brackets."""
    begin = depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            yield text[begin:place]
            begin = place + 1
    yield text[begin:]
