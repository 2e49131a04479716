"""What the machine does for each kind of instruction; `isa.OPS` names the kind of each op."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.machine import access, barrier, control, convergence, values, warp
from gpusim.machine.context import Handler

HANDLERS: Mapping[str, Handler] = {
    "compute": values.compute,
    "special": values.special,
    "constant": values.constant,
    "load": access.load,
    "store": access.store,
    "atomic": access.atomic,
    "fence": access.fence,
    "shuffle": warp.shuffle,
    "vote": warp.vote,
    "match": warp.match,
    "activemask": warp.activemask,
    "warpsync": warp.warpsync,
    "barrier": barrier.barrier,
    "source_branch": control.source_branch,
    "bounds": access.bounds,
    "branch": control.branch,
    "exit": control.leave,
    "bssy": convergence.bssy,
    "break": convergence.give_back,
    "bsync": convergence.bsync,
}
