"""The door to the compiled clock: used if the extra `fast` is installed and serves this machine."""

from __future__ import annotations

import atexit
import warnings
from functools import cache
from typing import TYPE_CHECKING

from gpusim.errors import GpusimWarning
from gpusim.host import address_space_limit
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor

if TYPE_CHECKING:
    from gpusim.prediction.compiled.clock import CompiledClock

_SHORT = (
    "SimPy plays: the process may have too little more memory (ulimit -v) for the compiled clock"
)


def is_played(sm: StreamingMultiprocessor) -> bool:
    """Play an SM; return False if that is left to SimPy, with the SM unchanged.

    Failures are warned of once: SimPy gives the same result.
    """
    if address_space_limit.is_short():
        _say(_SHORT)
        return False
    compiled = clock()
    if compiled is None:
        return False
    try:
        compiled.play(sm)
    except Exception as error:
        _say(f"SimPy plays what the compiled clock could not: {error}")
        return False
    return True


@cache
def clock() -> CompiledClock | None:
    """Return the compiled clock, None if the extra is missing or does not serve this machine."""
    try:
        import wasmtime  # noqa: F401
    except ModuleNotFoundError:
        return None
    except Exception as error:
        _say(f"the extra 'fast' does not serve this machine ({error}); SimPy does")
        return None
    try:
        from gpusim.prediction.compiled.clock import CompiledClock

        return CompiledClock()
    except Exception as error:
        _say(f"the clock is not compiled ({error}); SimPy plays it")
        return None


atexit.register(clock.cache_clear)  # wasmtime must free its objects before its own modules go


@cache
def _say(message: str) -> None:
    warnings.warn(message, GpusimWarning, stacklevel=2)
