"""Conditions of a Python kernel's source, by running one block in the lowering's code.

A compiler leaves predicates of short bodies; the lowering keeps a record of each condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpusim import machine
from gpusim.errors import GpusimError
from gpusim.isa.ops import ANY_ARRAY, OPS, Program
from gpusim.launch.prepared import Prepared
from gpusim.machine.storage import with_copies
from gpusim.program.decisions import decisions
from gpusim.program.polling import spins
from gpusim.tracing.block_log import BlockLog, Entry

MOST_STEPS = 1_000_000  # of the block


def source_decisions(source: Callable[[], Prepared], block_index: int) -> list[Entry]:
    """Return the conditions that a block's warps decide, in order; none where they are unknown.

    They are unknown where the block waits for others, or decides by data that the launch has
    overwritten.
    """
    try:
        prepared = source()
        if spins(prepared.program) or _overwrites_its_conditions(prepared.program):
            return []
        log = BlockLog(block_index, frozenset([".IF"]))
        arguments, copies = with_copies(prepared.arguments, prepared.arguments.keys())
        machine.run(
            replace(prepared, arguments=arguments, copies=copies),
            observers=(log,),
            step_limit=MOST_STEPS,
            blocks=[block_index],
        )
    except GpusimError:
        return []
    return log.entries if log.is_complete else []


def _overwrites_its_conditions(program: Program) -> bool:
    """Return whether a program stores to global memory that its control flow depends on."""
    written: set[str] = set()
    for row in program.instructions:
        if row.memory is not None and OPS[row.op].writes_memory:
            written |= row.memory.places
    deciding = decisions(program).memory - {"shared", "local"}
    return bool(deciding) and (ANY_ARRAY in written or not deciding.isdisjoint(written))
