"""Reads from the two banks of the register file (even and odd registers), and the operand cache.

The operand cache of a pipe has one entry for each bank and operand slot of an instruction. An
operand with `.reuse` stays there for the pipe's next instruction with the same register, bank and
slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpusim.isa.ops import OPS
from gpusim.sass.decoding import Micro
from gpusim.sass.listing import Row
from gpusim.sass.operands import Operand

BANKS = 2
# The pipes with an operand cache, by the unit of `isa.OPS`. Other units read their operands
# later, without delaying issue.
_PIPES = {"alu": "alu", "vote": "alu", "fma": "fma", "imad": "fma", "imad_wide": "fma"}


def bank_reads(rows: Sequence[Row], micros: Sequence[Micro]) -> list[tuple[int, ...]]:
    """Return how many operands of each row come out of each bank, nothing for other units."""
    issued = {micro.row: micro for micro in micros if micro.issued}
    kept: dict[tuple[str, int, int], int] = {}
    found: list[tuple[int, ...]] = [()] * len(rows)
    for number, micro in issued.items():
        pipe = _PIPES.get(OPS[micro.op].unit)
        if pipe is not None:
            found[number] = _reads(pipe, list(_registers(rows[number], micro)), kept)
    return found


def _registers(row: Row, micro: Micro) -> Iterator[tuple[int, int, bool]]:
    """Yield the registers that a row reads: its place, its number, whether it is reused."""
    operands = [one for one in row.operands if one.kind != "P"]
    if operands and operands[0].name in micro.results:
        del operands[0]
    for place, operand in enumerate(operands):
        if _is_read(operand):
            yield place, int(operand.name.removeprefix("R")), operand.is_reused


def _is_read(operand: Operand) -> bool:
    return operand.kind == "R" and operand.name.startswith("R") and not operand.is_zero


def _reads(
    pipe: str, registers: Sequence[tuple[int, int, bool]], kept: dict[tuple[str, int, int], int]
) -> tuple[int, ...]:
    """Return the registers read from each bank, once each; keep the reused ones in the cache."""
    read = set()
    for place, number, is_reused in registers:
        where = pipe, number % BANKS, place
        if kept.pop(where, None) != number:
            read.add(number)
        if is_reused:
            kept[where] = number
    return tuple(sum(number % BANKS == bank for number in read) for bank in range(BANKS))
