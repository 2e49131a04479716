"""Checks in compiled code: the facts that it needs, and its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from gpusim.checking.access import Access
from gpusim.checking.batch import Batch
from gpusim.checking.coverage import ARRAYS, LOCAL, STRONG
from gpusim.checking.element_access import MOST_BLOCKS
from gpusim.checking.float_sums import signed
from gpusim.checking.followed_registers import followed_registers
from gpusim.checking.index_products import index_products
from gpusim.checking.single_access import adds_floats
from gpusim.checking.state import CheckState, memory_of
from gpusim.isa.ops import OPS
from gpusim.launch.events import Step
from gpusim.machine.compiled.detection import Cells, Detection, Examined
from gpusim.machine.compiled.kinds import WIDE_SPACES
from gpusim.machine.exchanges import source_operands
from gpusim.typing import Array

EVERY_LANE = 0xFFFFFFFF
Actions = Sequence[Callable[[Step, Batch], None] | None]


# The lists of `Detection` by the action of their steps; no other steps are recorded.
_DETECTED = {
    "access_global": "accesses",
    "access_shared": "accesses",
    "access_local": "accesses",
    "look_up": "looked up",
    "ask": "conditions",
    "sync_warp": "meetings",
    "gather": "gathers",
    "exchange": "exchanges",
    "meet_masked": "whole",
    "arrive": "",
    "fence": "",
    "leave": "",
}


class CompiledCheck:
    """A check with `actions` by pc, for compiled code that finds races or writes steps down.

    It `needs_values` of registers to follow uninitialised values that a run without them has met.
    """

    def __init__(self, state: CheckState, actions: Actions) -> None:
        self._state, self._actions = state, actions
        self.needs_values = False

    def detection(self) -> tuple[Detection, Cells] | None:
        """Return the program's facts for compiled race detection; None where it cannot run."""
        state, program = self._state, self._state.program
        layout, every = state.layout, state.accesses
        has_parts = program.mask_registers or set(program.masks.values()) - {EVERY_LANE}
        has_numbers = any(OPS[row.op].has_number for row in program.instructions)
        by_values = state.uninitialised or state.bytes_loaded
        is_large = state.has_many_narrow or state.launch.blocks >= MOST_BLOCKS
        if is_large or has_parts or has_numbers or by_values:
            return None
        if state.has_copies or state.is_lockstep or program.clusters:
            return None
        asked: dict[str, list[int]] = {name: [] for name in _DETECTED.values()}
        for pc, action in enumerate(self._actions):
            name = "" if action is None else _DETECTED.get(action.__name__)
            if name is None or (name == "accesses" and every[pc].is_narrow):
                return None
            asked[name].append(pc)
        shifts = {space: size.bit_length() - 1 for space, size in layout.element_bytes.items()}
        memory = [every[pc] for pc in asked["accesses"]]
        polls = tuple(
            one.pc
            for one in memory
            if one.kind == "load" and (one.is_optimistic or one.is_volatile)
        )
        gathers, exchanges = tuple(asked["gathers"]), tuple(asked["exchanges"])
        whole, rows, sizes = tuple(asked["whole"]), program.instructions, layout.sizes
        cells = Cells(
            layout.first_address,
            sizes["global"],
            sizes["shared"],
            layout.own_shared,
            sizes["local"],
        )
        return Detection(
            tuple((one.pc, shifts[one.space]) for one in memory),
            polls,
            self._sums(memory),
            (*asked["meetings"], *gathers, *exchanges, *whole),
            tuple(pc for pc in gathers if rows[pc].detail != "all"),
            exchanges,
            whole,
            tuple(asked["conditions"]),
            tuple(sorted(self._state.of_unknown_arrays)),
        ), cells

    def asked_steps(self, *, follows: bool, by_others: bool = False) -> Detection | None:
        """Return the steps that rules ask of compiled code; None where it cannot give them.

        With `follows` steps have values of registers, so that uninitialised ones can be followed.
        Other observers hear all accesses to global memory.
        """
        self._state.has_values, self._state.adds_up = follows, False
        followed = self._followed() if follows else {}
        rows, joined = self._state.program.instructions, self._state.program.joined
        steps: dict[int, tuple[int, ...]] = {}
        conditions: list[int] = []
        for pc, action in enumerate(self._actions):
            name = None if action is None else _DETECTED.get(action.__name__, "")
            if name == "conditions":
                conditions.append(pc)
            is_asked = name not in (None, "looked up")
            op, memory = OPS[rows[pc].op], rows[pc].memory
            is_asked |= by_others and memory is not None and memory.space in WIDE_SPACES
            is_asked |= op.has_number or (pc in joined and op.orders_lanes)
            if is_asked or pc in followed:
                steps[pc] = tuple(dict.fromkeys((*self._kept(pc), *followed.get(pc, ()))))
        sums = self._sums([one for pc, one in self._state.accesses.items() if pc in steps])
        if any(self._state.accesses[pc].space == "generic" for pc, _ in sums):
            return None
        unknown = tuple(
            pc
            for pc in self._state.of_unknown_arrays
            if rows[pc].looks_up_constants and pc not in steps
        )
        lists = (), (), sums, (), (), (), (), tuple(conditions), unknown
        products = {} if follows else index_products(self._state.program)
        swaps = tuple(pc for pc in followed if rows[pc].detail == "cas")
        return Detection(
            *lists, steps=tuple(steps.items()), products=tuple(products.items()), swaps=swaps
        )

    def _followed(self) -> Mapping[int, tuple[int, ...]]:
        """Return the registers to follow, by instruction, with those of products of indices."""
        program, rows = self._state.program, self._state.program.instructions
        has_empty_arrays = bool(self._state.uninitialised)
        followed = followed_registers(program, has_empty_arrays=has_empty_arrays)
        return {**followed, **{pc: rows[pc].src for pc in index_products(program)}}

    def _kept(self, pc: int) -> tuple[int, ...]:
        """Return the registers that rules read at an instruction."""
        row = self._state.program.instructions[pc]
        lanes = source_operands(row) if OPS[row.op].kind == "shuffle" else ()
        if OPS[row.op].kind == "arrive":
            return row.src
        masks, bytes_loaded = self._state.program.mask_registers, self._state.bytes_loaded
        return (*lanes, *(one[pc] for one in (masks, bytes_loaded) if pc in one))

    def _sums(self, accesses: Iterable[Access]) -> tuple[tuple[int, int], ...]:
        """Return atomics that add floating-point numbers, with the addition that they swap in."""
        return tuple(
            (one.pc, self._state.swaps.get(one.pc, -1)) for one in accesses if adds_floats(one)
        )

    def take_steps(self, found: Examined) -> bool:
        """Take over the counts of a launch with recorded steps.

        Return whether its findings are complete: values without an origin are not followed, nor
        those of indices that overflow.
        """
        state = self._state
        if found.overflows and state.sink.has("bounds"):
            self.needs_values = True
            return False
        state.coverage.accesses += found.accesses
        if found.of_unknown_arrays:
            state.coverage.not_compared[ARRAYS] += found.of_unknown_arrays
        self._take_lines(found)
        raced = state.sink.raced()
        for access, elements in state.never_written:
            for element in np.unique(elements).tolist():
                array, _ = state.layout.name(memory_of(access), element)
                if (array, access.line) not in raced:
                    self.needs_values = True
                    return False
        return True

    def take(self, found: Examined) -> None:
        """Take over the counts of a launch that race detection has examined."""
        coverage = self._state.coverage
        coverage.accesses, coverage.ordered = found.accesses, found.ordered
        if found.free:
            coverage.not_compared[STRONG] = found.free
        for pc, lowest in found.shared_sums.items():
            self._state.shared_sums[pc] = lowest, memory_of(self._state.accesses[pc])
        if self._state.follows and found.local_accesses:
            coverage.not_compared[LOCAL] = found.local_accesses
        if found.of_unknown_arrays:
            coverage.not_compared[ARRAYS] = found.of_unknown_arrays
        self._take_lines(found)

    def _take_lines(self, found: Examined) -> None:
        rows = self._state.program.instructions
        accessing = {access.line for access in self._state.accesses.values()}
        counted = (
            row.line
            for row, ran in zip(rows, found.ran.tolist(), strict=True)
            if ran and (row.memory is not None or row.line not in accessing)
        )
        issued = {row.line for row in rows if OPS[row.op].issued}
        self._state.coverage.lines_not_run = issued - {0, *counted}

    def added(self, made: Array) -> None:
        """Follow additions to sums in compiled code, in their order."""
        for pc in np.unique(made["pc"]).tolist():
            some, access = made[made["pc"] == pc], self._state.accesses[pc]
            kind = np.dtype(f"f{memory_of(access).dtype.itemsize}")
            bits = np.dtype(f"u{kind.itemsize}")
            before, value = (some[name].astype(bits).view(kind) for name in ("before", "value"))
            begin = self._state.layout.first_address if access.space == "global" else 0
            element = (some["address"] - begin) // self._state.layout.element_bytes[access.space]
            value = signed(access.instruction, value)
            self._state.float_sums.add_in_turn(pc, some["block"], element, before, value)
