"""Addresses in the initial values of a file's variables: their arrays, and reachable variables."""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cached_property

from gpusim.errors import InputError
from gpusim.isa import ops as isa
from gpusim.sass import cubin
from gpusim.sass.bank_words import CONSTANTS
from gpusim.sass.cubin import ADDRESS_BYTES, Cubin, Variable


class Links:
    """The addresses stored in a cubin's memory, as addresses of arrays.

    A `__device__` variable is an array of its own, all `__constant__` ones are one. Of the
    addresses in bank 4, which the kernels of a file share, `asked` are the offsets that a kernel
    names; None for all: a file of the C++ library's headers has some 600, most for none of its
    kernels.
    """

    def __init__(self, held: Cubin, asked: Set[int] | None = None) -> None:
        self._held, self._asked = held, asked

    @cached_property
    def addresses(self) -> dict[int, tuple[str, int]]:
        """The arrays with addresses in bank 4, by offset."""
        found, asked = self._held.addresses.items(), self._asked
        return {
            offset: self._place(name, added)
            for offset, (name, added) in found
            if asked is None or not asked.isdisjoint(range(offset, offset + ADDRESS_BYTES))
        }

    @cached_property
    def of_constants(self) -> list[tuple[str, isa.Link]]:
        """The addresses in constant memory, each with the variable that it belongs to."""
        owners = [one for one in self._held.variables.values() if one.is_constant]
        return [self._owned(link, owners) for link in self._held.constant_links]

    @cached_property
    def of_variables(self) -> dict[str, tuple[isa.Link, ...]]:
        """The addresses in `__device__` variables that code may reach."""
        return {name: made for name in self.reachable if (made := self.by_variable.get(name))}

    @cached_property
    def reachable(self) -> tuple[str, ...]:
        """The `__device__` variables with addresses in code or in reachable memory."""
        waiting = [name for name, _ in self.addresses.values()]
        waiting += [link.array for _, link in self.of_constants]
        found: dict[str, None] = {}
        while waiting:
            name = waiting.pop()
            if name in self._held.variables and name not in found:
                found[name] = None
                waiting += [link.array for link in self.by_variable.get(name, ())]
        return tuple(found)

    @property
    def reach_constants(self) -> bool:
        """Whether an address of constant memory is reachable from code."""
        links = [link for made in self.of_variables.values() for link in made]
        links += [link for _, link in self.of_constants]
        asked = (name for name, _ in self.addresses.values())
        return CONSTANTS in {*asked, *(link.array for link in links)}

    @cached_property
    def by_variable(self) -> dict[str, tuple[isa.Link, ...]]:
        """The addresses in the initial values of all `__device__` variables."""
        owners = [one for one in self._held.variables.values() if not one.is_constant]
        made: dict[str, tuple[isa.Link, ...]] = {}
        for name, link in self._owned_all(owners):
            made[name] = (*made.get(name, ()), link)
        return made

    def _owned_all(self, owners: list[Variable]) -> Iterator[tuple[str, isa.Link]]:
        for link in self._held.links:
            name, found = self._owned(link, owners)
            begin = self._held.variables[name].offset
            yield name, found._replace(offset=link.offset - begin)

    def _owned(self, link: cubin.Link, owners: list[Variable]) -> tuple[str, isa.Link]:
        """Return the variable with an address in its initial value, and the address."""
        around = (v for v in owners if v.offset <= link.offset < v.offset + max(v.size, 1))
        owner = next(around, None)
        if owner is None or link.variable not in self._held.variables:
            name = "a variable" if owner is None else owner.name
            raise InputError(f"the initial value of {name} has an address of an unknown kind")
        return owner.name, isa.Link(link.offset, *self._place(link.variable, link.added))

    def _place(self, name: str, added: int) -> tuple[str, int]:
        variable = self._held.variables.get(name)
        if variable is not None and variable.is_constant:
            return CONSTANTS, variable.offset + added
        return name, added
