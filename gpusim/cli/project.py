"""The table `[tool.gpusim]` of a project's pyproject.toml: launches by name, limits, a baseline."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpusim.cli.references import Reference
from gpusim.errors import InputError, did_you_mean
from gpusim.host import files
from gpusim.host.files import printable, shown

FILE = "pyproject.toml"
LAUNCH_EXAMPLE = """\
  [[tool.gpusim.launch]]
  name = "saxpy"
  kernel = "saxpy.cu:saxpy"
  n = "2^20"
  block = 256
  grid = "ceil(n/block)"
  args = ["2.0", "float32[n]", "float32[n]", "n"]
  limits = { time_us = 10, registers = 32 }"""
EXAMPLE = f"""pyproject.toml, in this folder or one above; its files are named from there:
  [tool.gpusim]                      # of all launches
  device = "h200"
  baseline = "gpusim-baseline.json"
  growth-percent = 2                 # above the baseline; findings do not grow

  [tool.gpusim.limits]               # of all launches
  bank_conflicts = 0

{LAUNCH_EXAMPLE}"""
MARK = "tool.gpusim"
# Keys of a launch, by the destination of the option with that meaning.
KEYS = {
    "n": "n", "block": "block", "grid": "grid", "op": "op", "dtype": "dtype", "input": "input",
    "coarse": "coarse", "args": "arg", "shared-bytes": "shared_bytes", "include": "include",
    "define": "define", "std": "std", "device": "device", "code": "code", "l2": "l2",
    "passes": "passes", "step-limit": "step_limit", "uninitialised": "uninitialised",
    "lenient": "lenient", "cluster": "cluster",
}  # fmt: skip
LISTS = ("arg", "include", "define", "uninitialised")
OF_A_LAUNCH = ("name", "kernel", "limits", *KEYS)
OF_THE_TABLE = ("device", "baseline", "growth-percent", "limits", "launch")
DEFAULT_BASELINE = "gpusim-baseline.json"


@dataclass(frozen=True)
class Table:
    """A table of limits: the largest value of each measure, and measures without any limit."""

    limits: Mapping[str, float] = field(default_factory=dict)
    lifted: frozenset[str] = frozenset()


@dataclass(frozen=True)
class NamedLaunch:
    """A launch of the table: kernel, options by their destination, and limits of its own."""

    name: str
    kernel: str
    options: Mapping[str, str | list[str] | bool]
    table: Table


@dataclass(frozen=True)
class Project:
    """The table of a project, with its launches in order.

    It `has_baseline` if the table names one, or says how much may grow above it.
    """

    path: Path
    launches: tuple[NamedLaunch, ...]
    table: Table
    baseline: Path
    growth_percent: float
    has_baseline: bool = False

    @property
    def names(self) -> list[str]:
        """The launches' names."""
        return [one.name for one in self.launches]

    def launch(self, name: str) -> NamedLaunch:
        """Return a launch by its name; InputError where there is none."""
        for one in self.launches:
            if one.name == name:
                return one
        raise InputError(
            f"{self.path} has no launch {shown(name)!r}{did_you_mean(name, self.names)} "
            f"(it has {', '.join(self.names) or 'none'})"
        )


