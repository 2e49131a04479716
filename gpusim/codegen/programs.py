"""From a kernel of the dialect and its arguments to a prepared program; programs are cached."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from textwrap import shorten
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from gpusim.codegen import generators
from gpusim.compiler.build import build
from gpusim.compiler.ir import Array, Function
from gpusim.compiler.signatures import ArrayType, ScalarType
from gpusim.compiler.types import DTYPES, argument_type, fits_kind, holds
from gpusim.cuda import Kernel
from gpusim.errors import GpusimError, LaunchError
from gpusim.host.installation import install
from gpusim.isa.ops import Program
from gpusim.launch.arguments import ArraySpec
from gpusim.launch.configured import ConfiguredKernel, MachineCode
from gpusim.launch.grid import ComputeCapability, Launch, bound_arguments
from gpusim.launch.languages import PYTHON
from gpusim.launch.prepared import Prepared
from gpusim.typing import DType

if TYPE_CHECKING:
    from gpusim.lowering.stages import Stage
    from gpusim.sass.from_python import WrittenKernel

LEVELS = ("O0", "O3")


class NotLoweredError(LaunchError):
    """An operation without instructions in the lowering; nvcc's compiler has them."""


LONGEST_REASON = 200
_programs: WeakKeyDictionary[Kernel, dict[Any, Program]] = WeakKeyDictionary()
_written: WeakKeyDictionary[Kernel, dict[Any, WrittenKernel]] = WeakKeyDictionary()
# Why there is no nvcc's code of a kernel for some types and a GPU: it is not tried at each launch.
_refusals: WeakKeyDictionary[Kernel, dict[Any, str]] = WeakKeyDictionary()


def prepare(
    configured: ConfiguredKernel,
    args: Sequence[Any],
    cc: ComputeCapability,
    level: str = "O3",
    *,
    asks: bool = False,
    code: str | None = None,
) -> Prepared:
    """Return `kernel[grid, block]` with its arguments as it runs on a GPU of `cc`.

    With `asks`, the program checks for behaviour undefined in C (`compiler.undefined`). `code`
    names the generator: the "lowering", or "nvcc" for the kernel written out as CUDA C++; "auto"
    is nvcc if possible, and None the value of `generators.chosen`, or nvcc for an operation without
    instructions in the lowering.
    Raises LaunchError for impossible arguments or launches, and GpusimError for a kernel.
    """
    if not isinstance(configured, ConfiguredKernel):
        name = getattr(configured, "__name__", "kernel")
        raise LaunchError(f"give a grid and a block: {name}[grid, block], then its arguments")
    kernel = configured.kernel
    if isinstance(kernel, MachineCode):
        return kernel.prepare(configured.launch, args, cc)
    if not isinstance(kernel, Kernel):
        raise LaunchError(f"{kernel.__name__} is neither a kernel of the dialect nor machine code")
    arguments = bind(kernel, args)
    wanted, fallback = generators.chosen(code, level), ""
    if wanted == generators.NVCC:
        if refusal := generators.refusal(cc, level):
            raise LaunchError(refusal)
        return _in_nvccs_code(kernel, configured.launch, arguments, cc)
    if wanted == generators.AUTO and level == generators.OPTIMISED and generators.is_installed():
        made = _compiled_or_refusal(kernel, configured.launch, arguments, cc, level)
        if isinstance(made, Prepared):
            return made
        fallback = made
    try:
        lowered = _lowered(kernel, configured.launch, arguments, cc, level, asks=asks)
    except NotLoweredError as error:
        if code is None and wanted == generators.LOWERING:  # the environment's
            return prepare(configured, args, cc, level, asks=asks, code=generators.AUTO)
        raise NotLoweredError(f"{error}. It refused: {fallback}" if fallback else error) from None
    return replace(lowered, fallback=fallback)


def _lowered(
    kernel: Kernel,
    launch: Launch,
    arguments: Mapping[str, Any],
    cc: ComputeCapability,
    level: str = "O3",
    *,
    asks: bool = False,
) -> Prepared:
    program = program_for(kernel, arguments, cc, level, asks=asks)
    return Prepared(program, launch, arguments, cc, kernel.source.file, language=PYTHON)


