"""Accesses to global, shared and local memory in a check."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpusim.checking.access import DOES, Access
from gpusim.checking.accessed_elements import Spread, by_memory, owners
from gpusim.checking.async_copies import InFlight
from gpusim.checking.batch import Batch
from gpusim.checking.cluster_clocks import ClusterClocks
from gpusim.checking.copy_steps import CopySteps
from gpusim.checking.coverage import ARRAYS, LOCAL
from gpusim.checking.element_access import BLOCK_SHIFT, ElementAccess
from gpusim.checking.origins import Reading, discards, swaps
from gpusim.checking.shadow import Shadow
from gpusim.checking.single_access import adds_floats, never_written, shared_sum, undefined
from gpusim.checking.state import CheckState, memory_of
from gpusim.checking.swapped_sums import with_addends
from gpusim.isa.ops import OPS, RANK_SHIFT
from gpusim.launch.events import Step
from gpusim.typing import Array


class MemoryAccesses:
    """Compares accesses with earlier ones to their elements; `copies` are asynchronous ones."""

    def __init__(self, state: CheckState, copies: CopySteps) -> None:
        self._state, self._copies = state, copies
        self.by_space: dict[str, Callable[[Step, Batch], None]] = {
            "global": self.access_global,
            "shared": self.access_shared,
            "local": self.access_local,
            "generic": self.access_generic,
        }

    def access_generic(self, step: Step, batch: Batch) -> None:
        """Check an access by generic addresses, memory by memory."""
        layout, cluster = self._state.program.layout, batch.clocks.cluster
        start = 0 if layout is None else layout.shared_start
        for part in by_memory(step, start, in_clusters=cluster is not None):
            assert part.instruction.memory is not None
            space = part.instruction.memory.space
            if space == "shared" and cluster is not None:
                assert step.addresses is not None
                ranks = (step.addresses & 0xFFFFFFFF) >> RANK_SHIFT
                blocks = cluster.block_of(step.rows[None, :, None], ranks)
                self._visit_block(part, cluster, blocks)
                self.access_shared(part, batch, blocks)
            else:
                self.by_space[space](part, batch)

    def _visit_block(self, step: Step, cluster: ClusterClocks, blocks: Array) -> None:
        """Report an access to the shared memory of a block that has not begun, or has ended."""
        _, row, lane = np.nonzero(step.on)
        blocks = np.broadcast_to(blocks, step.on.shape)[step.on]
        does, line = DOES[OPS[step.instruction.op].kind], step.instruction.line
        time = self._state.time(step.pc)
        memory = step.instruction.memory
        is_word = memory is not None and memory.is_barrier_word
        rows = step.rows[row]
        self._state.tell(cluster.touch(rows, lane, blocks, does, line, time, is_word=is_word))

    def access_global(self, step: Step, batch: Batch) -> None:
        """Check an access to global memory."""
        assert step.addresses is not None
        if step.on.any():
            first = self._state.layout.first_address
            element = (step.addresses - first) // self._state.layout.element_bytes["global"]
            touch = self._state.touch(step, batch, element, step.placement.copies)
            access = self._state.access(step)
            self._count_constants(touch)
            if access.kind == "store" or swaps(step):
                for found in batch.origins.stored_outside(step):
                    self._state.tell(found)
            is_stored = access.kind == "store" or discards(step)
            if self._state.uninitialised and not is_stored:
                never = self._state.layout.holds_nothing(touch.element)
                never &= self._copies.of_global.writer[touch.element] == 0
                self._ask_written(step, batch, touch, access, never, 0)
            part = self._swapped(step, touch, step.placement.copies)
            if part is None:
                return
            self._state.visit(step, batch, part, access, element)
            self.judge(part, access, self._copies.of_global, self._copies.copied)
            self._add_up(step, batch, element)
            if access.is_asynchronous:
                self._copies.begin(step, batch, touch, access, self._copies.copied)

    def access_shared(self, step: Step, batch: Batch, blocks: Array | None = None) -> None:
        """Check an access to the shared memory of each thread's block, or of others of a batch."""
        assert step.addresses is not None
        if not step.on.any():
            return
        placement, elements = step.placement, self._state.layout.sizes["shared"]
        has_flags = self._state.flags is not None and self._state.flags.reach_shared
        shadow = batch.shared_for(
            step, elements, self._state.history("shared"), has_flags=has_flags
        )
        copies = batch.shared_copies if placement.folded else 1
        element = own = step.addresses // self._state.layout.element_bytes["shared"]
        if copies > 1 or not placement.folded:
            owner = owners(step, copies, by_lane=False)
            element = element + (owner if blocks is None else blocks) * elements
            own = element - owner * elements
        touch, access = self._state.touch(step, batch, element, copies), self._state.access(step)
        memory, cluster = step.instruction.memory, batch.clocks.cluster
        if cluster is not None and access.kind == "store" and memory and memory.is_barrier_word:
            cluster.initialise(step.rows[step.on[0].any(axis=1)], self._state.time(step.pc))
        if step.pc in self._state.of_unknown_arrays:
            self._state.coverage.not_compared[ARRAYS] += len(touch.element) * touch.blocks
        begun: Array | bool = False
        if access.kind == "store":
            batch.origins.store(step, "shared", touch, len(shadow.writer))
        else:
            never = shadow.writer[touch.element] == 0
            if batch.on_their_way is not None:
                never &= batch.on_their_way.begun[touch.element] == 0
            if batch.bulk is not None:
                never &= ~batch.bulk.are_on_their_way(touch.element)
            if self._state.layout.own_shared < elements:
                never &= self._state.layout.may_hold_nothing(touch.element)
            self._ask_written(step, batch, touch, access, never, len(shadow.writer))
            if step.pc in self._state.partial and self._state.has_values:
                begun = never & (
                    batch.origins.carried("shared", touch, len(shadow.writer)).bits == 0
                )
        part = self._swapped(step, touch, copies, begun)
        if part is None:
            return
        self._state.visit(step, batch, part, access, element)
        if batch.bulk is not None:
            name = self._state.name(access, touch.element)
            self._state.tell(batch.bulk.meanwhile(touch, access, name))
        self.judge(part, access, shadow, batch.on_their_way)
        if batch.on_their_way is not None:
            self._copies.land(touch, access, shadow, batch.on_their_way)
        self._add_up(step, batch, own)
        if access.is_asynchronous:
            self._copies.begin(step, batch, touch, access, batch.on_their_way)

    def _swapped(
        self, step: Step, touch: ElementAccess, copies: int, begun: Array | bool = False
    ) -> ElementAccess | None:
        """Return the elements that an access needs: only the changed part of a swapped word.

        The elements `begun` by a swap have their first value, which may be the same bits.
        A load of a word for the comparison of such a swap needs none, an atomic load of a byte
        needs that byte.
        """
        if step.pc in self._state.guesses:
            return None
        if step.pc in self._state.bytes_loaded:
            bits = _bits_of_byte(step, self._state.bytes_loaded[step.pc])
        else:
            bits = _changed_bits(step) if step.pc in self._state.partial else None
        if bits is None:
            return touch
        if copies == 1:
            bits = np.bitwise_or.reduce(bits, axis=0, keepdims=True)
        words = Spread(step, (copies, len(step.rows), 32)).flat(bits)
        each = self._state.layout.element_bytes[memory_of(self._state.access(step)).space]
        parts = np.ascontiguousarray(words).view(f"u{each}")
        which = np.flatnonzero((parts != 0) | begun)
        return touch.take(which) if len(which) else None

    def _add_up(self, step: Step, batch: Batch, element: Array) -> None:
        """Follow the floating-point sum that a step adds to."""
        if not self._state.adds_up:
            return
        if step.pc in self._state.swaps:
            step = with_addends(step, self._state.program.instructions[self._state.swaps[step.pc]])
        memory, block = step.instruction.memory, np.zeros((1, 1, 1), np.int64)
        if memory is not None and memory.space == "shared":
            block = 1 + (batch.threads[:, step.rows] >> BLOCK_SHIFT)
        self._state.float_sums.add(step, block, element)

    def access_local(self, step: Step, batch: Batch) -> None:
        """Compare accesses to local memory with the elements written before."""
        assert step.addresses is not None
        if not step.on.any():
            return
        placement, elements = step.placement, self._state.layout.sizes["local"]
        written = batch.local_for(step, elements)
        copies = batch.local_copies if placement.folded else 1
        element = step.addresses // self._state.layout.element_bytes["local"]
        element = element + owners(step, copies, by_lane=True) * elements
        touch, access = self._state.touch(step, batch, element, copies), self._state.access(step)
        if self._state.follows:
            self._state.coverage.not_compared[LOCAL] += len(touch.element) * touch.blocks
        if access.kind == "store":
            written[touch.element] = True
            batch.origins.store(step, "local", touch, len(written))
        else:
            never = ~written[touch.element]
            self._ask_written(step, batch, touch, access, never, len(written))

    def _count_constants(self, touch: ElementAccess) -> None:
        """Count the accesses to constants by generic addresses, which name no array."""
        for extent in self._state.constants:
            address = touch.element * self._state.layout.element_bytes["global"]
            address = address + self._state.layout.first_address
            inside = (address >= extent.start) & (address < extent.stop)
            self._state.coverage.not_compared[ARRAYS] += (
                int(np.count_nonzero(inside)) * touch.blocks
            )

    def look_up(self, step: Step, batch: Batch) -> None:
        """Count a load of constants: nothing stores to them."""
        shape = (step.placement.copies, len(step.rows), 32)
        lanes = int(np.count_nonzero(np.broadcast_to(step.on, shape)))
        self._state.coverage.accesses += lanes
        if step.pc in self._state.of_unknown_arrays:
            self._state.coverage.not_compared[ARRAYS] += lanes

    def _ask_written(
        self,
        step: Step,
        batch: Batch,
        touch: ElementAccess,
        access: Access,
        never: Array,
        elements: int,
    ) -> None:
        """Track the value of an uninitialised load; report any other uninitialised access.

        Values copied within a memory of that many `elements` are tracked there.
        """
        carried = batch.origins.carried(access.space, touch, elements)
        is_swap = swaps(step) and access.space != "global"
        if not (never.any() or carried.bits.any() or (is_swap and batch.origins.has_any)):
            return
        name = self._state.name(access, touch.element)
        if not self._state.has_values and (access.kind == "load" or is_swap):
            self._state.never_written.append((access, touch.element[never]))
        elif access.kind == "load":
            batch.origins.read(step, Reading(touch, access, name, never), carried)
        elif is_swap:
            batch.origins.swap(step, Reading(touch, access, name, never), carried, elements)
        else:
            for found in batch.origins.used(carried.numbers):
                self._state.tell(found)
            self._state.tell(never_written(never, touch.thread, access, name, touch.blocks))

    def judge(
        self, touch: ElementAccess, access: Access, shadow: Shadow, copies: InFlight | None
    ) -> None:
        """Compare an access with earlier ones and with `copies` in flight."""
        name = self._state.name(access, touch.element)
        if adds_floats(access):
            lowest = shared_sum(shadow, touch, self._state.layout.sizes[access.space])
            known = self._state.shared_sums.get(access.pc)
            if lowest is not None and (known is None or lowest < known[0]):
                self._state.shared_sums[access.pc] = lowest, memory_of(access)
        if copies is not None:
            self._state.races.meanwhile(copies, touch, access, name)
        self._state.races.touch(shadow, touch, access, name)

    def ask(self, step: Step, batch: Batch) -> None:
        """Report behaviour that is undefined in C."""
        self._state.tell(undefined(step, batch.threads))


def _bits_of_byte(step: Step, register: int) -> Array | None:
    """Return the bits of two bytes that lanes need: a register holds the address of one."""
    if step.registers is None:
        return None
    odd = np.ascontiguousarray(step.registers(register)).view(np.uint32) & 1
    return np.where(odd, 0xFF00, 0xFF).astype(np.uint16)


def _changed_bits(step: Step) -> Array | None:
    """Return the bits that the lanes of a compare-and-swap of a word change; None if unknown."""
    values = step.swapped
    if not values and step.registers is not None:
        values = tuple(step.registers(register) for register in step.instruction.src[1:])
    if not values:
        return None
    expected, new = (np.ascontiguousarray(value).view(np.uint32) for value in values)
    return np.asarray(expected ^ new)
