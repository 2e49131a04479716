"""A second opinion: runs a kernel's plain Python function, one Python thread for each lane.

It shares no code with compiler or machine. Lanes hand each other a baton, in order, so that
every run is the same; whoever has it runs up to the next place where lanes meet. Accesses to
volatile memory are such places too, which puts a warp's lanes in step there. Bounds are checked
as on the machine; `//` and `%` are Python's, so kernels under test keep operands non-negative.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CellType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

import gpusim.cuda

STACK_BYTES = 1 << 20  # of a lane: a block of a thousand takes a gigabyte, not eight

TURN, BLOCK_BARRIER, WARP = "turn", "barrier", "warp"


class StuckError(Exception):
    """Some lanes wait for others that never come."""


def _converted(value: Any, dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)[()]


@dataclass(frozen=True)
class Arithmetic:
    """What a kernel computes with: by default NumPy's scalars, as they are.

    `of` makes a number of a NumPy scalar, `stored` what an array holds of a number. `code` gives
    the code that stands for a function; `names` and `words` of `cuda` replace what they name.
    """

    of: Callable[[Any], Any] = lambda scalar: scalar
    stored: Callable[[Any, Any], Any] = _converted
    code: Callable[[Any], Any] = lambda function: function.__code__
    minimum: Callable[..., Any] = np.fmin
    maximum: Callable[..., Any] = np.fmax
    names: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Any] = field(default_factory=dict)


NUMPYS = Arithmetic()


def _number(value: Any, arithmetic: Arithmetic) -> Any:
    """Return an element or a parameter as it is computed with: narrow integers as int32."""
    is_narrow = isinstance(value, np.integer) and value.dtype.itemsize < 4
    return arithmetic.of(np.int32(value) if is_narrow else value)


class Elements:
    """An array as a kernel sees it: no negative indices, narrow integers read as 32 bits."""

    def __init__(
        self, array: Any, arithmetic: Arithmetic, turn: Callable[[], Any] | None = None
    ) -> None:
        self.array, self.arithmetic, self.turn = array, arithmetic, turn
        self.dtype, self.size = array.dtype, arithmetic.of(np.int32(array.size))
        self.shape = tuple(arithmetic.of(np.int32(size)) for size in array.shape)

    def __len__(self) -> int:
        return len(self.array)

    def _check(self, index: Any) -> Any:
        parts = tuple(map(int, index if isinstance(index, tuple) else (index,)))
        for part, size in zip(parts, self.array.shape, strict=True):
            if not 0 <= part < size:
                raise IndexError(f"{index} is outside {self.shape}")
        return parts

    def __getitem__(self, index: Any) -> Any:
        if self.turn:
            self.turn()
        return _number(self.array[self._check(index)], self.arithmetic)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.turn:
            self.turn()
        self.array[self._check(index)] = self.arithmetic.stored(value, self.dtype)


class Lane(threading.Thread):
    """One thread of the block: runs when it has the baton, and says what it waits for."""

    def __init__(self, body: Callable[[Lane], None], position: int) -> None:
        super().__init__(daemon=True)
        self.body, self.position = body, position
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


Size = int | tuple[int, ...]


@dataclass(frozen=True)
class Axes:
    """Sizes along x, y and z; what is counted through them has x as the fastest."""

    sizes: tuple[int, int, int]

    @classmethod
    def of(cls, size: Size) -> Axes:
        """Return a number, or up to three, as three."""
        x, y, z = (*(size if isinstance(size, tuple) else (size,)), 1, 1)[:3]
        return cls((x, y, z))

    @property
    def count(self) -> int:
        """How many there are in all."""
        x, y, z = self.sizes
        return x * y * z

    def place(self, number: int) -> tuple[int, int, int]:
        """Return where one lies, by its number."""
        x, y, _ = self.sizes
        return number % x, number // x % y, number // (x * y)


def run(
    kernel: Any,
    grid: Size,
    block: Size,
    dynamic_bytes: int,
    *arguments: Any,
    arithmetic: Arithmetic = NUMPYS,
) -> None:
    """Run a launch, block after block; arrays hold the results."""
    for number in range(Axes.of(grid).count):
        memory: dict[Any, Any] = {"dynamic bytes": dynamic_bytes}
        place = number, Axes.of(grid), Axes.of(block)
        _run_block(kernel.py_func, place, memory, arguments, arithmetic)


def _run_block(
    function: Any,
    place: tuple[int, Axes, Axes],
    memory: dict[Any, Any],
    arguments: Any,
    arithmetic: Arithmetic,
) -> None:
    def body(lane: Lane) -> None:
        here = _dialect(lane, *place, memory, arithmetic)
        given = [
            Elements(a, arithmetic) if isinstance(a, np.ndarray) else _number(a, arithmetic)
            for a in arguments
        ]
        _translated(function, here, arithmetic)(*given)

    lanes = [Lane(body, position) for position in range(place[2].count)]
    before = threading.stack_size(STACK_BYTES)
    for lane in lanes:
        lane.start()
    threading.stack_size(before)
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


def _dialect(
    lane: Lane,
    number: int,
    grid: Axes,
    block: Axes,
    memory: dict[Any, Any],
    arithmetic: Arithmetic,
) -> Any:
    """Return what `cuda` means to one lane of a grid's block of that number."""
    of = arithmetic.of
    thread, of_grid = block.place(lane.position), grid.place(number)

    def three(numbers: Iterable[int]) -> Any:
        return SimpleNamespace(**{k: of(np.int32(n)) for k, n in zip("xyz", numbers, strict=True)})

    def along(number_of: Callable[[int], int]) -> Callable[[int], Any]:
        def of_axes(axes: int) -> Any:
            found = tuple(of(np.int32(number_of(axis))) for axis in range(axes))
            return found[0] if axes == 1 else found

        return of_axes

    def barrier(result: Callable[..., Any]) -> Callable[..., Any]:
        return lambda value=0: of(lane.meet(BLOCK_BARRIER, None, value, result))

    def across(source: Callable[[int, int, int], int]) -> Callable[..., Any]:
        def shuffle(mask: int, value: Any, operand: Any, width: int = 32) -> Any:
            def pick(me: Lane, values: dict[int, Any]) -> Any:
                wanted = source(me.lane, int(operand) & 31, width)
                inside = 0 <= wanted < 32 and wanted // width == me.lane // width
                return values.get(wanted if inside else me.lane, values[me.lane])

            return lane.meet(WARP, int(mask), value, pick)

        return shuffle

    def vote(result: Callable[[dict[int, Any]], Any]) -> Callable[..., Any]:
        def ask(mask: Any, value: Any) -> Any:
            return of(lane.meet(WARP, int(mask), value, lambda _, all_: result(all_)))

        return ask

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
        return Elements(memory[place], arithmetic)

    def local(shape: Any, dtype: Any) -> Elements:
        return Elements(np.zeros(shape, dtype), arithmetic)

    def atomic(update: Callable[..., Any]) -> Callable[..., Any]:
        def change(array: Elements, index: Any, *operands: Any) -> Any:
            old = array[index]
            array[index] = update(old, *(of(arithmetic.stored(x, array.dtype)) for x in operands))
            return old

        return change

    def store_vector(array: Elements, index: Any, items: tuple[Any, ...]) -> None:
        for position, item in enumerate(items):
            array[index + position] = item

    def turn() -> Any:
        return lane.meet(TURN, None, None, lambda *_: None)

    words = SimpleNamespace(
        threadIdx=three(thread),
        blockIdx=three(of_grid),
        blockDim=three(block.sizes),
        gridDim=three(grid.sizes),
        laneid=of(np.int32(lane.lane)),
        warpsize=32,
        grid=along(lambda axis: of_grid[axis] * block.sizes[axis] + thread[axis]),
        gridsize=along(lambda axis: grid.sizes[axis] * block.sizes[axis]),
        shared=SimpleNamespace(array=shared),
        local=SimpleNamespace(array=local),
        volatile=lambda array: Elements(array.array, arithmetic, turn),
        syncthreads=barrier(lambda *_: None),
        syncthreads_count=barrier(lambda _, all_: np.int32(sum(map(bool, all_.values())))),
        syncthreads_and=barrier(lambda _, all_: np.int32(all(all_.values()))),
        syncthreads_or=barrier(lambda _, all_: np.int32(any(all_.values()))),
        syncwarp=lambda mask=0xFFFFFFFF: lane.meet(WARP, mask, None, lambda *_: None),
        shfl_sync=across(lambda me, operand, width: me // width * width + operand % width),
        shfl_up_sync=across(lambda me, operand, width: me - operand),
        shfl_down_sync=across(lambda me, operand, width: me + operand),
        shfl_xor_sync=across(lambda me, operand, width: me ^ operand),
        all_sync=vote(lambda all_: np.bool_(all(all_.values()))),
        any_sync=vote(lambda all_: np.bool_(any(all_.values()))),
        ballot_sync=vote(lambda all_: np.uint32(sum(1 << k for k, v in all_.items() if v))),
        match_any_sync=lambda mask, value: lane.meet(WARP, mask, value, matching),
        match_all_sync=lambda mask, value: lane.meet(WARP, mask, value, matching_all),
        popc=lambda value: np.int32(int(value).bit_count()),
        atomic=SimpleNamespace(
            add=atomic(lambda old, x: old + x),
            sub=atomic(lambda old, x: old - x),
            min=atomic(arithmetic.minimum),
            max=atomic(arithmetic.maximum),
            and_=atomic(lambda old, x: old & x),
            or_=atomic(lambda old, x: old | x),
            xor=atomic(lambda old, x: old ^ x),
            exch=atomic(lambda _, x: x),
            cas=atomic(lambda old, compare, x: x if old == compare else old),
        ),
        threadfence=lambda: None,
        threadfence_block=lambda: None,
        threadfence_system=lambda: None,
        load_vector=lambda array, index, count: tuple(array[index + k] for k in range(count)),
        store_vector=store_vector,
    )
    return SimpleNamespace(**(vars(words) | dict(arithmetic.words)))


def _translated(function: Any, here: Any, arithmetic: Arithmetic) -> Any:
    """Return the function with `cuda` meaning `here`, in it and in its device functions."""

    def meaning(value: Any) -> Any:
        if value is gpusim.cuda:
            return here
        if isinstance(value, gpusim.cuda.Kernel):
            return _translated(value.py_func, here, arithmetic)
        return value

    code = arithmetic.code(function)
    used = {k: meaning(v) for k, v in function.__globals__.items() if k in code.co_names}
    used |= {"max": arithmetic.maximum, "min": arithmetic.minimum} | dict(arithmetic.names)
    cells = tuple(CellType(meaning(cell.cell_contents)) for cell in function.__closure__ or ())
    return FunctionType(code, used, function.__name__, None, cells)
