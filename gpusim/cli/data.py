"""Elements of arrays for which nothing is given: one policy for all commands.

An array that a kernel reads has seeded numbers of its type; small whole ones where they are used
as indices or bounds, so that addresses stay within small arrays. Others are zeros: arrays that are
only written, counters of atomic operations, and flags that a loop waits for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpusim.launch.arguments import MAX_ELEMENTS, ArraySpec
from gpusim.launch.grid import ComputeCapability

if TYPE_CHECKING:
    from gpusim.isa.ops import Program
    from gpusim.launch.configured import ConfiguredKernel

ZEROS = "zeros"
LARGEST_INDEX = 7
# By type: letters of a text, and bits of bfloat16 from 2^-7 to 1.
_OF_TYPE = {"char": "97:122", "bfloat16": "15360:16256"}


def fillings(
    configured: ConfiguredKernel, values: Sequence[Any], cc: str | None = None
) -> Mapping[str, str]:
    """Return the fillings of a launch's arrays without elements, by parameter.

    They follow from the optimised machine code for `cc`, of a Python kernel the lowering's.
    """
    from gpusim.cli.launch_examples import parameters_of
    from gpusim.codegen.generators import LOWERING
    from gpusim.codegen.programs import prepare
    from gpusim.machine import DEFAULT_CC

    names = configured.kernel.source.parameters  # type: ignore[attr-defined]
    types = {one.name: one.type for one in parameters_of(configured.kernel)}  # type: ignore[arg-type]
    places = enumerate(zip(names, values, strict=True))
    bare = [(at, name, one) for at, (name, one) in places if isinstance(one, ArraySpec)]
    if not bare:
        return {}
    known = DEFAULT_CC if cc is None else ComputeCapability.parse(cc)
    program = prepare(configured, values, known, code=LOWERING).program
    return {name: _filling(program, name, one, at, types.get(name, "")) for at, name, one in bare}


def _filling(program: Program, name: str, array: ArraySpec, seed: int, ctype: str) -> str:
    from gpusim.program.influence import influence

    if array.size > MAX_ELEMENTS or not _is_data(program, name):
        return ZEROS
    for word, values in _OF_TYPE.items():
        if re.search(rf"(?<!signed ){word}\b", ctype):
            return f"random:{seed}:{values}"
    if array.dtype.kind in "iu" and influence(program, name, is_array=True).in_addresses:
        return f"random:{seed}:0:{LARGEST_INDEX}"
    return f"random:{seed}"


def _is_data(program: Program, name: str) -> bool:
    """Return whether loads read an array, without atomic operations and waits for its elements."""
    from gpusim.isa.ops import OPS
    from gpusim.program.polling import polls

    waits = polls(program)
    readers = [
        (pc, row)
        for pc, row in enumerate(program.instructions)
        if row.memory is not None and OPS[row.op].reads_memory and row.memory.may_touch((name,))
    ]
    return bool(readers) and not any(
        row.memory is not None and name in row.memory.places
        for pc, row in readers
        if OPS[row.op].kind == "atomic" or pc in waits
    )
