"""Matrix products of warpgroups (`wgmma`): factors are read from shared memory at once.

Hardware may read them, and write the results, until the product's group is awaited. Compiled code
uses no register of a product before that.
"""

from __future__ import annotations

import numpy as np

from gpusim.errors import OutOfBoundsError
from gpusim.isa import warpgroups
from gpusim.isa.ops import Instruction
from gpusim.isa.warpgroups import K_BYTES, UNIT, WARPS, WarpgroupProduct
from gpusim.machine.context import Context
from gpusim.machine.generic_addressing import lanes_of
from gpusim.machine.group import Group
from gpusim.typing import Array


def product(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set each warp's rows of D to the product of A and B, plus C if the first source is true."""
    detail: WarpgroupProduct = instruction.detail
    shape = (1, len(group.rows), 32)
    adds, *words = (
        np.broadcast_to(group.read(one, np.uint32), shape)[0] for one in instruction.src
    )
    count = detail.form.registers[2]
    first, b, c = words[: -count - 2], words[-count - 2 : -count], words[-count:]
    units: list[Array] = []
    if np.count_nonzero(on):
        c = [np.where(adds, word, np.uint32(0)) for word in c]
        rows = np.arange(detail.form.m) + detail.form.m * (group.rows % WARPS)[:, None]
        of_a, of_b = detail.transposed
        if detail.a_in_registers:
            left = warpgroups.of_registers(detail, first)
        else:
            units.append(_units(context, group, instruction, on, first, rows, transposed=of_a))
            left = _read(group, units[0], detail.form.a, transposed=of_a)
        columns = np.broadcast_to(np.arange(detail.form.n), (len(rows), detail.form.n))
        units.append(_units(context, group, instruction, on, b, columns, transposed=of_b))
        right = _read(group, units[-1], detail.form.b, transposed=of_b)
        made = warpgroups.product(detail, left, right, c)
        for register, value in zip(instruction.dst, made, strict=True):
            group.write(register, value[None], on)
    told = [one.reshape(len(one), -1) for one in units]
    context.report(group, instruction, on, values=(np.concatenate(told, axis=1),) if told else ())


def tell(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Report the end of a group of products, or a wait: results were set with the product."""
    context.report(group, instruction, on)


def _units(
    context: Context,
    group: Group,
    instruction: Instruction,
    on: Array,
    descriptor: list[Array],
    rows: Array,
    *,
    transposed: bool,
) -> Array:
    """Return the places of a factor's units in shared memory, by descriptors of first lanes."""
    detail: WarpgroupProduct = instruction.detail
    low, high = (word[:, 0] for word in descriptor)
    size = detail.form.k if transposed else K_BYTES
    address = (
        warpgroups.unit_addresses(low, high, rows, size, transposed=transposed) - detail.window
    )
    batch = group.batch
    most = batch.program.addressable_shared(batch.launch.dynamic_shared_bytes) - UNIT
    wrong = (address < 0) | (address > most)
    if wrong.any():
        _tell(context, group, instruction, on, address + detail.window, wrong)
        address = np.where(wrong, 0, address)
    return address


def _read(group: Group, address: Array, kind: str, *, transposed: bool) -> Array:
    """Return the values of a factor from its units in shared memory."""
    batch = group.batch
    blocks = group.rows // batch.placement.warps_per_block
    units = batch.shared[blocks[:, None, None, None], address[..., None] + np.arange(UNIT)]
    return warpgroups.values(units, kind, transposed=transposed)


def _tell(
    context: Context,
    group: Group,
    instruction: Instruction,
    on: Array,
    address: Array,
    wrong: Array,
) -> None:
    """Report a factor that leaves the block's shared memory."""
    warps = np.asarray(wrong.any(axis=(1, 2)))
    lanes = np.broadcast_to(on, (1, len(warps), 32)) & warps[None, :, None]
    block, thread, place = lanes_of(group).first(lanes, np.zeros_like(lanes), "", instruction.line)
    where = int(address[wrong][0])
    context.fault(
        OutOfBoundsError(
            f"line {instruction.line}: a matrix of wgmma at address {where:#x} is outside the "
            f"block's shared memory (block {block}, thread {thread})",
            place,
        )
    )
