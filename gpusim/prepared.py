"""What runs: one program with its launch and its arguments, for one generation of GPUs.

Every front end makes one, in its own way; what runs, counts or predicts takes it whole and does
not ask where the program came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpusim.isa import Program
from gpusim.launch import ComputeCapability, Launch


@dataclass(frozen=True, eq=False)
class Prepared:
    """A program that is ready to run. LaunchError where no GPU of `cc` holds one of its blocks.

    `arguments` are arrays and NumPy scalars by the names that the program has for them; an
    `ArraySpec` stands for an array whose elements are never read. `source_file` is the file whose
    lines the instructions name, empty where there is none.
    """

    program: Program
    launch: Launch
    arguments: Mapping[str, Any]
    cc: ComputeCapability
    source_file: str = ""

    def __post_init__(self) -> None:
        self.launch.check(self.cc, self.program.shared_bytes)

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self.program.name
