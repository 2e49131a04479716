"""The dialect: the names of numba.cuda that kernels may use.

Inside a kernel these names are read by the compiler and never called. Outside there are
two things to do with them: decorate functions with `jit`, and launch kernels with
`kernel[grid, block](*args)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, overload

from gpusim.compiler.signatures import Signature, signatures
from gpusim.compiler.source import KernelSource, read_source
from gpusim.compiler.symbols import Intrinsic, SpecialRegister, SpecialRegister3
from gpusim.compiler.unsupported import absent
from gpusim.errors import GpusimError, KernelSourceError, LaunchError, shown_at_the_call
from gpusim.launch.configured import ConfiguredKernel, configured

THREADS_FOR_ALL = 128  # as numba falls back to
# Options of numba's that steer its compiler and change no result.
STEERING = ("debug", "opt", "fastmath", "inline", "lineinfo", "cache", "max_registers")


def _three(name: str) -> SpecialRegister3:
    return SpecialRegister3(*(SpecialRegister(f"{name}.{axis}") for axis in "xyz"))


class _Words:
    """Intrinsics that share a name: `cuda.atomic.add` and the like."""

    def __init__(self, owner: str, *names: str) -> None:
        self._owner = owner
        for name in names:
            setattr(self, name, Intrinsic(f"{owner}.{name.rstrip('_')}"))

    def __getattr__(self, name: str) -> Any:
        raise absent(f"cuda.{self._owner}", name, vars(self))


threadIdx = _three("tid")
blockIdx = _three("ctaid")
blockDim = _three("ntid")
gridDim = _three("nctaid")
laneid = SpecialRegister("laneid")
warpsize = 32

grid = Intrinsic("grid")
gridsize = Intrinsic("gridsize")
shared = _Words("shared", "array")
local = _Words("local", "array")
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
reduce_add_sync = Intrinsic("reduce_add_sync")
reduce_min_sync = Intrinsic("reduce_min_sync")
reduce_max_sync = Intrinsic("reduce_max_sync")
reduce_and_sync = Intrinsic("reduce_and_sync")
reduce_or_sync = Intrinsic("reduce_or_sync")
reduce_xor_sync = Intrinsic("reduce_xor_sync")

popc = Intrinsic("popc")
ffs = Intrinsic("ffs")
clz = Intrinsic("clz")
brev = Intrinsic("brev")
fma = Intrinsic("fma")

# Each returns the old value of an element.
atomic = _Words("atomic", "add", "sub", "min", "max", "exch", "cas", "and_", "or_", "xor")
threadfence = Intrinsic("threadfence")
threadfence_block = Intrinsic("threadfence_block")
threadfence_system = Intrinsic("threadfence_system")
fence_proxy_async = Intrinsic("fence_proxy_async")

# As `cooperative_groups::cluster_group`, and as `cuda::barrier` with `cuda::device`.
cluster = _Words(
    "cluster", "block_rank", "num_blocks", "sync", "barrier_arrive", "barrier_wait",
    "map_shared_rank",
)  # fmt: skip
barrier = _Words("barrier", "init", "arrive", "arrive_tx", "wait_parity")
memcpy_async_tx = Intrinsic("memcpy_async_tx")

load_vector = Intrinsic("load_vector")
store_vector = Intrinsic("store_vector")


_ARE_REFUSED_WHEN_USED = ContextVar("refused when used", default=False)


@contextmanager
def refused_when_used() -> Iterator[None]:
    """Raise errors of decorated functions at their first use: a file may have others as well."""
    token = _ARE_REFUSED_WHEN_USED.set(True)
    try:
        yield
    finally:
        _ARE_REFUSED_WHEN_USED.reset(token)


def _source_or_refusal(function: Callable[..., Any]) -> KernelSource | KernelSourceError:
    try:
        return read_source(function)
    except KernelSourceError as refusal:
        if not _ARE_REFUSED_WHEN_USED.get():
            raise
        return refusal


class Kernel:
    """A function in the dialect. `kernel[grid, block, stream, dynamic_shared_bytes]` launches it.

    Decorating reads the source and checks it for syntax outside the dialect;
    types are worked out for each combination of argument types when it is launched.
    """

    def __init__(
        self, function: Callable[..., Any], *, device: bool, signatures: tuple[Signature, ...] = ()
    ) -> None:
        self.py_func = function
        self.device = device
        self._source = _source_or_refusal(function)
        self.signatures = signatures
        if isinstance(self._source, KernelSource):
            self._check_signatures(self._source)
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<{'device function' if self.device else 'kernel'} {self.__name__}>"

    @property
    def source(self) -> KernelSource:
        """The function's source; KernelSourceError if reading it failed."""
        if isinstance(self._source, KernelSourceError):
            raise self._source.with_traceback(None)
        return self._source

    def _check_signatures(self, source: KernelSource) -> None:
        count = len(source.parameters)
        for signature in self.signatures:
            if len(signature.parameters) != count:
                raise GpusimError(
                    f"the signature {signature} has {len(signature.parameters)} types; "
                    f"{source.name} takes {count} arguments"
                )
            if signature.result is not None and not self.device:
                raise GpusimError(
                    f"the signature {signature} has a result; a kernel gives none: void(...)"
                )

    @shown_at_the_call
    def __getitem__(self, configuration: Any) -> ConfiguredKernel:
        if self.device:
            raise LaunchError(f"{self.__name__} is a device function; only kernels are launched")
        return configured(self, configuration)

    @shown_at_the_call
    def forall(
        self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0
    ) -> ConfiguredKernel:
        """Return the kernel with a grid of one thread for each of `ntasks`, at least.

        `tpb` is the threads of a block, 128 where none are given.
        """
        block = tpb or THREADS_FOR_ALL
        return self[max(1, -(-ntasks // block)), block, stream, sharedmem]

    @shown_at_the_call
    def __call__(self, *args: Any) -> NoReturn:
        """Refuse: a kernel needs a grid, and device functions run inside kernels."""
        if self.device:
            raise GpusimError(f"{self.__name__} is a device function; call it inside a kernel")
        raise LaunchError(f"give a grid and a block: {self.__name__}[grid, block](...)")


@overload
def jit(function: Callable[..., Any], /) -> Kernel: ...


@overload
def jit(
    signature: str | Signature | Sequence[Any] | None = None,
    /,
    *,
    device: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], Kernel]: ...


@shown_at_the_call
def jit(function: Any = None, /, *, device: bool = False, **options: Any) -> Any:
    """Make a kernel of a function, or with `device=True` a function that kernels inline.

    Raises KernelSourceError, with a caret under the line, for syntax outside the dialect, and
    GpusimError for an option of numba's that has no meaning here. A signature, or the first of
    a list of signatures that fits, gives the parameters their types; without one, the arguments do.
    Options that only steer numba's compiler change nothing.
    """
    unknown = [name for name in options if name not in STEERING]
    if unknown:
        raise GpusimError(
            f"cuda.jit has no option {', '.join(unknown)}; it takes a signature, device=True, and "
            f"numba's options without an effect on results: {', '.join(STEERING)}"
        )
    if callable(function) and not hasattr(function, "return_type"):
        return Kernel(function, device=device)
    given = () if function is None else signatures(function)
    return shown_at_the_call(lambda decorated: Kernel(decorated, device=device, signatures=given))


def synchronize() -> None:
    """Wait for the GPU: every launch has finished when it returns."""


def is_available() -> bool:
    """Return whether kernels can be run: here they always can."""
    return True


def __getattr__(name: str) -> NoReturn:
    raise absent("cuda", name, globals())
