"""Streams of programs with bulk copies: what they ask of mbarriers, and of the engine.

A warp that requests a phase in a loop waits for it: executions that find it unfinished are not part
of its stream. The columns of such instructions are, beside `cost`: the word of the barrier as
`gaps`, its address in units of eight bytes plus one, 0 for none; as `lines` how many arrivals it
sets, or gets, or whether the phase is one later than the last that the warp waited for; as
`wavefronts` the expected bytes. A bulk copy has its sectors, lines, bytes and barrier there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gpusim.errors import InputError
from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.host.kept import once
from gpusim.isa.ops import LAND, OPS, Instruction, Program
from gpusim.launch.events import Observer, Placement, Step
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams.recorder import Asked, Recorded, Recorder
from gpusim.prediction.streams.stretches import Touch, TouchRecorder
from gpusim.typing import Array

COPY, SET, ARRIVE, ASK = "copy", "set", "arrive", "ask"
_COUNT, _EXPECTED = (1 << 20) - 1, 1
# The sign of transactions, and the arrivals, of updates of an mbarrier: of other ones none and all.
_UPDATES = {
    "arrive_expecting": (1, 1),
    "expect_transactions": (1, 0),
    "complete_transactions": (-1, 0),
}


@once
def roles(program: Program) -> dict[int, str]:
    """Return what instructions do to mbarriers or as bulk copies, by pc.

    It is empty for a program without bulk copies.
    """
    rows = program.instructions
    found = {pc: COPY for pc, row in enumerate(rows) if OPS[row.op].kind == "bulk_copy"}
    if found:
        for pc, row in enumerate(rows):
            is_word = row.memory is not None and row.memory.is_barrier_word
            kind = _role(rows, pc) if is_word else ""
            if kind:
                found[pc] = kind
    return found


def _role(rows: Sequence[Instruction], pc: int) -> str:
    role = {"store": SET, "atomic": ARRIVE, "load": ASK}.get(OPS[rows[pc].op].kind, "")
    return "" if role == ASK and rows[pc - 2].op != LAND else role


def _compared(rows: Sequence[Instruction], pc: int) -> int:
    """Return the register with the phase that an instruction requests."""
    (held,) = rows[pc].dst
    return next(row for row in rows[pc + 1 :] if row.src[:1] == (held,)).src[1]


def recorder_of(prepared: Prepared, *, folds: bool = False, whole: bool = False) -> Recorder:
    """Return a recorder of a program's streams."""
    kind = PhaseRecorder if roles(prepared.program) else Recorder
    return kind(prepared, folds=folds, whole=whole)


def touch_recorder_of(prepared: Prepared) -> TouchRecorder:
    """Return a recorder of a program's touches."""
    return (BulkTouchRecorder if roles(prepared.program) else TouchRecorder)(prepared)


