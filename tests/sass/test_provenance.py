"""Which arrays an access by address may mean."""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import ANY_ARRAY, Instruction, Memory
from gpusim.sass.provenance import named

X, Y, Z = (0, 520), (0, 528), (0, 536)
POINTERS = {X: "x", Y: "y", Z: "z"}
ANYWHERE = Memory("global", "", np.dtype(np.int32), by_address=True)


def loaded_through(address: int, *before: Instruction) -> Memory:
    """Return what a load touches behind some rows; registers 1, 2 and 3 hold the pointers."""
    load = Instruction("LDG", dst=(9,), src=(address,), memory=ANYWHERE)
    *_, found = named([*before, load], dict(enumerate(POINTERS, 1)), POINTERS)
    assert found.memory is not None
    return found.memory


def test_an_address_made_from_one_pointer_means_that_array() -> None:
    memory = loaded_through(5, Instruction("IADD3", dst=(5,), src=(1, 7)))
    assert (memory.name, memory.places) == ("x", {"x"})
    assert memory.may_touch({"x"})
    assert not memory.may_touch({"y"})


def test_an_address_chosen_among_pointers_means_no_other_array() -> None:
    """`from = round % 2 ? y : x` leaves z alone."""
    memory = loaded_through(5, Instruction("SEL", dst=(5,), src=(1, 2, 7)))
    assert (memory.name, memory.places) == (ANY_ARRAY, {"x", "y"})
    assert memory.may_touch({"z", "y"})
    assert not memory.may_touch({"z"})
    assert memory.may_touch({ANY_ARRAY})


def test_an_address_of_which_nothing_is_known_means_any_array() -> None:
    memory = loaded_through(7)
    assert (memory.name, memory.places) == (ANY_ARRAY, {ANY_ARRAY})
    assert memory.may_touch({"z"})
