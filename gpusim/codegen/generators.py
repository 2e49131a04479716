"""Code generators of Python kernels: the lowering, or nvcc's compiler where it is installed.

One rule for every command and function: the argument, else the environment variable,
else "auto".
"""

from __future__ import annotations

import os
from functools import cache

from gpusim.errors import InputError, LaunchError
from gpusim.launch.grid import ComputeCapability

LOWERING, NVCC, AUTO = CODES = ("lowering", "nvcc", "auto")
VARIABLE = "GPUSIM_CODE"
OPTIMISED = "O3"


def chosen(code: str | None = None, level: str = OPTIMISED, default: str = AUTO) -> str:
    """Return the code generator to use: `code`, else the value of GPUSIM_CODE, else the default.

    A variable that says "nvcc" is for -O3: code of another `level` is the lowering's then.
    Raises LaunchError for an unknown `code`, InputError for such a variable.
    """
    if code is not None:
        if code not in CODES:
            raise LaunchError(f"code {code!r} is not known; known are {', '.join(CODES)}")
        return code
    said = os.environ.get(VARIABLE) or AUTO
    if said not in CODES:
        raise InputError(f"{VARIABLE} in the environment is {said!r}; it is {' or '.join(CODES)}")
    said = default if said == AUTO else said
    return LOWERING if said == NVCC and level != OPTIMISED else said


@cache
def is_installed() -> bool:
    """Return whether nvcc's compiler and disassembler are there, the extra `nvcc`."""
    from gpusim.sass import wheels

    return wheels.are_there()


def refusal(cc: ComputeCapability, level: str) -> str:
    """Return why nvcc's compiler makes no code for a GPU of `cc` at a level, "" where it does."""
    from gpusim.sass.compiler import ARCHITECTURES

    if level != OPTIMISED:
        return "nvcc's code is that of -O3; -O0 is the lowering's (--code lowering)"
    if str(cc) not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        return f"machine code for compute capability {cc} is not known here; known are {known}"
    return ""


def stamp(code: str) -> str:
    """Return the versions of the compilers that `code` may call, "" if it calls none."""
    if code == LOWERING or not is_installed():
        return ""
    from gpusim.sass import wheels

    return f"{wheels.stamp(wheels.library())} {wheels.stamp(wheels.disassembler())}"
