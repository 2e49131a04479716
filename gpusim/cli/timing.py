"""Options common to the commands about time: the device, the cache, the passes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError, did_you_mean
from gpusim.host.files import shown

if TYPE_CHECKING:
    from gpusim.gpu.device import Device, Value
    from gpusim.prediction.removals import Removal

# The reductions that are ranked where none are named, published one by one as steps of one
# optimisation; a corrected one comes beside its original.
SERIES = tuple(f"reduce{number}" for number in range(1, 8))

PASSES_KNOWN = ("one", "all")
L2_KNOWN = ("cold", "warm", "dirty")


def one_of(text: str, known: Sequence[str], what: str) -> str:
    """Return `text` where it is known; InputError otherwise."""
    if text not in known:
        near = did_you_mean(text, known)
        raise InputError(
            f"{what} is {', '.join(known[:-1])} or {known[-1]}, not {shown(text)!r}{near}"
        )
    return text


def device_of(
    name: str, without: Iterable[str] | None, changed: Iterable[str] | None = None
) -> Device:
    """Return a device by name or file, without the mechanisms named, with other numbers."""
    from gpusim.gpu import device

    found = device.load(name).having(dict(map(_setting, changed or ())))
    return found.without(*without) if without else found


def removals_of(without: Iterable[str] | None) -> tuple[list[str], list[Removal]]:
    """Return the mechanisms that a whole GPU goes without, and those that single lines do.

    Raises DeviceError for what no line can be without.
    """
    from gpusim.gpu.device import ABLATIONS

    mechanisms, removals = [], []
    for text in without or ():
        found = None
        if "@" in text or text not in ABLATIONS:
            from gpusim.prediction.removals import parse

            found = parse(text)
        if found is None:
            mechanisms.append(text)
        else:
            removals.append(found)
    return mechanisms, removals


def _setting(text: str) -> tuple[str, Value]:
    """Return key and number of KEY=VALUE; the device checks them."""
    from gpusim.cli.inputs import number, whole_number
    from gpusim.gpu.device import KEYS

    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not key or not value:
        raise InputError(f"--set is {shown(text)!r}; write KEY=VALUE, as in latency_cycles.l2=250")
    kind = KEYS[key].type if key in KEYS else ""
    if kind == "str":
        return key, value
    if value in ("true", "false"):
        return key, value == "true"
    for found in (whole_number(value), number(value)):
        if found is not None:
            return key, found
    return key, value


def how(chosen: Namespace) -> tuple[str, str]:
    """Return the passes and the state of the L2 cache."""
    return one_of(chosen.passes, PASSES_KNOWN, "--passes"), one_of(chosen.l2, L2_KNOWN, "--l2")


def with_corrections(names: Iterable[str]) -> list[str]:
    """Return kernels of the catalogue, each wrong one followed by its correction."""
    from gpusim.catalogue import find

    found = []
    for name in names:
        entry = find(name)
        found += [entry.name, *([entry.fixed_by] if entry.fixed_by else [])]
    return list(dict.fromkeys(found))


def corrected(names: Iterable[str]) -> list[str]:
    """Return kernels of the catalogue, each wrong one replaced by its correction."""
    from gpusim.catalogue import find

    return [find(name).fixed_by or name for name in names]


def none_can_run(what: str, reasons: Mapping[str, str]) -> InputError:
    """Return the error for launches none of which can run; `reasons` have one launch each."""
    shown = [f"{launch}: {reason}" if launch else reason for reason, launch in reasons.items()]
    more = f"; and {len(shown) - 2} more reasons" if len(shown) > 2 else ""
    return InputError(f"none of the {what} can run: {'; '.join(shown[:2])}{more}")


def distribution(chosen: Namespace) -> dict[str, Any]:
    """Return the settings of `sweep` for these options."""
    from gpusim.cli.inputs import count

    return {
        "workers": count(chosen.workers, "--workers", most=1024) if chosen.workers else None,
        "cluster": chosen.dask,
        "cached": not chosen.no_cache,
    }
