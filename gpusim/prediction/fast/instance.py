"""A module at work: its memory, what is brought there, and what is played."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from gpusim.prediction.fast.image import Image
from gpusim.prediction.fast.kinds import SLOT

if TYPE_CHECKING:
    import wasmtime

_PAGE = 1 << 16


class Instance:
    """A module with a memory of its own, which only grows."""

    def __init__(self, engine: wasmtime.Engine, module: wasmtime.Module) -> None:
        import wasmtime

        self._store = wasmtime.Store(engine)
        exports: Any = wasmtime.Instance(self._store, module, []).exports(self._store)
        self._memory, self._begin = exports["memory"], exports["begin"]
        self._play = exports["play"]
        self._first = 0  # where what can have changed lies, which was read back
        self._objects = array("q")

    @property
    def size(self) -> int:
        """The size of the memory in bytes."""
        return int(self._memory.data_len(self._store))

    def bring(self, image: Image) -> None:
        """Bring objects into memory."""
        missing = image.end - self.size
        if missing > 0:
            self._memory.grow(self._store, missing // _PAGE + 1)
        self._memory.write(self._store, image.bytes(), image.begin)

    def play(self, image: Image, *arguments: int) -> None:
        """Bring objects into memory and play them; wasmtime.Trap for what cannot be computed."""
        self.bring(image)
        self._begin(self._store, image.end)
        self._play(self._store, *arguments)
        self._first = image.begin
        self._objects = array("q", self._memory.read(self._store, image.begin, image.end))

    def slots(self, address: int, count: int) -> list[int]:
        """Return what lies in some slots of memory."""
        first = (address - self._first) // SLOT
        if first >= 0 and first + count <= len(self._objects):
            return self._objects[first : first + count].tolist()
        there = self._memory.read(self._store, address, address + SLOT * count)
        return array("q", there).tolist()
