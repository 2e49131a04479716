"""A launch in compiled code with race detection: all of its blocks, or none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim.errors import GpusimError
from gpusim.isa.ops import Instruction
from gpusim.machine.compiled import arrays, evaluator, memory, modules
from gpusim.machine.compiled.detection import Cells, Detection, Examined
from gpusim.machine.compiled.instance import Instance, LeftError
from gpusim.machine.compiled.modules import Compiled
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.compiled.translation import Translation, needs_order
from gpusim.machine.context import Context
from gpusim.typing import Array


def examined(
    context: Context,
    cc_major: int,
    detection: Detection,
    cells: Cells,
    *,
    step_limit: int,
) -> Examined | None:
    """Run a launch; None, with arrays as they are, where a rule might have a finding."""
    examination = None
    try:
        if needs_order(context.batch.program):
            return None
        compiled = modules.compiled(evaluator.variant_of(context, cc_major, (), detection))
        examination = _Examination(context, compiled, cells)
        return examination.result(step_limit)
    except (GpusimError, NotDerivedError, LeftError):
        return None
    finally:
        if examination is not None:
            examination.close()


class _Examination:
    def __init__(self, context: Context, compiled: Compiled, cells: Cells) -> None:
        self._context, self._cells, self._made = context, cells, compiled.made
        self._allocations = context.allocations
        self._begin = -(-arrays.arrays_end(self._made, self._allocations) // 64) * 64
        self._end = self._begin + cells.size(context.batch.launch.warps_per_block)
        if self._end > arrays.MOST_BYTES:
            raise NotDerivedError("elements beyond linear memory")
        # Its own instance: the memory of a new one is zero.
        self._instance = Instance(compiled.engine, compiled.module, self._made)

    def result(self, step_limit: int) -> Examined:
        launch, instance = self._context.batch.launch, self._instance
        most = evaluator.most_blocks(self._made, launch.warps_per_block)
        for first in range(0, launch.blocks, most):
            blocks = np.arange(first, min(first + most, launch.blocks))
            self._run(blocks, step_limit)
        if instance.arrays is not None:
            instance.arrays.give(instance.memory)
        rows = self._context.batch.program.instructions
        return Examined(
            instance.value("accesses"),
            instance.value("ordered"),
            instance.value("local_accesses"),
            instance.value("of_unknown_arrays"),
            _ran(instance.memory, self._made, rows),
        )

    def close(self) -> None:
        """Free the memory."""
        self._instance.close()

    def _run(self, blocks: Array, step_limit: int) -> None:
        context, made, instance = self._context, self._made, self._instance
        place = memory.BatchMemory(made, context, self._end, blocks)
        if place.end > arrays.MOST_BYTES:
            raise LeftError("a batch larger than linear memory")
        instance.reach(
            place.end, arrays.first_address(self._allocations) - arrays.arrays_begin(made)
        )
        if not blocks[0]:
            instance.arrays = arrays.bring_arrays(instance.memory, made, self._allocations)
            memory.bring_constants(instance.memory, place, context)
            instance.set(self._cells.settings(self._begin))
            instance.set({"block_warps": place.warps})
        instance.set({"first_block": 1 + int(blocks[0])})
        memory.bring_batch(instance.memory, place, context.batch, ())
        instance.run(place, context, 0, step_limit)


def _ran(held: Array, made: Translation, rows: Sequence[Instruction]) -> Array:
    """Return the instructions that ran for some lane, as a mask."""
    count = made.length
    blocks, guarded = held[made.ran_at : made.ran_at + 2 * count].view(np.bool_).reshape(2, count)
    lengths = np.diff([*made.starts, count])
    is_guarded = np.array([row.guard is not None for row in rows])
    return np.where(is_guarded, guarded, np.repeat(blocks[made.starts], lengths))
