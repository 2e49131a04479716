"""The rules of advice: one decorated function each, found by their modules in `rules`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable

from gpusim.advice.evidence import Evidence
from gpusim.advice.records import Advice
from gpusim.launch.removal import Mechanism, require_known

Rule = Callable[[Evidence], Iterable[Advice]]

_RULES: dict[str, Rule] = {}
_MECHANISMS: dict[str, Mechanism] = {}


def rule(kind: str, removal: Mechanism | None = None) -> Callable[[Rule], Rule]:
    """Register a function from evidence to the findings of a kind.

    `removal` is the mechanism to switch off for their gain, as in `gpusim predict --without`;
    ValueError for an unknown one.
    """
    if removal is not None:
        require_known(removal)
        _MECHANISMS[kind] = removal

    def register(function: Rule) -> Rule:
        _RULES[kind] = function
        return function

    return register


def rules(*, timed: bool) -> dict[str, Rule]:
    """Return rules by the kind of their findings, in the order of kinds.

    With `timed`, rules over predictions are among them.
    """
    for name in ("rules", "timed") if timed else ("rules",):
        package = importlib.import_module(f"gpusim.advice.{name}")
        for found in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{found.name}")
    known = dict(sorted(_RULES.items()))
    return known if timed else {kind: one for kind, one in known.items() if _is_untimed(one)}


def mechanism_of(kind: str) -> Mechanism | None:
    """Return the mechanism to switch off for the gain of a kind of findings, None without one."""
    return _MECHANISMS.get(kind)


def is_timed(kind: str) -> bool:
    """Return whether findings of a kind need a prediction."""
    return not _is_untimed(_RULES[kind])


def title(kind: str) -> str:
    """Return the title of a kind of findings."""
    if kind not in _RULES:
        rules(timed=True)
    return (_RULES[kind].__doc__ or kind).strip().splitlines()[0].rstrip(".")


def _is_untimed(one: Rule) -> bool:
    return one.__module__.startswith("gpusim.advice.rules.")