def _in_nvccs_code(
    kernel: Kernel, launch: Launch, arguments: Mapping[str, Any], cc: ComputeCapability
) -> Prepared:
    lowered = partial(_lowered, kernel, launch, arguments, cc)
    made = written_out(kernel, arguments)
    _require(made.function, cc)
    return made.prepare(launch, arguments, cc, lowered)


def _compiled_or_refusal(
    kernel: Kernel, launch: Launch, arguments: Mapping[str, Any], cc: ComputeCapability, level: str
) -> Prepared | str:
    """Return the launch in nvcc's code, or why that cannot be had."""
    key = (tuple(parameter_types(arguments).items()), cc)
    refused = _refusals.setdefault(kernel, {})
    refusal = refused.get(key) or generators.refusal(cc, level)
    if refusal:
        return refusal
    try:
        return _in_nvccs_code(kernel, launch, arguments, cc)
    except GpusimError as error:
        reason = shorten(str(error), LONGEST_REASON)
        if not isinstance(error, LaunchError):  # other launches may not have this error
            refused[key] = reason
        return reason


def written_out(kernel: Kernel, arguments: Mapping[str, Any]) -> WrittenKernel:
    """Return the kernel written out as CUDA C++ for these arguments' types; made once for each."""
    from gpusim.sass.from_python import WrittenKernel

    types = parameter_types(arguments)
    made = _written.setdefault(kernel, {})
    key = tuple(types.items())
    if key not in made:
        made[key] = WrittenKernel(build(kernel.source, types), kernel.source.file)
    return made[key]


def as_cuda(kernel: Kernel, args: Sequence[Any]) -> str:
    """Return a kernel as CUDA C++, for the types of some arguments."""
    arguments = bind(kernel, args)
    return written_out(kernel, arguments).written(arguments).text


def bind(kernel: Kernel, args: Sequence[Any]) -> dict[str, Any]:
    """Pair a kernel's parameters with arguments: arrays and NumPy scalars.

    Scalars take the types of the kernel's signature, the first that fits of several. Raises
    LaunchError for a wrong number of arguments, for a value that is neither an array nor a number
    of a type that kernels have, and for arguments that no signature fits.
    """
    bound = bound_arguments(kernel.source.parameters, args)
    for name, value in bound.items():
        if isinstance(value, np.ndarray | ArraySpec):
            _check_array(name, value)
        elif argument_type(value) is None:
            raise LaunchError(
                f"argument {name!r} is a {type(value).__name__}; kernels take NumPy arrays "
                "and numbers"
            )
    if kernel.signatures:
        return _by_signature(kernel, bound)
    return {
        name: value if isinstance(value, np.ndarray | ArraySpec) else _number(name, value)
        for name, value in bound.items()
    }


def _number(name: str, value: Any) -> np.generic:
    dtype = argument_type(value)
    assert dtype is not None
    try:
        number: np.generic = dtype.type(value)
    except OverflowError:
        raise LaunchError(
            f"argument {name!r} is beyond {dtype}; give it a type, as in numpy.uint64(...)"
        ) from None
    return number


def _by_signature(kernel: Kernel, bound: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in the types of the first signature that takes them."""
    misfits = []
    for signature in kernel.signatures:
        wanted = dict(zip(bound, signature.parameters, strict=True))
        wrong = [name for name, value in bound.items() if not _fits(value, wanted[name])]
        if not wrong:
            return {
                name: value
                if isinstance(value, np.ndarray | ArraySpec)
                else wanted[name].dtype.type(value)
                for name, value in bound.items()
            }
        shown = _shown(bound[wrong[0]])
        misfits.append(f"{signature} takes no {shown} as {wrong[0]!r}, but {wanted[wrong[0]]}")
    raise LaunchError(f"no signature of {kernel.__name__} fits: {'; '.join(misfits)}")


def _fits(value: Any, wanted: ScalarType | ArrayType) -> bool:
    if isinstance(value, np.ndarray | ArraySpec) or isinstance(wanted, ArrayType):
        return (
            isinstance(value, np.ndarray | ArraySpec)
            and isinstance(wanted, ArrayType)
            and (value.dtype, value.ndim) == (wanted.dtype, wanted.ndim)
            and _lies_as(value, wanted.layout)
        )
    given = argument_type(value)
    if given is None or not fits_kind(given, wanted.dtype):
        return False
    return wanted.dtype.kind not in "iu" or holds(wanted.dtype, int(value))


def _lies_as(array: np.ndarray[Any, Any] | ArraySpec, layout: str) -> bool:
    """Return whether an array's elements lie as a layout asks: "A" takes any order."""
    if isinstance(array, ArraySpec):
        return layout != "F" or array.ndim == 1
    return {"C": array.flags.c_contiguous, "F": array.flags.f_contiguous}.get(layout, True)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray | ArraySpec):
        return str(ArrayType(value.dtype, value.ndim))
    return str(value)[:40]


