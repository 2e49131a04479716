"""An operation: a few statements of CUDA C++ over typed operands, and its kernel's source text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

THREADS, BLOCK = 2048, 256
OPERAND_NAMES = "abc"

# C++ types: NumPy's type of an element, and the elements of a vector.
TYPES: dict[str, tuple[str, int]] = {
    "bool": ("u1", 1),
    "char": ("i1", 1), "uchar": ("u1", 1), "short": ("i2", 1), "ushort": ("u2", 1),
    "int": ("i4", 1), "uint": ("u4", 1), "ll": ("i8", 1), "ull": ("u8", 1),
    "float": ("f4", 1), "double": ("f8", 1), "half": ("f2", 1), "bf16": ("u2", 1),
    "half2": ("f2", 2), "bf162": ("u2", 2), "float2": ("f4", 2), "double2": ("f8", 2),
    "float4": ("f4", 4), "int2": ("i4", 2), "uint2": ("u4", 2), "int128": ("u8", 2),
    "uint128": ("u8", 2),
}  # fmt: skip
ALIASES = """
typedef signed char schar;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef long long ll;
typedef unsigned long long ull;
typedef __int128 int128;
typedef unsigned __int128 uint128;
"""
WORDS = {"char": "signed char", "bf16": "__nv_bfloat16", "bf162": "__nv_bfloat162"}
HALVES = ("cuda_fp16.h", "cuda_bf16.h")
_SIGNATURE = re.compile(r"(\w+)\((.*)\)$")


@dataclass(frozen=True)
class Operation:
    """An operation.

    `body` is an expression, or statements that assign to `r`, of the operands `a`, `b`, `c`, the
    lane number `lane` and pointers to this thread's operands `pa`, `pb`, `pc`. Memory behind the
    pointers belongs to the results. An `exact` one has a value that a standard defines to the
    last bit; of others the last bits depend on the special function unit, as `ulps` and
    `absolute` say, or on the compiler's library. `prelude` stands before the kernel, in a
    namespace of its own that the body sees; `headers` are included by the file.
    """

    name: str
    result: str
    operands: tuple[str, ...]
    body: str
    exact: bool = False
    ulps: int = 4
    absolute: float = 0.0
    prelude: str = ""
    headers: tuple[str, ...] = ()
    dynamic_bytes: int = 0

    @property
    def kernel(self) -> str:
        """The text of its kernel."""
        result, kinds = word(self.result), [word(one) for one in self.operands]
        names = OPERAND_NAMES[: len(kinds)]
        parameters = "".join(f", {k} *{n}_" for k, n in zip(kinds, names, strict=True))
        taken = "".join(
            f" {k} *p{n} = {n}_ + i; {k} {n} = *p{n};" for k, n in zip(kinds, names, strict=True)
        )
        body = self.body if ";" in self.body else f"r = {self.body};"
        space = f"of_{self.name}"
        before = f"namespace {space} {{\n{self.prelude}\n}}\n" if self.prelude else ""
        taken += f" using namespace {space};" if self.prelude else ""
        return (
            f'{before}extern "C" __global__ void {self.name}({result} *r_{parameters}) {{\n'
            "    int i = blockIdx.x * blockDim.x + threadIdx.x; unsigned lane = i & 31;\n"
            f"   {taken}\n    {result} r;\n    {body}\n    r_[i] = r;\n}}\n"
        )

    @property
    def included(self) -> tuple[str, ...]:
        """The headers that its kernel needs."""
        return (*HALVES, *self.headers) if self.has_halves else self.headers

    @property
    def has_halves(self) -> bool:
        """Whether it needs the headers of half precision."""
        return any(
            one in ("half", "half2", "bf16", "bf162") for one in (self.result, *self.operands)
        )


def word(kind: str) -> str:
    """Return a type as C++ has it."""
    return WORDS.get(kind, kind)


def empty(kind: str) -> np.ndarray[Any, Any]:
    """Return an array for results of a type, with a pattern that no thread leaves."""
    element, count = TYPES[kind]
    held = np.full(THREADS * count * np.dtype(element).itemsize, 0xA5, np.uint8)
    return held.view(element)


def source(operations: Sequence[Operation]) -> str:
    """Return the text of a file with the kernels of some operations."""
    named = dict.fromkeys(header for one in operations for header in one.included)
    headers = "".join(f"#include <{header}>\n" for header in named)
    return headers + ALIASES + "\n".join(one.kernel for one in operations)


def functions(signature: str, names: str, **facts: Any) -> Iterator[Operation]:
    """Yield calls of functions that share a signature such as `float(float,int)`.

    In the operation's name the signature's types follow where a function is overloaded.
    """
    match = _SIGNATURE.match(signature)
    assert match is not None, signature
    kinds = tuple(one for one in match[2].split(",") if one)
    called = ", ".join(OPERAND_NAMES[: len(kinds)])
    for name in names.split():
        label = "_".join([name, *dict.fromkeys(kinds)])
        yield Operation(label, match[1], kinds, f"{name}({called})", **facts)


def expressions(
    signature: str, rows: Iterable[tuple[str, str]], **facts: Any
) -> Iterator[Operation]:
    """Yield operations that share a signature, each a name and a body."""
    match = _SIGNATURE.match(signature)
    assert match is not None, signature
    kinds = tuple(one for one in match[2].split(",") if one)
    for name, body in rows:
        label = "_".join([name, *dict.fromkeys(kinds)])
        yield Operation(label, match[1], kinds, body, **facts)
