"""A launch that finds code, parameters and memory of an earlier one takes its result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from driver.host import Host, needs_compilers

from gpusim.driver.arena import DEVICE, PINNED, Arena, Region
from gpusim.driver.repeats import Repeats

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="device memory is a memfd")

KEY = b"a kernel and its parameters"


class Program:
    """Two allocations, and launches that are counted."""

    def __init__(self) -> None:
        arena = Arena(1 << 20)
        self.repeats = Repeats(arena, bytes_per_s=float("inf"))
        self.source, self.target = arena.allocate(64, DEVICE), arena.allocate(64, DEVICE)
        self.arena, self.executed, self.number = arena, 0, 0
        self.printed: list[bytes] = []

    def add(self) -> None:
        self.target.bytes[:] += self.source.bytes

    def copy(self) -> None:
        self.target.bytes[:] = self.source.bytes

    def launch(self, kernel: Callable[[], None], key: bytes = KEY) -> int:
        def run() -> None:
            self.executed += 1
            self.printed.append(b"done\n")
            kernel()

        self.number += 1
        self.printed = []
        return self.repeats.run(key, self.number, self.printed, run)

    def write(self, region: Region, value: int) -> None:
        region.bytes[:] = value
        self.repeats.changed(region.address)


@pytest.fixture
def program() -> Program:
    made = Program()
    made.write(made.source, 7)
    return made


def test_a_launch_that_changes_nothing_any_more_is_executed_twice(program: Program) -> None:
    repeated = [program.launch(program.copy) for _ in range(5)]
    assert (repeated, program.executed) == ([0, 0, 2, 2, 2], 2)
    assert program.printed == [b"done\n"]
    assert set(program.target.bytes) == {7}


def test_memory_that_is_set_again_gets_the_earlier_result_again(program: Program) -> None:
    for _ in range(5):
        program.write(program.target, 1)
        program.launch(program.add)
    assert program.executed == 2
    assert set(program.target.bytes) == {8}


def test_a_launch_upon_its_own_result_is_executed_each_time(program: Program) -> None:
    for _ in range(9):
        program.launch(program.add)
    assert program.executed == 9
    assert set(program.target.bytes) == {63}


def test_another_kernel_or_a_copy_between_is_noticed(program: Program) -> None:
    for _ in range(3):
        program.launch(program.copy)
    program.launch(program.add, b"another")
    assert program.launch(program.copy) == 0
    program.write(program.source, 9)
    assert program.launch(program.copy) == 0
    assert set(program.target.bytes) == {9}


def test_a_write_of_the_host_to_its_own_memory_is_noticed(program: Program) -> None:
    pinned = program.arena.allocate(64, PINNED)

    def read() -> None:
        program.target.bytes[:] = pinned.bytes

    for value in (1, 1, 1, 2, 2, 2):
        pinned.bytes[:] = value  # without a call of the driver
        program.launch(read)
        assert set(program.target.bytes) == {value}
    assert program.executed < 6


def test_a_program_with_several_threads_is_always_executed(program: Program) -> None:
    for thread in (1, 2):
        program.repeats.called_from(thread)
    for _ in range(4):
        program.launch(program.copy)
    assert program.executed == 4


def test_freed_memory_is_not_taken_for_new(program: Program) -> None:
    for _ in range(3):
        program.launch(program.copy)
    program.arena.free(program.source.address)
    assert program.launch(program.copy) == 0


def test_a_fault_leaves_no_result(program: Program) -> None:
    def fail() -> None:
        raise RuntimeError("a fault")

    program.launch(program.copy)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="a fault"):
            program.launch(fail)
    assert program.launch(program.copy) == 0
    assert set(program.target.bytes) == {7}


@needs_compilers
def test_a_program_says_which_launch_a_repeated_one_equals(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpusim.driver.client.BYTES_PER_S", float("inf"))
    ran = Host(tmp_path, capfd).run(
        """
x, y, z = take(400), take(400), take(48)
for turn in range(4):
    to(x, struct.pack("100f", *range(100)))
    launch("scale", 2, 64, y, x, C.c_int(100))
    launch("prints", 1, 1)
print(struct.unpack("100f", back(y, 400))[99])
for turn in range(4): launch("times", 1, 1, z)
for turn in range(4): launch("count", 1, 32)
where = C.c_uint64()
call("cuModuleGetGlobal_v2", C.byref(where), None, module, b"counter")
print(struct.unpack("i", back(where, 4))[0])
"""
    )
    assert ran.out == [*["block 0 of 1"] * 4, "297.0", str(5 + 4 * 32)]
    equal = [line.split() for line in ran.err.splitlines() if "as launch" in line]
    assert [(line[1], line[2], line[-1]) for line in equal] == [
        ("5", "scale", "3"), ("7", "scale", "3"),
    ]  # fmt: skip
