"""`gpusim validate`: calls the separate package that compares gpusim with measurements.

Installed it lies beside the other parts of gpusim, in a checkout in a folder of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from gpusim.cli.progress import Bar
from gpusim.errors import InputError

SCOPES = {"one": "single", "all": "all"}  # by --passes the word of a measurement


def main(arguments: Sequence[str]) -> int:
    """Run a command of the validation and return its exit code."""
    code: int = _module("commands").main(arguments)
    return code


def measured_gbps(
    kernel: str, device: str, block: int, kind: str = "int32"
) -> list[tuple[int, float]]:
    """Return (elements, GB/s) measured of a kernel with a cold L2, in order.

    `kind` is the type of the elements. A device without measurements of its own has none; of its
    files, `NAME` and then `NAME-...`, the first counts that has the kernel.
    """
    from numpy import dtype

    files = _module("files")
    names = [name for name in files.names() if f"{name}-".startswith(f"{device}-")]
    for name in names:
        found = [
            (one.case.n, one.case.n * dtype(one.case.dtype).itemsize / one.time_us / 1000)
            for one in files.load(name).times
            if (one.kernel, one.case.block, one.case.dtype) == (kernel, block, kind)
            and (one.case.l2, one.case.scope) == ("cold", "single")
            and one.case.grid is None
            and one.case.coarse is None
            and one.time_us is not None
        ]
        if found:
            return sorted(found)
    return []


def beside_predictions(
    kernels: Sequence[str], device: str, wanted: Callable[[Any], bool], code: str
) -> list[tuple[str, float, float]]:
    """Return (kernel, measured us, predicted us) of launches measured on a device.

    `wanted` selects the cases, `code` names the code generator of the predictions. InputError if
    no launch was measured, or none can be predicted.
    """
    files, predicted = _module("files"), _module("predicted")
    times = files.load(device).times if device in files.names() else ()
    chosen = [one for one in times if one.kernel in kernels and wanted(one.case)]
    if not any(one.time_us for one in chosen):
        scopes = {one.case.scope for one in times}
        ways = (f"--passes {passes}" for passes, scope in SCOPES.items() if scope in scopes)
        there = (
            f"measured there are {', '.join(dict.fromkeys(one.kernel for one in times))} "
            f"({', '.join(ways)})"
        )
        others = f"there are measurements of {', '.join(files.names())}"
        raise InputError(
            f"none of the selected launches has been measured on {device}; "
            f"{there if times else others}"
        )
    with Bar(len(chosen), "launches") as bar:
        bar.start()
        found = predicted.compare(chosen, device, code, done=bar.advance)
    both = [
        (one.kernel, one.measured_us, one.predicted_us)
        for one in found
        if isinstance(one, predicted.Compared)
    ]
    if not both:
        raise InputError(f"none of these launches can be predicted: {found[0].reason}")
    return both


def _module(name: str) -> Any:
    """Return a module of the validation, wherever that is."""
    for package in ("gpusim.validate", "validate"):
        try:
            return importlib.import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name is None or not f"{package}.{name}".startswith(error.name):
                raise
    raise InputError("this installation of gpusim came without its validation")
