"""`gpusim validate`: handed over to the package of its own that holds gpusim against hardware.

Installed it lies beside the other parts of gpusim, in a checkout in a folder of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from gpusim.errors import InputError

SUMMARY = "hold predictions against real GPUs: compare, run, counters, calibrate"


def main(arguments: Sequence[str]) -> int:
    """Run a command of the validation and return its exit code."""
    for package in ("gpusim.validate", "validate"):
        try:
            commands = importlib.import_module(f"{package}.commands")
        except ModuleNotFoundError as error:
            if error.name is None or not f"{package}.commands".startswith(error.name):
                raise
            continue
        code: int = commands.main(arguments)
        return code
    raise InputError("this installation of gpusim came without its validation")
