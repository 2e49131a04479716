"""Findings about one access or one computation alone: uninitialised reads, undefined behaviour."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusim.checking.access import Access
from gpusim.checking.accessed_elements import Spread
from gpusim.checking.element_access import ATOMIC, ElementAccess, thread_of
from gpusim.checking.findings import Finding, Place
from gpusim.checking.float_sums import Sum
from gpusim.checking.races import Name, thread_named
from gpusim.checking.rules import RULES
from gpusim.checking.shadow import Shadow
from gpusim.launch.events import Step
from gpusim.typing import Array


def never_written(
    never: Array, thread: Array, access: Access, name: Name, blocks: int
) -> Finding | None:
    """Return the finding for elements `never` written, by entry; each represents `blocks`."""
    if not never.any():
        return None
    at = int(np.argmax(never))
    array, index = name(at)
    who = thread_named(thread[at])
    message = (
        f"{who} reads {array}[{index}] of {access.space} memory in line {access.line}, "
        "which is uninitialised"
    )
    place = Place(access.line, "reads", who)
    count = int(np.count_nonzero(never)) * blocks
    return Finding("uninitialised", message, (place,), array, index, count=count)


def adds_floats(access: Access) -> bool:
    """Return whether an access adds floating-point numbers atomically: rounded in any order."""
    row = access.instruction
    is_float = row.memory is not None and row.memory.dtype.kind == "f"
    # Details of machine code say more: add_flushed, add_halves.
    begins = ("add", "sub") if is_float else ("add_",)
    is_sum = str(row.detail).startswith(begins) or access.swaps_sum
    return access.kind == "atomic" and is_sum


def shared_sum(shadow: Shadow, touch: ElementAccess, size: int) -> int | None:
    """Return the lowest element, of `size` of a memory, to which several threads add."""
    known = shadow.writer[touch.element]
    others = ((known & ATOMIC) != 0) & (thread_of(known) != touch.thread)
    ordered = np.sort(touch.element)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    found = np.append(touch.element[others], again) % size
    return int(found.min()) if len(found) else None


def order_of_sums(access: Access, array: str, index: int) -> Finding:
    """Return the finding that threads add floating-point numbers by atomics, in any order."""
    message = (
        f"several threads add to {array}[{index}] in line {access.line} by floating-point "
        "atomics: the last bits of the sum depend on their order"
    )
    return Finding("float-order", message, (Place(access.line, "updates"),), array, index)


def lost(note: Finding, array: str, index: int, found: Sum) -> Finding:
    """Return the finding that a sum has lost more than its last bits, in place of the `note`."""
    line = note.places[0].line
    message = (
        f"several threads add to {array}[{index}] in line {line} by floating-point atomics: {found}"
    )
    return replace(note, rule="float-lost", message=message, array=array, index=index)


def undefined(step: Step, threads: Array) -> Finding | None:
    """Return the finding for lanes with behaviour undefined in C; the detail is the rule."""
    assert step.taken is not None
    if not step.taken.any():
        return None
    spread = Spread(step, (step.placement.copies, len(step.rows), 32))
    wrong = spread.flat(step.taken)
    who = thread_named(spread.flat(threads[:, step.rows])[int(np.argmax(wrong))])
    row = step.instruction
    rule = str(row.detail)
    message = f"{who}, line {row.line}: {RULES[rule].title}"
    place = Place(row.line, "computes", who)
    return Finding(rule, message, (place,), count=int(np.count_nonzero(wrong)))
