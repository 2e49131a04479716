"""Polls, and loads that a compare-and-swap validates: loads in loops that wait for a value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.program.dataflow import reachable as reached
from gpusim.program.flow import all_successors, loop_bodies, reachable
from gpusim.program.uses import Slices

MERGES = ("bits.PRMT", "bits.LOP3")  # put words together from parts of others
WORD = 4
WORD_SWAP = 3  # operands of a swap of one word: its address, the expected and the new value


@once
def polls(program: Program) -> frozenset[int]:
    """Return the pcs of loads and atomics that a loop repeats, at one address, until it is left."""
    return frozenset(pc for loop in _loops(program) for pc in loop.polls)


@once
def unmet_polls(program: Program) -> frozenset[int]:
    """Return the polls of loops without a barrier: in others a value may come by the barrier."""
    return frozenset(
        pc
        for loop in _loops(program)
        if not any(OPS[row.op].kind == "barrier" for _, row in loop)
        for pc in loop.polls
    )


@once
def waits(program: Program) -> frozenset[int]:
    """Return the polls, also of a first iteration that a compiler has peeled off.

    Retries of atomics of 8 or 16 bits do not wait for other threads.
    """

    def access(row: Instruction) -> tuple[object, ...]:
        return row.line, row.op, row.detail, row.memory

    rows, retries = program.instructions, set[tuple[int, range]]()
    for pc in partial_swaps(program):
        around = [body for body in loop_bodies(program) if pc in body]
        retries |= {(pc, min(around, key=len))} if around else set()
    found = frozenset(
        pc for loop in _loops(program) for pc in loop.polls if (pc, loop.body) not in retries
    )
    repeated = {access(rows[pc]) for pc in found if rows[pc].line}
    return found | {pc for pc, row in enumerate(rows) if row.memory and access(row) in repeated}


@once
def spins(program: Program) -> frozenset[int]:
    """Return the pcs of polls of spin loops, which only wait for another block.

    A spin loop has no loop-carried condition, and nothing in it but the polls changes memory or
    synchronises: it continues as long as polled values do not change.
    """
    found: set[int] = set()
    for loop in _loops(program):
        if not loop.carried(loop.deciding) and all(
            _is_of_grid(row) if pc in loop.polls else _is_quiet(row) for pc, row in loop
        ):
            found |= loop.polls
    return frozenset(found)


@once
def awaits(program: Program) -> bool:
    """Return whether a poll may read a store of another warp while the loop runs.

    It does not if the program never writes its array, nor, in shared memory, if the loop has a
    barrier.
    """
    rows = program.instructions
    written = [row.memory for row in rows if OPS[row.op].writes_memory and row.memory is not None]
    for loop in _loops(program):
        has_barrier = any(OPS[row.op].kind == "barrier" for _, row in loop)
        for pc in loop.polls:
            memory = rows[pc].memory
            if memory is None or (has_barrier and memory.space == "shared"):
                continue
            if any(one.may_touch(frozenset((memory.place,))) for one in written):
                return True
    return False


@once
def awaits_time(program: Program) -> bool:
    """Return whether a loop waits until a clock has reached a time."""
    return any(
        OPS[row.op].kind == "clock" and not loop.deciding.isdisjoint(row.dst)
        for loop in _loops(program)
        for _, row in loop
    )


@once
def optimistic_loads(program: Program) -> frozenset[int]:
    """Return the pcs of loads that a compare-and-swap validates."""
    rows = program.instructions
    swaps = [row for row in rows if OPS[row.op].kind == "atomic" and row.detail == "cas"]
    compared = Slices(rows).of(register for row in swaps for register in row.src[1:2])
    arrays = {row.memory.name for row in swaps if row.memory is not None}
    return frozenset(
        pc
        for pc, row in enumerate(rows)
        if OPS[row.op].kind == "load"
        and row.memory is not None
        and row.memory.name in arrays
        and not compared.isdisjoint(row.dst)
    )


@once
def partial_swaps(program: Program) -> Mapping[int, frozenset[int]]:
    """Return the swaps of parts of words, where accesses are not all of whole words."""
    every = (row.memory for row in program.instructions)
    is_any = any(one is not None and one.dtype.itemsize < WORD for one in every)
    return swaps_of_parts(program) if is_any else {}


@once
def swaps_of_parts(program: Program) -> Mapping[int, frozenset[int]]:
    """Return the compare-and-swaps of a word that change a part of it, with their guesses, by pc.

    The new word is put together from the old one and a narrower value: atomics of 8 and 16 bits.
    The guesses are the loads of the word in the swap's line.
    """
    rows = program.instructions
    held = {one for row in rows if row.memory is not None for one in row.dst}
    makers: dict[int, list[Instruction]] = defaultdict(list)
    for row in rows:
        for register in row.dst:
            makers[register].append(row)
    slices, guesses, found = Slices(rows), optimistic_loads(program), {}
    for pc, row in enumerate(rows):
        if OPS[row.op].kind == "atomic" and row.detail == "cas" and len(row.src) == WORD_SWAP:
            old = {one for one in slices.of(row.src[1:2]) if slices.of([one]) & held}
            merges = (made for made in makers[row.src[2]] if made.op in MERGES)
            if any(not old.isdisjoint(made.src) for made in merges):
                found[pc] = frozenset(
                    one for one in guesses if rows[one].line == row.line and old & {*rows[one].dst}
                )
    return found


@once
def tested_loads(program: Program) -> frozenset[int]:
    """Return the pcs of loads that a branch depends on, with a fence on a path after them.

    They read flags that are not polled: a walk from flag to flag, or a single test.
    """
    rows = program.instructions
    deciding = Slices(rows).of(
        row.guard for row in rows if row.guard is not None and OPS[row.op].leaves
    )
    return frozenset(
        pc
        for pc, row in enumerate(rows)
        if OPS[row.op].kind == "load"
        and not deciding.isdisjoint(row.dst)
        and any(OPS[rows[one].op].kind == "fence" for one in reachable(program, pc))
    )


@once
def signals(program: Program) -> frozenset[int]:
    """Return the pcs of polls with a value that only the loop's condition uses."""
    rows = program.instructions
    kept = Slices(rows).of(
        register
        for row in rows
        if OPS[row.op].writes_memory or row.memory is not None
        for register in row.src
    )
    return frozenset(pc for pc in polls(program) if kept.isdisjoint(rows[pc].dst))


