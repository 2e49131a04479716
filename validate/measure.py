"""Measurement of many launches, with a new process after each fault.

After a fault a process has lost the GPU. So a separate process measures and reports each result as
it comes; the next one continues after the faulting kernel.
"""

from __future__ import annotations

import datetime
import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection

from gpusim.catalogue import find

from .backend import CudaError, PycudaBackend
from .cases import Pair
from .records import Case, Machine, Measurement, Measurements
from .statistics import quantile

Listener = Callable[[Measurements], None]


def today() -> str:
    """Return the date in the format of a file of measurements."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def measure_all(pairs: Sequence[Pair], device: str, listen: Listener) -> Measurements:
    """Return measurements of all launches; `listen` is called with those so far after each."""
    machine: Machine | None = None
    done: list[Measurement] = []

    def add(measured: Measurement) -> None:
        done.append(measured)
        if machine is not None:
            listen(Measurements(machine, tuple(done)))

    context = multiprocessing.get_context("spawn")
    while len(done) < len(pairs):
        here, there = context.Pipe(duplex=False)
        rest = [(kernel.name, case) for kernel, case in pairs[len(done) :]]
        process = context.Process(target=_work, args=(there, rest, device))
        process.start()
        there.close()
        reported = 0
        while True:
            try:
                message = here.recv()
            except EOFError:
                break
            if isinstance(message, Machine):
                machine = machine or message
            elif isinstance(message, Exception):
                raise message
            else:
                add(message)
                reported += 1
        process.join()
        if len(done) < len(pairs) and (not reported or done[-1].fault is None):
            kernel, case = pairs[len(done)]
            fault = f"the process ended with code {process.exitcode}"
            add(Measurement(kernel.name, case, fault=fault))
    if machine is None:
        raise ValueError("nothing was to be measured")
    return Measurements(machine, tuple(done))


def median_of(rounds: Sequence[Measurements]) -> Measurements:
    """Return, for each launch, the medians of the times of several rounds.

    Arrays have other addresses each time, and times shift with them. A fault or wrong results in
    any round count for all.
    """
    together = zip(*(found.times for found in rounds), strict=True)
    return replace(rounds[0], times=tuple(map(_middle, together)))


def _middle(found: Sequence[Measurement]) -> Measurement:
    fault = next((one.fault for one in found if one.fault is not None), None)
    if fault is not None or any(one.time_us is None for one in found):
        return replace(found[0], time_us=None, low_us=None, high_us=None, fault=fault)

    def middle(times: Iterable[float | None]) -> float:
        return quantile([time for time in times if time is not None], 0.5)

    return replace(
        found[0],
        time_us=middle(one.time_us for one in found),
        low_us=middle(one.low_us for one in found),
        high_us=middle(one.high_us for one in found),
        repetitions=sum(one.repetitions or 0 for one in found),
        wrong=max(one.wrong or 0 for one in found),
    )


def _work(out: Connection, rest: Sequence[tuple[str, Case]], device: str) -> None:
    """Measure until all is done or a kernel faults; runs in a separate process."""
    try:
        backend = PycudaBackend()
        pairs = [(find(name), case) for name, case in rest]
        backend.compile_all_of(pair for pair in pairs if backend.has(pair[0]))
        out.send(backend.machine(device, today()))
    except Exception as error:
        out.send(error)
        raise SystemExit(1) from None
    for kernel, case in pairs:
        if not backend.has(kernel):
            fault = f"needs compute capability {kernel.least_cc}"
            out.send(Measurement(kernel.name, case, fault=fault))
            continue
        try:
            result = backend.measure(kernel, case)
        except CudaError as error:
            out.send(Measurement(kernel.name, case, fault=_fault(error)))
            out.close()
            os._exit(0)
        out.send(result)
    backend.close()
    out.close()


def _fault(error: CudaError) -> str:
    """Return the driver's name of an error."""
    return str(error).splitlines()[0].rpartition(": ")[2].strip()
