"""A second opinion: runs a kernel's plain Python function, one Python thread for each lane.

It shares no code with compiler or machine. Lanes hand each other a baton, in order, so that
every run is the same; whoever has it runs up to the next place where lanes meet. Accesses to
volatile memory are such places too, which puts a warp's lanes in step there. Bounds are checked
as on the machine; `//` and `%` are Python's, so kernels under test keep operands non-negative.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

import gpusim.cuda

TURN, BLOCK_BARRIER, WARP = "turn", "barrier", "warp"


class StuckError(Exception):
    """Some lanes wait for others that never come."""


class Elements:
    """An array as a kernel sees it: no negative indices, narrow integers read as 32 bits."""

    def __init__(self, array: Any, turn: Callable[[], Any] | None = None) -> None:
        self.array, self.turn = array, turn
        self.dtype, self.shape, self.size = array.dtype, array.shape, array.size

    def __len__(self) -> int:
        return len(self.array)

    def _check(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        for part, size in zip(parts, self.shape, strict=True):
            if not 0 <= part < size:
                raise IndexError(f"{index} is outside {self.shape}")
        return tuple(int(part) for part in parts)

    def __getitem__(self, index: Any) -> Any:
        if self.turn:
            self.turn()
        value = self.array[self._check(index)]
        narrow = self.dtype.kind in "iu" and self.dtype.itemsize < 4
        return np.int32(value) if narrow else value

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.turn:
            self.turn()
        with np.errstate(all="ignore"):
            self.array[self._check(index)] = np.asarray(value).astype(self.dtype)


class Lane(threading.Thread):
    """One thread of the block: runs when it has the baton, and says what it waits for."""

    def __init__(self, body: Callable[[Lane], None], position: int, index: Any) -> None:
        super().__init__(daemon=True)
        self.body, self.position, self.index = body, position, index
        self.warp, self.lane = divmod(position, 32)
        self.go, self.back = threading.Semaphore(0), threading.Semaphore(0)
        self.wish: tuple[str, Any, Callable[..., Any]] = (TURN, None, lambda *_: None)
        self.value: Any = None
        self.answer: Any = None
        self.error: BaseException | None = None
        self.done = self.dismissed = False

    def run(self) -> None:
        """Wait for the first baton, then run the kernel."""
        try:
            self._wait()
            with np.errstate(all="ignore"):
                self.body(self)
        except BaseException as error:
            self.error = error
        self.done = True
        self.back.release()

    def meet(self, kind: str, members: Any, value: Any, result: Callable[..., Any]) -> Any:
        """Give the baton back; return what `result(lane, {lane: value})` says once all are here."""
        self.wish, self.value = (kind, members, result), value
        self.back.release()
        self._wait()
        return self.answer

    def _wait(self) -> None:
        self.go.acquire()
        if self.dismissed:
            raise SystemExit

    def resume(self) -> None:
        """Hand over the baton and wait to have it back."""
        self.go.release()
        self.back.acquire()
        if self.error is not None and not self.dismissed:
            raise self.error

    def dismiss(self) -> None:
        """Let a lane that waits end, after another one has failed."""
        self.dismissed = True
        self.resume()


def run(kernel: Any, grid: int, block: int, dynamic_bytes: int, *arguments: Any) -> None:
    """Run a launch of one dimension, block after block; arrays hold the results."""
    for number in range(grid):
        _run_block(kernel.py_func, number, grid, block, dynamic_bytes, arguments)


def _run_block(
    function: Any, number: int, grid: int, block: int, dynamic_bytes: int, arguments: Any
) -> None:
    memory: dict[Any, Any] = {"dynamic bytes": dynamic_bytes}

    def body(lane: Lane) -> None:
        here = _dialect(lane, number, grid, block, memory)
        given = [Elements(a) if isinstance(a, np.ndarray) else a for a in arguments]
        _translated(function, here)(*given)

    lanes = [Lane(body, position, np.int32(position)) for position in range(block)]
    for lane in lanes:
        lane.start()
    try:
        while waiting := [lane for lane in lanes if not lane.done]:
            _round(waiting)
    finally:
        for lane in lanes:
            if not lane.done:
                lane.dismiss()


def _round(waiting: list[Lane]) -> None:
    """Answer all lanes that have what they wait for, then let each run to its next meeting."""
    ready = list(_meetings(waiting))
    if not ready:
        raise StuckError(", ".join(f"{x.position} at {x.wish[0]}" for x in waiting))
    for group in ready:
        key = "position" if group[0].wish[0] == BLOCK_BARRIER else "lane"
        values = {getattr(lane, key): lane.value for lane in group}
        for lane in group:
            lane.answer = lane.wish[2](lane, values)
    for lane in sorted((x for group in ready for x in group), key=lambda x: x.position):
        lane.resume()


def _meetings(waiting: list[Lane]) -> Iterator[list[Lane]]:
    """Yield the groups of lanes that have all they wait for."""
    groups: dict[Any, list[Lane]] = {}
    for lane in waiting:
        kind, mask, _ = lane.wish
        place = {TURN: lane.position, WARP: (lane.warp, mask)}.get(kind)
        groups.setdefault((kind, place), []).append(lane)
    for (kind, place), group in groups.items():
        expected = 1 if kind == TURN else len(waiting)
        if kind == WARP:
            warp, mask = place
            expected = sum(x.warp == warp and int(mask) >> x.lane & 1 for x in waiting)
        if len(group) == expected:
            yield group


def _dialect(lane: Lane, number: int, grid: int, block: int, memory: dict[Any, Any]) -> Any:
    """Return what `cuda` means to one lane."""
    zero, one = np.int32(0), np.int32(1)

    def barrier(result: Callable[..., Any]) -> Callable[..., Any]:
        return lambda value=0: lane.meet(BLOCK_BARRIER, None, value, result)

    def across(source: Callable[[int, int], int]) -> Callable[..., Any]:
        def shuffle(mask: int, value: Any, operand: Any, width: int = 32) -> Any:
            def pick(me: Lane, values: dict[int, Any]) -> Any:
                wanted = source(me.lane, int(operand))
                inside = 0 <= wanted < 32 and wanted // width == me.lane // width
                return values.get(wanted if inside else me.lane, values[me.lane])

            return lane.meet(WARP, mask, value, pick)

        return shuffle

    def vote(result: Callable[[dict[int, Any]], Any]) -> Callable[..., Any]:
        return lambda mask, value: lane.meet(WARP, mask, value, lambda _, all_: result(all_))

    def matching(me: Lane, values: dict[int, Any]) -> Any:
        mine = np.asarray(values[me.lane]).tobytes()
        alike = [k for k, v in values.items() if np.asarray(v).tobytes() == mine]
        return np.uint32(sum(1 << k for k in alike))

    def matching_all(me: Lane, values: dict[int, Any]) -> tuple[Any, bool]:
        everyone = sum(1 << k for k in values)
        alike = int(matching(me, values)) == everyone
        return np.uint32(everyone if alike else 0), alike

    def shared(shape: Any, dtype: Any) -> Elements:
        place = "dynamic" if shape == 0 else sys._getframe(1).f_lineno
        if place not in memory:
            size = memory["dynamic bytes"] // np.dtype(dtype).itemsize if shape == 0 else shape
            memory[place] = np.zeros(size, dtype)
        return Elements(memory[place])

    def atomic(update: Callable[..., Any]) -> Callable[..., Any]:
        def change(array: Elements, index: Any, *operands: Any) -> Any:
            old = array[index]
            array[index] = update(old, *operands)
            return old

        return change

    def turn() -> Any:
        return lane.meet(TURN, None, None, lambda *_: None)

    return SimpleNamespace(
        threadIdx=SimpleNamespace(x=lane.index, y=zero, z=zero),
        blockIdx=SimpleNamespace(x=np.int32(number), y=zero, z=zero),
        blockDim=SimpleNamespace(x=np.int32(block), y=one, z=one),
        gridDim=SimpleNamespace(x=np.int32(grid), y=one, z=one),
        laneid=np.int32(lane.lane),
        warpsize=32,
        grid=lambda _: np.int32(number * block) + lane.index,
        gridsize=lambda _: np.int32(grid * block),
        shared=SimpleNamespace(array=shared),
        local=SimpleNamespace(array=lambda shape, dtype: Elements(np.zeros(shape, dtype))),
        volatile=lambda array: Elements(array.array, turn),
        syncthreads=barrier(lambda *_: None),
        syncthreads_count=barrier(lambda _, all_: np.int32(sum(map(bool, all_.values())))),
        syncthreads_and=barrier(lambda _, all_: np.int32(all(all_.values()))),
        syncthreads_or=barrier(lambda _, all_: np.int32(any(all_.values()))),
        syncwarp=lambda mask=0xFFFFFFFF: lane.meet(WARP, mask, None, lambda *_: None),
        shfl_sync=across(lambda me, operand: me // 32 * 32 + operand),
        shfl_up_sync=across(lambda me, operand: me - operand),
        shfl_down_sync=across(lambda me, operand: me + operand),
        shfl_xor_sync=across(lambda me, operand: me ^ operand),
        all_sync=vote(lambda all_: all(all_.values())),
        any_sync=vote(lambda all_: any(all_.values())),
        ballot_sync=vote(lambda all_: np.uint32(sum(1 << k for k, v in all_.items() if v))),
        match_any_sync=lambda mask, value: lane.meet(WARP, mask, value, matching),
        match_all_sync=lambda mask, value: lane.meet(WARP, mask, value, matching_all),
        popc=lambda value: np.int32(int(value).bit_count()),
        atomic=SimpleNamespace(
            add=atomic(lambda old, x: old + x),
            sub=atomic(lambda old, x: old - x),
            min=atomic(lambda old, x: np.fmin(old, x)),
            max=atomic(lambda old, x: np.fmax(old, x)),
            exch=atomic(lambda _, x: x),
            cas=atomic(lambda old, compare, x: x if old == compare else old),
        ),
        threadfence=lambda: None,
        threadfence_block=lambda: None,
        threadfence_system=lambda: None,
        load_vector=lambda array, index, count: tuple(array[index + k] for k in range(count)),
    )


def _translated(function: Any, here: Any) -> Any:
    """Return the function with `cuda` meaning `here`, in it and in its device functions."""

    def meaning(value: Any) -> Any:
        if value is gpusim.cuda:
            return here
        if isinstance(value, gpusim.cuda.Kernel):
            return _translated(value.py_func, here)
        return value

    names = set(function.__code__.co_names)
    used = {name: meaning(v) for name, v in function.__globals__.items() if name in names}
    used |= {"max": np.fmax, "min": np.fmin}
    cells = tuple(CellType(meaning(cell.cell_contents)) for cell in function.__closure__ or ())
    return FunctionType(function.__code__, used, function.__name__, None, cells)
