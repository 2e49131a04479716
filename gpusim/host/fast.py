"""The switch of compiled evaluators: GPUSIM_FAST in the environment, 1 unless it says otherwise."""

from __future__ import annotations

import os

from gpusim.errors import InputError

SWITCH = "GPUSIM_FAST"
OFF, ON = VALUES = ("0", "1")


def is_wanted() -> bool:
    """Return whether compiled code may run; with `GPUSIM_FAST=0`, NumPy and SimPy run all.

    Raises InputError for any other value than 0 or 1.
    """
    said = os.environ.get(SWITCH) or ON
    if said not in VALUES:
        raise InputError(f"{SWITCH} in the environment is {said!r}; it is {' or '.join(VALUES)}")
    return said == ON
