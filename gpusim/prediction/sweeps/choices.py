"""Choices of a launch: values of its block, grid and parameters, and their search space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from gpusim.catalogue import Request
from gpusim.errors import InputError
from gpusim.gpu.device import Device
from gpusim.gpu.occupancy import occupancy
from gpusim.launch.grid import whole_number
from gpusim.prediction.sweeps.jobs import Asked, job_of

WAVES = "waves"
Value = int | str
Choices = tuple[tuple[str, Value], ...]

# The default search space of a kernel of the catalogue, as far as its launch rule leaves a choice.
BLOCKS = (64, 128, 256, 512, 1024)
FACTORS = (1, 2, 4, 8, 16, 32)
FULL_WAVES = (1, 2, 4, 8)


def crossed_choices(axes: Mapping[str, Sequence[Value]]) -> Iterator[Choices]:
    """Yield every combination of the axes' values."""
    for values in product(*axes.values()):
        yield tuple(zip(axes, values, strict=True))


def axes_of(request: Request) -> dict[str, Sequence[Value]]:
    """Return the default search space of a kernel of the catalogue."""
    entry = request.entry
    axes: dict[str, Sequence[Value]] = {
        "block": [block for block in BLOCKS if entry.block_rule.allows(block)]
    }
    if entry.default_coarse:
        axes["coarse"] = FACTORS
    if entry.grid_free:
        axes[WAVES] = FULL_WAVES
    return axes


def require_axes(request: Request | Asked, axes: Mapping[str, Sequence[Value]]) -> None:
    """Raise InputError if a kernel has no such parameter, or its launch rule decides it."""
    if isinstance(request, Request):
        if "coarse" in axes and not request.entry.default_coarse:
            raise InputError(f"{request.kernel} has no coarsening factor")
        if WAVES in axes and not request.entry.grid_free:
            raise InputError(f"the grid of {request.kernel} follows from n and the block")
    request.with_values({name: values[0] for name, values in axes.items() if name != WAVES})


def with_choices(
    request: Request | Asked, choices: Mapping[str, Value], device: Device, code: str
) -> Request | Asked:
    """Return a request with chosen values; "waves" is a grid of that many full waves.

    Raises GpusimError for values that the kernel does not support.
    """
    values = {name: value for name, value in choices.items() if name != WAVES}
    made = request.with_values(values) if values else request
    if WAVES not in choices:
        return made
    return made.with_values(
        {"grid": _grid(made, whole_number(choices[WAVES], "waves"), device, code)}
    )


def _grid(request: Request | Asked, waves: int, device: Device, code: str) -> int:
    """Return the blocks of full waves on a device, at most one for each chunk of elements."""
    if isinstance(request, Request) and not request.entry.grid_free:
        raise InputError(f"{request.kernel} has no free grid: it follows from n and the block")
    launch = job_of(request.with_values({"grid": 1})).in_code(code).launches[0]
    prepared = launch.prepared(device.cc)
    blocks = waves * occupancy(prepared, device).blocks * device.gpu.sms
    return min(blocks, -(-launch.setup.n // launch.setup.chunk)) if launch.setup else blocks
