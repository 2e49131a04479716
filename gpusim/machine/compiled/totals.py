"""The sums of a batch that ran in compiled code, by instruction and warp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.isa import lanes
from gpusim.isa.ops import OPS, Program
from gpusim.launch.events import Ran, StepsOfWarps, Sums
from gpusim.launch.grid import WARP_SIZE
from gpusim.machine.compiled.arrays import arrays_begin
from gpusim.machine.compiled.instance import Instance
from gpusim.machine.compiled.memory import BatchMemory
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.state import Batch
from gpusim.typing import Array


def totals_of(instance: Instance, place: BatchMemory, batch: Batch) -> Ran:
    """Return the counts of a batch's warps, from its sums in linear memory."""
    memory, made = instance.memory, place.made
    tables = np.arange(place.blocks)
    if place.one_by_one:
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
        _steps(instance.notes, batch.program) if instance.notes else _NO_STEPS,
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


def _steps(notes: Sequence[Array], program: Program) -> StepsOfWarps:
    """Return the steps that were written down, shaped (n, words of a note) each."""
    held = np.concatenate(notes)
    pc, row, active, on, taken, space = np.ascontiguousarray(held[:, :6].T)
    words = held[:, 8:72]
    addresses = np.where(
        (space == 1)[:, None], np.ascontiguousarray(words).view(np.int64), words[:, :32]
    )
    sources, shuffles = np.zeros((len(held), WARP_SIZE), np.int64), space > 2
    for one in set(pc[shuffles].tolist()):
        mode, *results = program.instructions[one].detail
        steps = np.flatnonzero(shuffles & (pc == one))
        if "value" in results:
            lane, limits = words[steps, None, :32], words[steps, None, 32:]
            sources[steps] = lanes.shuffle_sources(mode, lane, limits)[0][:, 0]
        else:
            shuffles[steps] = False
    return StepsOfWarps(
        pc=pc,
        row=row,
        active=_lanes_of(active),
        on=_lanes_of(on),
        taken=_lanes_of(taken),
        decides=np.array([OPS[row.op].kind in _DECIDING for row in program.instructions])[pc],
        addresses=addresses,
        accesses=(space == 1) | (space == 2),
        sources=sources,
        shuffles=shuffles,
    )


_NO_MASKS = np.zeros((0, WARP_SIZE), np.bool_)
_NO_STEPS = StepsOfWarps(
    pc=np.zeros(0, np.int32),
    row=np.zeros(0, np.int32),
    active=_NO_MASKS,
    on=_NO_MASKS,
    taken=_NO_MASKS,
    decides=_NO_MASKS[:, 0],
    addresses=np.zeros((0, WARP_SIZE), np.int64),
    accesses=_NO_MASKS[:, 0],
    sources=np.zeros((0, WARP_SIZE), np.int64),
    shuffles=_NO_MASKS[:, 0],
)


def _lanes_of(words: Array) -> Array:
    """Return the bits of words, shaped (n,), as lanes, shaped (n, 32), the lowest first."""
    octets = words.astype("<i4").view(np.uint8)
    return np.unpackbits(octets, bitorder="little").view(bool).reshape(-1, WARP_SIZE)


_DECIDING = ("branch", "source_branch", "branch_if_apart", "jump")


_NAMES = ("on", "any", "divergent", "wavefronts", "least", "sectors", "replays")
