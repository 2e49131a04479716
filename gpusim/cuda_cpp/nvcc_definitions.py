"""Macros that a source requests, and that nvcc or a project's build defines, but not NVRTC."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpusim.cuda_cpp.includes import plain

_ASKED = re.compile(r"\b__NVCC__\b")
# An error in C++17 for NVRTC, a word without meaning for nvcc.
_REGISTER = re.compile(r"\bregister\s+\w")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(ifdef|if|elif|else|endif|ifndef|define)\b(.*)$")
_DEFINED = re.compile(r"[ \t]*defined[ \t]*(?:\([ \t]*(\w+)[ \t]*\)|(\w+))[ \t]*")


def of_nvcc(text: str) -> tuple[str, ...]:
    """Return the definitions that let NVRTC read a text as nvcc does."""
    found = ["__NVCC__=1"] if _ASKED.search(text) else []
    return (*found, "register=") if _REGISTER.search(text) else tuple(found)


def of_build(text: str) -> tuple[str, ...]:
    """Return the macros required by conditions around every kernel: `#ifdef USE_CUDA`.

    Names that begin with `_` are compilers'; those that the text defines are its own.
    """
    clean = plain(text)
    around = [frozenset(one) for one in _around_kernels(clean)]
    common = frozenset.intersection(*around) if around else frozenset()
    own = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", clean, re.MULTILINE))
    return tuple(f"{name}=1" for name in sorted(common - own) if not name.startswith("_"))


def _around_kernels(clean: str) -> Iterator[set[str]]:
    """Yield, for each line with `__global__`, the macros that have to be defined for it."""
    stack: list[set[str]] = []
    for line in clean.splitlines():
        match = _DIRECTIVE.match(line)
        if match is None:
            if "__global__" in line:
                yield set().union(*stack)
        elif match[1] in ("if", "ifdef", "ifndef"):
            stack.append(_macros_of(match[1], match[2]))
        elif match[1] == "endif":
            del stack[-1:]
        elif match[1] in ("else", "elif") and stack:
            stack[-1] = set()


def _macros_of(directive: str, condition: str) -> set[str]:
    """Return the macros that a condition requires; none if it tests anything else."""
    if directive == "ifdef":
        return set(condition.split()[:1])
    parts = [_DEFINED.fullmatch(part) for part in condition.split("&&")]
    if directive == "ifndef" or not all(parts):
        return set()
    return {match[1] or match[2] for match in parts if match is not None}
