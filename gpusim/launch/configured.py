"""A kernel with its grid and block, of the Python dialect or of a compiler."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gpusim.errors import LaunchError, shown_at_the_call
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.launch.prepared import Prepared

# The function that runs `kernel[grid, block]`, by name: a launch does not import the machine.
BACKEND = "gpusim.tracing.execute:execute"


class Source(Protocol):
    """The source of a kernel: a Python function, CUDA C++ or PTX."""

    @property
    def file(self) -> str:
        """The file that its lines are in."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Its parameters' names, in order."""


class Launchable(Protocol):
    """A kernel of the dialect, or machine code."""

    __name__: str


@dataclass(frozen=True)
class ConfiguredKernel:
    """A kernel with its grid and block: call it with arguments to run it."""

    kernel: Launchable
    launch: Launch

    @shown_at_the_call
    def __call__(self, *args: Any) -> None:
        """Run the launch; arrays among `args` hold the results."""
        module, function = BACKEND.split(":")
        getattr(importlib.import_module(module), function)(self, args)


def configured(kernel: Launchable, configuration: Any) -> ConfiguredKernel:
    """Return a kernel with grid, block and, if given, stream, dynamic shared bytes and cluster."""
    if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 5:
        raise LaunchError(
            f"launch {kernel.__name__} with [grid, block], [grid, block, stream, "
            "dynamic_shared_bytes] or [grid, block, stream, dynamic_shared_bytes, cluster]"
        )
    given = dict(enumerate(configuration))
    return ConfiguredKernel(kernel, Launch.of(given[0], given[1], given.get(3, 0), given.get(4, 1)))


class MachineCode(ABC):
    """A kernel given as machine code: it makes its own programs."""

    __name__: str

    @shown_at_the_call
    def __getitem__(self, configuration: Any) -> ConfiguredKernel:
        return configured(self, configuration)

    @property
    @abstractmethod
    def source(self) -> Source:
        """Where it comes from, and its parameters' names."""

    @abstractmethod
    def prepare(self, launch: Launch, args: Sequence[Any], cc: ComputeCapability) -> Prepared:
        """Return the kernel with its arguments as it runs on a GPU of `cc`."""
