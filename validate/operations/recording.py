"""The rooms on a GPU: packed where a compiler is, run and recorded where a GPU is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import record
from .record import Record
from .rooms import room
from .running import Gpu


def recorded(name: str, gpu: Gpu, machine: tuple[str, str, str]) -> Record:
    """Return the results of a room on a GPU; `machine` is its name, its driver, and the date."""
    checksums, values = {}, {}
    for operation in room(name):
        results = gpu.results(operation)
        if operation.exact:
            checksums[operation.name] = record.checksum(results)
        else:
            values[operation.name] = record.kept_values(operation, results[0])
    special = tuple(one for one in values if one in gpu.special)
    model, driver, date = machine
    return Record(model, driver, gpu.generator, date, special, checksums, values)


def record_all(
    names: Sequence[str], packed: Path, driver: Any, machine: tuple[str, str, str], output: Path,
    done: Callable[[str, Record], None],
) -> None:  # fmt: skip
    """Run rooms on this computer's GPU and write a file for each."""
    output.mkdir(parents=True, exist_ok=True)
    for name in names:
        made = recorded(name, Gpu(name, packed, driver), machine)
        record.store(made, output / f"{name}.json")
        done(name, made)
