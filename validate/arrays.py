"""A case's arrays on the GPU: fresh random input, outputs, and several copies of both.

The address of an array determines its page tables and DRAM banks, and so times with a cold L2 by
some percent. Launches therefore alternate between copies at different addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.catalogue import Setup
from gpusim.catalogue.registry import ARRAYS, FLAG
from gpusim.typing import Array

MOST_COPIES = 8
MOST_BYTES = 2**29
PAGE = 2**21
# Room after an array for the padding of the last block.
ROOM = 2**14
POISON = 0xA5


class Buffer:
    """GPU memory that grows on request."""

    def __init__(self, driver: Any) -> None:
        self._driver, self._memory, self._bytes = driver, None, 0

    def of(self, size: int) -> Any:
        """Return memory of at least `size` bytes; its contents may be lost."""
        if size > self._bytes:
            if self._memory is not None:
                self._memory.free()
                self._memory = None
            self._memory, self._bytes = self._driver.mem_alloc(size), size
        return self._memory


@dataclass(frozen=True)
class Ready:
    """A launch with its arguments, and the addresses of its output and of its flags."""

    setup: Setup
    arguments: tuple[Any, ...]
    output: int
    flags: int


class Arrays:
    """The arrays of one case at a time; input is kept for cases with the same."""

    def __init__(self, driver: Any, random: np.random.Generator) -> None:
        self._driver, self._random = driver, random
        self._input, self._pristine, self._flags = (Buffer(driver) for _ in range(3))
        self._outputs: list[Buffer] = []
        self._is_pristine = False
        self._inputs: list[int] = []
        self.data: Array = np.zeros(0)

    def ready(self, setups: Sequence[Setup]) -> list[list[Ready]]:
        """Return the launches on every copy, each with the previous one's output as input."""
        self._hold(setups[0])
        while len(self._outputs) < len(setups):
            self._outputs.append(Buffer(self._driver))
        copies: list[list[Ready]] = [[] for _ in self._inputs]
        sources = self._inputs
        for setup, buffer in zip(setups, self._outputs, strict=False):
            size = (setup.entry.family.outputs(setup) + ROOM) * setup.dtype.itemsize
            outputs = _places(int(buffer.of(len(copies) * _pages(size))), size, len(copies))
            flags = int(self._flags.of(setup.grid * FLAG.itemsize))
            count = setup.length if setup.entry.one_block else setup.n
            for launches, source, output in zip(copies, sources, outputs, strict=True):
                self._fill_up(source, setup)
                given = dict(zip(ARRAYS, map(np.uint64, (source, output, flags)), strict=True))
                arguments = tuple(
                    given[part] if isinstance(part, str) else part(count)
                    for part in setup.entry.signature
                )
                launches.append(Ready(setup, arguments, output, flags))
            sources = outputs
        return copies

    def is_new(self, setup: Setup) -> bool:
        """Return whether a launch needs other input than the present one."""
        return bool(self.data.shape != (setup.n,) or self.data.dtype != setup.dtype)

    def poison(self, launches: Sequence[Ready]) -> None:
        """Overwrite the outputs of launches."""
        for ready in launches:
            setup = ready.setup
            size = setup.entry.family.outputs(setup) * setup.dtype.itemsize
            self._driver.memset_d8(ready.output, POISON, size)

    def results(self, last: Ready) -> Array:
        """Return the output of a launch, without the padding of the last block."""
        found = np.empty(last.setup.entry.family.outputs(last.setup), last.setup.dtype)
        self._driver.memcpy_dtoh(found, last.output)
        return found[: last.setup.results]

    def clear(self, launches: Sequence[Ready]) -> None:
        """Queue zeros for the flags of launches."""
        for ready in launches:
            if "flags" in ready.setup.entry.signature:
                self._driver.memset_d8(ready.flags, 0, ready.setup.grid * FLAG.itemsize)

    def restore(self, setup: Setup, copy: int) -> None:
        """Queue the restoration of a copy's input, for a kernel that overwrites it."""
        if setup.entry.overwrites_input:
            size = setup.n * setup.dtype.itemsize
            self._driver.memcpy_dtod_async(self._inputs[copy], self._pristine.of(0), size, None)

    def restore_all(self, setup: Setup) -> None:
        """Queue the same for all copies."""
        for copy in range(len(self._inputs)):
            self.restore(setup, copy)

    def _hold(self, setup: Setup) -> None:
        """Keep the input on the GPU, with a pristine copy for a kernel that overwrites it."""
        size = (setup.n + ROOM) * setup.dtype.itemsize
        if self.is_new(setup):
            self.data = random_data(self._random, setup.n, setup.dtype)
            self._is_pristine = False
            count = max(1, min(MOST_COPIES, MOST_BYTES // _pages(size)))
            base = int(self._input.of(count * _pages(size)))
            self._inputs = _places(base, size, count)
            self._driver.memcpy_htod(base, self.data)
            for place in self._inputs[1:]:
                self._driver.memcpy_dtod(place, base, self.data.nbytes)
        if setup.entry.overwrites_input and not self._is_pristine:
            self._driver.memcpy_dtod(self._pristine.of(size), self._inputs[0], self.data.nbytes)
            self._is_pristine = True

    def _fill_up(self, place: int, setup: Setup) -> None:
        """Pad an input with the operation's identity, up to whole blocks."""
        if setup.length > setup.n:
            size = setup.dtype.itemsize
            filling = np.full(setup.length - setup.n, setup.template.identity, setup.dtype)
            self._driver.memcpy_htod(place + setup.n * size, filling)


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


def _places(base: int, size: int, count: int) -> list[int]:
    return [base + copy * _pages(size) for copy in range(count)]


def random_data(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> Array:
    """Return fresh numbers: small integers of both signs, floats from -1 to 1."""
    if dtype.kind == "f":
        kind: Any = np.float64 if dtype.itemsize == 8 else np.float32
        return (random.random(n, kind) * 2 - 1).astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    return random.integers(max(limits.min, -1000), min(limits.max, 1000), n, dtype, endpoint=True)
