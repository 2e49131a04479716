"""Types of a program's registers: each has one, that of the results written to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.typing import DType

WORD = np.dtype(np.uint32)
_BOOL = np.dtype(np.bool_)
# Results of instructions that are neither computed nor loaded, where no type is stated.
_RESULTS: Mapping[str, DType] = {
    "differs": _BOOL,
    "first_lane": WORD,
    "reduce_lanes": WORD,
    "bank": WORD,
    **dict.fromkeys(("clock", "get_token", "texture", "surface_load", "call_driver"), WORD),
    **dict.fromkeys(("matrix_product", "rows_to_fragments", "fragments_to_rows"), WORD),
    **dict.fromkeys(("warpgroup_product", "transpose"), WORD),
}
# Results of votes and of matches that are words; all others are predicates.
_WORDS = {"vote": ("ballot", "ballot-not"), "match": ("any", "all")}


def register_types(program: Program, constants: Mapping[int, DType]) -> dict[int, DType]:
    """Return the type of each register that is written.

    `constants` are the types of the launch's constants, by the pc that reads them.
    NotDerivedError for a register of two types.
    """
    found: dict[int, DType] = {r: value.dtype for r, value in program.initial.items()}
    known: dict[Any, tuple[DType, ...]] = {}
    left = [i for i in enumerate(program.instructions) if i[1].dst]
    may_guess = False
    while left:
        missing = []
        for pc, instruction in left:
            types = _results(program, pc, instruction, found, constants, known, may_guess)
            if types is None:
                missing.append((pc, instruction))
                continue
            for register, dtype in zip(instruction.dst, types, strict=False):
                if found.setdefault(register, dtype) != dtype:
                    raise NotDerivedError("a register of two types")
        may_guess = len(missing) == len(left)
        left = missing
    return found


def _results(
    program: Program,
    pc: int,
    instruction: Instruction,
    found: Mapping[int, DType],
    constants: Mapping[int, DType],
    known: dict[Any, tuple[DType, ...]],
    may_guess: bool,
) -> tuple[DType, ...] | None:
    """Return the types of an instruction's results; None if one of its sources is yet unknown."""
    kind, count = OPS[instruction.op].kind, len(instruction.dst)
    if pc in constants:
        return (constants[pc],) * count
    if kind in ("load", "atomic", "special"):
        memory = instruction.memory
        if kind == "atomic" and memory is not None and memory.by_address:
            return (WORD,) * count
        stated = instruction.dtype or (memory.dtype if memory is not None else np.dtype(np.int32))
        return (stated,) * count
    if kind == "elect":
        number, verdict = instruction.detail
        return ((WORD,) if number else ()) + ((_BOOL,) if verdict else ())
    if kind == "shuffle":
        value = instruction.src[1 if OPS[instruction.op].checks_mask else 0]
        source = _source(program, value, found)
        if source is None:
            return None
        results = instruction.detail[1 : count + 1]
        return tuple(_BOOL if result == "inside" else source for result in results)
    if kind in ("vote", "match"):
        words = _WORDS[kind]
        return tuple(WORD if result in words else _BOOL for result in instruction.detail)
    if kind in _RESULTS:
        return (_RESULTS[kind],) * count
    if kind == "compute":
        return _computed(program, instruction, found, known, may_guess)
    return (instruction.dtype or np.dtype(np.int32),) * count


def _source(program: Program, register: int, found: Mapping[int, DType]) -> DType | None:
    if register in program.immediates:
        return program.immediates[register].dtype
    return WORD if register in program.constants else found.get(register)


def _computed(
    program: Program,
    instruction: Instruction,
    found: Mapping[int, DType],
    known: dict[Any, tuple[DType, ...]],
    may_guess: bool,
) -> tuple[DType, ...] | None:
    """Return the types that an evaluator gives for ones in its sources."""
    evaluate = OPS[instruction.op].evaluate
    if evaluate is None:
        return ()
    written = {r for one in program.instructions for r in one.dst} if may_guess else set()
    types: list[DType] = []
    for register in instruction.src:
        dtype = _source(program, register, found)
        if dtype is None:
            if not may_guess and register not in written:
                return None
            dtype = instruction.dtype or np.dtype(np.int32)
        types.append(dtype)
    detail = instruction.detail
    key = (instruction.op, id(detail), instruction.dtype, tuple(types))
    if key not in known:
        ones = [np.ones((1, 1, 1), dtype) for dtype in types]
        made = evaluate(instruction, *ones)
        results = made if isinstance(made, tuple) else (made,)
        known[key] = tuple(np.asarray(result).dtype for result in results)
    return known[key]
