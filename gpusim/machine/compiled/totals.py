"""The sums of a batch that ran in compiled code, by instruction and warp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.isa import lanes
from gpusim.isa.ops import OPS
from gpusim.launch.events import Ran, Step, Sums
from gpusim.machine.compiled.instance import Instance
from gpusim.machine.compiled.memory import BatchMemory, arrays_begin
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.state import Batch

Array = np.ndarray[Any, Any]


def totals_of(instance: Instance, place: BatchMemory, batch: Batch) -> Ran:
    """Return what the warps of a batch did, from its sums in linear memory."""
    memory, made = instance.memory, place.made
    tables = np.arange(place.blocks)
    if place.anew:
        tables = place.entries(memory)[:, 0].astype(np.int64)
    size = place.warps * place.sum_bytes
    held = memory[place.sums_at : place.sums_at + (int(tables[-1]) + 1) * size]
    touched = {
        key: memory[place.marks_at + n * place.mark_bytes :][: place.mark_bytes].view(np.bool_)
        for n, key in enumerate(made.touched)
    }
    return Ran(
        place.placement,
        held.view(np.int64).reshape(-1, place.warps, place.sum_bytes // 8).copy(),
        tables,
        sums_of(made),
        (instance.shift + arrays_begin(made)) // SECTOR_BYTES,
        touched,
        [_step(note, place, batch) for notes in instance.notes for note in notes],
    )


def sums_of(made: Translation) -> Mapping[int, Sums]:
    """Return the rows of each pc in the table of sums."""
    if not made.rows_of_sums:
        ends = [*made.starts[1:], made.length]
        for number, (begin, end) in enumerate(zip(made.starts, ends, strict=True)):
            plain = Sums(2 * number, 2 * number + 1, 2 * number + 1, 2 * number)
            for pc in range(begin, end):
                found = {n: made.sums[pc, n] for n in _NAMES if (pc, n) in made.sums}
                made.rows_of_sums[pc] = plain._replace(**found) if found else plain
    return made.rows_of_sums


def _step(note: Array, place: BatchMemory, batch: Batch) -> Step:
    """Return a step that was written down."""
    pc, row, mask, on, taken, space = note[:6].tolist()
    instruction = batch.program.instructions[pc]
    addresses: Array | None = None
    sources: Array | None = None
    if space > 2:
        mode, *results = instruction.detail
        lane, limits = note[8:40].reshape(1, 1, 32), note[40:72].reshape(1, 1, 32)
        sources = lanes.shuffle_sources(mode, lane, limits)[0] if "value" in results else None
    elif space:
        words = note[8:72].view(np.int64) if space == 1 else note[8:40].astype(np.int64)
        addresses = words.reshape(1, 1, 32)
    decides = OPS[instruction.op].kind in _DECIDING
    active, taking, ways = (lanes_of_word(bits) for bits in (mask, on, taken))
    return Step(
        pc,
        instruction,
        place.placement,
        np.array([row]),
        active,
        active if mask == on else taking,
        addresses,
        ways if decides else None,
        sources=sources,
    )


def lanes_of_word(bits: int) -> Array:
    """Return bits as lanes, shaped (1, 1, 32), the lowest first."""
    word = np.array([bits], np.int32)
    return np.unpackbits(word.view(np.uint8), bitorder="little").view(bool).reshape(1, 1, 32)


_DECIDING = ("branch", "source_branch", "branch_if_apart", "jump")


_NAMES = ("on", "any", "divergent", "wavefronts", "least", "sectors", "replays")
