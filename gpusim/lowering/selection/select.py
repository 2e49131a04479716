"""Instruction selection: each operation becomes rows of machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpusim.compiler.ir import BOOL, Block, Function, Value
from gpusim.launch.grid import ComputeCapability
from gpusim.lowering.analysis.alias import array_of
from gpusim.lowering.analysis.divergence import Divergence
from gpusim.lowering.choices import CHOICES, type_class
from gpusim.lowering.code import Code, Phi, Row
from gpusim.lowering.passes.address_lowering import Addresses
from gpusim.lowering.selection import memory, threads, values
from gpusim.lowering.selection.division import Emitter
from gpusim.lowering.selection.fuse import absorb, absorb_shared, absorb_signs, joined
from gpusim.lowering.selection.logic import absorb_logic, write_logic
from gpusim.lowering.selection.selection import Selection
from gpusim.lowering.selection.wide import write_product, write_upper_half


def select(
    function: Function,
    cc: ComputeCapability,
    divergence: Divergence,
    addresses: Addresses,
    *,
    fuse: bool,
) -> Code:
    """Return the function as rows; its blocks keep the control flow and lose their bodies.

    `fuse` joins operations into one instruction where the machine has one for them.
    """
    selection = Selection(function, cc, divergence, addresses, fuse)
    if fuse:
        for block in function.blocks:
            absorb(selection, block)
            absorb_logic(selection, block)
        absorb_shared(selection)
        absorb_signs(selection)
    return _run(selection)


def _run(selection: Selection) -> Code:
    """Select every block's rows."""
    for block in selection.function.blocks:
        selection.code.phis[block] = [Phi(selection.register(v), [], v.line) for v in block.phis]
    for block in selection.function.blocks:
        selection.block = block
        selection.constants = {}
        selection.emit = Emitter(selection.code, [])
        selection.code.rows[block] = selection.emit.rows
        if block is selection.function.entry:
            _prologue(selection)
        for value in block.body:
            if value.op == "const":
                continue
            alone = value in selection.inside or value not in selection.live
            if not alone or value in selection.of_source or value.operation.describes:
                selection.emit.line = value.line
                selection.emit.shadow = alone
                _value(selection, value)
                selection.emit.shadow = False
        _end(selection, block)
    for block in selection.function.blocks:
        for phi, value in zip(selection.code.phis[block], block.phis, strict=True):
            phi.src = [selection.register(a) for a in value.args]
        block.body = []
    return selection.code


def _prologue(selection: Selection) -> None:
    """Set up the stack pointer and, where there is one, the descriptor of global memory."""
    selection.emit.line = selection.function.entry.line
    stack = "LDC" if selection.cc.major >= 9 else "MOV"
    selection.emit.rows.append(Row(stack, detail=("stack",), line=selection.emit.line))
    touches = any(
        v.operation.access and array_of(v).space == "global" for v in selection.function.values()
    )
    if touches and selection.cc.major >= 8:
        selection.emit.rows.append(Row("ULDC", detail=("descriptor",), line=selection.emit.line))


def _end(selection: Selection, block: Block) -> None:
    condition = block.condition
    if condition is None:
        return
    while condition.op == "not":
        condition = condition.args[0]
        block.targets = block.targets[::-1]
    selection.code.condition[block] = selection.register(condition)


def _value(selection: Selection, value: Value) -> None:
    handler = CHOOSERS.get(value.op)
    if handler is not None:
        handler(selection, value)
    elif value in selection.absorbed and not selection.emit.shadow:
        joined(selection, value, selection.absorbed[value])
    elif value in selection.logic and not selection.emit.shadow:
        write_logic(selection, value)
    elif value.op == "not" and value.dtype == BOOL and not selection.users.get(value):
        selection.emit.shadow = True
        if value in selection.of_source:
            _plain(selection, value)
    else:
        _plain(selection, value)


def _plain(selection: Selection, value: Value) -> None:
    """Write the table's row for an operation."""
    assert value.dtype is not None
    if write_product(selection, value) or write_upper_half(selection, value):
        return
    works_in = value.args[0].dtype if value.op not in ("select",) else value.dtype
    assert works_in is not None
    choice = CHOICES[value.op, type_class(works_in)]
    selection.emit.blank(choice.before)
    src = selection.sources(value)
    if choice.zero:
        src = (*src, selection.emit.number(0, works_in))
    selection.write(value, choice.op, *src, detail=choice.detail)


Chooser = Callable[[Selection, Value], None]

CHOOSERS: Mapping[str, Chooser] = {
    "param": memory.fetch,
    "length": memory.fetch,
    "stride": memory.fetch,
    "pointer": memory.fetch,
    "sreg": memory.special_register,
    "shared_base": memory.shared_base,
    "address": memory.address,
    "load": memory.load,
    "load_vector": memory.load_vector,
    "element": memory.element,
    "store": memory.store,
    "store_vector": memory.store,
    "atomic": memory.atomic,
    "bounds": memory.bounds,
    "barrier": threads.barrier,
    "syncwarp": threads.syncwarp,
    "shuffle": threads.shuffle,
    "vote": threads.vote,
    "match": threads.match,
    "activemask": threads.activemask,
    "fence": threads.fence,
    "source_branch": threads.source_branch,
    "source_check": threads.source_check,
    "select": values.select,
    "cast": values.cast,
    "held": values.held,
    "math": values.math,
    "undef": values.undefined,
    "idiv": values.division,
    "rem": values.division,
}
