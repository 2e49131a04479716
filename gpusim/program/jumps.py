"""Jumps to an address in a register: where they may lead, if the register has constants alone.

A compiler's own functions return so: each call moves the address after it into a register.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Instruction, Program

ROW_BYTES = 16  # of machine code
MOST_VALUES = 256  # of a register, or of the operands of an instruction


@once
def known_jumps(program: Program) -> dict[int, tuple[int, ...]]:
    """Return the pcs that jumps may lead to, by the jump's pc; jumps anywhere are left out."""
    values = _Values(program)
    found = {}
    for pc, row in enumerate(program.instructions):
        addresses = values.of(row.src[0]) if OPS[row.op].kind == "jump" else None
        if addresses is not None:
            # A register that was never set has the address 0.
            found[pc] = _places(row.detail, {0, *addresses})
    return found


def _places(places: Sequence[int], addresses: set[int]) -> tuple[int, ...]:
    """Return the pcs at addresses; where there is no code, a lane goes nowhere."""
    rows = {address // ROW_BYTES for address in addresses}
    return tuple(sorted({places[row] for row in rows if row < len(places)} - {-1}))


class _Values:
    """The values that registers may have, where these are constants."""

    def __init__(self, program: Program) -> None:
        self._immediates = program.immediates
        self._written: dict[int, list[Instruction]] = {}
        for row in program.instructions:
            for register in row.dst:
                self._written.setdefault(register, []).append(row)
        self._found: dict[int, set[int] | None] = {}

    def of(self, register: int) -> set[int] | None:
        """Return a register's values, None if others may occur."""
        if register in self._immediates:
            return {int(self._immediates[register])}
        if register not in self._found:
            self._found[register] = None  # also while a loop leads back here
            self._found[register] = self._computed(register)
        return self._found[register]

    def _computed(self, register: int) -> set[int] | None:
        made: set[int] = set()
        for row in self._written.get(register, ()):
            results = self._results(row)
            if results is None:
                return None
            made |= results
        return made if 0 < len(made) <= MOST_VALUES else None

    def _results(self, row: Instruction) -> set[int] | None:
        """Return the results of an instruction with constant operands and one destination."""
        op = OPS[row.op]
        if op.kind != "compute" or op.evaluate is None or len(row.dst) > 1:
            return None
        sources = [self._constants(register) for register in row.src]
        known = [source for source in sources if source is not None]
        if len(known) < len(sources) or np.prod([len(one) for one in known]) > MOST_VALUES:
            return None
        made = [np.asarray(op.evaluate(row, *operands)) for operands in product(*known)]
        if any(value.dtype != np.uint32 for value in made):
            return None
        return {int(value.reshape(-1)[0]) for value in made}

    def _constants(self, register: int) -> list[np.ndarray[Any, Any]] | None:
        """Return a register's values as operands."""
        values = self.of(register)
        if values is None:
            return None
        dtype = np.asarray(self._immediates.get(register, np.uint32(0))).dtype
        return [np.asarray(value, dtype).reshape(1, 1, 1) for value in values]
