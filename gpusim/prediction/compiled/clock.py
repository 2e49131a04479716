"""The clock as a module of WebAssembly: translated, compiled, kept on disk, and played."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim import prediction
from gpusim.host.disk_cache import DiskCache, key
from gpusim.prediction.clock.agenda import Agenda
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor
from gpusim.prediction.clock.runs import Runs
from gpusim.prediction.clock.scheduler import Multiprocessor
from gpusim.prediction.clock.steps import Step
from gpusim.prediction.compiled import room
from gpusim.prediction.compiled.events import Events, play
from gpusim.prediction.compiled.image import Image
from gpusim.prediction.compiled.instance import Instance
from gpusim.prediction.compiled.layouts import Layouts
from gpusim.prediction.memory import GlobalMemory

if TYPE_CHECKING:
    import wasmtime

BINDINGS = {Multiprocessor: StreamingMultiprocessor, Agenda: Events}
# What is read back when all has been played.
RESULTS: dict[type, tuple[str, ...]] = {
    StreamingMultiprocessor: ("end", "block_ends"),
    GlobalMemory: ("end",),
    Runs: ("count", "spent", "marks"),
}
_MODULES = DiskCache("clock", most_bytes=1 << 23)
# Kept from one play to the next: of memory, and of steps in it, which are ten times as much in
# Python.
_MOST_KEPT_BYTES, _MOST_STEPS_BYTES = 1 << 26, 1 << 21


class CompiledClock:
    """Plays what an SM does, one after the other."""

    def __init__(self) -> None:
        import wasmtime

        self._layouts = Layouts(BINDINGS)
        config = wasmtime.Config()
        config.parallel_compilation = False  # threads would not live through a fork
        limited = room.is_limited()
        # Else 4 GB of addresses are reserved, which takes no memory and saves a quarter of the
        # time: what lies within needs no check.
        if limited:
            config.memory_reservation = config.memory_reservation_for_growth = 0
            config.memory_guard_size = 0
        config.memory_init_cow = False  # it takes a file, for which a limit may leave no room
        self._engine = wasmtime.Engine(config)
        self._module = _compiled(self._engine, str(limited))
        self._kept: tuple[Instance, Image] | None = None  # with steps that lie in its memory

    def play(self, sm: StreamingMultiprocessor) -> None:
        """Let an SM's blocks come and go, until the last has left.

        Raises TypeError for what does not lie in memory, wasmtime.Trap for what cannot be
        computed there; then nothing has happened.
        """
        events = Events(len(sm.schedulers))
        sm.agenda = events
        instance, steps = self._with_steps([runs.steps for runs in sm.runs.values()])
        image = Image(self._layouts, steps)
        image.add(sm)
        instance.play(image, image.address(sm), image.address(events))
        for one in (sm, sm.units.memory, *sm.runs.values()):
            image.read_back(one, RESULTS[type(one)], instance.slots)
        # The system takes longer to give a page of memory than the clock to fill it.
        if instance.size < _MOST_KEPT_BYTES:
            is_small = steps.end < _MOST_STEPS_BYTES
            self._kept = instance, steps if is_small else Image(self._layouts)

    def _with_steps(self, lists: list[Sequence[Step]]) -> tuple[Instance, Image]:
        """Return an instance in whose memory some steps lie, and where.

        They do not change: a block alone runs the same ones as those of a full SM before.
        """
        kept, self._kept = self._kept, None
        if kept is not None and kept[1].holds(lists):
            return kept
        steps = Image(self._layouts)
        for items in lists:
            steps.add_list(Step, items)
        instance = Instance(self._engine, self._module) if kept is None else kept[0]
        instance.bring(steps)
        return instance, steps


def _compiled(engine: wasmtime.Engine, made_for: str) -> wasmtime.Module:
    """Return the module, from disk where it is there for this source, library and machine."""
    import wasmtime

    name = key([_source(), str(wasmtime.__file__), platform.machine(), made_for])
    kept = _MODULES.load(name)
    if kept is not None:
        try:
            return wasmtime.Module.deserialize(engine, kept)
        except wasmtime.WasmtimeError:  # by another version of it, or for another processor
            pass
    from gpusim.prediction.compiled.module import module_of

    module = wasmtime.Module(engine, bytes(wasmtime.wat2wasm(module_of(play, BINDINGS))))
    _MODULES.store(name, bytes(module.serialize()))
    return module


def _source() -> str:
    """Return a digest of all that the module is made from: the source of this package."""
    digest = hashlib.sha256()
    root = Path(prediction.__path__[0])
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.wat")]):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
