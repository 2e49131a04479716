"""Commands that a signal ends while they compile, run, check or predict a launch, or a program."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

ROOT = Path(__file__).parent.parent.parent
KERNELS = """
__global__ void spins(float *o, int n) {
    float s = o[0];
    for (int i = 0; i < n; i++) s = s * s + 1e-3f;
    o[0] = s;
}
__global__ void calls(float *o, int n) {
    float s = o[threadIdx.x];
    for (int i = 0; i < n; i++) s = logf(s + 1.0f) + powf(s, 0.3f);
    o[threadIdx.x] = s;
}
__global__ void product(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += a[row * n + i] * b[i * n + column];
    c[row * n + column] = sum;
}
"""
MAIN = """
#include <cstdio>
int main() {
    float *x;
    cudaMalloc(&x, 4);
    cudaMemset(x, 0, 4);
    for (int round = 0; round < 20; round++) {
        spins<<<1, 32>>>(x, 20000000);
        if (cudaDeviceSynchronize()) return 1;
    }
}
"""
MATRICES = "--arg float32[512,512]=random " * 2 + "--arg float32[512,512] --arg 512"
COMMANDS = {
    "trace": "trace kernels.cu:spins --grid 1 --block 32 --arg float32[1] --arg 100000000 "
    "--step-limit 2^40",
    "calls": "trace kernels.cu:calls --grid 4 --block 64 --arg float32[64]=random "
    "--arg 1000000 --step-limit 2^40",
    "check": f"check kernels.cu:product --grid 32x32 --block 16x16 {MATRICES}",
    "predict": f"predict kernels.cu:product --grid 32x32 --block 16x16 {MATRICES}",
    "program": "run program.cu",
}
LONGEST_S = 10.0  # until the signal, from the start
SOON_S = 1.0  # from the signal to the end
SAID = ("Traceback", "segfault", "Segmentation", "Exception ignored", "core dumped")


def end_by_signal(random: Random, folder: Path) -> None:
    """End a command at some time; nothing is left of it, and it says no more than its launch."""
    name = random.choice([*COMMANDS] if shutil.which("g++") else [*COMMANDS][:-1])
    command = COMMANDS[name].split()
    (folder / "kernels.cu").write_text(KERNELS)
    (folder / "program.cu").write_text(KERNELS + MAIN)
    room = folder / "room"
    room.mkdir()
    with started(command, folder, room) as process:
        time.sleep(random.uniform(0.3, LONGEST_S))
        number = random.choice([signal.SIGINT, signal.SIGTERM])
        ended_by(process, number, is_group=random.random() < 0.5, folder=room)


@contextmanager
def started(command: list[str], folder: Path, room: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a command in a folder, with its temporary files in `room`, and kill it at the end."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    more = {"TMPDIR": str(room), "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        [sys.executable, "-c", f"{AS_A_SHELL}entry_point()", *command],
        cwd=folder,
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


# A job in the background has interrupts ignored.
AS_A_SHELL = """import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from gpusim.__main__ import entry_point
"""


def ended_by(
    process: subprocess.Popen[str],
    number: int,
    *,
    is_group: bool,
    folder: Path,
    unsaid: Sequence[str] = SAID,
) -> str:
    """Send a signal, and require the end of all; return what the process said.

    That has none of the words `unsaid`; a program may say that it is interrupted.
    """
    begun = time.monotonic()
    is_alive = process.poll() is None
    if is_alive:
        (os.killpg if is_group else os.kill)(process.pid, number)
    try:
        _out, said = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"{process.args} does not end") from None
    seconds = time.monotonic() - begun
    expected = (130, -signal.SIGINT) if number == signal.SIGINT else (-number, 128 + number)
    assert not is_alive or process.returncode in expected, (process.returncode, said)
    assert seconds < SOON_S, f"{seconds:.2f} s"
    assert not any(one in said for one in unsaid), said
    assert not list(folder.iterdir())
    while time.monotonic() < begun + SOON_S and list(members(process.pid)):
        time.sleep(0.01)
    assert not list(members(process.pid))
    return said


def members(group: int) -> Iterator[int]:
    """Yield the living processes of a group."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, found = file.read_text(errors="replace").rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(found) == group and state not in "ZX":
            yield int(file.parent.name)


ATTACKS = {"signals": end_by_signal}
