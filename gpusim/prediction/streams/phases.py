"""Streams of programs with bulk copies: what they ask of mbarriers, and of the engine.

A warp that requests a phase in a loop waits for it: executions that find it unfinished are not part
of its stream. The columns of such instructions are, beside `cost`: the word of the barrier as
`gaps`, its address in units of eight bytes plus one, 0 for none; as `lines` how many arrivals it
sets, or gets, or whether the phase is one later than the last that the warp waited for; as
`wavefronts` the expected bytes. A bulk copy has its sectors, lines, bytes and barrier there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpusim.errors import InputError
from gpusim.gpu import memory as memory_of
from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.host.kept import once
from gpusim.isa.ops import OPS, PEER_COPY, RANK_SHIFT, SHARED_HIGH, Instruction, Program
from gpusim.launch.events import Observer, Placement, Step
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams.peers import ARRIVE, ASK, SEND, Peers
from gpusim.prediction.streams.recorder import Asked, Recorded, Recorder
from gpusim.prediction.streams.stretches import Touch, TouchRecorder
from gpusim.typing import Array

COPY, SET = "copy", "set"
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

    It is empty for a program without bulk copies or mbarriers of other blocks.
    """
    rows = program.instructions
    found = {pc: COPY for pc, row in enumerate(rows) if OPS[row.op].kind == "bulk_copy"}
    for pc, row in enumerate(rows):
        if row.memory is not None and row.memory.is_word_of_cluster:
            found[pc] = SEND
    if found:
        for pc, row in enumerate(rows):
            is_word = row.memory is not None and row.memory.is_barrier_word
            kind = _role(rows, pc) if is_word else ""
            if kind:
                found[pc] = kind
    return found


def _role(rows: Sequence[Instruction], pc: int) -> str:
    role = {"store": SET, "atomic": ARRIVE, "load": ASK}.get(OPS[rows[pc].op].kind, "")
    return "" if role == ASK and "PHASECHK" not in rows[pc].text else role


def _compared(rows: Sequence[Instruction], pc: int) -> int:
    """Return the register with the phase that an instruction requests."""
    (held,) = rows[pc].dst
    return next(row for row in rows[pc + 1 :] if row.src[:1] == (held,)).src[1]


