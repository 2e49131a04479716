"""The table of a sweep: its columns, and its rows to and from the text of a file."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.errors import InputError
from gpusim.gpu import device as devices
from gpusim.host.files import MAX_BITS, text
from gpusim.prediction.clock.spans import STALLS
from gpusim.prediction.uncertainty import Timed, gpu_kind
from gpusim.version import SCHEMA_VERSION

Row = dict[str, Any]

PARQUET = ".parquet"
FORMATS = (".csv", ".json", PARQUET)
MAX_BYTES = 2**28  # a quarter of a million rows

COLUMNS = (
    "kernel", "device", "n", "block", "operation", "dtype", "l2", "passes", "without", "set",
    "choices", "code", "generator", "fallback",
    "launches", "grid", "time_us", "low_us", "high_us", "gbps", "peak_fraction", "cycles",
    "limiter", "limiter_us", "occupancy", "occupancy_limit",
    "registers", "shared_bytes", "waves", "instructions",
    "blocks_on_sm", "blocks_simulated", "spread",
    *(f"stall_{name}" for name in STALLS), "wrong", "not_compared", "reason",
    "digest",
)  # fmt: skip
TEXTS = frozenset(
    ("kernel", "device", "operation", "dtype", "l2", "passes", "without", "set", "choices",
     "code",     "generator", "fallback", "limiter", "occupancy_limit", "wrong", "not_compared",
     "reason", "digest")
)  # fmt: skip

SIZES = re.compile(r"\d+(?:x\d+)+")  # of a block with several dimensions

_BETWEEN = re.compile(r" (?=\w+=)")  # choices in a row

LISTS = ("without", "set", "choices")  # empty rather than absent


def choices_of(row: Row) -> dict[str, str]:
    """Return a row's choices by name; none for the launch rule's own."""
    pairs = (part.partition("=") for part in _BETWEEN.split(row["choices"]) if part)
    return {name: value for name, _, value in pairs}


def timed(row: Row) -> Timed:
    """Return the time of a predicted row, to be compared with another one."""
    gpu, changes = devices.load(row["device"]), f"{row['without']} {row['set']}".strip()
    if changes:
        gpu = replace(gpu, changed=((changes, True),))
    return Timed(
        row["time_us"],
        (row["low_us"], row["high_us"]),
        (row["device"], changes),
        gpu_kind(gpu),
        LOWERING if row["generator"].startswith("gpusim ") else NVCC,
        row["operation"] is not None,
        (row["kernel"], row["n"]),
        row["block"],
    )


def require_format(suffix: str) -> None:
    """Raise InputError for a table that needs a library that is not installed."""
    if suffix == PARQUET:
        _parquet()


def _parquet() -> Any:
    """Return the module for Parquet files; InputError where it is not installed."""
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError("a .parquet file needs pyarrow: pip install pyarrow") from None


def table(rows: Sequence[Row], suffix: str) -> str | bytes:
    """Return rows as the content of a .csv, .json or .parquet file."""
    if suffix == PARQUET:
        parquet, made = _parquet(), io.BytesIO()
        arrow = importlib.import_module("pyarrow")
        columns = {name: [_arrow_cell(name, row[name]) for row in rows] for name in COLUMNS}
        parquet.write_table(arrow.table(columns), made)
        return made.getvalue()
    if suffix == ".json":
        document = {"schema_version": SCHEMA_VERSION, "document": "sweep", "rows": rows}
        return json.dumps(document, indent=1) + "\n"
    text_made = io.StringIO()
    writer = csv.DictWriter(text_made, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text_made.getvalue()


def _arrow_cell(column: str, value: Any) -> Any:
    """Return a cell in the one type of its column: dimensions of blocks are texts."""
    return str(value) if column == "block" and value is not None else value


def rows_of(output: Path) -> list[Row]:
    """Return the rows of a sweep's table, none for any other file."""
    if output.suffix == PARQUET:
        return _rows_of_parquet(output)
    try:
        content = text(output, MAX_BYTES)
        if output.suffix == ".json":
            tree = json.loads(content)
            rows: Any = tree.get("rows") if isinstance(tree, dict) else tree
        else:
            rows = [_typed(row) for row in csv.DictReader(io.StringIO(content))]
    except (InputError, ValueError, TypeError, RecursionError, csv.Error):
        return []
    is_table = isinstance(rows, list) and all(
        isinstance(row, dict) and tuple(row) == COLUMNS for row in rows
    )
    return list(rows) if is_table else []


def _rows_of_parquet(output: Path) -> list[Row]:
    parquet = _parquet()
    try:
        rows = parquet.read_table(output).to_pylist()
    except (OSError, ValueError):  # no Parquet file, or one that cannot be read
        return []
    if not all(tuple(row) == COLUMNS for row in rows):
        return []
    return [row | {"block": _block(row["block"])} for row in rows]


def _block(cell: str | None) -> int | str | None:
    return int(cell) if cell is not None and cell.isdecimal() else cell


def _typed(row: Mapping[str, str]) -> Row:
    """Return a row of a .csv file with its original types."""
    cells = {name: _cell(name, cell) for name, cell in row.items() if cell}
    return {name: cells.get(name, "" if name in LISTS else None) for name in row}


def _cell(column: str, cell: str) -> Any:
    is_text = column in TEXTS or (column == "block" and SIZES.fullmatch(cell))
    return cell if is_text else json.loads(cell)


def is_cell(column: str, value: object) -> bool:
    """Whether a column may hold a value: text, a finite number, or nothing."""
    if value is None or column in TEXTS:
        return value is None or isinstance(value, str)
    if column == "block" and isinstance(value, str):
        return bool(SIZES.fullmatch(value))
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() <= MAX_BITS
    return isinstance(value, float) and math.isfinite(value)
