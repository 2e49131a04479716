"""The mechanisms that a line can go without: one decorated function each."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace

from gpusim.errors import did_you_mean
from gpusim.gpu.device import DeviceError
from gpusim.host.files import shown
from gpusim.launch.removal import AND, AT, Removal, require_known
from gpusim.launch.removal import Mechanism as MechanismName
from gpusim.prediction.setting import Setting
from gpusim.program.fast_paths import operation_lines

Edit = Callable[[Setting, frozenset[int]], Setting]


@dataclass(frozen=True)
class Mechanism:
    """A removable mechanism: `doc` describes the launch without it; some need a line."""

    name: str
    doc: str
    of_a_line: bool
    edit: Edit


_KNOWN: dict[str, Mechanism] = {}


def mechanism(name: MechanismName, *, of_a_line: bool = True) -> Callable[[Edit], Edit]:
    """Register a function from a launch and the pcs of a line to the launch without a mechanism.

    The first line of its docstring describes that launch. ValueError for a name that is not known.
    """
    require_known(name)

    def register(edit: Edit) -> Edit:
        doc = (edit.__doc__ or "").split("\n", 1)[0].rstrip(".")
        _KNOWN[name] = Mechanism(name, doc, of_a_line, edit)
        return edit

    return register


def launch_mechanism(
    name: MechanismName,
) -> Callable[[Callable[[Setting], Setting]], Callable[[Setting], Setting]]:
    """Register a function that takes a mechanism from a launch as a whole."""
    require_known(name)

    def register(edit: Callable[[Setting], Setting]) -> Callable[[Setting], Setting]:
        doc = (edit.__doc__ or "").split("\n", 1)[0].rstrip(".")
        _KNOWN[name] = Mechanism(name, doc, of_a_line=False, edit=lambda setting, _: edit(setting))
        return edit

    return register


class _Mechanisms:
    """The registered mechanisms by name; their modules are imported on first use."""

    def all(self) -> dict[str, Mechanism]:
        """Return every mechanism by name, in the order of names."""
        package = importlib.import_module("gpusim.prediction.removals.mechanisms")
        for found in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{found.name}")
        return dict(sorted(_KNOWN.items()))


REMOVALS = _Mechanisms()


def parse(text: str) -> Removal | None:
    """Return the removal that a text names, None where it names no mechanism of lines.

    Raises DeviceError for a mechanism or a line that cannot be.
    """
    known = REMOVALS.all()
    name, at, number = text.strip().lower().partition(AT)
    name = name.replace(" ", "-").replace("_", "-")
    if not at:
        return Removal(name) if name in known and not known[name].of_a_line else None
    of_lines = [one.name for one in known.values() if one.of_a_line]
    if name not in of_lines:
        raise DeviceError(
            f"unknown mechanism {shown(name)!r} of a line in --without; known are "
            f"{', '.join(of_lines)}"
            f"{did_you_mean(name, of_lines)}"
        )
    numbers = number.split(AND)
    if not all(one.isascii() and one.isdigit() for one in numbers):
        raise DeviceError(f"{shown(text)!r} names no source line; write for example {name}{AT}81")
    return Removal(name, tuple(map(int, numbers)))


def removed(removal: Removal, setting: Setting) -> Setting:
    """Return a launch without a mechanism; DeviceError for a line without instructions."""
    rows = setting.prepared.program.instructions
    lines_of = operation_lines(setting.prepared.program)
    if missing := set(removal.lines).difference(lines_of):
        lines = sorted({row.line for row in rows if row.line})
        raise DeviceError(
            f"line {min(missing)} has no instructions in {setting.prepared.kernel}; its lines are "
            f"{', '.join(map(str, lines))}"
        )
    pcs = frozenset(
        pc for pc, line in enumerate(lines_of) if not removal.lines or line in removal.lines
    )
    edited = REMOVALS.all()[removal.mechanism].edit(setting, pcs)
    return replace(edited, removals=(*setting.removals, removal))
