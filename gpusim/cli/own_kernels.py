"""A user's own kernel, `FILE.py:FUNCTION` or `FILE.cu:KERNEL`, with its launch and arguments."""

from __future__ import annotations

import math
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpusim.cli.code_files import COMPILING
from gpusim.cli.kept_launches import with_kept_launch
from gpusim.cli.options import BLOCK, COARSE, COUNT, DATA_TYPE, GRID, INPUT, OPERATION, Option
from gpusim.errors import InputError
from gpusim.host.files import shown

if TYPE_CHECKING:
    from gpusim.cuda import Kernel
    from gpusim.launch.configured import ConfiguredKernel, MachineCode

ARGUMENT = Option("--arg", "an argument of FILE.py:FUNCTION, see below", "[NAME=]VALUE", None, True)
ARGUMENT_ORDER = "arguments of FILE.py:FUNCTION, in order, or by name as NAME=VALUE:"
WITH_ELEMENTS = (
    "an array with elements, for data-dependent control flow or addresses: zeros, ones, arange, "
    "random, random:SEED:LEAST:MOST, full:NUMBER"
)
SIZES_OF_N = (
    "sizes as expressions of -n N and the block's threads, in --grid too, as ceil(n/16)xn: "
    "+ - * / %, min, max, ceil"
)
SHARED_BYTES = Option(
    "--shared-bytes", "dynamic shared memory of a block, for FILE.py:FUNCTION", "BYTES"
)
# How a launch is described, of the catalogue or of one's own.
LAUNCHING = (
    COUNT,
    BLOCK,
    GRID,
    OPERATION,
    DATA_TYPE,
    INPUT,
    COARSE,
    ARGUMENT,
    SHARED_BYTES,
)

# How the launch of one's own kernel is described beside its size and its block.
OWN = (GRID, ARGUMENT, SHARED_BYTES, *COMPILING)


def refuse(options: Mapping[str, Any], because: str) -> None:
    """Raise InputError where one of these options is given."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"{', '.join(given)} cannot be given here: {because}")


def own_kernel(
    chosen: Namespace,
    *,
    with_elements: bool = True,
    filling: str = "zeros",
    kernel: Kernel | MachineCode | None = None,
) -> tuple[ConfiguredKernel, list[Any]]:
    """Return the kernel with its grid and block, and its arguments in order.

    Arrays that are given no filling have `filling`; without elements, they are `array_spec`s. A
    `kernel` that is known is not read again.
    """
    from gpusim.cli import inputs

    chosen = with_kept_launch(chosen)
    kernel = kernel_of(chosen) if kernel is None else kernel
    missing = _missing(kernel, chosen)
    if missing:
        raise InputError(missing)
    values = _values(kernel, chosen, with_elements=with_elements, filling=filling)
    block = inputs.sizes(chosen.block, "the block")
    grid = grid_of(chosen.grid, sizes_given(chosen))
    given = chosen.shared_bytes
    dynamic = inputs.count(given, "--shared-bytes", least=0) if given is not None else 0
    return kernel[grid, block, 0, dynamic], values


def _missing(kernel: Kernel | MachineCode, chosen: Namespace) -> str:
    """Return everything that a launch lacks, with a command line that has it; "" for nothing."""
    from gpusim.cli.arguments import argument, bound
    from gpusim.cli.launch_examples import command_line, example_of, parameters_of

    names, sizes = kernel.source.parameters, sizes_given(chosen)
    described = [argument(one, with_elements=False, names=sizes) for one in chosen.arg or ()]
    given = [one.name for one in described if one.name is not None]
    if not set(given) <= set(names):
        bound(described, names, kernel.__name__)  # says which is unknown
    left = [name for name in names if name not in given][len(described) - len(given) :]
    lacks = [flag for flag in ("grid", "block") if getattr(chosen, flag) is None]
    if not lacks and not left:
        return ""
    types = {one.name: one for one in parameters_of(kernel)}
    wanted = [f"--{flag}" for flag in lacks]
    if left:
        wanted.append(f"--arg for {', '.join(str(types[name]) for name in left)}")
    example = example_of(kernel)
    words = [word for one in chosen.arg or () for word in ("--arg", one)]
    words += [word for name in left for word in ("--arg", f"{name}={example.arguments[name]}")]
    shape = {name: getattr(chosen, name) for name in ("grid", "block", "shared_bytes")}
    for name in ("grid", "block"):
        words += ["--" + name, shape[name]] if shape[name] is not None else []
    words += ["-n", chosen.n] if chosen.n is not None else []
    words += example.options({name: value is not None for name, value in shape.items()})
    command = getattr(chosen, "command", None) or "trace"
    mark = "#" if chosen.kernel.partition(":")[0].endswith(".py") else "//"
    what = "has no launch rule" if lacks else "lacks arguments"
    return (
        f"{chosen.kernel} {what}; give {_listed(wanted)}, for example\n"
        f"  {command_line(command, chosen.kernel, words)}\n"
        "or keep the launch in the file, in a comment before the kernel:\n"
        f"  {mark} {example.comment}"
    )


def _listed(words: Sequence[str]) -> str:
    """Return "a", "a and b", or "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def sizes_given(chosen: Namespace) -> dict[str, int]:
    """Return the sizes that may stand in the grid and in arguments: n, and the block's threads."""
    from gpusim.cli import inputs

    names = {}
    if chosen.n is not None:
        names["n"] = inputs.count(chosen.n)
    if chosen.block is not None:
        names["block"] = math.prod(inputs.sizes(chosen.block, "the block"))
    return names


