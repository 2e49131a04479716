"""From a kernel of the dialect and its arguments to what runs; programs are kept for later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpusim.arguments import ArraySpec
from gpusim.compiler.build import build
from gpusim.compiler.ir import Array, DType
from gpusim.compiler.types import DTYPES, argument_type
from gpusim.cuda import ConfiguredKernel, Kernel
from gpusim.errors import LaunchError
from gpusim.isa import Program
from gpusim.launch import ComputeCapability, bound_arguments
from gpusim.lowering import lower
from gpusim.lowering.stages import Stage, lower_in_stages
from gpusim.prepared import Prepared

LEVELS = ("O0", "O3")
_programs: WeakKeyDictionary[Kernel, dict[Any, Program]] = WeakKeyDictionary()


def prepare(
    configured: ConfiguredKernel, args: Sequence[Any], cc: ComputeCapability, level: str = "O3"
) -> Prepared:
    """Return `kernel[grid, block]` with its arguments as it runs on a GPU of `cc`.

    Raises LaunchError for arguments or a launch that cannot be, and GpusimError for a kernel.
    """
    kernel = configured.kernel
    arguments = bind(kernel, args)
    program = program_for(kernel, arguments, cc, level)
    return Prepared(program, configured.launch, arguments, cc, kernel.source.file)


def bind(kernel: Kernel, args: Sequence[Any]) -> dict[str, Any]:
    """Pair a kernel's parameters with arguments: arrays and NumPy scalars.

    Raises LaunchError for a wrong number of arguments and for what is neither an array nor
    a number that kernels have.
    """
    bound = bound_arguments(kernel.source.parameters, args)
    for name, value in bound.items():
        if isinstance(value, np.ndarray | ArraySpec):
            _check_array(name, value)
            continue
        dtype = argument_type(value)
        if dtype is None:
            raise LaunchError(
                f"argument {name!r} is a {type(value).__name__}; kernels take NumPy arrays "
                "and numbers"
            )
        try:
            bound[name] = dtype.type(value)
        except OverflowError:
            raise LaunchError(
                f"argument {name!r} is beyond {dtype}; give it a type, as in numpy.uint64(...)"
            ) from None
    return bound


def _check_array(name: str, array: np.ndarray[Any, Any] | ArraySpec) -> None:
    if array.dtype not in DTYPES:
        known = ", ".join(str(d) for d in DTYPES)
        raise LaunchError(f"array {name!r} is of {array.dtype}; kernels have {known}")
    if isinstance(array, np.ndarray) and not array.flags.c_contiguous:
        raise LaunchError(f"array {name!r} is not contiguous; pass numpy.ascontiguousarray({name})")
    if not 1 <= array.ndim <= 3:
        raise LaunchError(f"array {name!r} has {array.ndim} dimensions; kernels take 1 to 3")


def parameter_types(arguments: Mapping[str, Any]) -> dict[str, DType | Array]:
    """Return what the compiler needs to know of bound arguments."""
    return {
        name: Array(name, "global", value.dtype, (0,) * value.ndim if value.ndim > 1 else ())
        if isinstance(value, np.ndarray | ArraySpec)
        else value.dtype
        for name, value in arguments.items()
    }


def program_for(
    kernel: Kernel, arguments: Mapping[str, Any], cc: ComputeCapability, level: str = "O3"
) -> Program:
    """Return the kernel as machine code for these arguments' types; made once for each."""
    _check_level(level)
    types = parameter_types(arguments)
    key = (tuple(types.items()), cc, level)
    made = _programs.setdefault(kernel, {})
    if key not in made:
        made[key] = lower(build(kernel.source, types), cc, level)
    return made[key]


def program_in_stages(
    kernel: Kernel, arguments: Mapping[str, Any], cc: ComputeCapability, level: str = "O3"
) -> tuple[Program, list[Stage]]:
    """Return the kernel as machine code, and what each step of lowering left on the way to it."""
    _check_level(level)
    return lower_in_stages(build(kernel.source, parameter_types(arguments)), cc, level)


def _check_level(level: str) -> None:
    if level not in LEVELS:
        raise LaunchError(f"lowering {level!r} is not known; known are {', '.join(LEVELS)}")
