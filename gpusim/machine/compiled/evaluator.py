"""The door to the compiled evaluator: used if the extra `fast` serves this machine.

A batch goes over from NumPy between two instructions, with its registers and memory. Arrays are
copied back when all of it has ended; otherwise NumPy goes on as if nothing had been tried.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.errors import GpusimError
from gpusim.host import address_space_limit
from gpusim.host.disk_cache import DiskCache, key
from gpusim.isa.ops import OPS, Program
from gpusim.launch.events import Observer, hooks
from gpusim.machine import values
from gpusim.machine.compiled import memory
from gpusim.machine.compiled.instance import Instance, LeftError
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.compiled.totals import totals_of
from gpusim.machine.compiled.translation import Translation, translated
from gpusim.machine.context import Context
from gpusim.program.loops import swapping
from gpusim.program.polling import polls
from gpusim.version import __version__

if TYPE_CHECKING:
    import wasmtime

Array = np.ndarray[Any, Any]

_MODULES = DiskCache("machine", 256 << 20)


@cache
def _engine() -> wasmtime.Engine | None:
    """Return the engine, None if the extra is missing or does not serve this machine."""
    try:
        import wasmtime

        config = wasmtime.Config()
        config.cranelift_opt_level = "speed"
        config.parallel_compilation = False  # threads would not live through a fork
        config.wasm_relaxed_simd_deterministic = True
        return wasmtime.Engine(config)
    except Exception:
        return None


atexit.register(_engine.cache_clear)  # wasmtime must free its objects before its own modules go


class CompiledLaunch:
    """A launch in compiled code: its module, and its arrays in linear memory."""

    def __init__(self, context: Context, cc_major: int, observers: Sequence[Observer]) -> None:
        batch = context.batch
        self._listeners = hooks(observers, "ran")
        counting = bool(self._listeners)
        self._watched: dict[int, int] = {}
        for observer in observers:
            self._watched |= observer.watched()
        constants = {
            pc: values.constant_value(context, row).dtype
            for pc, row in enumerate(batch.program.instructions)
            if OPS[row.op].kind == "constant" and row.dst
        }
        self._made = translated(
            batch.program, constants, cc_major, counting=counting, watching=bool(self._watched)
        )
        self._arrays_end = memory.arrays_end(self._made, context.allocations)
        self._allocations = context.allocations
        engine = _engine()
        assert engine is not None
        self._instance = Instance(engine, _module(engine, self._made), self._made)
        self._has_arrays = False

    def run(self, context: Context, step_limit: int) -> None:
        """Run the rest of a batch, and report it; LeftError if NumPy has to.

        A warp with more backward branches than `step_limit` is NumPy's, which names its loop.
        """
        batch, made, instance = context.batch, self._made, self._instance
        anew = batch.placement.folded and not batch.clock
        if not anew and batch.placement.folded:
            batch.unfold()
        if not memory.is_importable(batch):
            raise LeftError("lanes wait for others")
        place = memory.BatchMemory(made, batch, self._arrays_end, anew=anew)
        if place.end > memory.MOST_BYTES:
            raise LeftError("a batch larger than linear memory")
        shift = memory.first_address(self._allocations) - memory.arrays_begin(made)
        instance.reach(place.end, shift)
        if not self._has_arrays:
            memory.bring_arrays(instance.memory, made, self._allocations)
            self._has_arrays = True
        memory.bring_constants(instance.memory, made, context)
        watched = self._watched.keys() & set(batch.placement.blocks.tolist())
        turns = min(step_limit, 2**31 - 1)
        memory.bring_batch(instance.memory, place, batch, turns, watched)
        instance.run(place, context, max(self._watched.values(), default=0), turns)
        memory.give_arrays(instance.memory, made, self._allocations)
        if self._listeners:
            totals = totals_of(instance, place, batch)
            for listener in self._listeners:
                listener(totals)


def _module(engine: wasmtime.Engine, made: Translation) -> wasmtime.Module:
    """Return a compiled module, from the disk if it was compiled before."""
    import wasmtime

    name = key((__version__, _wasmtime_version(), made.text))
    held = _MODULES.load(name)
    if held is not None:
        try:
            return wasmtime.Module.deserialize(engine, held)
        except wasmtime.WasmtimeError:
            pass
    module = wasmtime.Module(engine, made.text)
    _MODULES.store(name, bytes(module.serialize()))
    return module


@cache
def _wasmtime_version() -> str:
    from importlib.metadata import version

    return version("wasmtime")


def compiled_launch(
    context: Context, cc_major: int, observers: Sequence[Observer]
) -> CompiledLaunch | None:
    """Return a launch in compiled code; None where it is left to NumPy."""
    if cc_major < 2 or not is_observable(observers) or not is_derivable(context.batch.program):
        return None
    if address_space_limit.is_limited() or _engine() is None:
        return None
    try:
        return CompiledLaunch(context, cc_major, observers)
    except (NotDerivedError, LeftError, GpusimError):
        return None


def is_observable(observers: Sequence[Observer]) -> bool:
    """Return whether all observers take sums in place of steps."""
    events = ("step", "barrier_opened", "barrier_arrived")
    mine = {o.__self__ for name in events for o in hooks(observers, name)}  # type: ignore[attr-defined]
    return mine <= {o.__self__ for o in hooks(observers, "ran")}  # type: ignore[attr-defined]


def is_derivable(program: Program) -> bool:
    """Return whether warps do not wait for others but at barriers: order shows then."""
    return not polls(program) and not swapping(program)
