"""Initial memory: a file's variables and the banks with addresses in code, before a launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gpusim.errors import LaunchError
from gpusim.isa.ops import CONSTANT_BANK, Link
from gpusim.sass.cubin import Cubin, Variable
from gpusim.sass.translate import HEAP_BYTES, Code
from gpusim.typing import Array


class InitialMemory(NamedTuple):
    """Arrays by name, the bytes of constant memory, and the addresses that stand in either."""

    arrays: dict[str, Array]
    constants: bytes
    links: dict[str | int, tuple[Link, ...]]


def contents(code: Code, given: Mapping[str, Array]) -> InitialMemory:
    """Return the initial memory; `given` are the values set for variables, by their symbols."""
    return InitialMemory(_arrays(code, given), _constants(code.cubin, given), _links(code, given))


def _arrays(code: Code, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays for variables and banks with addresses in code or in memory."""
    made: dict[str, Array] = {}
    for name in code.links.reachable:
        made[name] = _array(code.cubin, code.cubin.variables[name], given.get(name))
    if code.heap:
        made[code.heap] = np.zeros(HEAP_BYTES, np.uint8)
    for name, (bank, begin) in code.images.items():
        size = len(code.cubin.constants) if bank else code.kernel.parameters_end - begin
        made[name] = np.zeros(max(size, 1), np.uint8)
    return made


def _array(held: Cubin, one: Variable, given: Array | None) -> Array:
    """Return a variable's memory: the given array, if that is all of it, else a copy."""
    if given is not None and given.nbytes == one.size and given.ndim and given.flags.writeable:
        return given
    made = _initial(held, one)
    if given is not None:
        made[: given.nbytes] = np.frombuffer(given.tobytes(), np.uint8)
    return made


def _initial(held: Cubin, variable: Variable) -> Array:
    """Return a variable's initial value: the system allocates zeros on first use."""
    try:
        made = np.zeros(variable.size, np.uint8)
    except MemoryError:
        raise LaunchError(
            f"{variable.name} has {variable.size:,} bytes, more than this machine has memory"
        ) from None
    first = held.globals[variable.offset : variable.offset + variable.size]
    made[: len(first)] = np.frombuffer(first, np.uint8)
    return made


def _constants(held: Cubin, given: Mapping[str, Array]) -> bytes:
    made = bytearray(held.constants)
    for name, value in given.items():
        one = held.variables[name]
        if one.is_constant:
            made[one.offset : one.offset + value.nbytes] = value.tobytes()
    return bytes(made)


def _links(code: Code, given: Mapping[str, Array]) -> dict[str | int, tuple[Link, ...]]:
    """Return the addresses in initial values that were not overwritten by the user."""
    set_bytes = {name: value.nbytes for name, value in given.items()}
    kept: dict[str | int, tuple[Link, ...]] = {
        name: tuple(link for link in links if link.offset >= set_bytes.get(name, 0))
        for name, links in code.links.of_variables.items()
    }
    known = code.cubin.variables
    kept[CONSTANT_BANK] = tuple(
        link
        for name, link in code.links.of_constants
        if link.offset - known[name].offset >= set_bytes.get(name, 0)
    )
    return {name: links for name, links in kept.items() if links}
