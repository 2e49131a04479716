"""Random kernels in nvcc's code, many of which are compiled at once: ten times as fast."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from fuzzing.kernels import is_as_it_should_be, lowered_differences, reference
from random_kernels import RandomKernel, random_kernel

from gpusim.codegen.programs import bind, prepare, written_out
from gpusim.errors import GpusimError
from gpusim.host.fast import OFF, ON, SWITCH
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.sass import c_functions, wheels
from gpusim.sass.compiler import Options
from gpusim.sass.kernels import CudaSource

TOGETHER = 25
COMPILED = 0.5  # of rounds
GENERATIONS = ("9.0", "9.0", "9.0", "8.6", "7.5", "8.9", "8.0")
_KERNEL = re.compile(r"(?<=__global__ void )kernel(?=\()")
_OWN_FUNCTIONS = re.compile(rf"^namespace {c_functions.NAMESPACE} .*$", re.MULTILINE)


def compile_together(kernels: Iterable[RandomKernel]) -> None:
    """Compile kernels as one file, so that each finds its code when it is launched."""
    texts, places = [], []
    for made in kernels:
        arguments = bind(made.kernel, made.arguments())
        whole = written_out(made.kernel, arguments)
        text = whole.written(arguments, made.kernel[made.grid, made.block].launch).text
        name = f"kernel_{made.seed}"
        texts.append(_KERNEL.sub(name, _OWN_FUNCTIONS.sub("", text)))
        places.append((whole.kernels, text, name))
    inside = " ".join(c_functions.FUNCTIONS.values())
    head = f"namespace {c_functions.NAMESPACE} {{ {inside} }}"
    source = CudaSource("\n".join([head, *texts]), "random_kernels.py", Options())
    for kernels_by_text, text, name in places:
        kernels_by_text[text] = source[name]


def differences(seeds: Iterable[int], cc: str) -> Iterator[str]:
    """Yield what comes out differently of seeds' kernels in nvcc's code, or why one has none."""
    kernels = [random_kernel(seed) for seed in seeds]
    return compiled_differences(kernels, map(reference, kernels), cc)


def compiled_differences(
    kernels: Sequence[RandomKernel], results: Iterable[Sequence[Any]], cc: str
) -> Iterator[str]:
    """Yield what comes out differently of kernels in nvcc's code, or why one has none."""
    compile_together(kernels)
    for made, expected in zip(kernels, results, strict=True):
        arguments = made.arguments()
        launch = made.kernel[made.grid, made.block]
        try:
            run(prepare(launch, arguments, ComputeCapability.parse(cc), code="nvcc"))
        except GpusimError as error:
            yield f"seed {made.seed}, {cc}: {error}"
            continue
        names = made.kernel.source.parameters
        for name, wanted, given in zip(names, expected, arguments, strict=True):
            if not is_as_it_should_be(name, wanted, given):
                yield f"seed {made.seed}: {name} in nvcc's code for {cc}"


def attack(random: Random, folder: Path) -> None:
    """Write kernels and run each in both generators' code; AssertionError with the differences.

    Compiled code runs them, in some rounds NumPy.
    """
    kernels = [random_kernel(random.randrange(2**31)) for _ in range(TOGETHER)]
    results = [reference(made) for made in kernels]
    with patch.dict(os.environ, {SWITCH: ON if random.random() < COMPILED else OFF}):
        found = [
            said
            for made, expected in zip(kernels, results, strict=True)
            for said in lowered_differences(made, expected)
        ]
        if wheels.are_there():
            found += compiled_differences(kernels, results, random.choice(GENERATIONS))
    assert not found, "\n".join(found)


ATTACKS = {"kernels": attack}


def batches(first: int, count: int) -> Iterator[range]:
    """Yield so many seeds, as many at a time as are compiled at once."""
    for begin in range(first, first + count, TOGETHER):
        yield range(begin, min(begin + TOGETHER, first + count))
