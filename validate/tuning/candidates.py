"""The launches that `gpusim tune` chooses from: of the catalogue, and of `validate.others`.

Kernels of the catalogue with a block alone are measured at every block by `gpusim validate run`;
here are those with coarsening factors or a free grid. Of the others, kernels that find their
elements by `blockDim.x` alone run at any block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import prod

from gpusim.catalogue import REDUCTION, Request
from gpusim.codegen.generators import LOWERING
from gpusim.gpu import device as devices
from gpusim.prediction.sweeps.choices import WAVES, axes_of, crossed_choices, with_choices

from ..cases import Pair
from ..others.data import Numbers
from ..others.plans import KERNELS, Kernel, Launch, three
from ..records import Case
from ..twins import twinned

SIZES = 2**22, 2**26
MOST_BYTES = 2**27  # of the arrays of another kernel

# The uses of a thread's place in a kernel for any block, without and with a loop over the grid.
_ONE_ELEMENT = ["blockDim.x", "blockIdx.x", "threadIdx.x"]
_GRID_STRIDE = ["blockDim.x", *_ONE_ELEMENT[:2], "gridDim.x", "threadIdx.x"]
_PLACE = re.compile(r"\b(?:threadIdx|blockIdx|blockDim|gridDim)\.\w")
_TOGETHER = re.compile(r"__shared__|__launch_bounds__|__syncthreads|_sync\(|\basm\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def of_catalogue(device: str) -> list[Pair]:
    """Return the candidates of kernels with coarsening factors or a free grid."""
    gpu, found = devices.load(device), []
    for entry in twinned():
        if entry.family is not REDUCTION or not (entry.default_coarse or entry.grid_free):
            continue
        for n in SIZES:
            request = Request(entry.name, n)
            choices = [(), *crossed_choices(axes_of(request))]
            for one in choices:
                # Occupancies, and so full waves, are the same with nvcc's code.
                made = with_choices(request, dict(one), gpu, LOWERING)
                assert isinstance(made, Request)
                setup = made.setup()
                grid = made.grid if WAVES in dict(one) else None
                coarse = dict(one).get("coarse")
                case = Case(n, setup.block, entry.dtypes[0], grid=grid, coarse=coarse)  # type: ignore[arg-type]
                found.append((entry, case))
    return sorted(dict.fromkeys(found), key=lambda pair: pair[1].n)


def body(kernel: Kernel) -> str:
    """Return the text of a kernel without comments."""
    text = _COMMENT.sub("", kernel.source.read_text(encoding="utf-8"))
    head = re.search(rf"__global__[^;{{]*?\b{re.escape(kernel.function)}\s*\(", text)
    assert head is not None, kernel.name
    depth, end = 0, text.index("{", head.end())
    while True:
        depth += (text[end] == "{") - (text[end] == "}")
        end += 1
        if not depth:
            return text[head.start() : end]


def is_grid_stride(kernel: Kernel) -> bool:
    """Return whether a kernel of any block loops over its grid."""
    return "gridDim.x" in body(kernel)


def of_any_block() -> Iterator[Launch]:
    """Yield a launch of each other kernel for any block, at the largest of its sizes that fits."""
    for kernel in KERNELS.values():
        text = body(kernel)
        uses = sorted(_PLACE.findall(text))
        if _TOGETHER.search(text) or uses not in (_ONE_ELEMENT, _GRID_STRIDE):
            continue
        launches = [one for one in map(kernel.at, kernel.sizes) if not _has_one_each(one)]
        if not launches:
            continue
        fits = [one for one in launches if _bytes(one) <= MOST_BYTES]
        launch = (fits or launches)[-1 if fits else 0]
        if isinstance(launch.plan.grid, int) and isinstance(launch.plan.block, int):
            yield launch


def _has_one_each(launch: Launch) -> bool:
    """Return whether a kernel with a loop over its grid has an array with an element a thread."""
    threads = prod(three(launch.plan.grid)) * prod(three(launch.plan.block))
    arrays = [one for one in launch.plan.arguments if isinstance(one, Numbers)]
    return is_grid_stride(launch.kernel) and any(one.length == threads for one in arrays)


def _bytes(launch: Launch) -> int:
    arrays = [one for one in launch.plan.arguments if isinstance(one, Numbers)]
    return sum(one.length * one.dtype.itemsize for one in arrays)


def with_block(launch: Launch, block: int, grid: int | None = None) -> Launch | None:
    """Return a launch of as many threads in other blocks; None where they fill no whole grid."""
    threads = prod(three(launch.plan.grid)) * prod(three(launch.plan.block))
    if grid is None and threads % block:
        return None
    plan = replace(launch.plan, block=block, grid=grid or threads // block)
    return replace(launch, plan=plan)
