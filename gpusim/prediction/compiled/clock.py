"""The clock as a module of WebAssembly: translated, compiled, cached on disk, and played."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from gpusim.host import address_space_limit
from gpusim.host.disk_cache import DiskCache, key
from gpusim.prediction.clock.event_queue import EventQueue
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor
from gpusim.prediction.clock.runs import Runs
from gpusim.prediction.clock.scheduler import Multiprocessor
from gpusim.prediction.clock.step_table import StepTable
from gpusim.prediction.compiled.events import Events, play
from gpusim.prediction.compiled.step_columns import add_steps
from gpusim.prediction.memory import GlobalMemory
from gpusim.wasm.image import Image
from gpusim.wasm.instance import Instance
from gpusim.wasm.layouts import Layouts
from gpusim.wasm.sources import digest

if TYPE_CHECKING:
    import wasmtime

SOURCES = ("gpusim.prediction", "gpusim.wasm")  # of the module
BINDINGS = {Multiprocessor: StreamingMultiprocessor, EventQueue: Events}
# Fields copied back after the play.
RESULTS: dict[type, tuple[str, ...]] = {
    StreamingMultiprocessor: ("end", "block_ends"),
    GlobalMemory: ("end",),
    Runs: ("count", "marks"),  # beside the table of what they spent
}
_MODULES = DiskCache("clock", most_bytes=1 << 23)
# Kept from one play to the next: bytes of memory, and of steps in it.
_MOST_KEPT_BYTES, _MOST_STEPS_BYTES = 1 << 26, 1 << 24


class CompiledClock:
    """Plays one SM after the other."""

    def __init__(self) -> None:
        import wasmtime

        self._layouts = Layouts(BINDINGS)
        config = wasmtime.Config()
        config.parallel_compilation = False  # threads would not live through a fork
        limited = address_space_limit.is_limited()
        # Without a limit, 4 GB of addresses are reserved: they take no memory and save the bounds
        # checks, a quarter of the time.
        if limited:
            config.memory_reservation = config.memory_reservation_for_growth = 0
            config.memory_guard_size = 0
        config.epoch_interruption = True
        config.memory_init_cow = False  # it needs a file mapping, too large for a tight limit
        self._engine = wasmtime.Engine(config)
        self._module = _compiled(self._engine, str(limited))
        self._kept: tuple[Instance, Image] | None = None  # an instance with steps in its memory

    def play(self, sm: StreamingMultiprocessor) -> None:
        """Play an SM from the start of its first block to the end of its last.

        Raises TypeError for an object without a layout, wasmtime.Trap for an operation that fails
        in WebAssembly; the SM is then unchanged.
        """
        events = Events(len(sm.schedulers))
        sm.event_queue = events
        instance, steps = self._with_steps([runs.work.steps for runs in sm.runs.values()])
        image = Image(self._layouts, steps)
        tables = {id(runs.spent): runs.spent for runs in sm.runs.values()}.values()
        for spent in tables:
            image.add_integers(spent)
        image.add(sm)
        instance.play(image, image.address(sm), image.address(events))
        for one in (sm, sm.units.memory, *sm.runs.values()):
            image.read_back(one, RESULTS[type(one)], instance.slots)
        for spent in tables:
            image.update(spent, instance.slots)
        # A new page costs the system more time than the clock needs to fill it.
        if instance.size < _MOST_KEPT_BYTES:
            is_small = steps.end < _MOST_STEPS_BYTES
            self._kept = instance, steps if is_small else Image(self._layouts)

    def _with_steps(self, lists: list[StepTable]) -> tuple[Instance, Image]:
        """Return an instance with these steps in its memory, and their image.

        Steps are immutable: a lone block has the same ones as the full SM before it.
        """
        kept, self._kept = self._kept, None
        if kept is not None and kept[1].holds(lists):
            return kept
        steps = Image(self._layouts)
        add_steps(steps, lists)
        instance = Instance(self._engine, self._module) if kept is None else kept[0]
        instance.bring(steps)
        steps.let_go()
        return instance, steps


def _compiled(engine: wasmtime.Engine, made_for: str) -> wasmtime.Module:
    """Return the module, from disk if cached for this source, wasmtime and processor."""
    import wasmtime

    name = key([digest(SOURCES), str(wasmtime.__file__), platform.machine(), made_for])
    kept = _MODULES.load(name)
    if kept is not None:
        try:
            return wasmtime.Module.deserialize(engine, kept)
        except wasmtime.WasmtimeError:  # of another version or processor
            pass
    from gpusim.wasm.module import module_of

    module = wasmtime.Module(engine, bytes(wasmtime.wat2wasm(module_of(play, BINDINGS, SOURCES))))
    _MODULES.store(name, bytes(module.serialize()))
    return module
