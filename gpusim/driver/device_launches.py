"""Launches by kernels (dynamic parallelism): read from the memory of the module that gave them.

`native/device_runtime.cu` notes a launch there. The launches of a grid begin when it has ended, in
the order given, each with its own launches before the next one: of the orders that CUDA allows, one
in which all that a launch may count on has happened. Tail launches come after the others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from gpusim.driver.arena import Region
from gpusim.driver.module import Function
from gpusim.errors import LaunchError
from gpusim.launch.grid import Launch
from gpusim.machine.banks import FUNCTION_HIGH

_COUNT, _LAUNCHES = "gpusim_device_launch_count", "gpusim_device_launches"
_RECORD, _PARAMETER_BYTES = struct.Struct("<QQ3I3III"), 4096
_TAIL = 3  # cudaStreamTailLaunch
_HALF = 32


class DeviceLaunch(NamedTuple):
    """A launch that a kernel gave."""

    function: Function
    launch: Launch
    parameters: bytes


def given_by(function: Function) -> tuple[list[DeviceLaunch], Region | None]:
    """Return the launches that a kernel's last launch gave, and the memory of their count.

    They are taken out of that memory. LaunchError for a kernel that is unknown.
    """
    arrays = function.module.arrays(function.code)
    if _COUNT not in arrays or _LAUNCHES not in arrays:
        return [], None
    counted = arrays[_COUNT]
    (count,) = struct.unpack("<Q", counted.bytes[:8].tobytes())
    if not count:
        return [], None
    counted.bytes[:8] = 0
    found = list(_records(function, arrays[_LAUNCHES], count))
    in_order = sorted(found, key=lambda one: one[0] == _TAIL)
    return [launch for _, launch in in_order], counted


def _records(giver: Function, held: Region, count: int) -> Iterator[tuple[int, DeviceLaunch]]:
    """Yield the stream of each launch, and the launch."""
    size = _RECORD.size + _PARAMETER_BYTES
    for begin in range(0, count * size, size):
        raw = held.bytes[begin : begin + _RECORD.size].tobytes()
        address, stream, *sizes, shared, is_given = _RECORD.unpack(raw)
        if not is_given:
            continue
        function = _function(giver, address)
        x, y, z, *block = sizes
        launch = Launch.of((x, y, z), (block[0], block[1], block[2]), shared)
        behind = begin + _RECORD.size
        parameters = held.bytes[behind : behind + function.bytes].tobytes()
        yield stream, DeviceLaunch(function, launch, parameters)


def _function(giver: Function, address: int) -> Function:
    """Return the kernel of an address, a word of the giver's bank of addresses."""
    name = giver.code.cubin.functions.get(address & (1 << _HALF) - 1, "")
    function = giver.module.function(name) if address >> _HALF == FUNCTION_HIGH else None
    if function is None:
        raise LaunchError(
            f"{giver.name} launches a kernel by an address of another kernel's code; it is "
            "simulated where the launch names the kernel"
        )
    return function