class PhaseRecorder(Recorder):
    """Turns steps of a program with bulk copies into streams: it takes single steps alone."""

    compiled_steps = Observer.compiled_steps

    def __init__(self, prepared: Prepared, *, folds: bool = False, whole: bool = False) -> None:
        super().__init__(prepared, folds=folds, whole=whole)
        self._roles = roles(prepared.program)
        self._following = prepared.program.instructions
        self._phases: dict[tuple[int, int], int] = {}  # by warp and barrier
        # By warp: the barrier and phase that it did not find, and the number of the step.
        self._failed: dict[int, tuple[tuple[int, int], int]] = {}
        self._found = np.zeros(0)

    def step(self, step: Step) -> None:
        """Record a step; of a loop that requests a phase, the last iteration alone."""
        if self._roles.get(step.pc) == ASK:
            self._note(step, self._of(step.placement))
        super().step(step)

    def _note(self, step: Step, recorded: Recorded) -> None:
        """Note which warps find their phase, and drop what the others did since they last asked."""
        phase = _compared(self._following, step.pc)
        word, asked, address = (
            np.broadcast_to(one, (1, len(step.rows), 32))[0]
            for one in (_read(step, step.instruction.dst[0]), _read(step, phase), step.addresses)
            if one is not None
        )
        on = np.broadcast_to(step.on, (1, len(step.rows), 32))[0]
        differs = (word ^ asked).astype(np.uint32) >> np.uint32(31) != 0
        self._found = (differs & on).any(axis=1)
        for number in np.flatnonzero(on.any(axis=1)).tolist():
            lane, row = int(on[number].argmax()), int(step.rows[number])
            warp = _warp(step.placement, row)
            what = int(address[number, lane]), int(asked[number, lane])
            failed, begun = self._failed.pop(warp, (what, -1))
            if begun >= 0 and failed == what:
                recorded.drop(row, begun)
            if not self._found[number]:
                self._failed[warp] = what, len(recorded.steps)

    def is_again(self, before: Step, step: Step) -> bool:
        """Return whether a step repeats the last one of its instruction."""
        return step.pc not in self._roles and super().is_again(before, step)

    def asked(self, step: Step) -> Asked:
        """Return the columns of an access."""
        role = self._roles.get(step.pc)
        if role == COPY:
            return _copied(step)
        usual = super().asked(step)
        if role is None:
            return usual
        words, counts, bytes_each = [], [], []
        for number, row in enumerate(step.rows.tolist()):
            lanes = np.flatnonzero(np.broadcast_to(step.on, (1, len(step.rows), 32))[0, number])
            word, count, size = 0, 0, 0
            if len(lanes):
                word = _word(step, number, lanes)
                if role == ASK:
                    word, count = self._wait(step, number, row, lanes, word)
                else:
                    count, size = self._counted(step, number, lanes, role)
            words.append(word)
            counts.append(count)
            bytes_each.append(size)
        shaped = (np.array([one], dtype=np.int64) for one in (counts, bytes_each, words))
        lines, wavefronts, gaps = shaped
        return usual._replace(lines=lines, wavefronts=wavefronts, gaps=gaps)

    def _wait(self, step: Step, number: int, row: int, lanes: Array, word: int) -> tuple[int, int]:
        """Return the barrier that a warp waits for, and whether for a phase beyond its last."""
        if not self._found[number]:
            return 0, 0
        phase = _of_lane(step, _compared(self._following, step.pc), number, lanes[0]) >> 31 & 1
        name = _warp(step.placement, row), word
        seen = self._phases.get(name, 0)
        ahead = int(seen % 2 == phase)
        self._phases[name] = seen + ahead
        return word, ahead

    def _counted(self, step: Step, number: int, lanes: Array, role: str) -> tuple[int, int]:
        """Return the arrivals and the bytes that a warp sets or adds to a barrier's."""
        instruction = step.instruction
        if role == SET:
            low, high = (_of_lane(step, one, number, lanes[0]) for one in instruction.src[1:3])
            return -((high << 32 | low) >> _EXPECTED) & _COUNT, 0
        values = [_of_lane(step, instruction.src[1], number, lane) for lane in lanes.tolist()]
        sign, arrives = _UPDATES.get(str(instruction.detail), (0, 0))
        if sign:
            return arrives * len(lanes), sign * sum(values)
        drops = -1 if instruction.detail == "arrive_and_drop" else 1
        return drops * sum(values), 0


def _copied(step: Step) -> Asked:
    """Return the columns of a bulk copy: of the warps that have begun one."""
    told = {one[1]: one for one in step.values[0].tolist()}
    rows = [told.get(row, (0,) * 8) for row in step.rows.tolist()]
    begins = [(address, address + size) for _, _, _, size, _, address, *_ in rows]
    sectors, lines = (
        np.array([[(end - 1) // each - begin // each + 1 if end else 0 for begin, end in begins]])
        for each in (SECTOR_BYTES, LINE_BYTES)
    )
    touched = np.concatenate(
        [np.arange(begin // SECTOR_BYTES, -(-end // SECTOR_BYTES)) for begin, end in begins]
    )
    size = np.array([[one[3] for one in rows]])
    barrier = np.array([[one[4] // 8 + 1 if one[3] and not one[6] else 0 for one in rows]])
    return Asked(sectors, lines, size, touched, gaps=barrier)


def _word(step: Step, number: int, lanes: Array) -> int:
    """Return the barrier of some lanes of a warp."""
    assert step.addresses is not None
    shape = (1, len(step.rows), 32)
    own = np.unique(np.broadcast_to(step.addresses, shape)[0, number, lanes] // 8)
    if len(own) > 1:
        raise InputError(
            f"line {step.instruction.line}: lanes of a warp test several mbarriers at once: "
            "their time is not simulated"
        )
    return int(own[0]) + 1


def _of_lane(step: Step, register: int, number: int, lane: int) -> int:
    """Return what a lane of a warp has in a register."""
    shape = (1, len(step.rows), 32)
    return int(np.broadcast_to(_read(step, register), shape)[0, number, lane])


def _read(step: Step, register: int) -> Array:
    assert step.registers is not None
    return step.registers(register)


def _warp(placement: Placement, row: int) -> int:
    """Return the number of a warp in the grid."""
    block = int(placement.blocks[row // placement.warps_per_block])
    return block * placement.warps_per_block + row % placement.warps_per_block


class BulkTouchRecorder(TouchRecorder):
    """Turns steps into stretches, those of bulk copies too."""

    compiled_steps = Observer.compiled_steps

    def step(self, step: Step) -> None:
        """Record the touches of a step."""
        if OPS[step.instruction.op].kind == "bulk_copy":
            self._of(step.placement).touches += self._copies(step)
        super().step(step)

    def _copies(self, step: Step) -> Iterator[Touch]:
        clock, kind = self._of(step.placement).clock, self._kinds.kinds[step.pc]
        for _, row, _, size, _, address, *_ in step.values[0].tolist():
            columns = row // step.placement.warps_per_block, clock[row], address, address + size
            yield Touch(step.pc, kind, *(np.array([one]) for one in (*columns, size)))
