"""GPUVerify's CUDA test suite: verdicts in first lines, launches in second ones.

Betts, Chong, Donaldson, Qadeer, Thomson: GPUVerify, OOPSLA 2012. The folder has `testsuite/CUDA`.
Its verdicts hold for all arguments; here each kernel has some sets: arrays that are large enough
for every thread (or null pointers, where the label names an access by one), and the numbers that
the file requests, else one, then zero, then one more than the constants it compares them with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.cli.launch_examples import Parameter
from gpusim.cuda_cpp import signature
from gpusim.cuda_cpp.structures import TYPES

from .case import ANY, Case

_DIMENSION = r"--{}=\[?([\d,]+)\]?"
_DEFINED = re.compile(r"-D(\w+(?:=\w+)?)")
_REQUIRED = re.compile(r"__requires\s*\(\s*(\w+)\s*==\s*(\d+|blockDim\.x|gridDim\.x)\s*\)")
_EXAMPLE = re.compile(r"^//\s*(\w+) = (\d+)\s*$", re.MULTILINE)  # of a counterexample
_CONDITION = re.compile(r"\b__requires\s*\((.*)\)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_COMPARED = re.compile(r"\b(\w+)\s*(?:[=!<>]=|[<>])\s*(\d{1,4})\b")
_TEXT_FUNCTIONS = ("__builtin_memcpy=memcpy", "__builtin_memset=memset")
# Annotations of the verifier: a verdict that depends on one is none on the kernel's own code.
_SPECIFIED = re.compile(
    r"\b__(?:assert|ensures|invariant|global_invariant|function_wide_invariant|axiom|"
    r"read_implies|write_implies|no_read|no_write|barrier_invariant\w*|at_most_one|all|exclusive|"
    r"non_temporal\w*|candidate\w*|return_val\w*|old|ptr_\w+|reads_from\w*|writes_to\w*|uniform_\w+|"
    r"distinct_\w+|same_\w+|enabled)\b|\bassert\s*\("
)
_FUNCTION_TYPE = re.compile(r"\btypedef[^;(]*\(\s*\*\s*(\w+)\s*\)\s*\(")
# The verifier takes memory without a value for memory with any.
_NOT_VERIFIED = frozenset({"uninitialised"})
_NULL = re.compile(r"^//null pointer access$", re.MULTILINE)  # of a counterexample
MOST_ELEMENTS = 1 << 22
MOST_THREADS = 1024
LEAST_ELEMENTS = 1 << 18


def cases(folder: Path) -> Iterator[Case]:
    """Yield the suite's kernels, those without a launch with the reason."""
    nested = (folder / "testsuite" / "CUDA", folder / "CUDA")
    root = next((one for one in nested if one.is_dir()), folder)
    for file in sorted(root.rglob("*.cu")):
        text = file.read_text(errors="replace")
        verdict, _, rest = text.partition("\n")
        options, _, _ = rest.partition("\n")
        kernels = tuple(signature.kernels(text))
        defects = frozenset() if verdict.strip() == "//pass" else frozenset({ANY})
        grid, block = (_dimension(options, name) for name in ("gridDim", "blockDim"))
        known = {"blockDim.x": block[0], "gridDim.x": grid[0]}
        asked = [*_EXAMPLE.findall(text), *_REQUIRED.findall(text)]
        values = {name: known.get(number) or int(number) for name, number in asked}
        yield Case(
            str(file.parent.relative_to(root)),
            file,
            kernels,
            frozenset({ANY}),
            defects,
            grid=grid,
            block=block,
            arguments=tuple(
                partial(
                    arguments,
                    threads=prod(grid) * prod(block),
                    values=above | values,
                    number=number,
                    has_arrays=not _NULL.search(text),
                )
                for above, number in _sets(text, values)
            ),
            includes=(str(file.parent),),
            debug=True,  # its kernels are full of stores that nobody reads
            definitions=(*_DEFINED.findall(options), "__requires(x)=", *_TEXT_FUNCTIONS),
            ignored=_NOT_VERIFIED,
            excluded=_excluded(verdict, options, text, kernels)
            or ("" if prod(block) <= MOST_THREADS else "a block of more than 1024 threads"),
        )


def _excluded(verdict: str, options: str, text: str, kernels: Sequence[str]) -> str:
    """Return why a file says nothing about a kernel that runs, "" where it does."""
    if "BUGLE_ERROR" in verdict or "CLANG_ERROR" in verdict:
        return "an error of the verifier's own front end"
    if not kernels:
        return "no kernel"
    if "--warp-sync" in options:
        return "its verdict assumes warps in lockstep"
    functions = set(_FUNCTION_TYPE.findall(text))
    declared = [one for each in signature.kernels(text).values() for one in each]
    if any(one.ctype.rstrip("* ") in functions for one in declared):
        return "a parameter is a pointer to a device function, which no host program has"
    found = _SPECIFIED.search(text)
    return f"its verdict is on an annotation, {found[0].strip('(')}" if found else ""


def _sets(text: str, values: Mapping[str, int]) -> list[tuple[dict[str, int], int]]:
    """Return values of parameters that are left open, and the number for all others, by launch.

    Those that a precondition limits in another way than to one value are one.
    """
    declared = [one for each in signature.kernels(text).values() for one in each]
    limited = {name for said in _CONDITION.findall(text) for name in _WORD.findall(said)}
    names = {one.name for one in declared if not one.is_pointer} - values.keys()
    fixed = dict.fromkeys(names & limited, 1)
    names -= limited
    if not names:
        return [({}, 1)]
    above: dict[str, int] = {}
    for name, constant in _COMPARED.findall(text):
        if name in names:
            above[name] = max(above.get(name, 0), int(constant) + 1)
    return [({}, 1), (fixed, 0), *([(above, 1)] if above else [])]


def _dimension(options: str, name: str) -> tuple[int, ...]:
    found = re.search(_DIMENSION.format(name), options)
    return tuple(int(part) for part in found[1].split(",")) if found else (1,)


def arguments(
    declared: Sequence[Parameter],
    threads: int,
    values: Mapping[str, int],
    number: int = 1,
    *,
    has_arrays: bool = True,
) -> list[Any]:
    """Return arrays of zeros for pointers, or null, and for others their value or a number."""
    size = min(max(LEAST_ELEMENTS, 4 * threads), MOST_ELEMENTS)
    made: list[Any] = []
    for one in declared:
        kind = np.dtype(TYPES.get(one.type.rstrip("*[] "), np.int32))
        if one.is_array:
            made.append(np.zeros(size, kind) if has_arrays else None)
        else:
            made.append(kind.type(values.get(one.name, number)))
    return made
