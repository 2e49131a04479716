"""Instructions for threads together, and rows for the conditionals of the source."""

from __future__ import annotations

from gpusim.compiler.ir import BOOL, INT32, UINT32, Value
from gpusim.isa.lanes import SEGMENT_AT, last_lane, shuffle_limits
from gpusim.lowering.code import Row
from gpusim.lowering.selection.selection import Selection

FULL_MASK = 0xFFFFFFFF
LEAST_CC_OF_MATCH_ALL = 8
# Instructions that nvcc writes as ERRBAR, CGAERRBAR (of clusters, from 9.0 on) and CCTL.IVALL.
BEHIND_A_FENCE = "ERRBAR ERRBAR ERRBAR"
BEHIND_A_FENCE_OF_8 = "ERRBAR ERRBAR"


def barrier(selection: Selection, value: Value) -> None:
    """Wait for the block."""
    dst = () if value.dtype is None else (selection.register(value),)
    row = Row("BAR", dst, selection.sources(value), value.dtype, value.detail, line=value.line)
    selection.emit.rows.append(row)


def _names_all(mask: Value) -> bool:
    """Return whether a mask is known to name all lanes."""
    return mask.constant is not None and int(mask.constant) & FULL_MASK == FULL_MASK


def syncwarp(selection: Selection, value: Value) -> None:
    """Wait for the warp; lanes that are together anyway do nothing."""
    if _names_all(value.args[0]) and selection.block not in selection.apart:
        selection.emit.blank("NOP")
    else:
        selection.emit.rows.append(Row("WARPSYNC", (), selection.sources(value), line=value.line))


def shuffle(selection: Selection, value: Value) -> None:
    """Take a value from another lane; 64 bits go by halves."""
    assert value.dtype is not None
    *src, width = selection.sources(value)
    src.append(_limits(selection, value, width))
    detail = (value.detail, "value")
    if value.dtype.itemsize == 8:
        row = Row("SHFL", (), tuple(src), value.dtype, detail, line=value.line)
        selection.emit.rows.append(row)
    selection.write(value, "SHFL", *src, detail=detail)


def _limits(selection: Selection, value: Value, width: int) -> int:
    """Return the limits of a shuffle: a constant, or computed by rows that are not issued."""
    emit, known = selection.emit, value.args[-1].constant
    if known is not None:
        return emit.number(shuffle_limits(value.detail, int(known)), INT32)
    rest = emit.row(".IADD3", INT32, emit.number(32, INT32), width, detail="+-")
    last = emit.number(last_lane(value.detail), INT32)
    return emit.row(".LEA", INT32, rest, last, detail=SEGMENT_AT)


def vote(selection: Selection, value: Value) -> None:
    """Ask the lanes about a predicate."""
    selection.write(value, "VOTE", *selection.sources(value), detail=(value.detail,))


def match(selection: Selection, value: Value) -> None:
    """Compare a value among lanes."""
    if value.detail == "any":
        selection.write(value, "MATCH", *selection.sources(value), detail=("any",))
    elif selection.cc.major >= LEAST_CC_OF_MATCH_ALL:
        dst = (selection.code.register(UINT32), selection.code.register(BOOL))
        src = selection.sources(value)
        row = Row("MATCH", dst, src, UINT32, ("all", "agree"), line=value.line)
        selection.emit.rows.append(row)
        selection.vectors[value] = list(dst)
    else:
        _match_all_by_any(selection, value)


def _match_all_by_any(selection: Selection, value: Value) -> None:
    """Compare the lanes that have a lane's value with all that are named, as nvcc does for 7.x."""
    emit, mask = selection.emit, selection.register(value.args[0])
    same = emit.row("MATCH", UINT32, *selection.sources(value), detail=("any",))
    named = emit.row("ACTIVEMASK", UINT32, detail=("ballot",))
    if not _names_all(value.args[0]):
        named = emit.row("LOP3", UINT32, named, mask, detail="and")
    both = emit.row("LOP3", UINT32, same, named, detail="and")
    alike = emit.row("ISETP", BOOL, both, named, detail=("eq",))
    found = emit.row("SEL", UINT32, named, emit.number(0, UINT32), alike)
    selection.vectors[value] = [found, alike]


def activemask(selection: Selection, value: Value) -> None:
    """Read the active mask."""
    selection.write(value, "ACTIVEMASK", detail=("ballot",))


def fence(selection: Selection, value: Value) -> None:
    """Order the thread's memory accesses; beyond the block, wait for errors, empty the L1."""
    selection.emit.rows.append(Row("MEMBAR", detail=value.detail, line=value.line))
    if selection.fuse and value.detail != "block":
        selection.emit.blank(BEHIND_A_FENCE if selection.cc.major >= 9 else BEHIND_A_FENCE_OF_8)


def source_branch(selection: Selection, value: Value) -> None:
    """Keep a conditional of the source: counted, but never issued."""
    selection.emit.rows.append(Row(".IF", (), selection.sources(value), line=value.line))


def source_check(selection: Selection, value: Value) -> None:
    """Keep a check of the source: examined, but never issued."""
    row = Row(".CHECK", (), selection.sources(value), detail=value.detail, line=value.line)
    selection.emit.rows.append(row)
