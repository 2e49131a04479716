"""`gpusim list`: the kernels of the catalogue."""

from __future__ import annotations

from gpusim.cli.options import Json, print_json, print_lines

EXAMPLES = """Examples:
  gpusim list
  gpusim list --json
"""


def list_kernels(json: Json = False) -> None:
    """List the kernels: origin, what each teaches, known defects."""
    from gpusim.catalogue import entries

    if json:
        print_json([entry.to_dict() for entry in entries()])
        return
    from gpusim.reports.kernels import kernel_list
    from gpusim.reports.layout import console

    print_lines(kernel_list(entries(), console().width))
