"""An op of the lowering and the mnemonic of its name: one unit, one meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sass.rows import worked_out

from gpusim.isa.ops import OPS, Instruction
from gpusim.sass.table import MNEMONICS

I32, U32, F32 = np.int32, np.uint32, np.float32
INTEGERS = [0, 1, 2, 31, 32, 33, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678, 0xFFFFFF00]
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.75, 3e38, -3e38, 1e-30, np.inf, -np.inf, 5e9, -1e-30]
# Of mnemonics with an op's name, those with another meaning.
OTHERS = {
    "I2I.S8.S32.SAT", "I2I.U8.S32.SAT", "I2I.S16.S32.SAT", "I2I.U16.S32.SAT",  # to 8 and 16 bits
}  # fmt: skip


def op_of(name: str) -> str:
    """Return the op with the name of a mnemonic, or with the longest beginning of it."""
    parts = name.split(".")
    begins = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((begin for begin in begins if begin in OPS), "")


def test_a_mnemonic_shares_the_row_of_the_op_with_its_name() -> None:
    apart = []
    for name, found in MNEMONICS.items():
        op = OPS.get(op_of(name))
        is_twin = op is not None and op.evaluate is not None and found.evaluate is not None
        if is_twin and (found.shares.evaluate is None or found.unit != op.unit):
            apart.append(name)
    assert set(apart) == OTHERS


@pytest.mark.parametrize(
    ("text", "op", "detail", "kinds"),
    [
        ("IADD3 R0, R1, R2, RZ", "IADD3", "++", (I32, I32)),
        ("IADD3 R0, R1, -R2, RZ", "IADD3", "+-", (U32, U32)),
        ("IMAD R0, R1, R2, R3", "IMAD", None, (I32, I32, I32)),
        ("LEA R0, R1, R2, 0x3", "LEA", 3, (U32, U32)),
        ("LEA.HI R0, R1, R2, RZ, 0x5", "LEA.HI", 5, (U32, U32)),
        ("SHF.L.U32 R0, R1, R2, RZ", "SHF", "left", (U32, U32)),
        ("SHF.R.U32.HI R0, RZ, R2, R1", "SHF", "right", (U32, U32)),
        ("SHF.R.S32.HI R0, RZ, R2, R1", "SHF", "right", (I32, U32)),
        ("LOP3.LUT R0, R1, R2, RZ, 0xc0, !PT", "LOP3", "and", (U32, U32)),
        ("LOP3.LUT R0, R1, R2, R3, 0x96, !PT", "LOP3", 0x96, (U32, U32, U32)),
        ("ISETP.LT.AND P0, PT, R1, R2, PT", "ISETP", ("lt",), (I32, I32)),
        ("ISETP.GE.U32.AND P0, PT, R1, R2, PT", "ISETP", ("ge",), (U32, U32)),
        ("IMNMX R0, R1, R2, PT", "IMNMX", "min", (I32, I32)),
        ("IMNMX.U32 R0, R1, R2, !PT", "IMNMX", "max", (U32, U32)),
        ("IABS R0, R1", "IABS", None, (I32,)),
        ("POPC R0, R1", "POPC", None, (U32,)),
        ("BREV R0, R1", "BREV", None, (U32,)),
        ("MOV R0, R1", "MOV", None, (U32,)),
        ("FADD R0, R1, -R2", "FADD", "+-", (F32, F32)),
        ("FMUL R0, R1, R2", "FMUL", None, (F32, F32)),
        ("FFMA R0, R1, -R2, R3", "FFMA", "-+", (F32, F32, F32)),
        ("FMNMX R0, R1, R2, PT", "FMNMX", "min", (F32, F32)),
        ("FMNMX R0, R1, R2, !PT", "FMNMX", "max", (F32, F32)),
        ("FSETP.GT.AND P0, PT, R1, R2, PT", "FSETP", ("gt",), (F32, F32)),
        ("F2I.TRUNC.NTZ R0, R1", "F2I", None, (F32,)),
        ("I2F R0, R1", "I2F", None, (I32,)),
        ("I2F.RP R0, R1", "I2F.RP", None, (I32,)),
    ],
)
def test_an_op_and_its_mnemonic_give_the_same_values(
    text: str, op: str, detail: Any, kinds: tuple[Any, ...]
) -> None:
    """Each operand takes all values beside all of the others, but where a NaN comes of it."""
    held = [
        np.array(FLOATS if kind is F32 else INTEGERS, dtype=F32 if kind is F32 else U32)
        for kind in kinds
    ]
    held = [array.reshape(-1) for array in np.meshgrid(*held)]
    given = [array.view(kind).reshape(1, 1, -1) for array, kind in zip(held, kinds, strict=True)]
    dtype = np.dtype({"F2I": I32, "I2F": F32, "I2F.RP": F32}.get(op, kinds[0]))
    evaluate = OPS[op].evaluate
    assert evaluate is not None
    with np.errstate(all="ignore"):
        wanted = np.asarray(evaluate(Instruction(op, dtype=dtype, detail=detail), *given)).reshape(
            -1
        )
    registers = {f"R{n}": array.view(U32) for n, array in enumerate(held, 1)}
    [made] = worked_out(text, **registers).values()
    number = ~np.isnan(wanted) if wanted.dtype.kind == "f" else np.ones(wanted.shape, bool)
    bits = wanted if wanted.dtype == bool else wanted.view(U32)
    assert (made[number] == bits[number]).all()
