"""Sweeps that are killed, interrupted or run into each other, and then go on."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from gpusim.catalogue import Request
from gpusim.prediction.sweeps.sweep import crossed, sweep

ROOT = Path(__file__).parent.parent.parent
PATHS = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]  # what else is installed there
KERNELS, BLOCKS, SIZES = ["reduce1", "reduce2", "reduce3", "reduce6"], [64, 128], [2**12, 2**18]
LONGEST_S = 6.0  # an undisturbed sweep takes some three


def kill(random: Random, folder: Path) -> None:
    """End a sweep at some time, in some way, some times; at last its table is as undisturbed."""
    suffix = random.choice([".csv", ".json"])
    output = folder / f"table{suffix}"
    for _ in range(random.choice([1, 1, 2])):
        _disturb(random, output)
    with _started(output, 2) as last:
        _look(last, (0,))
    assert output.read_bytes() == _undisturbed()[suffix]
    assert [path.name for path in folder.iterdir()] == [output.name]


def _disturb(random: Random, output: Path) -> None:
    """Start a sweep, perhaps two, and end the first."""
    with contextlib.ExitStack() as started:
        begun = started.enter_context(_started(output, random.choice([1, 2])))
        is_alone = random.random() >= 0.2
        other = None if is_alone else started.enter_context(_started(output, 1))
        time.sleep(random.uniform(0, LONGEST_S) * random.random())
        refused = () if other is None else (2,)  # whichever comes second finds the first at work
        _end(random, begun, refused)
        if other is not None:
            _look(other, (0, *refused))


@contextlib.contextmanager
def _started(output: Path, workers: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start the sweep as a shell would: an interrupt of the keyboard goes to all its processes.

    It does not outlive a round that has failed.
    """
    options = [*KERNELS, "--block", ",".join(map(str, BLOCKS))]
    options += ["-n", ",".join(map(str, SIZES)), "--workers", str(workers), "--no-cache"]
    with subprocess.Popen(
        [sys.executable, "-m", "gpusim", "sweep", *options, "--out", str(output)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _end(random: Random, process: subprocess.Popen[bytes], codes: tuple[int, ...]) -> None:
    if random.random() < 0.5:
        process.kill()
        process.communicate()
        return
    os.killpg(process.pid, signal.SIGINT)
    _look(process, (0, 130, -signal.SIGINT, *codes))


def _look(process: subprocess.Popen[bytes], codes: tuple[int, ...]) -> None:
    """Wait for a process; its exit code is one of `codes`, and it prints no traceback.

    Until Python has begun to run gpusim, an interrupt is its own business.
    """
    _, err = process.communicate()
    said = f"exit code {process.returncode}\n{err.decode()}"
    begun = b"__main__.py" in err or b"multiprocessing" in err
    assert b"Traceback" not in err or not begun, said
    assert process.returncode in codes or (b"KeyboardInterrupt" in err and not begun), said


@functools.cache
def _undisturbed() -> dict[str, bytes]:
    """Return the tables of a sweep that nobody has disturbed, by suffix."""
    tables = {}
    with TemporaryDirectory() as folder:
        for suffix in (".csv", ".json"):
            output = Path(folder) / f"table{suffix}"
            sweep(
                crossed([Request(name) for name in KERNELS], BLOCKS, SIZES, ["h200"]),
                output,
                workers=1,
            )
            tables[suffix] = output.read_bytes()
    return tables


ATTACKS = {"kills": kill}
