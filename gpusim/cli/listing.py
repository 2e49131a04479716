"""`gpusim list`: the kernels of the catalogue."""

from __future__ import annotations

from argparse import Namespace

from gpusim.cli.options import JSON, Command, print_json, print_lines


def list_kernels(chosen: Namespace) -> int:
    """List the kernels: origin, lesson, known defects."""
    from gpusim.catalogue import entries

    if chosen.json:
        print_json([entry.to_dict() for entry in entries()])
        return 0
    from gpusim.reports.kernels import kernel_list

    print_lines(lambda width: kernel_list(entries(), width))
    return 0


COMMAND = Command(
    "list",
    list_kernels,
    (JSON,),
    (
        """examples:
  gpusim list
  gpusim list --json""",
    ),
)
