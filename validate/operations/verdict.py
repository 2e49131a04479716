"""The simulator's results beside a GPU's: right, refused, or wrong, with the operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.errors import GpusimError
from gpusim.typing import Array

from . import record
from .operands import operands
from .operation import THREADS, TYPES, Operation
from .record import Record
from .running import Simulator

EXPONENT_ONES = {"f2": 0x7C00, "f4": 0x7F800000, "f8": 0x7FF0000000000000, "bf16": 0x7F80}


@dataclass(frozen=True)
class Verdict:
    """The outcome of an operation: `state` is "right", "refused", "wrong" or "unavailable"."""

    room: str
    operation: str
    state: str
    reason: str = ""


def judge(room: str, operation: Operation, simulator: Simulator, known: Record) -> Verdict:
    """Run an operation in the simulator and compare it with a GPU's results."""
    try:
        results = simulator.results(operation)
    except GpusimError as error:
        return Verdict(room, operation.name, "refused", str(error).splitlines()[0])
    reason = difference(operation, results, known, simulator.generator)
    return Verdict(room, operation.name, "wrong" if reason else "right", reason)


def difference(operation: Operation, results: Sequence[Array], known: Record, compiler: str) -> str:
    """Return a sentence on the first difference, empty where there is none."""
    name = operation.name
    if operation.exact:
        thread = record.first_difference(known.checksums[name], results)
        if thread is None:
            return ""
        return f"differs within threads {thread} to {thread + record.CHUNK - 1}: " + _shown(
            operation, thread, results[0], None
        )
    theirs = record.values_of(operation, known.values[name])
    ours = record.sampled(operation, results[0])
    must_equal = compiler == known.compiler and name not in known.special
    wrong = np.flatnonzero(~_fits(operation, ours, theirs, exact=must_equal).all(axis=1))
    if not len(wrong):
        return ""
    thread = int(wrong[0]) * record.STEP
    return f"{len(wrong)} of {len(ours)} differ: " + _shown(
        operation, thread, results[0], theirs[wrong[0]]
    )


def _fits(operation: Operation, ours: Array, theirs: Array, *, exact: bool) -> Array:
    """Return a mask of results that are equal, or near enough for an approximation.

    A difference of `ulps` units in the last place, or of `absolute`, is near enough; no
    difference is tolerated for NaN and infinities.
    """
    element = "bf16" if operation.result.startswith("bf16") else TYPES[operation.result][0]
    size = ours.dtype.itemsize
    a, b = (one.view(f"u{size}") for one in (ours, theirs))
    equal = np.asarray(a == b)
    if exact:
        return equal
    top = np.uint64(1) << np.uint64(8 * size - 1)
    order = [np.where(v & top, -(v & ~top).view(np.int64), v.view(np.int64))
             for v in (a.astype(np.uint64), b.astype(np.uint64))]  # fmt: skip
    finite = [
        (v & ~top) < np.uint64(EXPONENT_ONES[element])
        for v in (a.astype(np.uint64), b.astype(np.uint64))
    ]
    near = np.abs(order[0].astype(np.float64) - order[1].astype(np.float64)) <= operation.ulps
    values = [_as_double(one, element) for one in (ours, theirs)]
    with np.errstate(invalid="ignore", over="ignore"):
        near |= np.abs(values[0] - values[1]) <= operation.absolute
    return np.asarray(equal | (near & finite[0] & finite[1]))


def _as_double(values: Array, element: str) -> Array:
    if element == "bf16":
        values = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


def _shown(operation: Operation, thread: int, ours: Array, theirs: Array | None) -> str:
    """Return a thread's operands and results, in hexadecimal."""
    given = zip(operation.operands, operands(operation), strict=True)
    parts = [_hex(kind, one.reshape(THREADS, -1)[thread]) for kind, one in given]
    own = _hex(operation.result, ours.reshape(THREADS, -1)[thread])
    text = f"thread {thread} of {', '.join(parts)} gives {own}"
    return text if theirs is None else f"{text}, the GPU {_hex(operation.result, theirs)}"


def _hex(kind: str, elements: Any) -> str:
    size = np.dtype(TYPES[kind][0]).itemsize
    bits = np.ascontiguousarray(elements).view(f"u{size}")
    return "/".join(f"{int(one):#0{2 + 2 * size}x}" for one in bits)
