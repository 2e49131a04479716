"""Files of measurements: JSON, one row per line, read strictly.

`machine` is the origin of the numbers; `times` and `counters` are tables, with the names of their
columns once. A damaged or foreign file is refused with the place of the error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any

from gpusim.catalogue import NUMBERS, entries, oracle
from gpusim.errors import InputError
from gpusim.host import files as documents
from gpusim.host.files import shown
from gpusim.launch.arguments import MAX_ELEMENTS

from .records import L2_STATES, SCOPES, Case, Counts, Machine, Measurement, Measurements

FORMAT = "gpusim measurements 1"
DECIMALS = 4
LEAST_US = 10**-DECIMALS
FOLDER = Path(__file__).parent / "measured"

CASE_COLUMNS = tuple(item.name for item in fields(Case))
RESULT_COLUMNS = tuple(
    item.name for item in fields(Measurement) if item.name not in ("kernel", "case")
)
TIME_COLUMNS = ("kernel", *CASE_COLUMNS, *RESULT_COLUMNS)

Rule = tuple[Callable[[Any], bool], str]


class MeasurementsError(InputError):
    """A missing, damaged or foreign file of measurements."""


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and least <= v <= MAX_ELEMENTS


def _number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0


def _line(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def _or_none(rule: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: v is None or rule(v)


def _one_of(names: Sequence[str]) -> Rule:
    return (lambda v: v in names), f"one of {', '.join(names)}"


@cache
def _rules() -> dict[str, Rule]:
    """Return the rule of each column, with its description."""
    known = {entry.name for entry in entries()}
    time: Rule = (_or_none(lambda v: _number(v) and v >= LEAST_US), f"at least {LEAST_US}, or null")
    count: Rule = (_or_none(_whole(0)), f"a whole number from 0 to {MAX_ELEMENTS:,}, or null")
    size: Rule = (_whole(1), f"a whole number from 1 to {MAX_ELEMENTS:,}")
    choice: Rule = (_or_none(_whole(1)), f"a whole number from 1 to {MAX_ELEMENTS:,}, or null")
    return {
        "kernel": ((lambda v: isinstance(v, str) and v in known), "a kernel of the catalogue"),
        "n": size,
        "block": size,
        "dtype": _one_of(NUMBERS),
        "operation": _one_of(oracle.OPERATIONS),
        "grid": choice,
        "coarse": choice,
        "l2": _one_of(L2_STATES),
        "scope": _one_of(tuple(SCOPES)),
        "time_us": time,
        "low_us": time,
        "high_us": time,
        "repetitions": count,
        "results": count,
        "wrong": count,
        "fault": (_or_none(lambda v: _line(v) and bool(v)), "a text on one line, or null"),
    }


def names() -> list[str]:
    """Return the names of the measurements that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name_or_path: str | Path) -> Measurements:
    """Return the measurements of a file, or of a name such as "h200"."""
    text = str(name_or_path)
    if isinstance(name_or_path, str) and text.lower() in names():
        return _built_in(text.lower())
    if isinstance(name_or_path, str) and not re.search(r"[/\\]|\.json$", text):
        raise MeasurementsError(
            f"there are no measurements {shown(text)!r}; there are {', '.join(names())}, "
            "and a file of your own is given by its path, such as mine.json"
        )
    return read(Path(text))


@cache
def _built_in(name: str) -> Measurements:
    return read(FOLDER / f"{name}.json")


def read(path: Path) -> Measurements:
    """Return the measurements of a file; MeasurementsError names the place of an error."""
    tree = documents.parsed_json(path, MeasurementsError)
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        raise MeasurementsError(f"{path}: is not a file of measurements: no format {FORMAT!r}")
    unknown = set(tree) - {"format", "machine", "times", "counters"}
    if unknown:
        raise MeasurementsError(f"{path}: {shown(', '.join(sorted(unknown)))}: is not a known key")
    return Measurements(
        machine=_machine(tree.get("machine"), path),
        times=_times(tree.get("times"), path),
        counters=_counters(tree.get("counters"), path),
    )


