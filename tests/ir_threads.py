"""Runs SSA form thread by thread, in plain Python: what a pass must not change.

One generator per thread, which pauses where it meets others. Shares no code with the
machine; arithmetic is that of constant folding.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from gpusim.compiler.ir import Array, Block, Function, Value
from gpusim.lowering.analysis.evaluate import evaluate

Thread = Generator[tuple[str, Value, Any], Any, None]
Arguments = Mapping[str, Any]


def run(function: Function, grid: int, block: int, arguments: Arguments, dynamic: int = 0) -> None:
    """Run a launch of one dimension; arrays among `arguments` are changed in place."""
    for index in range(grid):
        shared = np.zeros(1 << 14 if dynamic == 0 else dynamic, np.uint8)
        threads = [
            _thread(function, arguments, shared, (lane, block, index, grid))
            for lane in range(block)
        ]
        _together(threads)


def _together(threads: list[Thread]) -> None:
    waiting = {i: next(thread, None) for i, thread in enumerate(threads)}
    while any(waiting.values()):
        live = {i: stop for i, stop in waiting.items() if stop is not None}
        block_wide = all(stop[0] == "barrier" for stop in live.values())
        groups: dict[int, dict[int, tuple[str, Value, Any]]] = {}
        for i, stop in live.items():
            if stop[0] != "barrier" or block_wide:
                groups.setdefault(0 if block_wide else i // 32, {})[i] = stop
        for group in groups.values():
            first = next(iter(group.values()))
            for i, stop in group.items():
                if stop[0] == "shuffle":
                    _, value, lane, width = stop[2]
                    result = _shuffled(group, i, stop[1].detail, value, int(lane), int(width))
                elif stop[0] == "vote":
                    result = _voted(group, stop[1].detail)
                elif stop[0] == "match":
                    result = _matched(group, i, stop[1].detail)
                else:
                    result = None
                assert stop[0] == first[0], "threads of a warp wait at different places"
                waiting[i] = _resume(threads[i], result)


def _resume(thread: Thread, result: Any) -> tuple[str, Value, Any] | None:
    try:
        return thread.send(result)
    except StopIteration:
        return None


def _shuffled(group: Any, i: int, kind: str, value: Any, lane: int, width: int) -> Any:
    own = i % 32
    start = own - own % width
    source = {
        "idx": start + lane % width,
        "up": own - lane,
        "down": own + lane,
        "bfly": own ^ lane,
    }[kind]
    there = i - own + source
    inside = start <= source < start + width
    return group[there][2][1] if inside and there in group else value


def _voted(group: Any, kind: str) -> Any:
    votes = {i: bool(stop[2][1]) for i, stop in group.items()}
    if kind == "ballot":
        return np.uint32(sum(1 << (i % 32) for i, vote in votes.items() if vote))
    return np.bool_(all(votes.values()) if kind == "all" else any(votes.values()))


def _matched(group: Any, i: int, kind: str) -> Any:
    bits = {k: np.asarray(stop[2][1]).tobytes() for k, stop in group.items()}
    alike = np.uint32(sum(1 << (k % 32) for k, value in bits.items() if value == bits[i]))
    if kind == "any":
        return alike
    every = alike.bit_count() == len(bits)
    return [alike if every else np.uint32(0), np.bool_(every)]


def _thread(function: Function, arguments: Arguments, shared: Any, place: Any) -> Thread:
    lane, block, index, grid = place
    registers = {
        "tid.x": lane, "ntid.x": block, "ctaid.x": index, "nctaid.x": grid, "laneid": lane % 32,
    }  # fmt: skip
    local = np.zeros(4096, np.uint8)
    known: dict[Value, Any] = {}

    def memory(array: Array) -> Any:
        if array.space == "global":
            return arguments[array.name].reshape(-1)
        store = shared if array.space == "shared" else local
        end = (
            array.offset
            + (len(store) - array.offset) // array.dtype.itemsize * array.dtype.itemsize
        )
        return store[array.offset : end].view(array.dtype)

    def of(value: Value) -> Any:
        return value.detail if value.op == "const" else known[value]

    here: Block = function.entry
    before: Block | None = None
    while True:
        if here.phis:
            assert before is not None
            at = here.preds.index(before)
            known.update([(phi, of(phi.args[at])) for phi in here.phis])
        for value in here.body:
            if value.op in ("const", "fence") or value.operation.describes:
                continue
            if value.op in ("barrier", "syncwarp", "shuffle", "vote", "match"):
                args = [of(a) for a in value.args]
                known[value] = yield value.op, value, args
                continue
            known[value] = _compute(value, of, memory, registers, arguments)
        if not here.targets:
            return
        before = here
        taken = here.condition is None or bool(of(here.condition))
        here = here.targets[0 if taken else 1]


def _compute(value: Value, of: Any, memory: Any, registers: Any, arguments: Arguments) -> Any:
    op, detail, dtype = value.op, value.detail, value.dtype
    if op == "undef":
        return dtype.type(0)
    if op == "param":
        return dtype.type(arguments[detail])
    if op == "length":
        name, axis = detail
        array = arguments[name]
        return dtype.type(array.size if axis is None else array.shape[axis])
    if op == "sreg":
        return dtype.type(registers[detail])
    args = [of(a) for a in value.args]
    if op == "load":
        return memory(detail)[args[0]].astype(dtype)
    if op == "store":
        memory(detail)[args[0]] = args[1].astype(detail.dtype)
        return None
    if op == "load_vector":
        return [memory(detail[0])[int(args[0]) + k] for k in range(detail[1])]
    if op == "store_vector":
        array, count = detail
        memory(array)[int(args[0]) : int(args[0]) + count] = args[1:]
        return None
    if op == "element":
        return args[0][detail]
    if op == "atomic":
        array, kind = detail
        old = memory(array)[args[0]]
        new = {
            "add": lambda: old + args[1],
            "exch": lambda: args[1],
            "max": lambda: max(old, args[1]),
        }
        memory(array)[args[0]] = new[kind]()
        return old
    assert dtype is not None
    result = evaluate(op, dtype, detail, args)
    assert result is not None, value
    return result
