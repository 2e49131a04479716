"""What a kernel does that depends on elements which it is not given."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence, Set

from gpusim.errors import InputError
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.arguments import ArraySpec
from gpusim.launch.prepared import Prepared
from gpusim.program.flow import leaders, successors


def without_elements(prepared: Prepared) -> frozenset[str]:
    """Return the arrays among a launch's arguments that have no elements."""
    given = prepared.arguments.items()
    return frozenset(name for name, value in given if isinstance(value, ArraySpec))


def data_dependent_lines(program: Program, arrays: Set[str]) -> list[int]:
    """Return the lines whose control flow or addresses depend on the elements of some arrays."""
    lines = {
        instruction.line
        for instruction, registers in zip(
            program.instructions, tainted_registers(program, arrays), strict=True
        )
        if _bits(_deciding(instruction)) & registers and not OPS[instruction.op].only_describes
    }
    return sorted(lines)


def tainted_registers(program: Program, arrays: Set[str]) -> list[int]:
    """Return, as bits, which registers hold what elements of some arrays decide, by instruction."""
    places, known = set(arrays), -1
    while known != len(places):
        known = len(places)
        held = _held(program, places)
        for instruction, registers in zip(program.instructions, held, strict=True):
            found = instruction.memory
            is_stored = OPS[instruction.op].writes_memory and found is not None
            if is_stored and found and _is_unknown(instruction, registers, places):
                places |= found.places
    return held


def _held(program: Program, places: Set[str]) -> list[int]:
    """Return, as bits, which registers hold what some places decide, as each instruction finds it.

    What else takes its place in a register is no such thing: compilers use each for many values.
    """
    following, begin = _following(program)
    held, found = [0] * len(following), [0] * len(following)
    guarded, changed = _Guarded(), True
    while changed:
        changed = False
        for pc, instruction in enumerate(program.instructions):
            guarded = _Guarded() if pc in begin else guarded
            found[pc] = held[pc] & ~guarded.known(instruction)
            is_unknown = _is_unknown(instruction, found[pc], places)
            left = guarded.after(instruction, held[pc], is_unknown)
            for target in following[pc]:
                changed |= target <= pc and bool(left & ~held[target])
                held[target] |= left
    return found


def _following(program: Program) -> tuple[list[Sequence[int]], Container[int]]:
    """Return which instructions may come behind each, and where basic blocks may begin.

    Behind a jump to where registers say, any may.
    """
    everywhere = range(len(program.instructions))
    jumps = [pc for pc in everywhere if OPS[program.instructions[pc].op].leads_elsewhere]
    following: list[Sequence[int]] = list(successors(program))
    for pc in jumps:
        following[pc] = everywhere
    return following, everywhere if jumps else set(leaders(program))


class _Guarded:
    """Registers, as bits, that hold what is known for the lanes for which a guard is on."""

    def __init__(self) -> None:
        self._known: dict[tuple[int | None, bool], int] = {}

    def known(self, instruction: Instruction) -> int:
        """Return those that an instruction's lanes find so."""
        return self._known.get((instruction.guard, instruction.negated), 0)

    def after(self, instruction: Instruction, held: int, is_unknown: bool) -> int:
        """Note what an instruction writes; return what is held behind it, by any of the lanes."""
        written, guard = _bits(instruction.dst), (instruction.guard, instruction.negated)
        self._known = {
            key: known & ~written
            for key, known in self._known.items()
            if key[0] not in instruction.dst
        }
        if is_unknown:
            return held | written
        if instruction.guard is None:
            return held & ~written
        if instruction.guard not in instruction.dst:
            self._known[guard] = self._known.get(guard, 0) | written
        return held


def _is_unknown(instruction: Instruction, held: int, places: Set[str]) -> bool:
    """Return whether the result of an instruction is decided by what registers or places hold."""
    guard = () if instruction.guard is None else (instruction.guard,)
    if held & _bits((*instruction.src, *guard)):
        return True
    found = instruction.memory
    return OPS[instruction.op].reads_memory and found is not None and found.may_touch(places)


def _deciding(instruction: Instruction) -> Iterator[int]:
    """Yield the registers that decide where an instruction goes on, or what it touches."""
    op = OPS[instruction.op]
    if instruction.guard is not None:
        yield instruction.guard
    if op.access:
        yield from instruction.src[:1]
    if op.kind == "bank":
        yield from instruction.src


def _bits(registers: Iterable[int]) -> int:
    found = 0
    for register in registers:
        found |= 1 << register
    return found


def refuse_missing_elements(prepared: Prepared) -> None:
    """Raise InputError where control flow or addresses depend on arrays without elements."""
    program = prepared.program
    without = [name for name in prepared.arguments if name in without_elements(prepared)]
    unknown = data_dependent_lines(program, set(without))
    if unknown:
        where = ", ".join(map(str, unknown[:4]))
        needed = [name for name in without if data_dependent_lines(program, {name})] or without
        raise InputError(
            f"what {prepared.kernel} does at line {where} depends on the arrays' elements: give "
            f"those of {', '.join(needed)}, with the arrays themselves in place of array_spec, "
            f"or on the command line with a filling, as in {needed[0]}=TYPE[SHAPE]=random"
        )
