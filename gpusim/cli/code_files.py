"""A user's own CUDA C++ or machine code: `FILE.cu:KERNEL`, `FILE.cubin:KERNEL`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.cli.options import Option
from gpusim.cli.references import BINARY, CACHES
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.launch.configured import MachineCode
    from gpusim.sass.kernels import CodeFile

CODE = Option("--code", "code generator of a Python kernel: lowering, nvcc or auto (auto)", "CODE")
COMPILING = (
    Option("-I", "a folder of headers, for FILE.cu:KERNEL", "FOLDER", None, True, "include"),
    Option("-D", "a macro, for FILE.cu:KERNEL", "NAME[=VALUE]", None, True, "define"),
    Option("--std", "the C++ that FILE.cu is written in (c++17)", "STANDARD", None, False, "std"),
)


def code_file(path: str, chosen: Namespace) -> CodeFile:
    """Return the kernels of a file, compiled with the options given."""
    if path.endswith(CACHES):
        from gpusim.driver.caches import cache_file

        return cache_file(Path(path))
    from gpusim.sass.kernels import cuda_file

    return cuda_file(
        path,
        includes=getattr(chosen, "include", None) or (),
        definitions=getattr(chosen, "define", None) or (),
        standard=getattr(chosen, "std", None) or "c++17",
        values=getattr(chosen, "values", None),
        debug=getattr(chosen, "debug", False),
    )


def code_kernel(path: str, name: str, chosen: Namespace) -> MachineCode:
    """Return a file's kernel; InputError where it has no such kernel, or --code asks for our code.

    Without a name the file must have one kernel.
    """
    from gpusim.codegen import generators

    code = getattr(chosen, "code", None)
    if code and generators.chosen(code) == generators.LOWERING:
        kind = "machine code" if path.endswith(BINARY) else "CUDA C++"
        raise InputError(f"--code lowering is for Python kernels; {path} is {kind}")
    file = code_file(path, chosen)
    if not name:
        names = file.names
        if len(names) != 1:
            listed = f": {', '.join(names)}" if names else ""
            raise InputError(f"{path} has {len(names)} kernels{listed}; say which, {path}:NAME")
        name = names[0]
    return file[name]
