"""A prepared program: code, launch and arguments, for one generation of GPUs.

Every front end makes one, in its own way; running, counting and predicting use it whole and do
not depend on its origin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np

from gpusim.isa.ops import ANY_ARRAY, Program
from gpusim.launch.arguments import ArraySpec
from gpusim.launch.device_heap import Heap
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.launch.languages import CUDA_CPP
from gpusim.launch.paged import PagedCopy

P = ParamSpec("P")
R = TypeVar("R")


class Place(NamedTuple):
    """Device addresses: where a pointer to an array points, and where the array's memory begins."""

    address: int
    start: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """A program that is ready to run. LaunchError where no GPU of `cc` holds one of its blocks.

    `arguments` are arrays and NumPy scalars by the names that the program has for them; an
    `ArraySpec` represents an array with elements that are never read, a `NullPointer` none.
    `source_file` is the file of the instructions' line numbers, empty if there is none, `language`
    that of the source, PYTHON or CUDA_CPP, and `source_text` its text where that is in no file.
    `fallback` is the reason for the lowering's program in place of nvcc's code. `copies` hold
    arrays of the arguments that are filled where they are touched. `swapped` are arguments that
    replace arrays in another byte order, with the originals. `rehearsal` is the same launch in code
    that checks indices along each axis of an array, where this code does not: it is run first, on
    copies of the arrays. `places` are the addresses of arrays that have some already; the others
    are given theirs when they are run. `printed` takes the output of printf, in the order of
    execution. `heap` is that of malloc, where it outlives the launch. Without `keeps_results` the
    arrays are not read after the run.
    """

    program: Program
    launch: Launch
    arguments: Mapping[str, Any]
    cc: ComputeCapability
    source_file: str = ""
    fallback: str = ""
    copies: tuple[PagedCopy, ...] = ()
    swapped: tuple[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]], ...] = ()
    rehearsal: Prepared | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    printed: list[bytes] | None = None
    heap: Heap | None = None
    keeps_results: bool = True
    language: str = CUDA_CPP
    source_text: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        program = self.program
        self.launch.check(self.cc, program.shared_bytes)
        if program.compiler:
            self.launch.check_code(program.register_estimate, program.most_threads)

    def give_back(self) -> None:
        """Copy results back to arrays in another byte order."""
        for held, given in self.swapped:
            if given.flags.writeable:
                given[...] = held

    def bytes_of(self, array: str) -> int:
        """Return the size of an array in bytes; of ANY_ARRAY, that of all of them together."""
        if array != ANY_ARRAY:
            return int(self.arguments[array].nbytes)
        arrays = {id(value): value for value in self.arguments.values() if _is_array(value)}
        return sum(int(value.nbytes) for value in arrays.values())

    @property
    def block_shared_bytes(self) -> int:
        """The static and dynamic shared memory of a block, in bytes."""
        return self.program.shared_bytes + self.launch.dynamic_shared_bytes

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self.program.name


def described(kernel: str, launch: Launch) -> str:
    """Return a launch in words, as an interrupt names it."""
    sizes = (" x ".join(map(str, one)).removesuffix(" x 1").removesuffix(" x 1")
             for one in (launch.grid, launch.block))  # fmt: skip
    return "{}, grid {}, block {}".format(kernel, *sizes)


def named_in_interrupts(
    function: Callable[Concatenate[Prepared, P], R],
) -> Callable[Concatenate[Prepared, P], R]:
    """Add the current launch to an interrupt of a function, as a note."""

    @wraps(function)
    def call(prepared: Prepared, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(prepared, *args, **kwargs)
        except Exception:
            raise
        except BaseException as error:
            if not hasattr(error, "__notes__"):
                launch = described(prepared.kernel, prepared.launch)
                error.add_note(f"interrupted in the launch of {launch}")
            raise

    return call


def _is_array(value: Any) -> bool:
    return isinstance(value, ArraySpec) or (isinstance(value, np.ndarray) and value.ndim > 0)
