"""`gpusim list`: the kernels of the catalogue, or of a file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpusim.cli import output
from gpusim.cli.options import COMPILING, Command, Option, options, print_document, print_lines
from gpusim.cli.references import Reference
from gpusim.errors import GpusimError, InputError

if TYPE_CHECKING:
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

    reference = Reference.of(chosen.file)
    if not reference.file:
        raise InputError(
            f"{chosen.file} is not a file of kernels (.py, .cu, .cubin, .nbc, .db); gpusim list "
            "without a file lists the catalogue"
        )
    kernels = reference.all_made(chosen).items()
    found = [_described(f"{chosen.file}:{name}", kernel, chosen) for name, kernel in kernels]
    if chosen.json:
        print_document("file", {"kernels": [one.to_dict() for one in found]})
    elif found:
        print_lines(lambda width: file_kernels(found, width))
    else:
        output.write(f"{chosen.file} has no kernels\n")
    return 0


def _described(name: str, kernel: Callable[[], Any], chosen: Namespace) -> FileKernel:
    """Return a kernel with its parameters and its launch, or with the reason for none."""
    from gpusim.cli.launch_examples import command_line, parameters_of
    from gpusim.cli.launches import MEMBERS, completed, example_words
    from gpusim.reports.kernels import FileKernel

    try:
        made = kernel()
        parameters = tuple((one.name, one.type) for one in parameters_of(made))
        complete, description = completed(Namespace(**{**vars(chosen), "kernel": name}), made)
        words = example_words(made, complete)
    except GpusimError as error:
        return FileKernel(name, error=str(error).partition("\n")[0])
    options = {
        one: value
        for one in ("grid", "block", "n", "shared_bytes", "cluster", "arg")
        if (value := getattr(complete, one, None)) is not None
    }
    members = [getattr(description, one) for one in MEMBERS]
    held = [one for one in (*members, *description.arguments.values()) if one is not None]
    sources = {one.source for one in held}
    source = description.origin if len(sources) > 1 else "".join(sources)
    command = command_line("trace", name, words)
    return FileKernel(name, parameters, options, source, command)


COMMAND = Command(
    "list",
    list_kernels,
    options(
        Option(
            "file", "a file: .py, .cu, .cubin, numba's .nbc or tinygrad's .db", "FILE", arity="?"
        ),
        COMPILING,
        "--all --json",
    ),
    (
        """examples:
  gpusim list
  gpusim list kernels.cu
  gpusim list --json""",
    ),
)