def found_project() -> Project | None:
    """Return the project of the current folder or of one above it, None where there is none."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        path = folder / FILE
        if path.is_file():
            text = files.text(path, files.MAX_TOML_BYTES, again=True)
            return project(path) if MARK in text else None
    return None


def project(path: Path) -> Project:
    """Return the table of a pyproject.toml; InputError for keys or values that it cannot have."""
    tree = files.toml(path).get("tool", {}).get("gpusim", {})
    where = f"{shown(_from_here(path))}, [tool.gpusim]"
    if not isinstance(tree, dict):
        raise InputError(f"{where} is not a table")
    _require_keys(tree, OF_THE_TABLE, where)
    growth = tree.get("growth-percent", 0)
    if isinstance(growth, bool) or not isinstance(growth, int | float) or not growth >= 0:
        raise InputError(f"{where}: growth-percent is a number of at least 0, not {growth!r}")
    entries = tree.get("launch", [])
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise InputError(f"{where}: launches are written [[tool.gpusim.launch]], each a table")
    common = {} if "device" not in tree else {"device": _text(tree["device"], "device", where)}
    launches = tuple(
        _launch(one, path.parent, common, f"{where}, launch {number}")
        for number, one in enumerate(entries, 1)
    )
    names = [one.name for one in launches]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{where}: two launches are named {shown(twice)!r}; give each its name")
    baseline = _text(tree.get("baseline", DEFAULT_BASELINE), "baseline", where)
    table = _table(tree.get("limits", {}), f"{where}, limits")
    has_baseline = not tree.keys().isdisjoint({"baseline", "growth-percent"})
    return Project(path, launches, table, path.parent / baseline, float(growth), has_baseline)


def with_launch(chosen: Namespace) -> Namespace:
    """Return options with those of the launch that their kernel names; the same if it names none.

    Options `given` on the command line stay as they are; those that the command does not have are
    left out.
    """
    name = getattr(chosen, "kernel", None)
    if not isinstance(name, str) or Reference.of(name).file:
        return chosen
    found = found_project()
    if found is None or name not in found.names:
        return chosen
    launch, given = found.launch(name), getattr(chosen, "given", ())
    options = {
        key: value
        for key, value in launch.options.items()
        if hasattr(chosen, key) and key not in given
    }
    return Namespace(
        **{**vars(chosen), **options, "kernel": launch.kernel, "of_project": frozenset(options)}
    )


def _launch(
    entry: Mapping[str, Any], folder: Path, common: Mapping[str, str], where: str
) -> NamedLaunch:
    _require_keys(entry, OF_A_LAUNCH, where)
    if "kernel" not in entry:
        raise InputError(
            f'{where} has no kernel; write kernel = "FILE.cu:KERNEL", FILE.py:FUNCTION or a name '
            "of gpusim list"
        )
    kernel = _text(entry["kernel"], "kernel", where)
    name = _text(entry.get("name", kernel), "name", where)
    options: dict[str, str | list[str] | bool] = dict(common)
    for key, destination in KEYS.items():
        if key in entry:
            options[destination] = _option(entry[key], key, destination, folder, where)
    limits = _table(entry.get("limits", {}), f"{where}, limits")
    return NamedLaunch(name, _placed_kernel(kernel, folder), options, limits)


def _option(
    value: Any, key: str, destination: str, folder: Path, where: str
) -> str | list[str] | bool:
    if key == "lenient":
        if not isinstance(value, bool):
            raise InputError(f"{where}: {key} is true or false, not {shown(str(value))}")
        return value
    if destination not in LISTS:
        text = _text(value, key, where)
        return _placed(text, folder) if key == "input" or text.endswith(".toml") else text
    values = [_text(one, key, where) for one in (value if isinstance(value, list) else [value])]
    if destination == "include":
        return [_placed(one, folder) for one in values]
    return [_with_placed_file(one, folder) if destination == "arg" else one for one in values]


def _table(tree: Any, where: str) -> Table:
    """Return limits; `false` in place of a number removes a limit."""
    if not isinstance(tree, dict):
        raise InputError(f"{where} is not a table; write limits = {{ time_us = 10 }}")
    for name, value in tree.items():
        if value is True or not isinstance(value, int | float) or value != value:
            raise InputError(
                f"{where}: {shown(name)} is {value!r}; write the largest number that is allowed, "
                "or false for no limit"
            )
    limits = {name: float(value) for name, value in tree.items() if value is not False}
    return Table(limits, frozenset(tree) - limits.keys())


def _require_keys(tree: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in tree:
        if key not in known:
            raise InputError(
                f"{where}: {shown(key)!r} is not known{did_you_mean(key, known)} "
                f"(keys: {', '.join(known)})"
            )


def _text(value: Any, key: str, where: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value:
        if printable(value) != value:
            raise InputError(
                f"{where}: {key} is a line that can be shown, not {shown(ascii(value))}"
            )
        return value
    if isinstance(value, int | float):
        return str(value)
    raise InputError(f"{where}: {key} is a text or a number, not {shown(str(value))!r}")


def _placed_kernel(kernel: str, folder: Path) -> str:
    return _placed(kernel, folder) if Reference.of(kernel).file else kernel


def _with_placed_file(argument: str, folder: Path) -> str:
    before, mark, file = argument.partition("@")
    return f"{before}@{_placed(file, folder)}" if mark else argument


def _placed(name: str, folder: Path) -> str:
    """Return a file's name from the current folder."""
    path = Path(name)
    return name if path.is_absolute() or folder == Path.cwd() else _from_here(folder / path)


def _from_here(path: Path) -> str:
    try:
        return os.path.relpath(path)
    except ValueError:  # another drive
        return str(path)
