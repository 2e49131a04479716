"""Child processes: compilers that end with their own children, and the descendants of a process."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

_KILL = 9


def run(
    command: Sequence[str], timeout_s: float, folder: Path, cwd: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a compiler in a group of processes, which ends with it, and capture its output.

    Its temporary files are written to `folder`. Raises OSError and subprocess.TimeoutExpired.
    """
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(folder)},
        cwd=cwd,
        process_group=0,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException:
            if hasattr(os, "killpg"):
                os.killpg(process.pid, _KILL)
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def end(processes: Iterable[int], number: int = _KILL) -> None:
    """Send a signal to processes, if they are still there."""
    for one in processes:
        with contextlib.suppress(OSError):
            os.kill(one, number)


def descendants(process: int) -> list[int]:
    """Return the processes that a process has started, and those that these have started."""
    parents: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = file.read_text(errors="replace").rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(file.parent.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found[1:]


def has_process(process: int) -> bool:
    """Return whether a process is there and has not ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
