"""An operation's kernel in the simulator, and on a GPU through PyCUDA."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpusim.launch.grid import ComputeCapability
from gpusim.sass import compiler, cubin
from gpusim.sass.kernels import CodeFile, cuda_source
from gpusim.typing import Array

from .operands import operands
from .operation import BLOCK, THREADS, Operation, empty, source
from .rooms import room

GRID = THREADS // BLOCK
SPECIAL_FUNCTIONS = "MUFU"
COMPUTE_CAPABILITY = ComputeCapability(9, 0)


class Simulator:
    """Runs operations in the simulator; they are compiled together."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.file: CodeFile = cuda_source(source(operations))
        self.generator = self.file.code(operations[0].name, COMPUTE_CAPABILITY).generator

    def results(self, operation: Operation) -> list[Array]:
        """Return the results, and the operands as the kernel leaves them."""
        arrays = [empty(operation.result), *operands(operation)]
        self.file[operation.name][GRID, BLOCK, 0, operation.dynamic_bytes](*arrays)
        return arrays


def pack(names: Sequence[str], folder: Path) -> None:
    """Write machine code of rooms, and the names of kernels with special functions in them."""
    arch = compiler.architecture(COMPUTE_CAPABILITY)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        made = compiler.compiled(source(room(name)), f"{name}.cu", [], arch)
        (folder / f"{name}.cubin").write_bytes(made.cubin)
        facts = {"generator": made.generator, "special": sorted(_special(made))}
        (folder / f"{name}.json").write_text(json.dumps(facts), encoding="utf-8")


def _special(made: compiler.Compiled) -> set[str]:
    """Return the kernels with instructions of the special function unit."""
    held = cubin.read(made.cubin, "operations")
    found = set()
    for kernel in held.kernels:
        begin = made.listing.find(f".section\t.text.{kernel},")
        end = made.listing.find("\t.section\t", begin + 1)
        if SPECIAL_FUNCTIONS in made.listing[begin : end if end >= 0 else None]:
            found.add(kernel)
    return found


class Gpu:
    """Runs the packed operations of a room on this computer's GPU.

    `driver` is the module `pycuda.driver`, and may be a fake of it.
    """

    def __init__(self, name: str, folder: Path, driver: Any) -> None:
        facts = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        self.generator: str = facts["generator"]
        self.special = frozenset(facts["special"])
        self._driver = driver
        self._module = driver.module_from_buffer((folder / f"{name}.cubin").read_bytes())

    def results(self, operation: Operation) -> list[Array]:
        """Return the results, and the operands as the kernel leaves them."""
        arrays = [empty(operation.result), *operands(operation)]
        held = [self._driver.to_device(one) for one in arrays]
        kernel = self._module.get_function(operation.name)
        shared = operation.dynamic_bytes
        kernel(*held, grid=(GRID, 1), block=(BLOCK, 1, 1), shared=shared)
        self._driver.Context.synchronize()
        made = [
            self._driver.from_device(h, a.shape, a.dtype) for h, a in zip(held, arrays, strict=True)
        ]
        for one in held:
            one.free()
        return made
