"""Cubins that are damaged, foreign or too large are refused with a sentence."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.errors import InputError
from gpusim.launch.grid import ComputeCapability
from gpusim.sass import compiler, cubin, wheels
from gpusim.sass.kernels import CubinFile, cuda_source

KERNEL = "_Z5firstPid"
pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
TEXT = """
__constant__ int held[4];
__device__ int counter;
__global__ void first(int *x, double d) { x[threadIdx.x] = held[1] + (int)d; }
__global__ void second(int *x) { __shared__ int s[64]; s[threadIdx.x] = atomicAdd(&counter, 1);
  __syncthreads(); x[threadIdx.x] = s[63 - threadIdx.x]; }
"""


@pytest.fixture(scope="module")
def made() -> bytes:
    return compiler.compiled(TEXT, "text.cu", [], "sm_90").cubin


def test_a_cubin_tells_its_kernels_and_memory(made: bytes) -> None:
    held = cubin.read(made, "text.cubin")
    kernels = {name.lstrip("_Z0123456789"): one for name, one in held.kernels.items()}
    first, second = kernels["firstPid"], kernels["secondPi"]
    assert [parameter.size for parameter in first.parameters] == [8, 8]
    assert second.shared_bytes == 1024 + 256
    assert held.variables["held"].is_constant
    assert held.variables["counter"].size == 4
    assert ("counter", 0) in held.addresses.values()


@pytest.mark.parametrize("seed", range(4))
def test_bytes_that_are_not_what_they_were_give_a_sentence(made: bytes, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(150):
        changed = bytearray(made)
        for _ in range(draw.choice((1, 2, 8, 64))):
            far = draw.choice((64, len(changed)))
            changed[draw.randrange(far)] = draw.randrange(256)
        kept = draw.choice((len(changed), draw.randrange(len(changed))))
        with contextlib.suppress(InputError):  # nothing else, such as a struct.error
            CubinFile(bytes(changed[:kept]), "x.cubin")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "does not begin as an ELF file"),
        (b"\x7fELF" + bytes(40), "damaged"),
        (b"PK\x03\x04" + bytes(100), "does not begin as an ELF file"),
    ],
)
def test_what_is_no_cubin_is_said_to_be_none(data: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        cubin.read(data, "x.cubin")


def test_a_program_for_another_machine_is_foreign(made: bytes) -> None:
    x86 = bytearray(made)
    struct.pack_into("<H", x86, 18, 62)
    with pytest.raises(InputError, match="another machine than NVIDIA's GPUs"):
        cubin.read(bytes(x86), "x.cubin")


def test_a_cubin_of_more_than_the_most_bytes_is_refused(made: bytes) -> None:
    with pytest.raises(InputError, match=f"has {len(made):,} bytes; a cubin has at most 100"):
        cubin.read(made, "x.cubin", most_bytes=100)


def test_machine_code_of_another_gpu_is_refused(made: bytes) -> None:
    file = CubinFile(made, "x.cubin")
    with pytest.raises(InputError, match=r"holds code for compute capability 9\.0, not 8\.0"):
        file[file.names[0]].code(ComputeCapability(8, 0))


def test_a_compile_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(compiler.CompileError, match=r"slow.cu takes longer than 0.001 s"):
        compiler.answered(TEXT, "slow.cu", [], [], wheels.library(), limit_s=0.001)


def test_an_include_that_is_not_there_is_named_with_its_line() -> None:
    with pytest.raises(compiler.CompileError, match=r'mine\.cu\(2\).*"absent\.h"'):
        compiler.compiled('\n#include "absent.h"\n', "mine.cu", [], "sm_90")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("while :; do :; done", r"does not come to an end with x\.cubin \(stopped after 1 s\)"),
        ("exec yes", r"does not come to an end with x\.cubin"),
        ("kill -SEGV $$", r"does not read x\.cubin: it fails"),
        ("echo no ELF >&2; exit 3", r"does not read x\.cubin: no ELF"),
    ],
)
def test_a_disassembler_that_goes_wrong_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    program = tmp_path / "nvdisasm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    limits = compiler.Limits(seconds=1, listing_bytes=1 << 16)
    with pytest.raises(InputError, match=why):
        compiler.disassembled(b"not code", "x.cubin", program, limits)
    assert [file.name for file in tmp_path.iterdir()] == ["nvdisasm"]


def test_a_cubin_is_disassembled_once(made: bytes) -> None:
    def listed() -> tuple[str, float]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        listing = CubinFile(made, "x.cubin")._listing
        return listing, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    first, _ = listed()
    assert KERNEL in first
    assert listed() == (first, 0)  # without a process


def test_a_jump_through_a_table_is_listed_with_its_targets() -> None:
    text = (Path(__file__).parent / "corpus" / "calls.cu").read_text(encoding="utf-8")
    made = compiler.compiled(text, "calls.cu", ["by_data"], "sm_90")
    lines = compiler.disassembled(made.cubin).splitlines()
    jumps = [line for line in lines if " BRX " in line]
    assert jumps != []
    assert [line for line in jumps if "BRANCH_TARGETS .L_x_" not in line] == []


def test_a_variable_of_hundreds_of_megabytes_takes_the_room_that_is_used() -> None:
    """Of its 336 MB little; compiling the first module of a process takes 150 MB for a while."""
    file = cuda_source(
        "__device__ int big[80 << 20]; __global__ void k(int *x) { big[threadIdx.x << 21] = x[0];"
        " x[1] = big[31 << 21]; x[2] = big[1]; }"
    )
    given = np.array([7, 0, 1], np.int32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    file["k"][1, 32](given)
    assert given.tolist() == [7, 7, 0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 250_000


def test_a_variable_outside_of_its_section_is_damage(made: bytes) -> None:
    changed = bytearray(made)
    name = made.index(b"\0counter\0") + 1
    table = next(s for s in cubin._Reader(made).sections if s.kind == 2)
    begin = made.index(table.data)
    strings = made.index(cubin._Reader(made).sections[table.link].data)
    for place in range(begin, begin + len(table.data), 24):
        if struct.unpack_from("<I", made, place)[0] + strings == name:
            struct.pack_into("<Q", changed, place + 16, 1 << 40)
    with pytest.raises(InputError, match="counter is outside of its section"):
        cubin.read(bytes(changed), "x.cubin")


WAITS = """
import signal
import sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by a job in the background
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from gpusim.__main__ import entry_point
from gpusim.sass import wheels
program = Path(sys.argv[1])
wheels.disassembler = lambda: program
sys.argv[1:] = [
    "trace", sys.argv[2], "--grid", "1", "--block", "1", "--arg", "int32[1]", "--arg", "1.0",
]
entry_point()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_the_disassembler_too_and_leaves_no_file(
    made: bytes, tmp_path: Path, number: signal.Signals
) -> None:
    """An interrupt is exit code 130; other signals end the process as they would any."""
    program, begun, room = (tmp_path / name for name in ("nvdisasm", "begun", "room"))
    program.write_text(f"#!/bin/sh\necho $$ > {begun}.part; mv {begun}.part {begun}\nexec sleep 99")
    program.chmod(0o755)
    (tmp_path / "x.cubin").write_bytes(made)
    room.mkdir()
    where = os.environ | {"TMPDIR": str(room), "XDG_CACHE_HOME": str(room)}
    command = [sys.executable, "-c", WAITS, str(program), f"{tmp_path}/x.cubin:{KERNEL}"]
    process = subprocess.Popen(
        command, env=where, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_until(begun.exists)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert said == ""
    assert not list(room.iterdir())
    wait_until(lambda: has_ended(int(begun.read_text())))


def wait_until(holds: Callable[[], object]) -> None:
    for _ in range(1500):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError


def has_ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


MASKED = """
extern "C" __global__ void k(int *y, unsigned m) {
    int t = threadIdx.x;
    y[t] = __shfl_sync(m, t, 0) + __shfl_sync(0xffff, t, 1) + __shfl_sync(~0u, t, 2);
}
"""


@pytest.mark.parametrize(
    ("arch", "device", "rules", "lost"),
    [("sm_90", "h200", ["mask"], {}), ("sm_80", "a100-80gb", [], {"masks": 3})],
)
def test_masks_of_a_cubin_without_ptx_are_those_in_registers(
    arch: str, device: str, rules: list[str], lost: dict[str, int]
) -> None:
    made = compiler.compiled(MASKED, "text.cu", [], arch).cubin
    kernel = CubinFile(made.replace(b"ptx_txt", b"hidden_"), "x.cubin")["k"]
    found = gpusim.check(kernel[1, 32], np.zeros(32, np.int32), np.uint32(255), device=device)
    assert [one.rule for one in found.errors] == rules
    assert found.coverage.to_dict()["not_compared"] == lost
