"""A user's own kernel, `FILE.py:FUNCTION` or `FILE.cu:KERNEL`, with its launch and arguments."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpusim.cli.options import Option
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.cuda import ConfiguredKernel, Kernel, MachineCode

ARGUMENT = Option("--arg", "an argument of FILE.py:FUNCTION, see below", "[NAME=]VALUE", None, True)
SHARED_BYTES = Option(
    "--shared-bytes", "dynamic shared memory of a block, for FILE.py:FUNCTION", "BYTES"
)


def refuse(options: Mapping[str, Any], because: str) -> None:
    """Raise InputError where one of these options is given."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"{', '.join(given)} cannot be given here: {because}")


def own_kernel(
    chosen: Namespace, *, with_elements: bool = True
) -> tuple[ConfiguredKernel, list[Any]]:
    """Return the kernel with its grid and block, and its arguments in order.

    Without elements, arrays that are given no filling are `array_spec`s.
    """
    from gpusim.cli import inputs

    if chosen.grid is None or chosen.block is None:
        raise InputError(f"{chosen.kernel} has no launch rule; give --grid and --block")
    kernel, values = own_arguments(chosen, with_elements=with_elements)
    grid, block = inputs.sizes(chosen.grid, "the grid"), inputs.sizes(chosen.block, "the block")
    given = chosen.shared_bytes
    dynamic = inputs.count(given, "--shared-bytes", least=0) if given is not None else 0
    return kernel[grid, block, 0, dynamic], values


def own_arguments(
    chosen: Namespace, *, with_elements: bool
) -> tuple[Kernel | MachineCode, list[Any]]:
    """Return the kernel and its arguments in order, however it may be launched."""
    from gpusim.cli.arguments import argument, bound
    from gpusim.cli.code_files import code_kernel, parted
    from gpusim.cli.user_files import kernel_of_file

    name = chosen.kernel
    refuse(
        {
            "-n": chosen.n,
            "--op": chosen.op,
            "--dtype": chosen.dtype,
            "--input": getattr(chosen, "input", None),
            "--coarse": chosen.coarse,
        },
        f"{name} takes its data from --arg",
    )
    kernel = code_kernel(name, chosen) if parted(name)[0] else kernel_of_file(name)
    described = [argument(text, with_elements=with_elements) for text in chosen.arg or []]
    return kernel, bound(described, kernel.source.parameters, kernel.__name__)
