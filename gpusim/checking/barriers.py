"""Barriers of a block: divergent barriers, missing threads, masks that name exited lanes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from gpusim.checking.clocks import LANE_BITS, Clocks, names, participants
from gpusim.checking.findings import Finding, Place, Thread
from gpusim.checking.sink import Sink
from gpusim.cuda_cpp.control_statements import Control, Function, left_early, statements_of
from gpusim.isa.lines import calls_of, in_words
from gpusim.isa.ops import Program
from gpusim.launch.events import BarrierOpened, Placement, Step
from gpusim.launch.languages import PYTHON
from gpusim.program.flow import reachable
from gpusim.typing import Array

SourceText = tuple[str, str]  # the text, "" where it is not known, and its language

STAYED = -1
NOWHERE = np.int64(2**31)  # after all places in the source


class Barriers:
    """Checks each opened barrier: the threads that arrived, and the threads that had exited.

    Where warps run in lockstep a barrier counts warps and waits for all threads of the block;
    later it is "enforced per thread", and waits for "all non-exited threads" (CUDA C++
    Programming Guide, section on compute capability 7.x).
    """

    def __init__(
        self, sink: Sink, program: Program, source: SourceText, *, is_lockstep: bool
    ) -> None:
        self._sink = sink
        self._source = source
        self._is_lockstep = is_lockstep
        self._lines = [instruction.line for instruction in program.instructions]
        places = [(line, calls_of(line)) for line in self._lines]
        numbers = {place: number for number, place in enumerate(sorted(set(places)))}
        self._sources = np.array([numbers[place] for place in places])
        self._reach: dict[int, frozenset[int]] = {}
        self._copies: dict[int, Array] = {}
        self._skipped: dict[tuple[int, int], bool] = {}
        self._program = program

    def open(self, opened: BarrierOpened, clocks: Clocks, gone_at: Array) -> None:
        """Check a barrier that has opened; `gone_at` is the pc of lanes' exits, by row and lane."""
        warps = opened.placement.warps_per_block
        blocks, block = np.unique(opened.rows // warps, return_inverse=True)
        sources = self._sources[opened.pcs]
        first, last = np.full(len(blocks), NOWHERE), np.zeros(len(blocks), dtype=np.int64)
        np.minimum.at(first, block, sources)
        np.maximum.at(last, block, sources)
        apart = np.flatnonzero(first != last)
        if len(apart):
            self._places(opened, sources, block == apart[0], len(apart))
        rows = blocks[:, None] * warps + np.arange(warps)
        gone = gone_at[rows].reshape(len(blocks), -1)
        if (gone != STAYED).any():
            pcs = np.zeros(len(blocks), dtype=np.int64)
            pcs[block] = opened.pcs
            self._missed(rows, pcs, gone, clocks.placement)

    def _places(self, opened: BarrierOpened, sources: Array, here: Array, count: int) -> None:
        """Report warps of a block that waited at barriers in different lines, or by other calls."""
        chosen = [
            np.flatnonzero(here & (sources == one))[0] for one in np.unique(sources[here])[:2]
        ]
        lines = [self._lines[int(opened.pcs[one])] for one in chosen]
        who = [_thread(opened.placement, int(opened.rows[one]), 0) for one in chosen]
        places = tuple(
            Place(line, "waits", thread) for line, thread in zip(lines, who, strict=True)
        )
        message = (
            f"warp {who[0].warp} of block {who[0].block} waits at the barrier in "
            f"{in_words(lines[0])}, warp {who[1].warp} at the one in {in_words(lines[1])}: the "
            "condition above them diverges within the block"
        )
        self._sink.add(Finding("barrier-place", message, places, count=count))

    def _missed(self, rows: Array, barrier: Array, gone: Array, placement: Placement) -> None:
        """Report threads that exited before a barrier opened for the others."""
        for block in range(len(rows)):
            pc = int(barrier[block])
            left = [place for place in np.unique(gone[block]).tolist() if place != STAYED]
            for place in left:
                position = int(np.argmax(gone[block] == place))
                row, lane = int(rows[block][position // 32]), position % 32
                copies = self._copies.get(pc) if placement.folded else None
                copy = 0 if copies is None else int(copies[row, lane])
                who = _thread(placement, row, lane, copy)
                skips = self._is_skipped(pc, place)
                rule = "barrier-missed" if skips or self._is_lockstep else "barrier-after-return"
                how = "does not reach" if skips else "has exited before"
                message = f"{who} {how} the barrier in line {self._lines[pc]}, at which others wait"
                where = (
                    Place(self._lines[pc], "waits"),
                    Place(self._lines[place], "leaves", who),
                )
                count = int(np.count_nonzero(gone[block] == place))
                self._sink.add(Finding(rule, message, where, count=count))

    def skip(self, step: Step, lanes: Array) -> None:
        """Note the first block, of blocks run as one, with lanes that skip a barrier."""
        if step.placement.folded:
            shape = step.placement.warps_per_block, 32
            copies = self._copies.setdefault(step.pc, np.zeros(shape, dtype=np.int64))
            some, first = lanes.any(axis=0), lanes.argmax(axis=0)
            copies[step.rows] = np.where(some, first, copies[step.rows])

    def _is_skipped(self, pc: int, place: int) -> bool:
        """Return whether threads that exited at a place branched around an instruction.

        Otherwise they took an early return. If the source does not tell, threads that exit after
        the instruction branched around it.
        """
        if (pc, place) not in self._skipped:
            known = self._left_early(self._lines[pc], self._lines[place])
            self._skipped[pc, place] = place in self._reachable(pc) if known is None else not known
        return self._skipped[pc, place]

    def _left_early(self, line: int, exit_line: int) -> bool | None:
        calls, left = calls_of(line), [exit_line, *(call.line for call in calls_of(exit_line))]
        text, language = self._source
        if language == PYTHON:
            return left_python_early(text, [line, *(call.line for call in calls)], left)
        named = [(call.line, _plain(call.function)) for call in calls]
        return statements_of(text).left_early([(line, ""), *named], left) if text else None

    def came_apart(self, opened: BarrierOpened, clocks: Clocks) -> Finding | None:
        """Return a finding if only some lanes of a warp waited at a numbered barrier."""
        assert opened.lanes is not None
        rows, which = np.unique(opened.rows, return_inverse=True)
        came = np.zeros((len(rows), 32), dtype=bool)
        np.logical_or.at(came, which, opened.lanes)
        return self._apart(opened.placement, rows, came, clocks, int(opened.pcs[0]))

    def arrived_apart(self, step: Step, clocks: Clocks) -> Finding | None:
        """Return a finding if only some lanes of a warp arrived at a barrier without waiting."""
        came = np.asarray(step.on.all(axis=0))
        some = came.any(axis=1)
        return self._apart(step.placement, step.rows[some], came[some], clocks, step.pc)

    def _apart(
        self, placement: Placement, rows: Array, came: Array, clocks: Clocks, pc: int
    ) -> Finding | None:
        missing = clocks.live[rows] & ~came
        if not missing.any():
            return None
        row, lane = (int(place[0]) for place in np.nonzero(missing))
        who, line = _thread(placement, int(rows[row]), lane), self._lines[pc]
        message = (
            f"{who} is not converged with the other lanes of its warp at the barrier in line "
            f"{line}: all threads of a warp participate in a named barrier"
        )
        count = int(np.count_nonzero(missing))
        return Finding("barrier-apart", message, (Place(line, "waits", who),), count=count)

    def named_in_vain(self, step: Step, clocks: Clocks) -> Finding | None:
        """Return a finding if a warp barrier's mask names lanes that never arrive."""
        named, active = names(step), participants(step)
        whom = np.ones((1, 1, 32), dtype=bool) if named is None else named
        missing = whom & clocks.exists[step.rows][:, None, :] & ~active[:, None, :]
        callers = np.asarray((missing & active[:, :, None]).any(axis=2))
        if not callers.any():
            return None
        row, lane = (int(place[0]) for place in np.nonzero(callers))
        who, line = _thread(step.placement, int(step.rows[row]), lane), step.instruction.line
        message = f"the mask of {who} in line {line} has bits of lanes that exited or never arrive"
        count = int(np.count_nonzero(callers))
        return Finding("mask", message, (Place(line, "calls", who),), count=count)

    def outside(self, step: Step, mask: Array) -> Finding | None:
        """Return a finding if a caller's own bit is not set in its mask."""
        wrong = step.on & ((mask.astype(np.uint32) & LANE_BITS) == 0)
        return self._of_mask(step, wrong, mask, "does not name the calling lane")

    def absent(self, step: Step, mask: Array, clocks: Clocks, gone_at: Array) -> Finding | None:
        """Return a finding if lanes in a mask neither come with a caller nor returned early."""
        gone, awaited = gone_at[step.rows], clocks.live[step.rows]
        if (gone != STAYED).any():
            places = np.unique(gone).tolist()
            skipped = [one for one in places if one != STAYED and self._is_skipped(step.pc, one)]
            awaited = awaited | np.isin(gone, skipped)
        missing = ((mask & LANE_BITS) != 0) & awaited & ~step.on
        wrong = step.on & missing.any(axis=2, keepdims=True)
        if not wrong.any():
            return None
        copy, row, _ = (int(place[0]) for place in np.nonzero(wrong))
        lane = int(np.argmax(missing[copy, row]))
        return self._of_mask(step, wrong, mask, f"names lane {lane}, but that lane does not arrive")

    def _of_mask(self, step: Step, wrong: Array, mask: Array, what: str) -> Finding | None:
        """Return the finding of callers with a wrong mask, by copy, row and lane; None for none."""
        if not wrong.any():
            return None
        copy, row, lane = (int(place[0]) for place in np.nonzero(wrong))
        value = int(np.broadcast_to(mask, wrong.shape)[copy, row, lane]) & 0xFFFFFFFF
        who, line = _thread(step.placement, int(step.rows[row]), lane, copy), step.instruction.line
        message = f"the mask {value:#010x} of {who} in line {line} {what}"
        count = int(np.count_nonzero(wrong)) * (step.placement.copies // len(wrong))
        return Finding("mask", message, (Place(line, "calls", who),), count=count)

    def read_in_vain(self, step: Step) -> Finding | None:
        """Return a finding if lanes shuffle values from inactive lanes."""
        if step.sources is None or step.mask is not None or step.on.all():
            return None
        on, source = np.broadcast_arrays(step.on, step.sources)
        wrong = on & ~np.take_along_axis(on, source, axis=2)
        if not wrong.any():
            return None
        copy, row, lane = (int(place[0]) for place in np.nonzero(wrong))
        who, line = _thread(step.placement, int(step.rows[row]), lane, copy), step.instruction.line
        message = (
            f"{who} reads in line {line} from lane {source[copy, row, lane]}, an inactive lane of "
            "the shuffle"
        )
        count = int(np.count_nonzero(wrong)) * (step.placement.copies // len(wrong))
        return Finding("mask", message, (Place(line, "calls", who),), count=count)

    def _reachable(self, start: int) -> frozenset[int]:
        """Return the pcs that may be executed after one."""
        if start not in self._reach:
            self._reach[start] = frozenset(reachable(self._program, start))
        return self._reach[start]


def _plain(function: str) -> str:
    """Return a function's name as a call has it: without namespaces and template arguments."""
    return function.partition("<")[0].rpartition("::")[2]


def _thread(placement: Placement, row: int, lane: int, copy: int = 0) -> Thread:
    block = int(placement.block_of(np.array([row])).reshape(-1)[copy])
    return Thread(block, int(placement.warp_of(np.array(row))) * 32 + lane)


_CONTROLS = (ast.If, ast.For, ast.While)


def left_python_early(text: str, reached: Sequence[int], left: Sequence[int]) -> bool | None:
    """Return whether threads have taken an early return before a place, as `left_early` does.

    The place is given by its line and those of the calls of its functions, innermost first.
    """
    functions = [(line, _around(text, line)) for line in reached]
    known = [(line, function) for line, function in functions if function is not None]
    return left_early(known, left, int) if len(known) == len(functions) else None


def _around(text: str, line: int) -> Function | None:
    found = [one for one in _functions(text) if line in one.body]
    return found[-1] if found else None


@lru_cache(maxsize=4)
def _functions(text: str) -> Sequence[Function]:
    """Return the functions of a text, each before those within it; none of text with errors."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [_function(node) for node in sorted(nodes, key=lambda node: node.lineno)]


def _function(node: ast.FunctionDef) -> Function:
    made = Function(_lines(node))
    for inner in ast.walk(node):
        if isinstance(inner, _CONTROLS):
            body = range(inner.body[0].lineno, _lines(inner).stop)
            is_loop = not isinstance(inner, ast.If)
            leaves = any(isinstance(one, ast.Break | ast.Continue) for one in ast.walk(inner))
            is_uniform = isinstance(inner, ast.For) and _is_constant(inner.iter) and not leaves
            made.controls.append(
                Control(inner.lineno, body, is_loop=is_loop, is_uniform=is_uniform)
            )
        elif isinstance(inner, ast.Return):
            made.returns.append(inner.lineno)
    return made


def _is_constant(node: ast.expr) -> bool:
    """Return whether a loop iterates over a range of numbers."""
    return isinstance(node, ast.Call) and all(isinstance(one, ast.Constant) for one in node.args)


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
