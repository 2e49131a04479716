"""Instructions for threads together, and rows for the conditionals of the source."""

from __future__ import annotations

from gpusim.compiler.ir import Value
from gpusim.lowering.code import Row
from gpusim.lowering.selection.selection import Selection, selects

FULL_MASK = 0xFFFFFFFF


@selects("barrier")
def _barrier(selection: Selection, value: Value) -> None:
    dst = () if value.dtype is None else (selection.register(value),)
    row = Row("BAR", dst, selection.sources(value), value.dtype, value.detail, line=value.line)
    selection.emit.rows.append(row)


@selects("syncwarp")
def _syncwarp(selection: Selection, value: Value) -> None:
    mask = value.args[0].constant
    if (
        mask is not None
        and int(mask) & FULL_MASK == FULL_MASK
        and selection.block not in selection.apart
    ):
        selection.emit.blank("NOP")
    else:
        selection.emit.rows.append(Row("WARPSYNC", (), selection.sources(value), line=value.line))


@selects("shuffle")
def _shuffle(selection: Selection, value: Value) -> None:
    assert value.dtype is not None
    if value.dtype.itemsize == 8:
        src = selection.sources(value)
        selection.emit.rows.append(Row("SHFL", (), src, value.dtype, value.detail, line=value.line))
    selection.write(value, "SHFL", *selection.sources(value), detail=value.detail)


@selects("vote")
def _vote(selection: Selection, value: Value) -> None:
    selection.write(value, "VOTE", *selection.sources(value), detail=value.detail)


@selects("activemask")
def _activemask(selection: Selection, value: Value) -> None:
    selection.write(value, "ACTIVEMASK")


@selects("fence")
def _fence(selection: Selection, value: Value) -> None:
    selection.emit.rows.append(Row("MEMBAR", detail=value.detail, line=value.line))


@selects("source_branch")
def _source_branch(selection: Selection, value: Value) -> None:
    selection.emit.rows.append(Row(".IF", (), selection.sources(value), line=value.line))
