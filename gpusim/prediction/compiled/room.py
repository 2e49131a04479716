"""How many addresses a process may still have, where they are limited as by `ulimit -v`."""

from __future__ import annotations

from pathlib import Path

# What the library, a module that is compiled and its memory take is 40 MB. Short of them wasmtime
# does not raise an error but ends the process.
_LEAST_BYTES = 1 << 26


def is_limited() -> bool:
    """Return whether the process may not have addresses at will."""
    return _limit() is not None


def is_short() -> bool:
    """Return whether so few addresses are left that wasmtime is not to be started."""
    limit = _limit()
    return limit is not None and limit - _taken() < _LEAST_BYTES


def _limit() -> int | None:
    try:
        import resource
    except ModuleNotFoundError:  # where there is none, there are no such limits
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _taken() -> int:
    """Return the bytes of addresses that the process has, 0 where the system does not say."""
    import resource

    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    except OSError:  # systems without it do not hold to the limit, either
        return 0
    return int(pages) * resource.getpagesize()
