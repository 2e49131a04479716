"""Calls of functions provided by the driver: printf, malloc, free and assertions.

Output of a kernel that is only counted or timed is dropped; printf returns the number of
arguments that its format names (CUDA C++ Programming Guide). Memory is given from a heap of the
launch's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.errors import KernelFault, OutOfBoundsError
from gpusim.isa.ops import Instruction
from gpusim.machine.context import Context
from gpusim.machine.device_heap import Heap
from gpusim.machine.generic_addressing import lanes_of
from gpusim.machine.group import Group

Array = np.ndarray[Any, Any]
# A conversion in a format, and a width or precision that is an argument too.
_CONVERSION = re.compile(rb"%[-+ #0]*(\*|\d+)?(?:\.(\*|\d*))?(?:hh?|ll?|[Lqjzt])?(.)", re.DOTALL)
LONGEST_FORMAT = 1 << 16
_HALF = 32


class RefusedCallError(Exception):
    """A call that ends the kernel, with the reason."""

    fault: type[KernelFault] = KernelFault


class NullFormatError(RefusedCallError):
    """A format of printf at address 0: on a GPU an illegal memory access."""

    fault = OutOfBoundsError


def call_driver(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Execute the called function for each lane."""
    context.report(group, instruction, on)
    if not on.any():
        return
    offsets, low, high = (group.read(source, np.uint32) for source in instruction.src)
    wide = np.asarray(high.astype(np.uint64) << np.uint64(_HALF) | low)
    # Also with equal arguments, each block of a folded batch has a result of its own.
    each_block = np.zeros((len(context.batch.block_of_row), 1, 1), bool)
    offsets, wide, here, _ = np.broadcast_arrays(offsets, wide, on, each_block)
    results = wide.copy()
    for number in np.unique(offsets[here]).tolist():
        _call(context, group, instruction, int(number), here & (offsets == number), results)
    halves = (results & np.uint64(0xFFFFFFFF), results >> np.uint64(_HALF))
    for register, half in zip(instruction.dst, halves, strict=True):
        group.write(register, half.astype(np.uint32), on)


def _call(
    context: Context, group: Group, instruction: Instruction, place: int, on: Array, results: Array
) -> None:
    """Call one function for some lanes; their first argument is the address of the results."""
    layout, line = context.batch.program.layout, instruction.line
    name = layout.functions.get(place, "a function") if layout is not None else "a function"
    function = _FUNCTIONS.get(name)
    for position in zip(*np.nonzero(on), strict=True):
        try:
            if function is None:
                raise RefusedCallError(f"{name} is the driver's, which is not there: do without it")
            results[position] = function(context, int(results[position]))
        except RefusedCallError as refused:
            first = np.zeros_like(on)
            first[position] = True
            block, thread, where = lanes_of(group).first(first, results, name, line)
            text = f"line {line}: {refused} (block {block}, thread {thread})"
            context.fault(refused.fault(text, where))
            return


def _print(context: Context, address: int) -> int:
    if not address:
        raise NullFormatError("address 0x0 is out of bounds: the format of printf is null")
    return arguments_of(_text(context, address))


def arguments_of(text: bytes) -> int:
    """Return the number of arguments that a format consumes."""
    return sum(
        (kind != b"%") + (width == b"*") + (precision == b"*")
        for width, precision, kind in _CONVERSION.findall(text)
    )


def _text(context: Context, address: int) -> bytes:
    """Return the text that ends with a zero at an address."""
    for allocation in context.allocations.values():
        if address in allocation.extent and allocation.flat is not None:
            begin = address - allocation.start
            return allocation.bytes_at(begin, LONGEST_FORMAT).tobytes().partition(b"\0")[0]
    raise RefusedCallError("the format of printf is not in global or constant memory")


def _allocate(context: Context, size: int) -> int:
    context.changes.count += 1
    return _heap(context).given(size)


def _free(context: Context, address: int) -> int:
    if address and not _heap(context).take_back(address):
        raise RefusedCallError("free of an address that malloc has not given, or of one twice")
    return address


def _heap(context: Context) -> Heap:
    layout = context.batch.program.layout
    heap = None if layout is None else context.allocations[layout.heap].heap
    assert heap is not None
    return heap


def _fail(_: Context, __: int) -> int:
    raise RefusedCallError("an assertion does not hold")


_FUNCTIONS: Mapping[str, Callable[[Context, int], int]] = {
    "vprintf": _print,
    "malloc": _allocate,
    "free": _free,
    "__assertfail": _fail,
}
