"""Launches of kernels outside the catalogue, for measurement, prediction and comparison.

A kernel stands in a `.cu` file here; the Python file of the same name has its launches, arguments
and expected results by NumPy. `part` distinguishes kernels measured during the development of the
time model (`seen`) from kernels measured afterwards (`last`), and from those measured after
intervals of predictions stood (`held`). Those of part `law` each show one law of the machine, and
belong to no statistics.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .data import Numbers

HERE = Path(__file__).parent
SEEN, LAST, HELD, LAW = "seen", "last", "held", "law"

Size = int | tuple[int, ...]
Expected = dict[int, Any]  # by index of an argument, its contents after the launch


@dataclass(frozen=True)
class Plan:
    """A launch with its arguments: NumPy scalars, and `Numbers` for arrays.

    `expected` maps the arguments before the launch to the contents of some afterwards, to
    within `tolerance` of the largest. `constants` fills `__constant__` variables of the file.
    """

    grid: Size
    block: Size
    arguments: tuple[Any, ...]
    expected: Callable[..., Expected]
    tolerance: float = 1e-5
    constants: tuple[tuple[str, Numbers], ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A kernel with the sizes at which it is launched.

    `instance` is its C++ name, with template arguments if any. At the size `small` it is run, not
    measured.
    """

    file: str
    name: str
    instance: str
    part: str
    sizes: tuple[int, ...]
    small: int
    plan: Callable[[int], Plan]

    @property
    def source(self) -> Path:
        """The file that holds the kernel."""
        return HERE / f"{self.file}.cu"

    @property
    def function(self) -> str:
        """The kernel's name without template arguments."""
        return self.instance.partition("<")[0]

    @property
    def mangled(self) -> str:
        """The beginning of the kernel's name in machine code (Itanium C++ ABI)."""
        number = self.instance.partition("<")[2].rstrip(">")
        plain = f"_Z{len(self.function)}{self.function}"
        return f"{plain}ILi{number}EE" if number else plain

    @property
    def in_python(self) -> Any:
        """The kernel in the dialect; None where it lacks the words for it."""
        module = importlib.import_module(f"{__package__}.dialect.{self.file}")
        return getattr(module, self.name, None)

    def at(self, n: int) -> Launch:
        """Return its launch at a size."""
        return Launch(self, n, self.plan(n))


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel at one of its sizes."""

    kernel: Kernel
    n: int
    plan: Plan

    @property
    def key(self) -> tuple[str, int]:
        """The identity of the launch: kernel name and size."""
        return self.kernel.name, self.n

    @property
    def is_smallest(self) -> bool:
        """Whether the kernel has no smaller launch."""
        return self.n == min(self.kernel.sizes)

    def filled(self) -> tuple[Any, ...]:
        """Return the arguments with their elements."""
        return tuple(
            value.make() if isinstance(value, Numbers) else value for value in self.plan.arguments
        )

    def copied(self) -> tuple[Any, ...]:
        """Return the arguments with elements that a launch may change."""
        return tuple(
            value.copy() if isinstance(value, np.ndarray) else value for value in self.filled()
        )

    def specified(self) -> tuple[Any, ...]:
        """Return the arguments as a prediction needs them."""
        return tuple(
            value.spec() if isinstance(value, Numbers) else value for value in self.plan.arguments
        )


KERNELS: dict[str, Kernel] = {}
LAWS: dict[str, Kernel] = {}
Planned = Callable[[int], Plan]


def measured(
    part: str, *sizes: int, small: int = 2**13, instance: str = ""
) -> Callable[[Planned], Planned]:
    """Register a kernel; the decorated function makes its launches."""

    def enter(plan: Planned) -> Planned:
        file, name = plan.__module__.rpartition(".")[2], plan.__name__
        (LAWS if part == LAW else KERNELS)[name] = Kernel(
            file, name, instance or name, part, sizes, small, plan
        )
        return plan

    return enter


def three(size: Size) -> tuple[int, int, int]:
    """Return a grid or block in three dimensions."""
    given = (size,) if isinstance(size, int) else size
    x, y, z = (*given, 1, 1, 1)[:3]
    return x, y, z


def differing(plan: Plan, before: tuple[Any, ...], after: tuple[Any, ...]) -> list[str]:
    """Return the differences to the expected results, each as a sentence."""
    found = []
    for place, wanted in plan.expected(*before).items():
        made = np.asarray(after[place])
        wanted = np.asarray(wanted)
        made = made[: wanted.size].reshape(wanted.shape)
        most = plan.tolerance * max(1.0, float(np.abs(wanted.astype(np.float64)).max()))
        off = np.abs(made.astype(np.float64) - wanted.astype(np.float64))
        wrong = int(np.count_nonzero(~(off <= most)))
        if wrong:
            found.append(f"argument {place}: {wrong} of {wanted.size} wrong, by {off.max():g}")
    return found
