"""Scalar promotion: an element that a loop updates stays in a register, stored after the loop.

Possible where every access in the loop that may touch the element is to the element
itself, the loop does not synchronise with other threads, and stores to it in any case.
"""

from __future__ import annotations

from gpusim.compiler.dominators import dominators
from gpusim.compiler.ir import Function, Value
from gpusim.lowering.analysis.alias import array_of, clobbers, location_of, reads
from gpusim.lowering.analysis.loops import Loop, natural_loops
from gpusim.lowering.graph import make_preheader, remove_values, split_edge
from gpusim.lowering.passes.ssa_repair import Variable, insert_phis
from gpusim.lowering.passes.store_to_load_forwarding import store_to_load_forwarding


def scalar_promotion(function: Function) -> bool:
    """Promote elements where possible, in inner loops first; return whether there were any."""
    changed = False
    while _promote_one(function):
        changed = True
    return changed


def _promote_one(function: Function) -> bool:
    """Promote one element of one loop; the graph's loops have to be found again after it."""
    for loop in natural_loops(function):
        stores = _candidate(function, loop)
        if stores:
            _load_before(function, loop, stores[0])
            store_to_load_forwarding(function)
            _store_after(function, loop, stores)
            return True
    return False


def _candidate(function: Function, loop: Loop) -> list[Value]:
    """Return the loop's stores to an element that can be promoted, none if there is none."""
    tree = dominators(function)
    home = {v: b for b in loop.blocks for v in (*b.phis, *b.body)}
    concerned = [v for b in loop.blocks for v in b.body if v.operation.concerns_memory]
    found: dict[tuple[object, ...], list[Value]] = {}
    for value in concerned:
        if value.op == "store" and not array_of(value).volatile and value.args[0] not in home:
            found.setdefault(location_of(value).key, []).append(value)
    for key, stores in found.items():
        alone = all(
            (
                v.operation.is_of_one_element
                and not array_of(v).volatile
                and location_of(v).key == key
            )
            or not (clobbers(v, stores[0]) or reads(v, stores[0]))
            for v in concerned
        )
        typed = all(v.args[1].dtype == array_of(v).dtype for v in stores)
        always = any(all(tree.dominates(home[v], e) for e, _ in loop.exits) for v in stores)
        if alone and typed and always and loop.exits:
            return stores
    return []


def _load_before(function: Function, loop: Loop, store: Value) -> None:
    """Load the element before the loop, so that forwarding finds it in every iteration."""
    key = location_of(store).key
    loads = [v for b in loop.blocks for v in b.body if v.op == "load" and location_of(v).key == key]
    if loads:
        before = make_preheader(function, loop)
        load = Value("load", loads[0].dtype, [store.args[0]], store.detail, loads[0].line)
        before.body = [*before.body, load]


def _store_after(function: Function, loop: Loop, stores: list[Value]) -> None:
    """Take the stores out of the loop and store the last value on each path out."""
    among = set(stores)
    ends = {b: v.args[1] for b in loop.blocks for v in b.body if v in among}
    model = stores[-1]
    variable = Variable(function, model.args[1].dtype, ends, model.line)
    for inside, outside in loop.exits:
        value = variable.at_end(inside)
        place = outside
        if any(pred not in loop.blocks for pred in outside.preds):
            place = split_edge(function, inside, outside)
        elif outside.preds[0] is not inside:
            continue
        else:
            value = variable.at_start(outside)
        store = Value("store", None, [model.args[0], value], model.detail, model.line)
        place.body = [store, *place.body]
    remove_values(function, among)
    insert_phis(function, [variable])
