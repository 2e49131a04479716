"""The kernels of a user's file: the one that a reference names, or all by the names it takes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.cli.references import BINARY, CACHES, Reference
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.cuda import Kernel
    from gpusim.launch.configured import MachineCode
    from gpusim.sass.kernels import CodeFile


def kernel_of(chosen: Namespace) -> Kernel | MachineCode:
    """Return the kernel that is named by its file; InputError where there is none.

    A template without arguments is made as host code makes it, for the block that is given.
    """
    reference = Reference.of(chosen.kernel)
    if not reference.is_code:
        from gpusim.cli.user_files import kernel_of_file

        return kernel_of_file(chosen.kernel, getattr(chosen, "values", None) or {})
    from gpusim.cli.file_launches import kept_launch
    from gpusim.cli.host_launches import instance

    _refuse_the_lowering(reference, getattr(chosen, "code", None))
    file = _code_file(reference.file, chosen)
    name = reference.kernel or reference.only(file.names)
    block = getattr(chosen, "block", None)
    if block is None and (kept := kept_launch(reference)) is not None:
        block = kept.options.get("block")
    return file[instance(file, name, block) or name]


def kernels_of(
    reference: Reference, chosen: Namespace
) -> dict[str, Callable[[], Kernel | MachineCode]]:
    """Return a file's kernels by name, each made when it is called for."""
    if not reference.is_code:
        from gpusim.cli.user_files import kernels_of_file

        found = kernels_of_file(reference.file)
        return {name: partial(found.__getitem__, name) for name in found}
    file = _code_file(reference.file, chosen)
    return {name: partial(file.__getitem__, name) for name in _names(file)}


def _names(file: CodeFile) -> Iterator[str]:
    """Yield the names of a file's kernels in C++; of templates with arguments."""
    from gpusim.cli.host_launches import instance
    from gpusim.cuda_cpp.example_instances import example_instance
    from gpusim.sass.kernels import CudaSource

    for symbol in file.names:
        name = _short(symbol, file.names)
        if not isinstance(file, CudaSource):
            yield name
        elif name in file.templates:
            example = example_instance(name, file.templates[name], file.declarations)
            yield from file.spelled(instance(file, name) or example)
        else:
            yield from file.spelled(name)


def _short(symbol: str, known: Collection[str]) -> str:
    """Return a kernel's name in C++, where it means no other kernel of the file."""
    from gpusim.sass.symbols import cpp_name, named

    name = cpp_name(symbol)
    return name if named(name, dict.fromkeys(known)) == [symbol] else symbol


def _code_file(path: str, chosen: Namespace) -> CodeFile:
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


def _refuse_the_lowering(reference: Reference, code: str | None) -> None:
    from gpusim.codegen import generators

    if code and generators.chosen(code) == generators.LOWERING:
        kind = "machine code" if reference.file.endswith(BINARY) else "CUDA C++"
        raise InputError(f"--code lowering is for Python kernels; {reference.file} is {kind}")