@once
def refills(program: Program) -> bool:
    """Return whether stores between two waits go to an array that loads between such read.

    It may be a ring buffer. How full that is depends on the order of its writers and readers.
    """
    rows, waiting = program.instructions, polls(program)
    after, before = all_successors(program), defaultdict[int, list[int]](list)
    for pc, following in enumerate(after) if waiting else ():
        for one in following:
            before[one].append(pc)
    behind, ahead = reached(waiting, after.__getitem__), reached(waiting, before.__getitem__)
    plain = [
        (OPS[rows[pc].op].kind, memory)
        for pc in behind & ahead
        if (memory := rows[pc].memory) is not None and not memory.volatile
    ]
    loaded = frozenset(memory.place for kind, memory in plain if kind == "load")
    return any(kind == "store" and memory.may_touch(loaded) for kind, memory in plain)


def _loops(program: Program) -> Iterator[_Loop]:
    return (_Loop(program.instructions, body) for body in loop_bodies(program))


class _Loop:
    """A loop's body with the slices in it."""

    def __init__(self, rows: Sequence[Instruction], body: range) -> None:
        self.body = body
        self._rows = rows[body.start : body.stop]
        self._slices = Slices(self._rows)

    def __iter__(self) -> Iterator[tuple[int, Instruction]]:
        return zip(self.body, self._rows, strict=True)

    @cached_property
    def deciding(self) -> set[int]:
        """The registers in the exit condition of the loop."""
        return self._slices.of(
            row.guard
            for pc, row in self
            if row.guard is not None
            and OPS[row.op].leaves
            and (pc == self.body[-1] or row.target not in self.body)
        )

    @cached_property
    def polls(self) -> set[int]:
        """The pcs of loads and atomics that it repeats at one address."""
        return {
            pc
            for pc, row in self
            if OPS[row.op].reads_memory
            and not self.deciding.isdisjoint(row.dst)
            and self._stays(row.src[:1])
        }

    def _stays(self, address: tuple[int, ...]) -> bool:
        """Return whether an address is the same in every iteration."""
        return not self.carried(self._slices.of(address), address)

    def carried(self, found: set[int], address: tuple[int, ...] | None = None) -> set[int]:
        """Return the registers of a slice that one iteration hands on to the next.

        Instructions that access memory at `address` are of the slice as well.
        """
        written: set[int] = set()
        carried: set[int] = set()
        for row in self._rows:
            if not found.isdisjoint(row.dst) or row.src[:1] == address:
                carried |= {r for r in row.src if r in found and r not in written}
            written.update(row.dst)
        return carried & written


def _is_of_grid(instruction: Instruction) -> bool:
    """Return whether other blocks can access the same memory."""
    return instruction.memory is not None and instruction.memory.space in ("global", "generic")


def _is_quiet(instruction: Instruction) -> bool:
    """Return whether an instruction has no effect on other threads."""
    op = OPS[instruction.op]
    return not op.writes_memory and op.kind != "barrier"
