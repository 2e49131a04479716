"""A running module: its memory, and calls of its exported function."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from gpusim.host.interrupts import stopped_by_signals
from gpusim.wasm.image import Image
from gpusim.wasm.value_types import SLOT

if TYPE_CHECKING:
    import wasmtime

_PAGE = 1 << 16
_FREE = 1  # the slot with the first free address, as in prelude.wat


class Instance:
    """A module with a memory of its own that only grows."""

    def __init__(self, engine: wasmtime.Engine, module: wasmtime.Module) -> None:
        import wasmtime

        self._stop = engine.increment_epoch
        self._store = wasmtime.Store(engine)
        self._store.set_epoch_deadline(1)
        exports: Any = wasmtime.Instance(self._store, module, []).exports(self._store)
        self._memory, self._play = exports["memory"], exports["play"]
        self._words = self._seen()

    @property
    def size(self) -> int:
        """The size of the memory in bytes."""
        return self._words.nbytes

    def bring(self, image: Image) -> None:
        """Copy an image into memory."""
        missing = image.end - self.size
        if missing > 0:
            self._memory.grow(self._store, missing // _PAGE + 1)
            self._words = self._seen()
        for address, part in image.parts():
            words = part.data.cast("B").cast("q")
            self._words[address // SLOT : address // SLOT + len(words)] = words

    def play(self, image: Image, *arguments: int) -> None:
        """Copy an image into memory and play it; wasmtime.Trap for a failing operation."""
        self.bring(image)
        self._words[_FREE] = image.end
        self._store.set_epoch_deadline(1)
        with stopped_by_signals(self._stop):
            self._play(self._store, *arguments)
        self._words = self._seen()

    def slots(self, address: int, count: int) -> array[int]:
        """Return `count` slots of memory from an address on."""
        found = array("q")
        found.frombytes(self._words[address // SLOT : address // SLOT + count].cast("B"))
        return found

    def _seen(self) -> memoryview[int]:
        """Return a view of the memory; growth may move it."""
        whole = self._memory.get_buffer_ptr(self._store)
        return memoryview(whole).cast("B").cast("q")
