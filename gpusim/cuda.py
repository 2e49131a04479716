"""The dialect: what a kernel may say, in numba.cuda's names.

Inside a kernel these names are read by the compiler and never called. Outside there are
two things to do with them: decorate functions with `jit`, and launch kernels with
`kernel[grid, block](*args)`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, overload

from gpusim.compiler.source import KernelSource, read_source
from gpusim.compiler.symbols import Intrinsic, SpecialRegister, SpecialRegister3
from gpusim.errors import GpusimError, LaunchError
from gpusim.launch import Launch

# What runs `kernel[grid, block](*args)`, by name: the dialect does not know the machine.
BACKEND = "gpusim.machine:execute"


def _three(name: str) -> SpecialRegister3:
    return SpecialRegister3(*(SpecialRegister(f"{name}.{axis}") for axis in "xyz"))


class _ArrayMaker:
    """`shared` or `local`."""

    def __init__(self, space: str) -> None:
        self.array = Intrinsic(f"{space}.array")


class _Atomic:
    """Read-modify-write operations on an element; each gives the old value."""

    def __init__(self) -> None:
        for name in ("add", "sub", "min", "max", "exch", "cas", "and_", "or_", "xor"):
            setattr(self, name, Intrinsic(f"atomic.{name.rstrip('_')}"))

    add: Intrinsic
    sub: Intrinsic
    min: Intrinsic
    max: Intrinsic
    exch: Intrinsic
    cas: Intrinsic
    and_: Intrinsic
    or_: Intrinsic
    xor: Intrinsic


threadIdx = _three("tid")
blockIdx = _three("ctaid")
blockDim = _three("ntid")
gridDim = _three("nctaid")
laneid = SpecialRegister("laneid")
warpsize = 32

grid = Intrinsic("grid")
gridsize = Intrinsic("gridsize")
shared = _ArrayMaker("shared")
local = _ArrayMaker("local")
volatile = Intrinsic("volatile")

syncthreads = Intrinsic("syncthreads")
syncthreads_count = Intrinsic("syncthreads_count")
syncthreads_and = Intrinsic("syncthreads_and")
syncthreads_or = Intrinsic("syncthreads_or")
syncwarp = Intrinsic("syncwarp")
shfl_sync = Intrinsic("shfl_sync")
shfl_up_sync = Intrinsic("shfl_up_sync")
shfl_down_sync = Intrinsic("shfl_down_sync")
shfl_xor_sync = Intrinsic("shfl_xor_sync")
all_sync = Intrinsic("all_sync")
any_sync = Intrinsic("any_sync")
ballot_sync = Intrinsic("ballot_sync")
match_any_sync = Intrinsic("match_any_sync")
match_all_sync = Intrinsic("match_all_sync")
activemask = Intrinsic("activemask")

popc = Intrinsic("popc")
ffs = Intrinsic("ffs")
clz = Intrinsic("clz")
brev = Intrinsic("brev")
fma = Intrinsic("fma")

atomic = _Atomic()
threadfence = Intrinsic("threadfence")
threadfence_block = Intrinsic("threadfence_block")
threadfence_system = Intrinsic("threadfence_system")

load_vector = Intrinsic("load_vector")
store_vector = Intrinsic("store_vector")


class Kernel:
    """A function in the dialect. `kernel[grid, block, stream, dynamic_shared_bytes]` launches it.

    The source is read and checked for what the dialect lacks when the function is decorated;
    types are worked out for each combination of argument types when it is launched.
    """

    def __init__(self, function: Callable[..., Any], *, device: bool) -> None:
        self.py_func = function
        self.device = device
        self.source: KernelSource = read_source(function)
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<{'device function' if self.device else 'kernel'} {self.__name__}>"

    def __getitem__(self, configuration: Any) -> ConfiguredKernel:
        if self.device:
            raise LaunchError(f"{self.__name__} is a device function; only kernels are launched")
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise LaunchError(
                f"launch {self.__name__} with [grid, block] or "
                "[grid, block, stream, dynamic_shared_bytes]"
            )
        grid_size, block_size, *rest = configuration
        dynamic = rest[1] if len(rest) == 2 else 0
        return ConfiguredKernel(self, Launch.of(grid_size, block_size, dynamic))

    def __call__(self, *args: Any) -> NoReturn:
        """Refuse: a kernel needs a grid, and device functions run inside kernels."""
        if self.device:
            raise GpusimError(f"{self.__name__} is a device function; call it inside a kernel")
        raise LaunchError(f"give a grid and a block: {self.__name__}[grid, block](...)")


@dataclass(frozen=True)
class ConfiguredKernel:
    """A kernel with its grid and block: call it with arguments to run it."""

    kernel: Kernel
    launch: Launch

    def __call__(self, *args: Any) -> None:
        """Run the launch; arrays among `args` hold the results."""
        module, function = BACKEND.split(":")
        getattr(importlib.import_module(module), function)(self, args)


@overload
def jit(function: Callable[..., Any], /) -> Kernel: ...


@overload
def jit(
    signature: str | Sequence[Any] | None = None, /, *, device: bool = False
) -> Callable[[Callable[..., Any]], Kernel]: ...


def jit(function: Any = None, /, *, device: bool = False, **options: Any) -> Any:
    """Make a kernel of a function, or with `device=True` a function that kernels inline.

    Raises KernelSourceError, with a caret under the line, for what the dialect lacks, and
    GpusimError for an option of numba's that has no meaning here. numba's signature argument
    is accepted; types always come from the arguments.
    """
    if options:
        names = ", ".join(options)
        raise GpusimError(f"cuda.jit takes device=True and no other option, not {names}")
    if callable(function):
        return Kernel(function, device=device)
    return lambda decorated: Kernel(decorated, device=device)
