"""The launch that a file's own host code makes of a kernel, as options of a command line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusim.cli import inputs
from gpusim.cli.expressions import value_of
from gpusim.cli.launch_examples import Parameter, components_of, dtype_of, parameters_of
from gpusim.cli.python_launches import python_launches
from gpusim.cuda_cpp.host_code import OPEN, HostLaunch, launches
from gpusim.cuda_cpp.host_numbers import Number, Root, operation
from gpusim.cuda_cpp.host_values import HostArray, Pointer
from gpusim.host import files
from gpusim.launch.description import Origin

if TYPE_CHECKING:
    from gpusim.cuda import Kernel
    from gpusim.cuda_cpp.signature import Declared
    from gpusim.cuda_cpp.structures import Structures
    from gpusim.launch.configured import MachineCode
    from gpusim.sass.kernels import CodeFile, CudaSource

SIZE, BLOCK = "n", "block"
FEW = "2"  # a number of open size that is none of the data's
# Elements where the host code has only a parameter for them: in a row, and in a square.
IN_A_ROW, IN_A_SQUARE = 65536, 256
SPARE = 4  # of an array in a row, in place of its size: some elements for each of n
USUAL_BLOCKS = ("256", "16x16", "8x8x4")  # where the host code has only a parameter for it
MOST_ELEMENTS = 1 << 24  # of an array whose size is not known
USUAL_SHARED_BYTES = 48 << 10  # that any launch may have
LEAST_SIZE = 32  # of constants that are no argument, and may be the size
CANDIDATE = "constant"  # the name of such a constant, with a number


class FileLaunch(NamedTuple):
    """A launch that a file has for a kernel: options by destination, origin, and line.

    `size` is the constant of the source that `n` replaces, None without one; `block_sizes` are
    those that another block replaces, axis by axis.
    """

    options: Mapping[str, str | list[str]]
    origin: Origin
    line: int
    size: Root | None = None
    block_sizes: tuple[Root | None, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """The arguments, in the kernel's order or by name."""
        return list(self.options.get("arg", ()))


def host_launch(kernel: Kernel | MachineCode, block: str | None = None) -> FileLaunch | None:
    """Return the launch of a kernel in the host code of its file, None where there is none.

    The constant that its size is becomes `n`, and a block of one dimension `block`, so that both
    may be given another value. Constants that are the sizes of a block of more dimensions have
    those of `block`, where that is given.
    """
    file = _file(kernel)
    if file is None:
        return None
    plain, _, template = kernel.__name__.partition("<")
    plain, wanted = plain.rpartition("::")[2], _parted(template.removesuffix(">"))
    known = _launches(file, plain, {})
    same = {at: "" for at, one in enumerate(known) if _template(one, file) in (wanted, [])}
    others = {at: _block(one, file, wanted) for at, one in enumerate(known)}
    found = same or {at: other for at, other in others.items() if other}
    if not found:
        return None
    at = max(found, key=lambda at: known[at].known)
    other = found[at] or _usual_block(known[at])
    sizes = _of_block(known[at], other or block or "")

    def launched(names: Mapping[Root, str]) -> HostLaunch | None:
        return next(iter(_launches(file, plain, {**sizes, **names})[at : at + 1]), None)

    for names in _names(known[at], launched):
        named = launched(names)
        if named is not None and (_varies(named) or SIZE not in names.values()):
            return _as_options(kernel, named, known[at], names, other)
    return None


class _PythonFile:
    """The launches of a Python file: its kernels are no templates."""

    templates: Mapping[str, list[str]] = {}
    kernels: Mapping[str, Sequence[Declared]] = {}

    def __init__(self, text: str) -> None:
        self.text = text


def _file(kernel: Kernel | MachineCode) -> CudaSource | _PythonFile | None:
    """Return the file with a kernel's host code, None where there is none."""
    from gpusim.sass.kernels import CodeKernel, CudaSource

    if isinstance(kernel, CodeKernel):
        return kernel.file if isinstance(kernel.file, CudaSource) else None
    path = Path(kernel.source.file)
    if not path.is_file():
        return None
    return _PythonFile(files.source(path, files.MAX_PYTHON_BYTES, again=True))


