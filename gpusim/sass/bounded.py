"""A program with limits: it ends with its parent, or when it exceeds time or output.

Run as a script, without the package: `bounded.py CPU_SECONDS OUTPUT_BYTES PROGRAM ARGUMENT...`.
The process becomes the program.
"""

import contextlib
import ctypes
import os
import signal
import sys

_PARENT_DEATH_SIGNAL = 1  # prctl's PR_SET_PDEATHSIG


def end_with_parent() -> None:
    """Let the system kill this process when its parent ends, however that comes about."""
    with contextlib.suppress(OSError, AttributeError):  # on Linux alone
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def main() -> None:
    """Become the program that the arguments name."""
    seconds, most_bytes, *command = sys.argv[1:]
    end_with_parent()
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(most_bytes), int(most_bytes)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # ignored by Python
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