def recorder_of(prepared: Prepared, *, folds: bool = False, whole: bool = False) -> Recorder:
    """Return a recorder of a program's streams."""
    program = prepared.program
    is_of_peers = program.clusters and any(map(_may_be_of_peers, program.instructions))
    kind = PhaseRecorder if roles(program) or is_of_peers else Recorder
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
        self._cluster_blocks = prepared.launch.cluster_blocks
        layout = prepared.program.layout
        self._shared_start = 0 if layout is None else layout.shared_start
        self._peers = Peers()

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
            self._note_copies(step)
            return _copied(step)
        usual = super().asked(step)
        if role is None:
            return self._of_peers(step) if _may_be_of_peers(step.instruction) else usual
        if role == SEND:
            return self._sent(step)
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
                self._note_own(step, row, role, (word, count, size))
            words.append(word)
            counts.append(count)
            bytes_each.append(size)
        shaped = (np.array([one], dtype=np.int64) for one in (counts, bytes_each, words))
        lines, wavefronts, gaps = shaped
        once = np.minimum(np.broadcast_to(usual.cost, lines.shape), 1)
        return usual._replace(cost=once, lines=lines, wavefronts=wavefronts, gaps=gaps)

    # -- other blocks of the cluster ------------------------------------------------------

    def batch_end(self, blocks: Array) -> None:
        """Make the streams of these blocks, with what came from other blocks of their clusters."""
        recorded = self._recorded.get(int(blocks[0]))
        if recorded is not None:
            for block in blocks.tolist():
                self._peers.credit(block, recorded)
        super().batch_end(blocks)

    def _blocks(self, step: Step, row: int) -> tuple[int, Array]:
        """Return the block of a warp, and all of its cluster by rank."""
        own, size = row // step.placement.warps_per_block, self._cluster_blocks
        first = own - own % size
        return int(step.placement.blocks[own]), step.placement.blocks[first : first + size]

    def _note_own(self, step: Step, row: int, role: str, asked: tuple[int, int, int]) -> None:
        """Note what a warp does to an mbarrier of its own block."""
        word, count, size = asked
        if self._cluster_blocks == 1 or not word:
            return
        named = self._blocks(step, row)[0], word
        here = len(self._of(step.placement).steps)
        if role == SET:
            self._peers.of(named).set(count)
        elif role == ARRIVE:
            self._peers.arrive(named, here, row)
            self._peers.of(named).count(count, size)
        elif count:
            self._peers.wait(named, here, row)

    def _note_copies(self, step: Step) -> None:
        """Note the bytes of bulk copies that blocks of clusters get."""
        warps = step.placement.warps_per_block
        for _, row, _, size, barrier, _, group, block in step.values[0].tolist():
            if group or self._cluster_blocks == 1:
                continue
            word, here = barrier // 8 + 1, len(self._of(step.placement).steps)
            own = self._blocks(step, row)[0]
            if block == row // warps:
                self._peers.of((own, word)).count(0, -size)
            else:
                to = int(step.placement.blocks[block]), word
                is_load = step.instruction.op != PEER_COPY
                self._peers.receive(to, 0, size, is_load=is_load)
                self._peers.send((own, word), here, row)

    def _of_peers(self, step: Step) -> Asked:
        """Return the sectors of an access to shared memory of other blocks, as wavefronts."""
        assert step.addresses is not None
        ranks = [self._blocks(step, row) for row in step.rows.tolist()]
        own = np.array([int(np.flatnonzero(among == block)[0]) for block, among in ranks])
        is_shared = step.addresses >> 32 == SHARED_HIGH
        is_peer = is_shared & (_rank(step.addresses) != own[None, :, None]) & step.on
        shape = (1, len(step.rows), is_peer.shape[2])
        addresses, on = (np.broadcast_to(one, shape) for one in (step.addresses, is_peer))
        return Asked(wavefronts=memory_of.sectors(addresses, on))

    def _sent(self, step: Step) -> Asked:
        """Return the columns of arrivals and transactions at mbarriers of any blocks."""
        shape = (len(step.rows), 32)
        assert step.addresses is not None
        address, on, counts = (
            np.broadcast_to(one, (1, *shape))[0]
            for one in (step.addresses, step.on, _read(step, step.instruction.src[1]))
        )
        sign, arrives = _UPDATES.get(str(step.instruction.detail), (0, 0))
        zero = np.zeros((1, shape[0]), dtype=np.int64)
        lines, wavefronts, gaps = zero.copy(), zero.copy(), zero.copy()
        for number, row in enumerate(step.rows.tolist()):
            own, cluster = self._blocks(step, row)
            here = len(self._of(step.placement).steps)
            lanes = np.flatnonzero(on[number])
            places = address[number, lanes] - self._shared_start
            for to in np.unique(places).tolist():
                amount = counts[number, lanes][places == to]
                count = arrives * len(amount) if sign else int(amount.sum())
                size = sign * int(amount.sum()) if sign else 0
                block = int(cluster[_rank(to)])
                word = (to & (1 << RANK_SHIFT) - 1) // 8 + 1
                if block == own:
                    self._peers.of((own, word)).count(count, size)
                    lines[0, number], wavefronts[0, number] = count, -size
                    gaps[0, number] = word
                else:
                    self._peers.receive((block, word), count, -size, is_load=False)
                    self._peers.send((own, word), here, row)
        return Asked(np.minimum(1, lines + 1), lines, wavefronts, gaps=gaps)

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
    warps, op = step.placement.warps_per_block, step.instruction.op
    own = [one for one in step.values[0].tolist() if one[7] == one[1] // warps or one[6]]
    told = {one[1]: one for one in own}
    rows = [told.get(row, (0,) * 8) for row in step.rows.tolist()]
    size = np.array([[one[3] for one in rows]])
    barrier = np.array([[one[4] // 8 + 1 if one[3] and not one[6] else 0 for one in rows]])
    if op == PEER_COPY:
        sent = {one[1]: one[3] for one in step.values[0].tolist()}
        cost = np.array([[sent.get(row, 0) for row in step.rows.tolist()]])
        return Asked(cost, cost, size, gaps=barrier)
    stretches = _stretches(step)
    ends = [[(b, e) for _, b, e in stretches if _ == row] for row in step.rows.tolist()]
    sectors, lines = (
        np.array([[len(_units(one, each)) for one in ends]]) for each in (SECTOR_BYTES, LINE_BYTES)
    )
    touched = np.concatenate([_units(one, SECTOR_BYTES) for one in ends])
    return Asked(sectors, lines, size, touched, gaps=barrier)


def _stretches(step: Step) -> list[list[int]]:
    """Return row, begin and end of the bytes of global memory that copies touch, each once."""
    plain = {
        (row, address, address + size)
        for _, row, _, size, _, address, _, _ in step.values[0].tolist()
        if address >= 0 and step.instruction.op != PEER_COPY
    }
    return [*map(list, sorted(plain)), *step.values[1].tolist()]


def _units(stretches: Sequence[tuple[int, int]], each: int) -> Array:
    """Return the distinct units of some bytes that stretches of memory touch."""
    found = [np.arange(begin // each, -(-end // each)) for begin, end in stretches]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found]))


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


def _rank(address: Any) -> Any:
    """Return the rank of the block whose shared memory an address is in."""
    return address >> RANK_SHIFT & 0xFF


def _may_be_of_peers(instruction: Instruction) -> bool:
    """Return whether an instruction may access shared memory of another block of its cluster."""
    memory = instruction.memory
    return memory is not None and memory.space == "generic" and not memory.is_word_of_cluster


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
        for row, begin, end in _stretches(step):
            columns = row // step.placement.warps_per_block, clock[row], begin, end, end - begin
            yield Touch(step.pc, kind, *(np.array([one]) for one in columns))
