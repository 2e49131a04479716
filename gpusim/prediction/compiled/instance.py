"""A module at work: its memory, what is brought there, and what is played."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusim.prediction.compiled.image import Image
from gpusim.prediction.compiled.kinds import SLOT

if TYPE_CHECKING:
    import wasmtime

_PAGE = 1 << 16
_FREE = 1  # the slot that says from which address on memory is taken, as in prelude.wat


class Instance:
    """A module with a memory of its own, which only grows."""

    def __init__(self, engine: wasmtime.Engine, module: wasmtime.Module) -> None:
        import wasmtime

        self._store = wasmtime.Store(engine)
        exports: Any = wasmtime.Instance(self._store, module, []).exports(self._store)
        self._memory, self._play = exports["memory"], exports["play"]
        self._words = self._seen()

    @property
    def size(self) -> int:
        """The size of the memory in bytes."""
        return self._words.nbytes

    def bring(self, image: Image) -> None:
        """Bring objects into memory."""
        missing = image.end - self.size
        if missing > 0:
            self._memory.grow(self._store, missing // _PAGE + 1)
            self._words = self._seen()
        self._words[image.begin // SLOT : image.end // SLOT] = image.words()

    def play(self, image: Image, *arguments: int) -> None:
        """Bring objects into memory and play them; wasmtime.Trap for what cannot be computed."""
        self.bring(image)
        self._words[_FREE] = image.end
        self._play(self._store, *arguments)
        self._words = self._seen()

    def slots(self, address: int, count: int) -> list[int]:
        """Return what lies in some slots of memory."""
        return self._words[address // SLOT : address // SLOT + count].tolist()

    def _seen(self) -> memoryview[int]:
        """Return the memory as it is now: when it grows it may move."""
        whole = self._memory.get_buffer_ptr(self._store)
        return memoryview(whole).cast("B").cast("q")
