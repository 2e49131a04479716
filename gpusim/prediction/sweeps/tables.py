"""The table of a sweep: its columns, and its rows to and from the text of a file."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpusim.errors import InputError
from gpusim.host.files import MAX_BITS, text
from gpusim.prediction.clock.stalls import STALLS

Row = dict[str, Any]

FORMATS = (".csv", ".json")
MAX_BYTES = 2**28  # a quarter of a million rows

COLUMNS = (
    "kernel", "device", "n", "block", "operation", "dtype", "l2", "passes", "without", "set",
    "choices", "code", "generator", "fallback",
    "launches", "grid", "time_us", "low_us", "high_us", "gbps", "peak_fraction", "cycles",
    "limiter", "limiter_us", "occupancy", "occupancy_limit",
    "registers", "shared_bytes", "waves", "instructions",
    "blocks_on_sm", "blocks_simulated", "spread",
    *(f"stall_{name}" for name in STALLS), "reason", "digest",
)  # fmt: skip
TEXTS = frozenset(
    ("kernel", "device", "operation", "dtype", "l2", "passes", "without", "set", "choices",
     "code",     "generator", "fallback", "limiter", "occupancy_limit", "reason", "digest")
)  # fmt: skip

SIZES = re.compile(r"\d+(?:x\d+)+")  # of a block with several dimensions

LISTS = ("without", "set", "choices")  # empty rather than absent


def table(rows: Sequence[Row], suffix: str) -> str:
    """Return rows as the text of a .csv or .json file."""
    if suffix == ".json":
        return json.dumps(rows, indent=1) + "\n"
    made = io.StringIO()
    writer = csv.DictWriter(made, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return made.getvalue()


def rows_of(output: Path) -> list[Row]:
    """Return the rows of a sweep's table, none for any other file."""
    try:
        content = text(output, MAX_BYTES)
        if output.suffix == ".json":
            rows = json.loads(content)
        else:
            rows = [_typed(row) for row in csv.DictReader(io.StringIO(content))]
    except (InputError, ValueError, TypeError, RecursionError, csv.Error):
        return []
    is_table = isinstance(rows, list) and all(
        isinstance(row, dict) and tuple(row) == COLUMNS for row in rows
    )
    return rows if is_table else []


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