def grid_of(text: str, names: Mapping[str, int]) -> tuple[int, ...]:
    """Return a grid written as 64, 16x16 or with expressions: ceil(n/block), ceil(n/16)xn."""
    from gpusim.cli import inputs
    from gpusim.cli.expressions import is_expression, parts_of, value_of

    parts = parts_of(text)
    if not any(is_expression(part, names) for part in parts):
        return inputs.sizes(text, "the grid")
    if len(parts) != len(parts_of(text, commas=False)):
        raise InputError(f"the grid is {shown(text)!r}; its sizes are written with x between them")
    sizes = tuple(value_of(part, names) for part in parts)
    if len(sizes) > 3:
        raise InputError(f"the grid has one to three sizes, not {len(sizes)}")
    return sizes


def depends_on(name: str, chosen: Namespace) -> bool:
    """Return whether a size stands in the grid or in an argument."""
    from gpusim.cli.expressions import parts_of

    word = re.compile(rf"(?<!\w){name}(?!\w|=)")
    sizes = parts_of(chosen.grid or "")
    return any(word.search(text) for text in [*(chosen.arg or []), *sizes])


def kernel_of(chosen: Namespace) -> Kernel | MachineCode:
    """Return the kernel that is named by its file; InputError where there is none."""
    from gpusim.cli.code_files import code_kernel
    from gpusim.cli.user_files import code_of, kernel_of_file

    path, name = code_of(chosen.kernel)
    if path:
        return code_kernel(path, name, chosen)
    return kernel_of_file(name, getattr(chosen, "values", None) or {})


def own_arguments(
    chosen: Namespace, *, with_elements: bool
) -> tuple[Kernel | MachineCode, list[Any]]:
    """Return the kernel and its arguments in order, however it may be launched."""
    chosen = with_kept_launch(chosen)
    kernel = kernel_of(chosen)
    return kernel, _values(kernel, chosen, with_elements=with_elements)


def _values(
    kernel: Kernel | MachineCode,
    chosen: Namespace,
    *,
    with_elements: bool,
    filling: str = "zeros",
) -> list[Any]:
    """Return a kernel's arguments in order."""
    from gpusim.cli.arguments import argument, bound

    name = chosen.kernel
    refuse(
        {
            "--op": chosen.op,
            "--dtype": chosen.dtype,
            "--input": getattr(chosen, "input", None),
            "--coarse": chosen.coarse,
        },
        f"{name} takes its data from --arg",
    )
    names = sizes_given(chosen)
    described = [
        argument(text, with_elements=with_elements, filling=filling, names=names)
        for text in chosen.arg or []
    ]
    if "n" in names and not depends_on("n", chosen):
        raise InputError(
            f"-n is given, but n stands in no --arg of {name}, nor in --grid; write for example "
            "--arg 'float32[n]' and --grid 'ceil(n/block)'"
        )
    return bound(described, kernel.source.parameters, kernel.__name__)
