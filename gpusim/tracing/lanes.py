"""The lanes of one execution: active lanes, stride, banks.

Pure readings of an `Execution`, for findings and for the drawings of `--line`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from gpusim.tracing.execution import Execution

BANK_BYTES = 4


def bank_count(cc: str) -> int:
    """Return the number of banks of shared memory: 16 for compute capability 1.x, else 32."""
    return 16 if cc.startswith("1.") else 32


def on_lanes(execution: Execution) -> list[int]:
    """Return the numbers of the lanes that take part."""
    return [lane for lane, on in enumerate(execution.on) if on]


def deciding_lanes(execution: Execution) -> list[int]:
    """Return the numbers of the lanes that decide a branch or a condition."""
    deciding = execution.on if is_condition(execution) else execution.active
    return [lane for lane, decides in enumerate(deciding) if decides]


def taken_lanes(execution: Execution) -> list[int]:
    """Return the numbers of the lanes that take the branch, or have a true condition."""
    taken = execution.taken or (False,) * len(execution.active)
    return [lane for lane in deciding_lanes(execution) if taken[lane]]


def diverges(execution: Execution) -> bool:
    """Return whether the lanes that decide disagree about a branch or condition."""
    if execution.taken is None:
        return False
    return 0 < len(taken_lanes(execution)) < len(deciding_lanes(execution))


def is_condition(execution: Execution) -> bool:
    """Return whether this is a conditional of the source, rather than an instruction."""
    return execution.op == ".IF"


def is_machine_branch(execution: Execution) -> bool:
    """Return whether this is a branch instruction."""
    return execution.op == "BRA"


def element_numbers(execution: Execution) -> dict[int, int]:
    """Return the element of the array that each lane touches first."""
    addresses = execution.addresses or ()
    size = execution.element_bytes or 1
    return {lane: addresses[lane] // size for lane in on_lanes(execution)}


def parts(execution: Execution, banks: int) -> list[list[int]]:
    """Return the lanes that are on in the groups that shared memory serves together.

    A whole warp where its words fit in the banks, else half-warps or quarter-warps.
    """
    size = max(1, banks // max(1, execution.width_bytes // BANK_BYTES))
    on = on_lanes(execution)
    groups = [[lane for lane in on if lane // size == part] for part in range(-(-32 // size))]
    return [group for group in groups if group]


def words_in_banks(
    execution: Execution, banks: int, among: Sequence[int] | None = None
) -> dict[int, dict[int, list[int]]]:
    """Return bank -> word -> lanes that touch it, words of 4 bytes from the array's start."""
    table: dict[int, dict[int, list[int]]] = {}
    addresses, first_banks = execution.addresses or (), execution.banks or ()
    for lane in on_lanes(execution) if among is None else among:
        start = addresses[lane] // BANK_BYTES
        last = (addresses[lane] + max(execution.width_bytes, 1) - 1) // BANK_BYTES
        for word in range(start, last + 1):
            bank = (first_banks[lane] + word - start) % banks
            table.setdefault(bank, {}).setdefault(word, []).append(lane)
    return table


def stride(execution: Execution) -> int | None:
    """Return the elements from one lane that is on to the next, None where it varies."""
    numbers = list(element_numbers(execution).values())
    steps = {after - before for before, after in pairwise(numbers)}
    return steps.pop() if len(steps) == 1 else None


def replays(execution: Execution) -> int:
    """Return the wavefronts above the least that the access needs."""
    return max(0, execution.wavefronts - execution.least_wavefronts)


def ranges(numbers: Sequence[int]) -> str:
    """Return sorted numbers as "0-3, 8"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(
        str(part[0]) if len(part) == 1 else f"{part[0]}{'-' if len(part) > 2 else ', '}{part[-1]}"
        for part in parts
    )


def which(lanes: Sequence[int], among: Sequence[int]) -> str:
    """Return in words a selection of the lanes `among`: "every 2nd lane", "lanes 0-15"."""
    if not lanes:
        return "no lane"
    if list(lanes) == list(among):
        return "all lanes" if len(lanes) > 1 else f"lane {lanes[0]}"
    if len(lanes) == 1:
        return f"lane {lanes[0]} alone"
    steps = {after - before for before, after in pairwise(lanes)}
    if len(steps) == 1 and len(lanes) > 2:
        step = steps.pop()
        if step == 1:
            return f"lanes {ranges(lanes)}"
        if lanes[0] < step and lanes[-1] + step > among[-1]:
            return f"every {ordinal(step)} lane"
    if len(lanes) <= 4:
        return f"lanes {ranges(lanes)}"
    return f"{len(lanes)} of {len(among)} lanes"


def ordinal(number: int) -> str:
    """Return 2nd, 3rd, 4th, ..."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
