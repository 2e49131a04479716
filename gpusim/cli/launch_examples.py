"""A kernel's parameters, and an example of a launch: sizes that most kernels run with."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusim.cuda_cpp.example_instances import block_constants, body_in, shape, tile_parameters
from gpusim.cuda_cpp.structures import TYPES, Structures, size_of

if TYPE_CHECKING:
    from gpusim.cuda import Kernel
    from gpusim.cuda_cpp.host_numbers import Root
    from gpusim.launch.configured import MachineCode
    from gpusim.sass.kernels import CodeKernel

# Numbers are small and arrays long: a thread's index, and its product with a number, lie within.
NUMBER = 64
_SHAPES = {1: "65536", 2: "256,256", 3: "32,32,64"}
_ADDRESS = "8 bytes"  # of machine code: a pointer, most often
_DYNAMIC_BYTES = "4096"
_BITS = {"bfloat162": "uint32", "bfloat16": "uint16", "fp8": "uint8"}  # types that NumPy lacks
# Textures, surfaces, and arrays of addresses.
_OF_A_PROGRAM = re.compile(r"\bcuda(?:Texture|Surface)Object_t\b|\*.*\*")
_LEAST = re.compile(r"(?:^|_)(?:min|lo|low|lower|offset)(?![a-z])")  # elements are 0 to 1
_DYNAMIC = re.compile(r"\bextern\s+__shared__|\bshared\.array\(\s*(?:shape\s*=\s*)?0\b")


class Parameter(NamedTuple):
    """A parameter by name, with its type in CUDA C++; of Python "array", "number", or ""."""

    name: str
    type: str
    dimensions: int = 1

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" if self.type else self.name

    @property
    def is_array(self) -> bool:
        """Whether it is a pointer or an array."""
        return self.type in ("array", _ADDRESS) or "*" in self.type or self.type.endswith("]")

    @property
    def example(self) -> str:
        """A value, as `--arg` takes it; "" for handles and addresses, which a program makes."""
        if _OF_A_PROGRAM.search(self.type):
            return ""
        if self.is_array:
            return f"{dtype_of(self.type)}[{_SHAPES[min(self.dimensions, 3)]}]"
        known = dtype_of(self.type)
        if known.startswith("float"):
            return "0.0" if _LEAST.search(self.name) else "1.0"
        return "true" if known == "bool" else str(NUMBER)


def dtype_of(ctype: str) -> str:
    """Return NumPy's name of a type, or of what a pointer points to.

    Unknown numbers are int32, unknown elements float32.
    """
    name = _base(ctype)
    for known, bits in _BITS.items():
        if known in name:
            return bits
    is_array = "*" in ctype or name in ("array", _ADDRESS)
    unknown = "float32" if is_array else "int32"
    found = TYPES.get(name) or TYPES.get(re.sub(r"[1-4]$", "", name))
    return np.dtype(found).name if found is not None else unknown


def components_of(ctype: str, known: Structures) -> int:
    """Return the elements of `dtype_of` in one of a pointer's: `float4*`, or a structure's."""
    bytes_ = size_of(_base(ctype), known)
    return max(1, -(-bytes_ // np.dtype(dtype_of(ctype)).itemsize))


def _base(ctype: str) -> str:
    base = re.sub(r"\b(?:const|volatile|__restrict__|restrict|struct)\b|[*&]|\[\w*\]", " ", ctype)
    return " ".join(base.split())


def parameters_of(kernel: Kernel | MachineCode) -> list[Parameter]:
    """Return a kernel's parameters; members of structures each for itself."""
    from gpusim.sass.kernels import CodeKernel

    if isinstance(kernel, CodeKernel):
        names = kernel.parameters
        sizes = [f"{size} bytes" for size in kernel.sizes]
        texts = sizes if len(sizes) == len(names) else [""] * len(names)
        return [Parameter(o.name, o.ctype or text) for o, text in zip(names, texts, strict=True)]
    tree = getattr(kernel.source, "tree", None)
    if tree is None:
        return [Parameter(name, "") for name in kernel.source.parameters]
    arrays: dict[str, int] = {}
    for name, dimensions in _indexed(tree):
        arrays[name] = max(dimensions, arrays.get(name, 1))
    return [
        Parameter(name, "array", arrays[name]) if name in arrays else Parameter(name, "number")
        for name in kernel.source.parameters
    ]


def _indexed(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield names that are indexed, measured by len, or passed to an atomic operation.

    With each its number of indices.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            index = node.slice
            yield node.value.id, len(index.elts) if isinstance(index, ast.Tuple) else 1
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, 1
        elif isinstance(node, ast.Call) and "atomic" in ast.unparse(node.func):
            yield from ((one.id, 1) for one in node.args[:1] if isinstance(one, ast.Name))


class Example(NamedTuple):
    """A launch: grid, block, arguments by parameter, and bytes of dynamic shared memory."""

    grid: str
    block: str
    arguments: Mapping[str, str]
    shared_bytes: str = ""

    def options(self, given: Mapping[str, bool]) -> list[str]:
        """Return the options that are not given; arguments are those of parameters left."""
        words = [] if given.get("grid") else ["--grid", self.grid]
        words += [] if given.get("block") else ["--block", self.block]
        if self.shared_bytes and not given.get("shared_bytes"):
            words += ["--shared-bytes", self.shared_bytes]
        return words

    @property
    def words(self) -> list[str]:
        """All options of the launch."""
        given = [word for pair in self.arguments.items() for word in ("--arg", "=".join(pair))]
        return [*self.options({}), *given]

    @property
    def comment(self) -> str:
        """The launch as a comment in the source."""
        shared = f" shared-bytes={self.shared_bytes}" if self.shared_bytes else ""
        given = f" args={','.join(self.arguments.values())}" if self.arguments else ""
        return f"gpusim: grid={self.grid} block={self.block}{shared}{given}"


def example_of(kernel: Kernel | MachineCode) -> Example:
    """Return an example of a launch."""
    body = body_of(kernel)
    grid, block = shape(body, text_of(kernel))
    tiles = tile_parameters(body, block)
    given = {one.name: tiles.get(one.name, one.example) for one in parameters_of(kernel)}
    return Example(grid, block, given, _DYNAMIC_BYTES if _DYNAMIC.search(body) else "")


def constants_of_block(kernel: Kernel | MachineCode, block: str) -> tuple[Root | None, ...]:
    """Return the constants of a kernel's file that are the sizes of its block, axis by axis."""
    found = {
        value: name for name, value in block_constants(text_of(kernel), body_of(kernel)).items()
    }
    names = [found.get(int(size)) if size.isdecimal() else None for size in block.split("x")]
    return tuple(None if name is None else ("macro", name) for name in names)


def body_of(kernel: Kernel | MachineCode) -> str:
    """Return the text of a kernel as far as it is there, to the next kernel of a file."""
    from gpusim.sass.kernels import CodeKernel

    if isinstance(kernel, CodeKernel):
        return _body(kernel)
    tree = getattr(kernel.source, "tree", None)
    return "" if tree is None else ast.unparse(tree)


def text_of(kernel: Kernel | MachineCode) -> str:
    """Return the text of a kernel's file of CUDA C++, "" for any other."""
    return getattr(getattr(kernel, "file", None), "text", "")


def _body(kernel: CodeKernel) -> str:
    name = kernel.__name__.partition("<")[0].rpartition("::")[2]
    return body_in(text_of(kernel), name)


def command_line(command: str, kernel: str, words: list[str]) -> str:
    """Return a command line that the shell takes."""
    return shlex.join(["gpusim", command, kernel, *words])