def _check_array(name: str, array: np.ndarray[Any, Any] | ArraySpec) -> None:
    if array.dtype not in DTYPES:
        known = ", ".join(str(d) for d in DTYPES)
        raise LaunchError(f"array {name!r} is of {array.dtype}; kernels have {known}")
    if "numpy.ma" in sys.modules and isinstance(array, np.ma.MaskedArray):  # 20 ms to import
        raise LaunchError(
            f"array {name!r} is masked, and a kernel does not see the mask; pass {name}.filled(...)"
        )
    if isinstance(array, np.ndarray) and any(s % array.itemsize for s in array.strides):
        raise LaunchError(
            f"array {name!r} has strides of {array.strides} bytes, not a multiple of its "
            f"elements' {array.itemsize}; pass a copy of it, and take results from there"
        )
    if not 1 <= array.ndim <= 3:
        raise LaunchError(f"array {name!r} has {array.ndim} dimensions; kernels take 1 to 3")


def parameter_types(arguments: Mapping[str, Any]) -> dict[str, DType | Array]:
    """Return the types of bound arguments for the compiler."""
    return {
        name: _array(name, value) if isinstance(value, np.ndarray | ArraySpec) else value.dtype
        for name, value in arguments.items()
    }


def _array(name: str, value: np.ndarray[Any, Any] | ArraySpec) -> Array:
    shape = (0,) * value.ndim if value.ndim > 1 else ()
    strided = isinstance(value, np.ndarray) and not value.flags.c_contiguous
    return Array(name, "global", value.dtype, shape, strided=strided)


def program_for(
    kernel: Kernel,
    arguments: Mapping[str, Any],
    cc: ComputeCapability,
    level: str = "O3",
    *,
    asks: bool = False,
) -> Program:
    """Return the kernel as machine code for these arguments' types; made once for each."""
    _check_level(level)
    types = parameter_types(arguments)
    key = (tuple(types.items()), cc, level, asks)
    made = _programs.setdefault(kernel, {})
    if key not in made:
        from gpusim.lowering import lower

        function = _built(kernel, types, cc)
        if asks:
            from gpusim.compiler.undefined_behaviour import ask_about_undefined

            function = ask_about_undefined(function)
        made[key] = lower(function, cc, level)
    return made[key]


def program_in_stages(
    kernel: Kernel, arguments: Mapping[str, Any], cc: ComputeCapability, level: str = "O3"
) -> tuple[Program, list[Stage]]:
    """Return the kernel as machine code, and the form after each step of lowering."""
    from gpusim.lowering.stages import lower_in_stages

    _check_level(level)
    return lower_in_stages(_built(kernel, parameter_types(arguments), cc), cc, level)


def _built(kernel: Kernel, types: Mapping[str, DType | Array], cc: ComputeCapability) -> Function:
    """Return a kernel in SSA form, of operations that GPUs of `cc` and the lowering have.

    LaunchError for others, NotLoweredError where nvcc's compiler has them.
    """
    function = build(kernel.source, types)
    _require(function, cc)
    for value in function.values():
        if not value.operation.is_lowered:
            raise NotLoweredError(
                f"line {value.line}: the lowering has no instructions for {value.word}: it needs "
                "nvcc's code, --code nvcc"
                + ("" if generators.is_installed() else f" ({install('nvcc')})")
            )
    return function


def _require(function: Function, cc: ComputeCapability) -> None:
    """Raise LaunchError for an operation that GPUs of `cc` lack."""
    for value in function.values():
        least = ComputeCapability(*value.operation.least_cc)
        if cc < least:
            raise LaunchError(
                f"line {value.line}: {value.word} needs compute capability {least} or higher, and "
                f"this is compiled for {cc}; choose a newer GPU"
            )


def _check_level(level: str) -> None:
    if level not in LEVELS:
        raise LaunchError(f"lowering {level!r} is not known; known are {', '.join(LEVELS)}")
