"""The kernel between source and machine code: typed SSA values in a graph of basic blocks.

The compiler builds it, lowering rewrites it and turns it into a `Program`. Nothing
here knows Python's syntax or the machine's instructions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim.compiler.operations import OPERATIONS, Operation
from gpusim.typing import DType

BOOL: DType = np.dtype(np.bool_)
INT8: DType = np.dtype(np.int8)
UINT8: DType = np.dtype(np.uint8)
INT16: DType = np.dtype(np.int16)
UINT16: DType = np.dtype(np.uint16)
INT32: DType = np.dtype(np.int32)
UINT32: DType = np.dtype(np.uint32)
INT64: DType = np.dtype(np.int64)
UINT64: DType = np.dtype(np.uint64)
FLOAT32: DType = np.dtype(np.float32)
FLOAT64: DType = np.dtype(np.float64)


@dataclass(frozen=True)
class Array:
    """Memory that a kernel indexes: a parameter, or a shared or local array it declares.

    `space` is "global", "shared", "local", or "cluster" for an array in the shared memory of
    another block of the cluster. `shape` is () for a parameter (known at launch) and (0,) for
    dynamic shared memory. `offset` is the first byte of a shared or local array within its block's
    or thread's memory; in a cluster it numbers the calls of `map_shared_rank`. Accesses to a
    `volatile` array are all made, in order. Elements of a `strided` parameter do not lie side by
    side.
    """

    name: str
    space: str
    dtype: DType
    shape: tuple[int, ...] = ()
    offset: int = 0
    volatile: bool = False
    strided: bool = False


@dataclass(eq=False)
class Value:
    """One operation and its result; identity is equality.

    `dtype` is the result's type, None where there is no result. `detail` is an attribute of
    the operation besides its operands, described in its row of OPERATIONS.
    """

    op: str
    dtype: DType | None
    args: list[Value] = field(default_factory=list)
    detail: Any = None
    line: int = 0

    def __repr__(self) -> str:
        return f"<{self.op} {self.dtype} {self.detail!r}>"

    @property
    def operation(self) -> Operation:
        """The operation's row: its traits for any operands."""
        return OPERATIONS[self.op]

    @property
    def word(self) -> str:
        """The word of the dialect that it stands for, else the operation's name."""
        parts = self.detail if isinstance(self.detail, tuple) else (self.detail,)
        return self.operation.word.format(*parts) or self.op

    @property
    def constant(self) -> Any:
        """The NumPy scalar of a `const`, None for any other operation."""
        return self.detail if self.op == "const" else None


@dataclass(eq=False)
class Block:
    """Straight-line code: phis, then operations, then where it leads.

    `targets` is () for a return, (next,) for a jump, and (if_true, if_false) for a
    branch on `condition`. `line` is that of its end. `late` marks the output of late unrolling:
    it is neither guarded nor is anything moved out of it.
    """

    name: int
    phis: list[Value] = field(default_factory=list)
    body: list[Value] = field(default_factory=list)
    condition: Value | None = None
    targets: tuple[Block, ...] = ()
    preds: list[Block] = field(default_factory=list)
    line: int = 0
    late: bool = False

    def __repr__(self) -> str:
        return f"<block {self.name}>"


@dataclass(eq=False)
class Function:
    """A kernel for one combination of argument types. The first block is the entry."""

    name: str
    params: dict[str, DType | Array]  # a scalar's dtype or an array, in order
    blocks: list[Block] = field(default_factory=list)
    shared: list[Array] = field(default_factory=list)
    local: list[Array] = field(default_factory=list)

    @property
    def entry(self) -> Block:
        """Where every thread starts."""
        return self.blocks[0]

    def values(self) -> Iterator[Value]:
        """Yield every phi and operation, block by block."""
        for block in self.blocks:
            yield from block.phis
            yield from block.body


def constant(value: Any, dtype: DType) -> Value:
    """Return a `const` of `dtype`, wrapped as C converts."""
    return Value("const", dtype, detail=np.asarray(value).astype(dtype)[()])
