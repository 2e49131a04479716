"""`gpusim list`: the kernels of the catalogue, or of a file."""

from __future__ import annotations

from argparse import Namespace

from gpusim.cli import output
from gpusim.cli.code_files import COMPILING, code_file, parted
from gpusim.cli.options import JSON, Command, Option, print_json, print_lines
from gpusim.errors import InputError


def list_kernels(chosen: Namespace) -> int:
    """List the kernels: origin, lesson, known defects.

    Of a file the names alone, as other commands take them: FILE.py:FUNCTION or FILE.cu:KERNEL.
    """
    if chosen.file is not None:
        return _list_file(chosen)
    from gpusim.catalogue import entries

    if chosen.json:
        print_json([entry.to_dict() for entry in entries()])
        return 0
    from gpusim.reports.kernels import kernel_list

    print_lines(lambda width: kernel_list(entries(), width))
    return 0


def _list_file(chosen: Namespace) -> int:
    names = [f"{chosen.file}:{name}" for name in _kernels_of(chosen.file, chosen)]
    if chosen.json:
        print_json([{"name": name} for name in names])
    else:
        output.write("".join(f"{name}\n" for name in names) or f"{chosen.file} has no kernels\n")
    return 0


def _kernels_of(file: str, chosen: Namespace) -> list[str]:
    """Return the names of a file's kernels; InputError where there is no such file."""
    from gpusim.cli.user_files import kernels_of_file, names_a_file

    if not names_a_file(file):
        raise InputError(
            f"{file} is no file of kernels (.py, .cu, .cubin); gpusim list without it lists the "
            "catalogue"
        )
    if parted(file)[0]:
        return list(code_file(file, chosen).names)
    return list(kernels_of_file(file))


COMMAND = Command(
    "list",
    list_kernels,
    (
        Option("file", "a file of your own: FILE.py, FILE.cu or FILE.cubin", "FILE", arity="?"),
        *COMPILING,
        JSON,
    ),
    (
        """examples:
  gpusim list
  gpusim list kernels.cu
  gpusim list --json""",
    ),
)
