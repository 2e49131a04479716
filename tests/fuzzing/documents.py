"""Files that have come to harm: an answer or a sentence, and never a wrong answer."""

from __future__ import annotations

import functools
import io
import json
import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fuzzing.damage import damaged, stir_tree

from gpusim.catalogue import Request
from gpusim.cli import arrays
from gpusim.cli.inputs import DTYPES
from gpusim.errors import GpusimError
from gpusim.gpu import device
from gpusim.prediction.sweeps import sweep as sweeps
from gpusim.prediction.sweeps.jobs import catalogue_job
from gpusim.prediction.sweeps.sweep import crossed, row_of, sweep
from gpusim.prediction.sweeps.tables import Row, table
from validate import files as measurements

MOST_LETTERS = 10_000  # of what is said of a file
REQUESTS = (
    Request("reduce3", 4096, 128),
    Request("reduce1", 1000, 64),
    Request("reduce7", 2**16, 256),
)


def device_file(random: Random, folder: Path) -> None:
    """Damage a device file; whatever is taken for a device can be predicted for."""
    name = random.choice(device.names())
    content = (Path(device.__file__).parent / "devices" / f"{name}.toml").read_bytes()
    if random.random() < 0.6:
        tree = tomllib.loads(content.decode())
        _stir_device(random, tree)
        content = _toml(tree).encode("utf-8", "surrogatepass")
    else:
        content = damaged(random, content)
    path = folder / "gpu.toml"
    path.write_bytes(content)
    found = _answer(lambda: device.load(path))
    if found is not None:
        request = random.choice(REQUESTS)
        _answer(lambda: _finite(catalogue_job(request).on(found).time_us))


def _stir_device(random: Random, tree: dict[str, Any]) -> None:
    """Change values within and beyond their bounds, or the tree itself."""
    if random.random() < 0.3:
        stir_tree(random, tree)
        return
    numbers = [(dotted, key) for dotted, key in device.KEYS.items() if key.least is not None]
    for dotted, key in random.sample(numbers, random.choice([1, 2, 5, 30, len(numbers)])):
        group, _, name = dotted.partition(".")
        assert key.least is not None
        assert key.most is not None
        value = random.choice([key.least, key.most, random.uniform(key.least, key.most)])
        if random.random() < 0.02:
            value = random.choice([key.least - 1, key.most * 2, math.nan, -math.inf])
        elif key.type == "int":
            value = int(value) // key.multiple_of * key.multiple_of
        tree.setdefault(group, {})[name] = {
            "value": value,
            "kind": "estimated",
            "source": "made up",
        }


def _finite(value: float) -> None:
    assert math.isfinite(value), value
    assert value >= 0, value


def _toml(tree: Any) -> str:
    """Return a tree as TOML, as far as it can be one."""
    lines = []
    for group, content in tree.items():
        if isinstance(content, dict):
            lines.append(f"[{_key(group)}]")
            lines += [f"{_key(key)} = {_inline(value)}" for key, value in content.items()]
        else:
            lines.insert(0, f"{_key(group)} = {_inline(content)}")
    return "\n".join(lines)


def _key(name: str) -> str:
    return json.dumps(name)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return "none" if value is None else json.dumps(value)


def measurements_file(random: Random, folder: Path) -> None:
    """Damage a file of measurements; what is still read is written as it was read."""
    content = (measurements.FOLDER / f"{random.choice(['k40m', 'gtx1650'])}.json").read_bytes()
    if random.random() < 0.6:
        tree = json.loads(content)
        stir_tree(random, tree)
        try:
            content = json.dumps(tree).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):  # a tree may have come to hold itself
            return
    else:
        content = damaged(random, content)
    path = folder / "measured.json"
    path.write_bytes(content)
    found = _answer(lambda: measurements.load(path))
    if found is not None:
        measurements.write(folder / "again.json", found)
        again = measurements.load(folder / "again.json")
        assert [one.case for one in again.times] == [one.case for one in found.times]


def file_of_numbers(random: Random, folder: Path) -> None:
    """Damage a file of numbers, binary or text, and read it as some type or as any."""
    kind = random.choice(list(DTYPES.values()))
    numbers = np.arange(random.choice([1, 7, 1000])).astype(kind)
    if random.random() < 0.5:
        buffer = io.BytesIO()
        np.save(buffer, numbers.reshape(1, -1, 1) if random.random() < 0.3 else numbers)
        content, name = buffer.getvalue(), "numbers.npy"
    else:
        words = [str(number) for number in numbers.tolist()]
        content, name = random.choice([" ", ",", "\n"]).join(words).encode(), "numbers.csv"
    path = folder / name
    path.write_bytes(damaged(random, content))
    expected = random.choice([None, kind, random.choice(list(DTYPES.values()))])
    found = _answer(lambda: arrays.numbers(path, expected))
    if found is not None:
        assert found.dtype == (expected or found.dtype)
        assert found.dtype in DTYPES.values()
        assert found.size > 0


@dataclass(frozen=True)
class Swept:
    """A small sweep, its rows, and the journal that it leaves when it is stopped."""

    cases: list[sweeps.Case]
    rows: dict[sweeps.Case, Row]
    journal: bytes
    table: str


@functools.cache
def _swept() -> Swept:
    from tempfile import TemporaryDirectory

    from gpusim.host.journal import opened

    cases = crossed([Request("reduce3"), Request("reduce6")], [64, 96], [2**10, 2**12], ["h200"])
    rows = {case: row_of(case) for case in cases}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        with opened(path) as journal:
            for case in cases[:-2]:
                journal.keep(sweeps._key(case), rows[case])
        content = path.read_bytes()
    return Swept(cases, rows, content, table(list(rows.values()), ".csv"))


def journal_of_a_sweep(random: Random, folder: Path) -> None:
    """Damage the journal of a stopped sweep; the table comes out as if nothing had happened."""
    known = _swept()
    output = folder / "table.csv"
    journal = folder / "table.csv.journal"
    journal.write_bytes(damaged(random, known.journal))
    worked_out = sweeps.row_of
    sweeps.row_of = lambda case: known.rows[case]
    try:
        swept = sweep(known.cases, output, workers=1)
    finally:
        sweeps.row_of = worked_out
    assert output.read_text() == known.table
    assert swept.found <= len(known.cases) - 2
    assert not journal.exists()


def _answer(ask: Callable[[], Any]) -> Any:
    """Return an answer, or None where there is a sentence in its place."""
    try:
        return ask()
    except GpusimError as error:
        said = str(error)
    assert 0 < len(said) < MOST_LETTERS, said
    return None


ATTACKS = {
    "devices": device_file,
    "measurements": measurements_file,
    "numbers": file_of_numbers,
    "journals": journal_of_a_sweep,
}
