"""Machine code under construction: rows over virtual registers in a graph of blocks.

The blocks belong to the `ir.Function` (its `targets` and `preds` define the
control flow); their bodies have become rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim.compiler.ir import Block, Function
from gpusim.isa.ops import OPS, Instruction, Memory
from gpusim.typing import DType


@dataclass(eq=False, slots=True)
class Row:
    """A row that becomes an instruction; the fields have the meaning of `isa.Instruction`."""

    op: str
    dst: tuple[int, ...] = ()
    src: tuple[int, ...] = ()
    dtype: DType | None = None
    detail: Any = None
    guard: int | None = None
    negated: bool = False
    memory: Memory | None = None
    line: int = 0

    @property
    def issued(self) -> bool:
        """Whether the row costs anything: rows that only describe the source do not."""
        return OPS[self.op].issued

    @property
    def reads(self) -> tuple[int, ...]:
        """Registers that the row needs."""
        return self.src if self.guard is None else (*self.src, self.guard)

    def instruction(self, target: int = -1) -> Instruction:
        """Return the row as an instruction of a `Program`; a BSSY leaves its block after."""
        detail = self.detail[0] if self.op == "BSSY" else self.detail
        return Instruction(
            self.op,
            self.dst,
            self.src,
            self.dtype,
            detail,
            self.guard,
            self.negated,
            target,
            self.memory,
            self.line,
        )


@dataclass(eq=False)
class Phi:
    """A register that takes another value on each path into its block (`Block.preds`)."""

    dst: int
    src: list[int]
    line: int = 0


@dataclass(eq=False)
class Code:
    """A function on its way to a `Program`.

    `condition` is the predicate of a block's branch to its first target. `divergent`
    are blocks with a possibly divergent branch. `uniform` are registers of the uniform
    datapath and `fixed` registers with facts of the launch: both are copied, not merged,
    as start values of variables. `undefined` registers may have any value.
    """

    function: Function
    rows: dict[Block, list[Row]] = field(default_factory=dict)
    phis: dict[Block, list[Phi]] = field(default_factory=dict)
    condition: dict[Block, int] = field(default_factory=dict)
    divergent: set[Block] = field(default_factory=set)
    dtypes: list[DType] = field(default_factory=list)
    immediates: dict[int, np.generic] = field(default_factory=dict)
    uniform: set[int] = field(default_factory=set)
    fixed: set[int] = field(default_factory=set)
    undefined: set[int] = field(default_factory=set)
    _known: dict[tuple[DType, bytes], int] = field(default_factory=dict)

    def register(self, dtype: DType) -> int:
        """Return a new register."""
        self.dtypes.append(dtype)
        return len(self.dtypes) - 1

    def is_zero(self, register: int) -> bool:
        """Whether a register is the constant with all bits 0, always available."""
        value = self.immediates.get(register)
        return value is not None and not any(value.tobytes())

    def immediate(self, value: np.generic) -> int:
        """Return the register that stands for a constant."""
        key = (value.dtype, value.tobytes())
        if key not in self._known:
            self._known[key] = self.register(value.dtype)
            self.immediates[self._known[key]] = value
        return self._known[key]
