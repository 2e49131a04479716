"""Rows of machine code as text, worked out one at a time: what a mnemonic gives for some values."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Instruction
from gpusim.sass import translate
from gpusim.sass.decoding import BankWord, Context, micros
from gpusim.sass.listing import row_of_text

assert translate


def bits(value: Any) -> np.ndarray[Any, Any]:
    """Return a number, or several, as a lane's register, or a predicate."""
    array = np.asarray(value)
    if array.dtype == bool:
        return array.reshape(1, 1, -1)
    if array.dtype.kind == "i" and array.dtype.itemsize == 8:
        array = (array & 0xFFFFFFFF).astype(np.uint32)
    return array.view(np.uint32).reshape(1, 1, -1)


def pair(value: Any, kind: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return 64-bit numbers as the two registers that hold them."""
    wide = np.asarray(value, dtype=kind).view(np.uint64)
    return bits(wide.astype(np.uint32)), bits((wide >> np.uint64(32)).astype(np.uint32))


def worked_out(text: str, **registers: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return what a row sets registers to, as flat arrays of bits and truths, by name."""
    [micro] = micros(row_of_text(text), 0, Context(0))
    values = []
    for source in micro.sources:
        assert not isinstance(source, BankWord)
        values.append(bits(registers[source]) if isinstance(source, str) else bits(source))
    instruction = Instruction(micro.op, dtype=np.dtype(np.uint32), detail=micro.detail)
    evaluate = OPS[micro.op].evaluate
    assert evaluate is not None
    with np.errstate(all="ignore"):
        results = evaluate(instruction, *values)
    pairs = zip(micro.results, results, strict=True)
    return {name: np.broadcast_to(value, value.shape).reshape(-1) for name, value in pairs}
