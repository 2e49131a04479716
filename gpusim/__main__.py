# PYTHON_ARGCOMPLETE_OK
"""`python -m gpusim` is `gpusim`."""

from __future__ import annotations

# The part of `signal` in C: the module itself imports others, for some milliseconds.
import _signal as signal  # type: ignore[import-not-found]


def entry_point() -> None:
    """Run the command and leave with its exit code.

    Until modules are imported an interrupt ends the process as it would any other: there is
    nothing to say yet.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gpusim.cli.process import run

    run(handler)


if __name__ == "__main__":
    entry_point()
