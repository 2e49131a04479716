"""Loops that are unrolled, and threads that take more elements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusim.isa.ops import OPS
from gpusim.prediction.removals.registry import launch_mechanism, mechanism
from gpusim.prediction.removals.rows import are_at, repeated, without
from gpusim.prediction.setting import Setting
from gpusim.prediction.streams import BlockStream, Classes, WarpStream
from gpusim.program.loops import control
from gpusim.typing import Array

COARSER = 4  # elements of a thread in the place of one: the smallest factor of `gpusim tune`


@mechanism("loop-overhead")
def loop_overhead(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Its loop is unrolled: no counter, no comparison, no branch."""
    table = control(setting.prepared.program).values()
    mine = {pc for of_loop in table if not pcs.isdisjoint(of_loop) for pc in of_loop}

    def edit(block: BlockStream) -> BlockStream:
        return BlockStream(tuple(without(warp, are_at(warp, mine)) for warp in block.warps))

    return setting.with_blocks(edit)


@launch_mechanism("fine-grain")
def fine_grain(setting: Setting) -> Setting:
    """Each thread takes four times the elements, in a quarter of the blocks."""
    blocks = max(1, setting.prepared.launch.blocks // COARSER)
    usual = max(setting.classes.classes, key=lambda one: one.blocks)
    warps = tuple(_coarser(setting, warp) for warp in usual.stream.warps)
    whole = replace(usual, stream=BlockStream(warps), ranges=((0, blocks - 1),))
    launch = replace(setting.prepared.launch, grid=(blocks, 1, 1))
    return replace(
        setting,
        prepared=replace(setting.prepared, launch=launch),
        classes=Classes((whole,), setting.classes.probed, is_sampled=False),
    )


def _coarser(setting: Setting, warp: WarpStream) -> WarpStream:
    """Return a warp with its work on each element repeated."""
    counts = np.where(per_element(setting, warp), COARSER, 1)
    return repeated(warp, counts)


def per_element(setting: Setting, warp: WarpStream) -> Array:
    """Return a mask of the rows that a warp would run again for further elements.

    Where all its lanes store, from the first load of global memory to the last such store; where
    one number of many is left, the loads and the arithmetic of their lines.
    """
    rows = setting.prepared.program.instructions
    spaces = [row.memory.space if row.memory is not None else "" for row in rows]
    loads = [
        pc for pc, row in enumerate(rows) if OPS[row.op].kind == "load" and spaces[pc] == "global"
    ]
    stores = [
        pc for pc, row in enumerate(rows) if OPS[row.op].kind == "store" and spaces[pc] == "global"
    ]
    first = are_at(warp, loads) & warp.is_on
    stored = are_at(warp, stores) & warp.is_on & (warp.lanes == np.uint32(0xFFFFFFFF))
    if not first.any():
        return np.zeros(len(warp), dtype=bool)
    place = np.arange(len(warp))
    if stored.any():
        return np.asarray((place >= np.argmax(first)) & (place <= np.flatnonzero(stored)[-1]))
    lines = {rows[pc].line for pc in warp.pc[first].tolist()}
    adds = [
        pc for pc, row in enumerate(rows) if row.line in lines and OPS[row.op].kind == "compute"
    ]
    return np.asarray(first | (are_at(warp, adds) & (place > np.argmax(first))))
