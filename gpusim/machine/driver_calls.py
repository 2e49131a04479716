"""Calls of functions provided by the driver: printf, malloc, free, assertions, graphs' conditions.

Output goes to the list of a launch (`Prepared.printed`), if it has one; printf returns the number
of arguments that its format names (CUDA C++ Programming Guide). Memory is given from a heap of the
launch's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gpusim.errors import AssertionFault, KernelFault, OutOfBoundsError
from gpusim.isa.ops import LOCAL_HIGH, Instruction
from gpusim.launch.device_heap import Heap
from gpusim.machine.context import Context
from gpusim.machine.device_printf import formatted
from gpusim.machine.generic_addressing import lanes_of
from gpusim.machine.group import Group
from gpusim.typing import Array

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


class FailedAssertionError(RefusedCallError):
    """An assertion, its expression and its file."""

    fault = AssertionFault

    def __init__(self, expression: str, file: str) -> None:
        words = f": {expression} (in {file})" if expression else ""
        super().__init__(f"an assertion fails{words}")
        self.expression, self.file = expression, file


def call_driver(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Execute the called function for each lane."""
    context.report(group, instruction, on)
    if not on.any():
        return
    offsets, *halves = (group.read(source, np.uint32) for source in instruction.src)
    first, second = (_joined(*halves[k : k + 2]) for k in (0, 2))
    # Also with equal arguments, each block of a folded batch has a result of its own.
    each_block = np.zeros((len(context.batch.block_of_row), 1, 1), bool)
    offsets, first, second, here, _ = np.broadcast_arrays(offsets, first, second, on, each_block)
    results = first.copy()
    for number in np.unique(offsets[here]).tolist():
        calls = _Calls(context, group, instruction, here & (offsets == number), second)
        _call(calls, int(number), results)
    parts = (results & np.uint64(0xFFFFFFFF), results >> np.uint64(_HALF))
    for register, half in zip(instruction.dst, parts, strict=True):
        group.write(register, half.astype(np.uint32), on)


def _joined(low: Array, high: Array) -> Array:
    return np.asarray(high.astype(np.uint64) << np.uint64(_HALF) | low)


@dataclass(frozen=True)
class _Calls:
    """The calls of one function by some lanes, each with its second argument."""

    context: Context
    group: Group
    instruction: Instruction
    on: Array
    second: Array

    def local(self, position: tuple[int, ...], address: int, size: int) -> bytes:
        """Return bytes of a lane's local memory."""
        held = self.context.batch.local
        if address >> _HALF != LOCAL_HIGH or held is None:
            raise RefusedCallError("the arguments of printf are not in local memory")
        copy, row, lane = position
        begin = address & 0xFFFFFFFF
        mine = held[min(copy, len(held) - 1), self.group.rows[row], lane]
        return bytes(mine[begin : begin + size].tobytes().ljust(size, b"\0"))


def _call(calls: _Calls, place: int, results: Array) -> None:
    """Call one function for some lanes; their first argument is the address of the results."""
    context, on, line = calls.context, calls.on, calls.instruction.line
    layout = context.batch.program.layout
    name = layout.functions.get(place, "a function") if layout is not None else "a function"
    function = _FUNCTIONS.get(name)
    for position in zip(*np.nonzero(on), strict=True):
        try:
            if function is None:
                raise RefusedCallError(
                    f"{name} is a function of the driver that is not simulated: avoid it"
                )
            results[position] = function(calls, int(results[position]), position)
        except RefusedCallError as refused:
            first = np.zeros_like(on)
            first[position] = True
            block, thread, where = lanes_of(calls.group).first(first, results, name, line)
            text = f"line {line}: {refused} (block {block}, thread {thread})"
            fault = refused.fault(text, where)
            if isinstance(refused, FailedAssertionError) and isinstance(fault, AssertionFault):
                fault.expression, fault.file = refused.expression, refused.file
                fault.threads = _threads(calls)
            context.fault(fault)
            return


def _threads(calls: _Calls) -> tuple[tuple[int, int], ...]:
    """Return block and thread of the lanes that call, by linear number, in their order."""
    lanes, on = lanes_of(calls.group), calls.on
    found = (np.broadcast_to(one, on.shape)[on] for one in (lanes.blocks, lanes.threads))
    return tuple(sorted(zip(*(one.tolist() for one in found), strict=True)))


def _print(calls: _Calls, address: int, position: tuple[int, ...]) -> int:
    if not address:
        raise NullFormatError("address 0x0 is out of bounds: the format of printf is null")
    context, text = calls.context, _text(calls.context, address)
    if context.printed is not None:
        buffer = int(calls.second[position])

        def held(begin: int, size: int) -> bytes:
            return calls.local(position, buffer + begin, size)

        context.printed.append(formatted(text, held, lambda place: _string(calls, place, position)))
    return arguments_of(text)


def _string(calls: _Calls, address: int, position: tuple[int, ...]) -> bytes:
    """Return a string that is an argument: a lane may have it in its local memory."""
    if address >> _HALF == LOCAL_HIGH:
        return calls.local(position, address, LONGEST_FORMAT).partition(b"\0")[0]
    return _text(calls.context, address)


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
    raise RefusedCallError("text of printf is not in global, constant or local memory")


def _allocate(calls: _Calls, size: int, _: tuple[int, ...]) -> int:
    calls.context.changes.count += 1
    return _heap(calls.context).given(size)


def _free(calls: _Calls, address: int, _: tuple[int, ...]) -> int:
    if address and not _heap(calls.context).take_back(address):
        raise RefusedCallError("free of an address that malloc did not return, or a double free")
    return address


def _heap(context: Context) -> Heap:
    layout = context.batch.program.layout
    heap = None if layout is None else context.allocations[layout.heap].heap
    assert heap is not None
    return heap


def _set_condition(calls: _Calls, handle: int, position: tuple[int, ...]) -> int:
    """Set the condition of a graph: its handle is the address of a word of memory."""
    word = np.array([int(calls.second[position]) & 0xFFFFFFFF], "<u4").view(np.uint8)
    for allocation in calls.context.allocations.values():
        if handle in allocation.extent and allocation.flat is not None:
            begin = handle - allocation.start
            allocation.bytes_at(begin, len(word))[:] = word
            calls.context.changes.count += 1
            return handle
    raise RefusedCallError(f"{handle:#x} is not the handle of a graph's condition")


def _fail(calls: _Calls, message: int, position: tuple[int, ...]) -> int:
    raise FailedAssertionError(*_assertion(calls.context, message, int(calls.second[position])))


def _assertion(context: Context, message: int, file: int) -> tuple[str, str]:
    """Return an assertion's expression and file, "" where they cannot be read."""
    try:
        found = [_text(context, place).decode(errors="replace") for place in (message, file)]
    except RefusedCallError:
        return "", ""
    return found[0], found[1]


_FUNCTIONS: Mapping[str, Callable[[_Calls, int, tuple[int, ...]], int]] = {
    "vprintf": _print,
    "malloc": _allocate,
    "free": _free,
    "__assertfail": _fail,
    "cudaGraphSetConditional": _set_condition,
}
