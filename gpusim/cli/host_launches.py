"""The launch that a file's own host code makes of a kernel, as options of a command line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from gpusim.cli.file_launches import FileLaunch
from gpusim.cli.launch_examples import Parameter, dtype_of, parameters_of
from gpusim.launch.description import Origin
from gpusim.sass.host_code import HostLaunch, Pointer, launches
from gpusim.sass.host_numbers import Number, Root, operation

if TYPE_CHECKING:
    from gpusim.cuda import Kernel
    from gpusim.launch.configured import MachineCode
    from gpusim.sass.kernels import CodeFile, CodeKernel

SIZE, BLOCK = "n", "block"
# Elements where the host code has only a parameter for them: in a row, and in a square.
IN_A_ROW, IN_A_SQUARE = 65536, 256
SPARE = 4  # of an array in a row, in place of its size: some elements for each of n
MOST_ELEMENTS = 1 << 24  # of an array whose size is not known


def host_launch(kernel: Kernel | MachineCode) -> FileLaunch | None:
    """Return the launch of a kernel in the host code of its file, None where there is none.

    The constant that its size is becomes `n`, and a block of one dimension `block`, so that both
    may be given another value.
    """
    from gpusim.sass.kernels import CodeKernel, CudaSource

    if not isinstance(kernel, CodeKernel) or not isinstance(kernel.file, CudaSource):
        return None
    found = _found(kernel, {})
    if found is None:
        return None
    names = _names(found)
    named = _found(kernel, names) if names else found
    if named is None or not _varies(named):
        named = found if named is None else _found(kernel, _only(names, BLOCK))
    return None if named is None else _as_options(kernel, named, found)


def instances(text: str, file: str, kernels: Sequence[str]) -> Mapping[str, str]:
    """Return kernels that are templates with the arguments of their first launch, by name."""
    made: dict[str, str] = {}
    for one in launches(text, file, kernels):
        if one.kernel.template:
            full = f"{one.kernel.name}<{', '.join(one.kernel.template)}>"
            made.setdefault(one.kernel.name, full)
    return made


def _only(names: Mapping[Root, str], word: str) -> Mapping[Root, str]:
    return {root: name for root, name in names.items() if name == word}


def _found(kernel: CodeKernel, names: Mapping[Root, str]) -> HostLaunch | None:
    """Return the launch of a kernel with most of its arguments known, the first among equals."""
    plain, _, template = kernel.__name__.partition("<")
    wanted = tuple(one.strip() for one in template.removesuffix(">").split(",") if one.strip())
    found = [
        one
        for one in _launches(kernel.file, names)
        if one.kernel.name == plain.rpartition("::")[2] and one.kernel.template in (wanted, ())
    ]
    return max(found, key=lambda one: one.known, default=None)


def _launches(file: CodeFile, names: Mapping[Root, str]) -> Sequence[HostLaunch]:
    text = getattr(file, "declarations", "")
    return _kept(text, file.file, tuple(file.names), tuple(names.items()))


@lru_cache(maxsize=16)
def _kept(
    text: str, file: str, kernels: tuple[str, ...], names: tuple[tuple[Root, str], ...]
) -> Sequence[HostLaunch]:
    return launches(text, file, kernels, dict(names))


def _names(found: HostLaunch) -> dict[Root, str]:
    """Return the constants of a launch that are its size or its block."""
    numbers = [one for one in found.arguments if isinstance(one, Number) and one.root is not None]
    sizes = [one for one in numbers if one.value.denominator == 1 and one.value > 1]
    largest = max((one.value for one in sizes), default=None)
    block = found.block.sizes
    names = {one.root: SIZE for one in sizes if one.value == largest and one.root is not None}
    if len(block) == 1 and block[0].root is not None and block[0].root not in names:
        names[block[0].root] = BLOCK
    return names


def _varies(found: HostLaunch) -> bool:
    """Return whether the grid or an array depends on the size."""
    sizes = [one.bytes for one in found.arguments if isinstance(one, Pointer)]
    texts = [one.text for one in sizes if one is not None]
    is_in_arrays = any(SIZE in re.findall(r"\w+", text) for text in texts)
    return is_in_arrays or _has_size_in_grid(found) or None in sizes


def _as_options(kernel: CodeKernel, named: HostLaunch, found: HostLaunch) -> FileLaunch:
    options: dict[str, str | list[str]] = {
        "grid": "x".join(one.written for one in named.grid.sizes),
        "block": "x".join(str(one.whole) for one in named.block.sizes),
    }
    if found.shared is not None:
        options["shared_bytes"] = str(found.shared.whole)
    parameters = parameters_of(kernel)
    sizes = _sizes(named)
    if len(parameters) == len(named.arguments):
        pairs = zip(parameters, named.arguments, strict=True)
        unknown = _unknown_elements(named)
        options["arg"] = [f"{one.name}={_argument(one, value, unknown)}" for one, value in pairs]
    if sizes:
        n = sizes[0].whole
        is_open = sizes[0].root is not None and sizes[0].root[0] == "unknown"
        usual = IN_A_ROW if _power(named) == 1 else IN_A_SQUARE
        options["n"] = str(usual if is_open else n)
    return FileLaunch(options, Origin.HOST, named.line)


def _argument(parameter: Parameter, value: object, unknown: str) -> str:
    """Return an argument as `--arg` has it; its type's example where nothing is known."""
    if parameter.is_array:
        kind = dtype_of(parameter.type)
        known = isinstance(value, Pointer) and value.bytes is not None
        return f"{kind}[{_elements(value.bytes, kind) if known else unknown}]"  # type: ignore[attr-defined]
    if isinstance(value, Number):
        if dtype_of(parameter.type).startswith("float"):
            return str(float(value.value))
        return value.written
    return parameter.example


def _elements(bytes_: Number, kind: str) -> str:
    """Return the number of elements of some bytes."""
    width = np.dtype(kind).itemsize
    for elements in (bytes_.text.removesuffix(f"*{width}"), bytes_.text.removeprefix(f"{width}*")):
        if elements != bytes_.text:
            return elements
    made = operation("/", bytes_, Number.of(width), is_whole=True)
    assert made is not None
    return made.written if made.whole else "1"


def _unknown_elements(found: HostLaunch) -> str:
    """Return the size of an array that host code does not allocate: enough for all threads."""
    threads = math.prod(one.whole for one in (*found.grid.sizes, *found.block.sizes))
    least = str(min(MOST_ELEMENTS, SPARE * max(threads, 1)))
    if not _sizes(found):
        return least
    power = _power(found)
    elements = "*".join([SIZE] * power) if power > 1 else f"{SPARE}*{SIZE}"
    return elements if _has_size_in_grid(found) else f"max({elements},{least})"


def _sizes(found: HostLaunch) -> list[Number]:
    """Return the arguments that are the size."""
    return [one for one in found.arguments if isinstance(one, Number) and one.text == SIZE]


def _power(found: HostLaunch) -> int:
    """Return the dimensions of a launch's data, each of the size."""
    dimensions = max(len(found.grid.sizes), len(found.block.sizes))
    return min(3, max(dimensions, min(2, len(_sizes(found)))))


def _has_size_in_grid(found: HostLaunch) -> bool:
    return any(SIZE in re.findall(r"\w+", one.text) for one in found.grid.sizes)
