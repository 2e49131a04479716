"""A GPU's results: checksums of exact operations, values of the approximate ones.

A checksum stands for 32 threads, so that a difference is found within 32 operands. Of an
approximate operation every eighth thread's result is kept.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.errors import InputError
from gpusim.host import files
from gpusim.typing import Array

from .operation import THREADS, TYPES, Operation

FORMAT = "gpusim operations 1"
FOLDER = Path(__file__).parent / "measured"
CHUNK, STEP = 32, 8


@dataclass(frozen=True)
class Record:
    """Results of a room on a GPU.

    `special` are the approximate operations that use the special function unit.
    """

    gpu: str
    driver: str
    compiler: str
    date: str
    special: tuple[str, ...]
    checksums: Mapping[str, str]
    values: Mapping[str, str]


def checksum(arrays: Sequence[Array]) -> str:
    """Return the checksums of all chunks of threads, 16 bits each."""
    rows = [one.view(np.uint8).reshape(THREADS // CHUNK, -1) for one in arrays]
    joined = np.concatenate(rows, axis=1)
    found = [zlib.crc32(row.tobytes()) & 0xFFFF for row in joined]
    return base64.b64encode(np.array(found, "<u2").tobytes()).decode()


def first_difference(known: str, arrays: Sequence[Array]) -> int | None:
    """Return the first thread of the first chunk that differs, None where none does."""
    theirs = np.frombuffer(base64.b64decode(known), "<u2")
    ours = np.frombuffer(base64.b64decode(checksum(arrays)), "<u2")
    differ = np.flatnonzero(theirs != ours)
    return int(differ[0]) * CHUNK if len(differ) else None


def sampled(operation: Operation, results: Array) -> Array:
    """Return the results that are kept of an approximate operation, one row a thread."""
    width = TYPES[operation.result][1]
    return np.ascontiguousarray(results.reshape(THREADS, width)[::STEP])


def kept_values(operation: Operation, results: Array) -> str:
    """Return the sampled results as text."""
    return base64.b64encode(sampled(operation, results).tobytes()).decode()


def values_of(operation: Operation, text: str) -> Array:
    """Return the sampled results of a record."""
    element, width = TYPES[operation.result]
    return np.frombuffer(base64.b64decode(text), element).reshape(-1, width)


def store(record: Record, path: Path) -> None:
    """Write a record, an operation a line."""
    files.write_whole(path, json.dumps({"format": FORMAT, **asdict(record)}, indent=0) + "\n")


def devices() -> list[str]:
    """Return the names of the GPUs with records."""
    return sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir())


@cache
def load(device: str, room: str) -> Record:
    """Return the record of a room; InputError where there is none."""
    path = FOLDER / device / f"{room}.json"
    if not path.is_file():
        raise InputError(
            f"no results of {room} on {device}; there are results of {', '.join(devices())}"
        )
    return read(path)


def read(path: Path) -> Record:
    """Return the record in a file; InputError where it is damaged or something else."""
    try:
        held: dict[str, Any] = json.loads(files.text(path, files.MAX_JSON_BYTES))
        if held.pop("format") != FORMAT:
            raise ValueError
        return Record(**{**held, "special": tuple(held["special"])})
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: no results of operations ({FORMAT})") from None
