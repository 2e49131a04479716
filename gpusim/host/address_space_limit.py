"""Address space left to a process under a limit such as `ulimit -v`."""

from __future__ import annotations

from pathlib import Path

# The library, a compiled module and its memory take 40 MB. With less, wasmtime ends the process
# instead of raising an error.
_LEAST_BYTES = 1 << 26


def is_limited() -> bool:
    """Return whether the process has a limit on its address space."""
    return _limit() is not None


def is_short() -> bool:
    """Return whether too little address space is left to start wasmtime."""
    limit = _limit()
    return limit is not None and limit - _taken() < _LEAST_BYTES


def _limit() -> int | None:
    try:
        import resource
    except ModuleNotFoundError:  # a system without the module has no such limits
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _taken() -> int:
    """Return the bytes of address space in use, 0 on systems without /proc."""
    import resource

    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    except OSError:  # systems without it do not enforce the limit, either
        return 0
    return int(pages) * resource.getpagesize()
