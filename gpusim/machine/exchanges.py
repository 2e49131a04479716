"""Results of the operations among lanes: shuffles, votes, matches, reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpusim.isa import lanes
from gpusim.isa.ops import OPS, Instruction
from gpusim.typing import Array


class Exchange(NamedTuple):
    """The values of an instruction's destinations, and a shuffle's source lanes."""

    values: list[Array]
    sources: Array | None = None


def exchanged(
    instruction: Instruction, mask: Array | None, operands: Sequence[Array], on: Array
) -> Exchange:
    """Return the values exchanged among active lanes, within each lane's mask if it has one."""
    return _EXCHANGES[OPS[instruction.op].kind](instruction, mask, operands, on)


def source_operands(instruction: Instruction) -> tuple[int, ...]:
    """Return the registers of a shuffle that tell the source lanes."""
    return tuple(instruction.src[-2:])


def sources(instruction: Instruction, lane: Array, limits: Array) -> Array | None:
    """Return the source lanes of a shuffle that gives values, by its operands that tell them."""
    mode, *results = instruction.detail
    return lanes.shuffle_sources(mode, lane, limits)[0] if "value" in results else None


def _shuffle(
    instruction: Instruction, _: Array | None, operands: Sequence[Array], on: Array
) -> Exchange:
    """Give each lane the value of its source lane, 0 from an inactive one.

    The results are the "value", and the "inside" of `lanes.shuffle_sources`.
    """
    value, lane, limits = operands
    mode, *results = instruction.detail
    source, inside = lanes.shuffle_sources(mode, lane, limits)
    if not on.all():
        value = np.where(on, value, value.dtype.type(0))
    wanted = results[: len(instruction.dst)]
    found = [inside if one == "inside" else lanes.taken(value, source) for one in wanted]
    return Exchange(found, source if "value" in results else None)


def _vote(
    instruction: Instruction, mask: Array | None, operands: Sequence[Array], on: Array
) -> Exchange:
    ballots = lanes.Ballots(on, operands[0] if operands else None, mask)
    return Exchange([lanes.VOTES[result](ballots) for result in instruction.detail])


def _match(
    instruction: Instruction, mask: Array | None, operands: Sequence[Array], on: Array
) -> Exchange:
    matches = lanes.Matches(list(operands), on, mask)
    return Exchange([lanes.MATCHES[result](matches) for result in instruction.detail])


def _reduction(
    instruction: Instruction, _: Array | None, operands: Sequence[Array], on: Array
) -> Exchange:
    operation, signed = instruction.detail
    value = operands[0].astype(np.uint32, copy=False)
    total = lanes.reduced(operation, value.view(np.int32) if signed else value, on)
    return Exchange([total.view(np.uint32)])


_EXCHANGES: Mapping[
    str, Callable[[Instruction, Array | None, Sequence[Array], Array], Exchange]
] = {
    "shuffle": _shuffle,
    "vote": _vote,
    "match": _match,
    "reduce_lanes": _reduction,
}


def is_exchange(instruction: Instruction) -> bool:
    """Return whether lanes give each other something by an instruction."""
    return OPS[instruction.op].kind in _EXCHANGES
