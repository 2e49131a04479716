"""The verifier of a `Program` of either generator: the machine's preconditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.program.dataflow import solve
from gpusim.program.flow import successors

Fact = TypeVar("Fact")
# Registers that have been written, with the guard that their lanes have, if only these wrote them.
Written = frozenset[tuple[int, int | None, bool]]


def verify(program: Program) -> None:
    """Raise AssertionError, naming every mistake, where the machine could not run a program."""
    found = list(mistakes(program))
    assert not found, "\n".join(found)


def mistakes(program: Program) -> Iterator[str]:
    """Yield the mistakes of single instructions, and of the paths that lead to them."""
    found = [mistake for pc in range(len(program.instructions)) for mistake in _of_one(program, pc)]
    yield from found
    if not found:  # paths exist between valid targets alone
        yield from _of_barriers(program)
        yield from _of_registers(program)


def _of_one(program: Program, pc: int) -> Iterator[str]:
    instruction = program.instructions[pc]
    where = f"{pc}: {instruction.op}"
    if instruction.op not in OPS:
        yield f"{where} is not an instruction"
        return
    yield from (f"{where} {mistake}" for mistake in _of_target(program, instruction))
    if pc == len(program.instructions) - 1 and not _ends(instruction):
        yield f"{where} runs past the end"
    guard = instruction.guard
    if guard is not None and not _is_predicate(program, guard):
        yield f"{where} is guarded by R{guard}: not a predicate"
    registers = (*instruction.dst, *instruction.src)
    if any(not 0 <= register < program.registers for register in registers):
        yield f"{where} names a register beyond {program.registers}"
    if any(register in program.immediates for register in instruction.dst):
        yield f"{where} writes a constant"


def _of_target(program: Program, instruction: Instruction) -> Iterator[str]:
    """A branch leads to an instruction, a BSSY to the BSYNC of its barrier, all else nowhere."""
    kind, target = OPS[instruction.op].kind, instruction.target
    if kind not in ("branch", "bssy"):
        if target != -1:
            yield f"has target {target}"
    elif not 0 <= target < len(program.instructions):
        yield f"leads to {target}, where there is not an instruction"
    elif kind == "bssy":
        end = program.instructions[target]
        if OPS[end.op].kind != "bsync" or end.detail != instruction.detail:
            yield f"of barrier {instruction.detail} leads to {end.op} {end.detail}"


def _ends(instruction: Instruction) -> bool:
    return OPS[instruction.op].leaves and instruction.guard is None


def _is_predicate(program: Program, register: int) -> bool:
    known = program.immediates.get(register, program.initial.get(register))
    if known is not None and known.dtype.kind != "b":
        return False
    writers = [i for i in program.instructions if register in i.dst]
    return all(i.dtype is not None and i.dtype.kind == "b" for i in writers)


def _of_barriers(program: Program) -> Iterator[str]:
    """A barrier that lanes wait at or break has been set on every path that leads there."""

    def after(pc: int, before: frozenset[int], _: int) -> frozenset[int]:
        instruction = program.instructions[pc]
        kind = OPS[instruction.op].kind
        if kind == "bssy":
            return before | {instruction.detail}
        return before - {instruction.detail} if kind == "bsync" else before

    for pc, is_set in _on_every_path(program, after).items():
        instruction = program.instructions[pc]
        uses = OPS[instruction.op].kind in ("bsync", "break")
        if uses and instruction.detail not in is_set:
            yield f"{pc}: {instruction.op} of barrier {instruction.detail}, which is not set"


def _of_registers(program: Program) -> Iterator[str]:
    """A register has been written on every path to where it is read, at least under its guard."""

    def after(pc: int, before: Written, target: int) -> Written:
        instruction = program.instructions[pc]
        known = before
        for register in instruction.dst:
            known = _with(known, register, instruction)
        if not OPS[instruction.op].leaves or instruction.guard is None:
            return known
        return _decided(known, instruction.guard, instruction.negated != (target == pc + 1))

    given = program.immediates.keys() | program.initial.keys()
    for pc, written in _on_every_path(program, after).items():
        instruction = program.instructions[pc]
        guard, reads = instruction.guard, [*instruction.src]
        under = {r for r, g, negated in written if (g, negated) == (guard, instruction.negated)}
        always = {r for r, g, _ in written if g is None} | given
        missing = {r for r in reads if r not in under | always}
        missing |= set() if guard is None or guard in always else {guard}
        for register in sorted(missing):
            yield f"{pc}: {instruction.op} reads R{register}, which need not be written"


def _with(known: Written, register: int, writer: Instruction) -> Written:
    """Return the written registers after an instruction that writes one."""
    guard, negated = writer.guard, writer.negated
    if guard is None:
        rest = frozenset(fact for fact in known if fact[1] != register)
        return rest | {(register, None, False)}
    if (register, guard, not negated) in known:
        return known | {(register, None, False)}
    return known | {(register, guard, negated)}


def _decided(known: Written, guard: int, negated: bool) -> Written:
    """Return the written registers of lanes with a known guard."""
    return known | {(r, None, False) for r, g, n in known if (g, n) == (guard, negated)}


def _on_every_path(
    program: Program, after: Callable[[int, frozenset[Fact], int], frozenset[Fact]]
) -> dict[int, frozenset[Fact]]:
    """Return the facts that hold before each reachable instruction, on every path.

    `after(pc, before, target)` are the facts where an instruction goes on to a target.
    """
    following = successors(program)

    def onward(pc: int, before: frozenset[Fact]) -> Iterator[tuple[int, frozenset[Fact]]]:
        return ((target, after(pc, before, target)) for target in following[pc])

    return solve({0: frozenset[Fact]()}, onward, frozenset.intersection)
