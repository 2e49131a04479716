"""Groups of some rows of a batch: what they keep to themselves, and what the batch gets of it."""

from __future__ import annotations

import numpy as np

from gpusim.compiler.ir import INT32
from gpusim.isa.ops import Instruction, Program
from gpusim.launch.grid import Launch
from gpusim.machine.group import Group
from gpusim.machine.state import Batch
from gpusim.program.liveness import Liveness

# R2 = R0 + R1, which is read behind it; R0 and R1 are not.
PROGRAM = Program(
    "sum",
    (
        Instruction("IADD3", (2,), (0, 1), INT32, "++"),
        Instruction("IADD3", (3,), (2, 2), INT32, "++"),
        Instruction("EXIT"),
    ),
    registers=4,
)


def two_warps() -> Batch:
    """Return a batch of one block of two warps, whose R0 is 7 everywhere."""
    launch = Launch((1, 1, 1), (64, 1, 1), 0)
    batch = Batch(PROGRAM, launch, np.array([0]), Liveness(PROGRAM))
    batch.registers[0] = np.full((1, 2, 32), 7, dtype=np.int32)
    return batch


def some_lanes(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return a mask of one warp that holds its first lanes."""
    return (np.arange(32) < count).reshape(1, 1, 32)


def test_a_group_of_some_rows_reads_what_it_has_written_before_the_batch_has_it() -> None:
    batch = two_warps()
    group = Group(batch, np.array([1]))
    group.write(0, np.full((1, 1, 32), 8, dtype=np.int32), group.mask)
    assert group.read(0).tolist() == [[[8] * 32]]
    assert Group(batch, np.array([1])).read(0).tolist() == [[[7] * 32]]


def test_a_group_that_settles_gives_the_batch_its_own_rows_of_what_is_live() -> None:
    batch = two_warps()
    group = Group(batch, np.array([1]))
    group.write(0, np.full((1, 1, 32), 8, dtype=np.int32), group.mask)
    group.settle()
    assert batch.registers[0] is not None
    assert batch.registers[0][0, :, 0].tolist() == [7, 8]


def settled(batch: Batch, value: int) -> None:
    """Let the second warp set R0 and the batch have it."""
    group = Group(batch, np.array([1]))
    group.write(0, np.full((1, 1, 32), value, dtype=np.int32), group.mask)
    group.settle()


def test_an_array_that_the_batch_alone_holds_is_changed_where_it_is() -> None:
    batch = two_warps()
    settled(batch, 8)
    held = batch.registers[0]
    settled(batch, 9)
    assert held is batch.registers[0]
    assert held is not None
    assert held[0, :, 0].tolist() == [7, 9]


def test_an_array_that_others_hold_stays_as_it_was() -> None:
    batch = two_warps()
    given = batch.registers[0]
    settled(batch, 8)
    read = Group(batch, np.arange(2)).read(0)
    settled(batch, 9)
    kept = batch.kept_registers()[0]
    settled(batch, 10)
    now = batch.registers[0]
    found = [a[0, 1, 0] for a in (given, read, kept, now) if a is not None]
    assert found == [7, 8, 9, 10]


def test_what_is_dead_where_a_group_settles_is_left_behind() -> None:
    batch = two_warps()
    group = Group(batch, np.array([1]))
    group.write(0, np.full((1, 1, 32), 8, dtype=np.int32), group.mask)
    group.write(2, np.full((1, 1, 32), 9, dtype=np.int32), group.mask)
    group.pc = 1
    group.settle()
    found, written = batch.registers[0], batch.registers[2]
    assert found is not None
    assert written is not None
    assert found[0, :, 0].tolist() == [7, 7]
    assert written[0, :, 0].tolist() == [0, 9]


def test_two_splits_of_one_warp_each_give_their_own_lanes() -> None:
    batch = two_warps()
    splits = batch.splits
    batch.splits = splits.extended(splits.take(np.array([1])))
    batch.splits.mask = np.concatenate(
        [np.ones((1, 1, 32), dtype=bool), some_lanes(4), ~some_lanes(4)], axis=1
    )
    group = Group(batch, np.array([1, 2]))
    values = np.array([[[1]], [[2]]], dtype=np.int32).reshape(1, 2, 1)
    group.write(2, np.broadcast_to(values, (1, 2, 32)), group.mask)
    group.pc = 1
    group.settle()
    assert batch.registers[2] is not None
    assert batch.registers[2][0, 1].tolist() == [1] * 4 + [2] * 28