def instance(file: CodeFile, name: str, block: str | None = None) -> str | None:
    """Return a template with the arguments of its first launch in host code, None without one.

    Arguments that are sizes of the launch's block have those of `block`, where that is given.
    """
    from gpusim.sass.kernels import CudaSource

    base, plain = name.partition("<")[0], name.rpartition("::")[2]
    if not isinstance(file, CudaSource) or plain not in file.templates:
        return None
    own = {word for one in file.templates[plain] for word in one.split()[1:]}
    for one in _launches(file, plain, {}):
        words = _template(one, file, _of_block(one, block or ""))
        if words and own.isdisjoint(words):  # else a macro defines the name: AT_DISPATCH's scalar_t
            return f"{base}<{', '.join(words)}>"
    return None


def _usual_block(launch: HostLaunch) -> str:
    """Return a usual block in place of one whose sizes nothing gives, "" for any other."""
    sizes = launch.block.sizes
    is_open = any(one.root is not None and one.root[0] == OPEN for one in sizes)
    return USUAL_BLOCKS[len(sizes) - 1] if is_open else ""


def _parted(template: str) -> list[str]:
    return [one.strip() for one in template.split(",") if one.strip()]


def _of_block(launch: HostLaunch, block: str) -> dict[Root, str]:
    """Return the constants that are the sizes of a launch's block, with those of another one.

    There are none where a constant would have two sizes.
    """
    sizes = inputs.sizes(block, "the block") if block else ()
    if len(sizes) != len(launch.block.sizes):
        return {}
    pairs = zip(launch.block.sizes, map(str, sizes), strict=True)
    found = {(one.root, size) for one, size in pairs if one.root is not None}
    made = dict(found)
    return made if len(made) == len(found) else {}


def _block(launch: HostLaunch, file: CudaSource | _PythonFile, wanted: Sequence[str]) -> str:
    """Return the block of a launch that has template arguments among its sizes; "" for none."""
    given = {
        one.root: size
        for one, size in zip(launch.kernel.template, wanted, strict=False)
        if isinstance(one, Number) and one.root is not None
    }
    sizes = [given.get(one.root, str(one.whole)) for one in launch.block.sizes if one.root]
    block = "x".join(sizes)
    is_another = all(map(str.isdigit, sizes)) and len(sizes) == len(launch.block.sizes)
    if is_another and _template(launch, file, _of_block(launch, block)) == wanted:
        return block
    return ""


def _template(
    launch: HostLaunch, file: CudaSource | _PythonFile, sizes: Mapping[Root, str] = {}
) -> list[str]:
    """Return the template arguments of a launch: those that are written, then those deduced.

    `sizes` replace those of some constants.
    """
    words = [
        sizes.get(one.root or (), str(one.whole)) if isinstance(one, Number) else one
        for one in launch.kernel.template
    ]
    types = {
        re.sub(r"\bconst\b|[*& ]|\[\]", "", declared.ctype): _type_of(value)
        for declared, value in zip(
            file.kernels.get(launch.kernel.name, ()), launch.arguments, strict=False
        )
        if _type_of(value)
    }
    for one in file.templates.get(launch.kernel.name, [])[len(words) :]:
        deduced = types.get(one.partition("=")[0].split()[-1])
        if deduced is None:
            break
        words.append(deduced)
    return words


def _type_of(value: object) -> str:
    """Return the type of an argument, of a pointer's elements; "" where it is not known."""
    if isinstance(value, Pointer):
        return " ".join(re.sub(r"\bconst\b|[*&]|\[\]", " ", value.ctype).split())
    return "int" if isinstance(value, Number) else ""