def write(path: Path, measured: Measurements) -> None:
    """Write measurements; `read` restores equal ones."""
    times = [
        [t.kernel, *asdict(t.case).values(), *(_plain(getattr(t, c)) for c in RESULT_COLUMNS)]
        for t in measured.times
    ]
    metrics = list(dict.fromkeys(name for c in measured.counters for name in c.values))
    counters = [
        [c.kernel, *asdict(c.case).values(), *(_plain(c.values.get(name)) for name in metrics)]
        for c in measured.counters
    ]
    parts = [
        f'"format": {json.dumps(FORMAT)}',
        f'"machine": {json.dumps(asdict(measured.machine), indent=1)}',
        f'"times": {_table(TIME_COLUMNS, times)}',
        f'"counters": {_table(("kernel", *CASE_COLUMNS, *metrics), counters)}',
    ]
    documents.write_whole(path, "{\n" + ",\n".join(parts) + "\n}\n")


def _plain(value: Any) -> Any:
    return round(value, DECIMALS) if isinstance(value, float) else value


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = ",\n".join(json.dumps(row, separators=(",", ":"), allow_nan=False) for row in rows)
    return f'{{"columns": {json.dumps(list(columns))},\n"rows": [\n{lines}\n]}}'


def _machine(tree: Any, path: Path) -> Machine:
    if not isinstance(tree, dict):
        raise MeasurementsError(f"{path}: machine is missing")
    known = {item.name for item in fields(Machine)}
    for key, value in tree.items():
        if key not in known:
            raise MeasurementsError(f"{path}: machine.{shown(key)} is not a known key")
        is_clock = key.endswith("_mhz")
        if not (_or_none(_number)(value) if is_clock else _line(value)):
            expected = "a number, or null" if is_clock else "a text on one line"
            raise MeasurementsError(
                f"{path}: machine.{key} must be {expected}, not {shown(repr(value))}"
            )
    for key in ("gpu", "device", "source"):
        if not tree.get(key):
            raise MeasurementsError(f"{path}: machine.{key} is missing")
    return Machine(**tree)


def _rows(tree: Any, path: Path, table: str) -> tuple[list[str], list[list[Any]]]:
    """Return columns and rows of a table with checked case columns."""
    shaped = isinstance(tree, dict) and set(tree) == {"columns", "rows"}
    if not shaped or not all(isinstance(part, list) for part in tree.values()):
        raise MeasurementsError(f"{path}: {table} must have columns and rows, each a list")
    columns, rows = tree["columns"], tree["rows"]
    needed = TIME_COLUMNS if table == "times" else ("kernel", *CASE_COLUMNS)
    if tuple(columns[: len(needed)]) != needed or not all(isinstance(c, str) for c in columns):
        raise MeasurementsError(f"{path}: {table}.columns must begin with {', '.join(needed)}")
    if len(set(columns)) != len(columns) or (table == "times" and len(columns) > len(needed)):
        raise MeasurementsError(f"{path}: {table}.columns holds a column too many")
    seen: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(rows, 1):
        place = f"{path}: {table}, row {number}"
        if not isinstance(row, list) or len(row) != len(columns):
            raise MeasurementsError(f"{place}: expected {len(columns)} values")
        for column, value in zip(columns, row, strict=True):
            rule = _rules().get(column, (_or_none(_number), "a number of at least 0, or null"))
            if not rule[0](value):
                raise MeasurementsError(
                    f"{place}: {column} must be {rule[1]}, not {shown(repr(value))}"
                )
        key = tuple(row[: 1 + len(CASE_COLUMNS)])
        if key in seen:
            raise MeasurementsError(f"{place}: is measured in row {seen[key]} already")
        seen[key] = number
    return columns, rows


def _times(tree: Any, path: Path) -> tuple[Measurement, ...]:
    _, rows = _rows(tree, path, "times")
    split = 1 + len(CASE_COLUMNS)
    found = []
    for number, row in enumerate(rows, 1):
        made = Measurement(row[0], Case(*row[1:split]), *row[split:])
        if (made.time_us is None) == (made.fault is None):
            raise MeasurementsError(
                f"{path}: times, row {number}: expected either time_us or a fault"
            )
        found.append(made)
    return tuple(found)


def _counters(tree: Any, path: Path) -> tuple[Counts, ...]:
    columns, rows = _rows(tree, path, "counters")
    split = 1 + len(CASE_COLUMNS)
    return tuple(
        Counts(
            row[0],
            Case(*row[1:split]),
            {
                name: value
                for name, value in zip(columns[split:], row[split:], strict=True)
                if value is not None
            },
        )
        for row in rows
    )
