"""The door to the compiled clock."""

from __future__ import annotations

import atexit
from functools import cache
from typing import TYPE_CHECKING

from gpusim.host import address_space_limit, fast
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor

if TYPE_CHECKING:
    from gpusim.prediction.compiled.clock import CompiledClock

_SHORT = "the process may have too little more memory (ulimit -v) for the compiled clock"


def is_played(sm: StreamingMultiprocessor) -> bool:
    """Play an SM; return False if that is left to SimPy, with the SM unchanged.

    Failures are warned of once: SimPy gives the same result.
    """
    if address_space_limit.is_short():
        fast.say(_SHORT)
        return False
    compiled = clock()
    if compiled is None:
        return False
    try:
        compiled.play(sm)
    except Exception as error:
        fast.say(f"the compiled clock fails ({error})")
        return False
    return True


@cache
def clock() -> CompiledClock | None:
    """Return the compiled clock, None if it does not run here."""
    if not fast.has_library():
        return None
    try:
        from gpusim.prediction.compiled.clock import CompiledClock

        return CompiledClock()
    except Exception as error:
        fast.say(f"the clock is not compiled ({error})")
        return None


atexit.register(clock.cache_clear)  # wasmtime must free its objects before its own modules go