def _launches(
    file: CudaSource | _PythonFile, name: str, names: Mapping[Root, str]
) -> Sequence[HostLaunch]:
    """Return the launches of a kernel."""
    if isinstance(file, _PythonFile):
        found = python_launches(file.text, names)
    else:
        held = tuple(names.items())
        found = _kept(file.declarations, file.file, tuple(file.names), held)
    return [one for one in found if one.kernel.name == name]


@lru_cache(maxsize=16)
def _kept(
    text: str, file: str, kernels: tuple[str, ...], names: tuple[tuple[Root, str], ...]
) -> Sequence[HostLaunch]:
    return launches(text, file, kernels, dict(names))


def _names(
    found: HostLaunch, launched: Callable[[Mapping[Root, str]], HostLaunch | None]
) -> Iterator[dict[Root, str]]:
    """Yield names for the constants that may be a launch's size and its block.

    The size is the largest argument, else the largest constant of the host code that arrays or the
    grid depend on, else nothing. `launched` makes the launch with names for constants.
    """
    numbers = [one for one in found.arguments if isinstance(one, Number)]
    sizes = {
        one.root: one.value
        for one in numbers
        if one.root is not None and one.value.denominator == 1 and one.value > 1
    }
    largest = max(sizes.values(), default=None)
    block = {one.root: BLOCK for one in found.block.sizes[:1] if one.root is not None}
    if len(found.block.sizes) > 1:
        block = {}
    roots = [root for root, value in sizes.items() if value == largest]
    if roots:
        few = _few(found, roots, launched)
        yield {**block, **{root: FEW if root in few else SIZE for root in roots}}
    of_host = {
        root: f"{CANDIDATE}{number}"
        for number, (root, value) in enumerate(found.constants.items())
        if value.denominator == 1 and value >= LEAST_SIZE and root not in block
    }
    named = launched(of_host)
    for texts in [] if named is None else [_array_sizes(named), _grid(named)]:
        words = {word for text in texts for word in _words(text)}
        used = [root for root, word in of_host.items() if word in words]
        if used:
            yield {**block, max(used, key=lambda root: found.constants[root]): SIZE}
    yield block


def _few(
    found: HostLaunch,
    roots: Sequence[Root],
    launched: Callable[[Mapping[Root, str]], HostLaunch | None],
) -> list[Root]:
    """Return the numbers of open size that no array and not the grid depend on: a filter's width.

    There are none where the size of an array is not known: it may depend on any of them.
    """
    candidates = {root: f"{CANDIDATE}{number}" for number, root in enumerate(roots)}
    named = launched(candidates)
    pointers = [one for one in found.arguments if isinstance(one, Pointer)]
    if named is None or None in [one.bytes for one in pointers]:
        return []
    words = {word for text in (*_array_sizes(named), *_grid(named)) for word in _words(text)}
    few = [root for root, word in candidates.items() if word not in words and root[0] == OPEN]
    return few if len(few) < len(roots) else []


def _varies(found: HostLaunch) -> bool:
    """Return whether the grid or an array depends on the size; of unknown ones some may."""
    words = {word for text in (*_array_sizes(found), *_grid(found)) for word in _words(text)}
    pointers = [one for one in found.arguments if isinstance(one, Pointer)]
    return SIZE in words or (bool(_sizes(found)) and None in [one.bytes for one in pointers])


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _grid(found: HostLaunch) -> list[str]:
    return [one.text for one in found.grid.sizes]


def _array_sizes(found: HostLaunch) -> Iterator[str]:
    """Yield the sizes of the arrays of a launch."""
    for one in found.arguments:
        if isinstance(one, Pointer) and one.bytes is not None:
            yield one.bytes.text
        elif isinstance(one, HostArray):
            yield from (size.text for size in one.shape)


