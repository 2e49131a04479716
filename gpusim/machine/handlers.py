"""The handler of each kind of instruction; `isa.OPS` names the kind of each op."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.machine import (
    access,
    async_copies,
    barrier,
    control,
    convergence,
    driver_calls,
    named_barrier,
    textures,
    values,
    warp,
)
from gpusim.machine.context import Handler

HANDLERS: Mapping[str, Handler] = {
    "compute": values.compute,
    "special": values.special,
    "constant": values.constant,
    "bank": values.bank,
    "load": access.load,
    "store": access.store,
    "atomic": access.atomic,
    "fence": access.fence,
    "shuffle": warp.shuffle,
    "vote": warp.vote,
    "match": warp.match,
    "elect": warp.elect,
    "transpose": warp.transpose,
    "reduce_lanes": warp.reduce_lanes,
    "warpsync": warp.warpsync,
    "barrier": barrier.barrier,
    "source_branch": control.source_branch,
    "bounds": access.bounds,
    "branch": control.branch,
    "branch_if_apart": control.branch_if_apart,
    "jump": control.jump,
    "call_driver": driver_calls.call_driver,
    "trap": control.trap,
    "part": control.part,
    "collect": warp.collect,
    "agrees": warp.agrees,
    "clock": values.clock,
    "texture": textures.fetch,
    "surface_load": textures.load,
    "surface_store": textures.store,
    "get_token": convergence.get_token,
    "set_token": convergence.set_token,
    "named_barrier": named_barrier.sync,
    "arrive": named_barrier.arrive,
    "exit": control.leave,
    "bssy": convergence.bssy,
    "break": convergence.give_back,
    "bsync": convergence.bsync,
    "commit_copies": async_copies.commit,
    "await_copies": async_copies.await_groups,
}
