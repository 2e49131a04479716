"""`python -m gpusim` is `gpusim`."""

from __future__ import annotations

import gc
import signal
import sys


def entry_point() -> None:
    """Run the command and leave with its exit code.

    While modules are imported, and while the interpreter ends, an interrupt ends the process as
    it would any other: there is nothing yet, or nothing more, to say.
    """
    handler = signal.getsignal(signal.SIGINT)
    _interrupts_as(handler, signal.SIG_DFL)
    # Imports make thousands of objects that stay; looking for garbage among them takes 45 ms.
    gc.set_threshold(200_000)
    from gpusim.cli.app import INTERRUPTED, main

    try:
        _interrupts_as(handler, signal.default_int_handler)
        code = main()
        _interrupts_as(handler, signal.SIG_DFL)
    except KeyboardInterrupt:  # just before main has begun to listen, or just after
        code = INTERRUPTED
    gc.freeze()  # what is left goes with the process: looking for garbage in it takes 50 ms
    sys.exit(code)


def _interrupts_as(before: object, handler: signal._HANDLER) -> None:
    """Set what an interrupt does, unless whoever started the process has it ignored."""
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)


if __name__ == "__main__":
    entry_point()