def _as_options(
    kernel: Kernel | MachineCode,
    named: HostLaunch,
    found: HostLaunch,
    names: Mapping[Root, str],
    block: str,
) -> FileLaunch:
    options: dict[str, str | list[str]] = {
        "grid": "x".join(one.written for one in named.grid.sizes),
        "block": block or "x".join(str(one.whole) for one in named.block.sizes),
    }
    if named.shared is not None:
        options["shared_bytes"] = named.shared.written
    parameters = parameters_of(kernel)
    unknown = _unknown_elements(named)
    known = getattr(getattr(kernel, "file", None), "structures", {})
    pairs = [
        (one, _argument(one, value, unknown, known))
        for one, value in _pairs(parameters, named.arguments)
    ]
    if pairs:
        options["arg"] = [f"{one.name}={text}" for one, text in pairs if text]
    for root in [root for root, name in names.items() if name == SIZE][:1]:
        is_open = root[0] == OPEN
        options["n"] = str(_usual_size(named) if is_open else found.constants[root])
    size = next((root for root, name in names.items() if name == SIZE), None)
    block_sizes = tuple(one.root for one in found.block.sizes)
    return FileLaunch(options, Origin.HOST, named.line, size, block_sizes)


def _usual_size(launch: HostLaunch) -> int:
    """Return elements for a launch of open size, so many that its shared memory suffices."""
    size = IN_A_ROW if _power(launch) == 1 else IN_A_SQUARE
    names = {SIZE: size, BLOCK: math.prod(one.whole for one in launch.block.sizes)}
    text = "0" if launch.shared is None else launch.shared.written
    while names[SIZE] > 1 and value_of(text, names) > USUAL_SHARED_BYTES:
        names[SIZE] //= 2
    return names[SIZE]


def _pairs(
    parameters: Sequence[Parameter], values: Sequence[object]
) -> Iterator[tuple[Parameter, object]]:
    """Yield parameters with their values in host code; members of structures each with its own."""
    parts = [list(one) for _, one in groupby(parameters, lambda one: one.name.partition(".")[0])]
    if len(parts) != len(values):
        return
    for members, value in zip(parts, values, strict=True):
        given = value if isinstance(value, list) else [value]
        known = given if len(given) == len(members) else [None] * len(members)
        yield from zip(members, known, strict=True)


def _argument(parameter: Parameter, value: object, unknown: str, known: Structures) -> str:
    """Return an argument as `--arg` has it, of its type's example where nothing else is known."""
    if not parameter.example:
        return ""
    if isinstance(value, HostArray):
        return f"{value.dtype}[{','.join(one.written for one in value.shape)}]"
    if isinstance(value, float):
        return str(value)
    if parameter.is_array:
        kind = dtype_of(parameter.type)
        if isinstance(value, Pointer) and value.bytes is not None and value.bytes.whole > 0:
            return f"{kind}[{_elements(value.bytes, kind)}]"
        components = components_of(parameter.type, known)
        return f"{kind}[{unknown if components == 1 else f'{components}*{unknown}'}]"
    if isinstance(value, Number):
        if dtype_of(parameter.type).startswith("float"):
            return str(float(value.value))
        return value.written
    return parameter.example


def _elements(bytes_: Number, kind: str) -> str:
    """Return the number of elements of some bytes."""
    width = np.dtype(kind).itemsize
    for product in (r"(?P<rest>.+)\*(?P<bytes>\d+)", r"(?P<bytes>\d+)\*(?P<rest>.+)"):
        found = re.fullmatch(product, bytes_.text)
        if found is not None and int(found["bytes"]) % width == 0:
            times = int(found["bytes"]) // width
            return found["rest"] if times == 1 else f"{found['rest']}*{times}"
    made = operation("/", bytes_, Number.of(width), is_whole=True)
    assert made is not None
    return made.written if made.whole else "1"


def _unknown_elements(found: HostLaunch) -> str:
    """Return the size of an array that host code does not allocate: enough for all threads."""
    threads = math.prod(one.whole for one in (*found.grid.sizes, *found.block.sizes))
    least = str(min(MOST_ELEMENTS, SPARE * max(threads, 1)))
    if not _sizes(found) and not _has_size_in_grid(found):
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
    return any(SIZE in _words(text) for text in _grid(found))
