"""`gpusim list`: the kernels of the catalogue, or of a file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from gpusim.cli import output
from gpusim.cli.code_files import COMPILING, code_file
from gpusim.cli.options import ALL, JSON, Command, Option, print_document, print_lines
from gpusim.cli.references import Reference
from gpusim.errors import GpusimError, InputError

if TYPE_CHECKING:
    from gpusim.cli.file_launches import FileLaunch
    from gpusim.cuda import Kernel
    from gpusim.launch.configured import MachineCode
    from gpusim.reports.kernels import FileKernel


def list_kernels(chosen: Namespace) -> int:
    """List the kernels: origin, lesson, known defects.

    Of a file the names as other commands take them, FILE.py:FUNCTION or FILE.cu:KERNEL, with the
    parameters, and the launch that the file keeps, or an example of one.
    """
    if chosen.file is not None:
        return _list_file(chosen)
    from gpusim.catalogue import entries

    if chosen.json:
        print_document("list", {"kernels": [entry.to_dict() for entry in entries()]})
        return 0
    from gpusim.reports.kernels import kernel_list

    print_lines(lambda width: kernel_list(entries(), width, whole=chosen.all))
    return 0


def _list_file(chosen: Namespace) -> int:
    from gpusim.reports.kernels import file_kernels

    found = [_described(name, kernel, chosen) for name, kernel in _kernels_of(chosen)]
    if chosen.json:
        print_document("file", {"kernels": [one.to_dict() for one in found]})
    elif found:
        print_lines(lambda _: file_kernels(found))
    else:
        output.write(f"{chosen.file} has no kernels\n")
    return 0


def _described(name: str, kernel: Callable[[], Any], chosen: Namespace) -> FileKernel:
    """Return a kernel with its parameters and its launch, or with the reason for none."""
    from gpusim.cli.file_launches import kept_launch
    from gpusim.cli.host_launches import host_launch
    from gpusim.cli.launch_examples import command_line, example_of, parameters_of
    from gpusim.reports.kernels import FileKernel

    whole = f"{chosen.file}:{name}"
    try:
        found = kernel()
        parameters = tuple((one.name, one.type) for one in parameters_of(found))
        kept = kept_launch(Reference.of(whole)) or host_launch(found)
        words = example_of(found).words if kept is None else _words(kept, found)
    except GpusimError as error:
        return FileKernel(whole, error=str(error).partition("\n")[0])
    options = {} if kept is None else kept.options
    source = "" if kept is None else f"{kept.origin}, line {kept.line}"
    return FileKernel(whole, parameters, options, source, command_line("trace", whole, words))


def _words(kept: FileLaunch, kernel: Kernel | MachineCode) -> list[str]:
    """Return the options that a launch of host code lacks; a comment is taken as it is."""
    from gpusim.cli.launch_examples import example_of
    from gpusim.launch.description import Origin

    if kept.origin is not Origin.HOST or "arg" in kept.options:
        return []
    given = example_of(kernel).arguments.items()
    return [word for name, value in given for word in ("--arg", f"{name}={value}")]


def _kernels_of(chosen: Namespace) -> list[tuple[str, Callable[[], Any]]]:
    """Return a file's kernels by name, each made when it is asked for.

    InputError where there is no such file.
    """
    from gpusim.cli.host_launches import instances
    from gpusim.cli.launch_examples import instance
    from gpusim.cli.user_files import kernels_of_file

    file = chosen.file
    reference = Reference.of(file)
    if not reference.file:
        raise InputError(
            f"{file} is no file of kernels (.py, .cu, .cubin, .nbc, .db); gpusim list without it "
            "lists the catalogue"
        )
    if reference.is_code:
        held = code_file(file, chosen)
        templates = getattr(held, "templates", {})
        text = getattr(held, "declarations", "")
        made = instances(text, held.file, held.names)
        short = [_short(name, held.names) for name in held.names]
        spelled = getattr(held, "spelled", lambda name: [name])
        names = [
            one
            for name in short
            for one in (
                [made[name]]
                if name in made
                else [instance(name, templates, text)]
                if name in templates
                else spelled(name)
            )
        ]
        return [(name, partial(held.__getitem__, name)) for name in names]
    return [(name, partial(_itself, one)) for name, one in kernels_of_file(file).items()]


def _short(symbol: str, known: Collection[str]) -> str:
    """Return a kernel's name in C++, where it means no other kernel of the file."""
    from gpusim.sass.symbols import cpp_name, named

    name = cpp_name(symbol)
    return name if named(name, dict.fromkeys(known)) == [symbol] else symbol


def _itself(kernel: Any) -> Any:
    return kernel


COMMAND = Command(
    "list",
    list_kernels,
    (
        Option(
            "file", "a file: .py, .cu, .cubin, numba's .nbc or tinygrad's .db", "FILE", arity="?"
        ),
        *COMPILING,
        ALL,
        JSON,
    ),
    (
        """examples:
  gpusim list
  gpusim list kernels.cu
  gpusim list --json""",
    ),
)
