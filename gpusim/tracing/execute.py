"""A kernel that is called as a function: it runs, and nothing is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpusim.codegen.programs import prepare
from gpusim.launch.configured import ConfiguredKernel
from gpusim.machine import DEFAULT_CC, run


def execute(configured: ConfiguredKernel, args: Sequence[Any]) -> None:
    """Run a launch for compute capability 9.0; arrays among `args` hold the results."""
    run(prepare(configured, args, DEFAULT_CC))
