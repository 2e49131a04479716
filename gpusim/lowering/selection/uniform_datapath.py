"""The uniform datapath: the values that are computed once for a whole warp."""

from __future__ import annotations

from gpusim.compiler.ir import INT32, UINT32, Function, Value
from gpusim.compiler.operations import SPECIAL_REGISTERS
from gpusim.lowering.analysis.def_use import users
from gpusim.lowering.analysis.divergence import Divergence
from gpusim.lowering.analysis.live_values import live_values


def uniform_values(function: Function, divergence: Divergence) -> set[Value]:
    """Return the values that a compiler keeps in uniform registers.

    They are 32-bit integers that all lanes agree on, computed where all lanes run, from the
    launch's constants; and every reader can take a uniform register where it needs it.
    """
    found: set[Value] = set()
    for block in function.blocks:
        if block not in divergence.apart:
            for value in (*block.phis, *block.body):
                launch = value.op == "sreg" and SPECIAL_REGISTERS[value.detail].is_of_launch
                computed = (
                    value.operation.uniform == "computes" and value not in divergence.divergent
                )
                if value.dtype in (INT32, UINT32) and (launch or computed):
                    found.add(value)
    needed = live_values(function)
    readers = {v: [u for u in some if u in needed] for v, some in users(function).items()}
    changed = True
    while changed:
        changed = False
        for value in [v for v in function.values() if v in found]:
            fed = all(a.op == "const" or a in found for a in value.args)
            if not fed or not all(_takes(user, value, found) for user in readers.get(value, [])):
                found.remove(value)
                changed = True
    return found


def _takes(user: Value, value: Value, found: set[Value]) -> bool:
    if user in found:
        return True
    if user.operation.scales:
        return user.args[0] is not value
    if user.operation.is_comparison:
        other = user.args[1] if user.args[0] is value else user.args[0]
        return other.constant is None or other.constant == 0
    return bool(user.operation.uniform)
