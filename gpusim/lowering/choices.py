"""Tables of instruction selection: one row per operation and class of type.

Classes: i 32-bit integers (and narrower), l 64-bit integers, f float32, d float64, p predicates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpusim.compiler.ir import BOOL, FLOAT32, FLOAT64
from gpusim.compiler.operations import COMPARISONS
from gpusim.typing import DType


@dataclass(frozen=True)
class Choice:
    """The instruction that computes an operation.

    `before` names preceding rows without operands: the halves of 64-bit work, or
    the steps of a sequence; its last row has the value. `zero` adds a 0 as last source.
    """

    op: str
    detail: Any = None
    before: str = ""
    zero: bool = False


def type_class(dtype: DType) -> str:
    """Return the class of a type in these tables."""
    if dtype == BOOL:
        return "p"
    if dtype == FLOAT32:
        return "f"
    if dtype == FLOAT64:
        return "d"
    return "l" if dtype.itemsize == 8 else "i"


def _compares() -> dict[tuple[str, str], Choice]:
    rows: dict[tuple[str, str], Choice] = {}
    for name in COMPARISONS:
        rows[name, "i"] = Choice("ISETP", (name,))
        rows[name, "l"] = Choice("ISETP", (name,), "ISETP.EX")
        rows[name, "f"] = Choice("FSETP", (name,))
        rows[name, "d"] = Choice("DSETP", (name,))
        rows[name, "p"] = Choice("PLOP3", name)
    return rows


CHOICES: Mapping[tuple[str, str], Choice] = {
    **_compares(),
    ("add", "i"): Choice("IADD3", "++"),
    ("add", "l"): Choice("IADD3", "++", "IADD3.X"),
    ("add", "f"): Choice("FADD"),
    ("add", "d"): Choice("DADD"),
    ("sub", "i"): Choice("IADD3", "+-"),
    ("sub", "l"): Choice("IADD3", "+-", "IADD3.X"),
    ("sub", "f"): Choice("FADD", "+-"),
    ("sub", "d"): Choice("DADD", "+-"),
    ("mul", "i"): Choice("IMAD", zero=True),
    ("mul", "l"): Choice("IMAD", None, "IMAD IMAD IADD3", zero=True),
    ("mul", "f"): Choice("FMUL"),
    ("mul", "d"): Choice("DMUL"),
    ("neg", "i"): Choice("IADD3", "-"),
    ("neg", "l"): Choice("IADD3", "-", "IADD3.X"),
    ("neg", "f"): Choice("FADD", "-"),
    ("neg", "d"): Choice("DADD", "-"),
    ("abs", "i"): Choice("IABS"),
    ("abs", "l"): Choice("IABS", None, "ISETP SEL SEL"),
    ("abs", "f"): Choice("FABS"),
    ("abs", "d"): Choice("FABS", None, "MOV"),
    ("and", "i"): Choice("LOP3", "and"),
    ("or", "i"): Choice("LOP3", "or"),
    ("xor", "i"): Choice("LOP3", "xor"),
    ("not", "i"): Choice("LOP3", "not"),
    ("and", "l"): Choice("LOP3", "and", "LOP3"),
    ("or", "l"): Choice("LOP3", "or", "LOP3"),
    ("xor", "l"): Choice("LOP3", "xor", "LOP3"),
    ("not", "l"): Choice("LOP3", "not", "LOP3"),
    ("and", "p"): Choice("PLOP3", "and"),
    ("or", "p"): Choice("PLOP3", "or"),
    ("xor", "p"): Choice("PLOP3", "xor"),
    ("not", "p"): Choice("PLOP3", "not"),
    ("shl", "i"): Choice("SHF", "left"),
    ("shr", "i"): Choice("SHF", "right"),
    ("funnel", "i"): Choice("SHF.L.W"),
    ("shl", "l"): Choice("SHF", "left", "SHF"),
    ("shr", "l"): Choice("SHF", "right", "SHF"),
    ("min", "i"): Choice("IMNMX", "min"),
    ("max", "i"): Choice("IMNMX", "max"),
    ("min", "l"): Choice("IMNMX", "min", "ISETP ISETP.EX SEL"),
    ("max", "l"): Choice("IMNMX", "max", "ISETP ISETP.EX SEL"),
    ("min", "f"): Choice("FMNMX", "min"),
    ("max", "f"): Choice("FMNMX", "max"),
    ("min", "d"): Choice("DMNMX", "min", "MOV MOV FSEL SEL LOP3"),
    ("max", "d"): Choice("DMNMX", "max", "MOV MOV FSEL SEL LOP3"),
    ("select", "i"): Choice("SEL"),
    ("select", "l"): Choice("SEL", None, "SEL"),
    ("select", "f"): Choice("FSEL"),
    ("select", "d"): Choice("FSEL", None, "FSEL"),
    ("select", "p"): Choice("SEL"),
    ("popc", "i"): Choice("POPC"),
    ("popc", "l"): Choice("POPC", None, "POPC IADD3"),
    ("ffs", "i"): Choice("FFS", None, "BREV IADD3"),
    ("ffs", "l"): Choice("FFS", None, "BREV BREV FLO IADD3 SEL"),
    ("clz", "i"): Choice("FLO", None, "IADD3"),
    ("clz", "l"): Choice("FLO", None, "FLO ISETP IADD3 SEL"),
    ("brev", "i"): Choice("BREV"),
    ("brev", "l"): Choice("BREV", None, "BREV"),
    ("div", "f"): Choice("LIBM", "div", "MUFU FCHK FFMA FFMA FFMA FFMA"),
    ("div", "d"): Choice(
        "LIBM", "div", "FSETP IMAD MUFU DFMA DFMA DFMA DFMA DFMA DMUL DFMA DFMA FFMA FSETP"
    ),
}


def _steps(float32: str, float64: str) -> dict[str, str]:
    return {"f": float32, "d": float64}


# The rows before the last one of a function's sequence, as nvcc 13.0 writes it for sm_90
# where the operand is not extreme. Functions that are not here count as the last row alone.
SEQUENCES: Mapping[str, Mapping[str, str]] = {
    "sqrt": _steps("IADD3 MUFU ISETP FMUL FMUL FFMA", "IADD3 ISETP MUFU DMUL" + " DFMA" * 8),
    "rsqrt": _steps("FSETP FMUL MUFU", "ISETP MUFU DMUL" + " DFMA" * 5),
    "exp": _steps("MOV MOV FFMA FFMA FADD SHF FFMA FFMA MUFU", "UMOV" + " UMOV DFMA" * 16),
    "exp2": _steps("FSETP FMUL MUFU", "UMOV" + " UMOV DFMA" * 15),
    "expm1": _steps("FFMA" + " FFMA" * 16, "UMOV" + " UMOV DFMA" * 20),
    "log": _steps(
        "MOV FSETP FMUL IADD3 LOP3 IADD3 I2F FADD FSEL FSETP ISETP" + " FFMA" * 15,
        "ISETP MOV DMUL LOP3" + " UMOV UMOV DFMA" * 16 + " DADD DADD DMUL",
    ),
    "log2": _steps(
        "MOV FSETP FMUL IADD3 LOP3 IADD3 I2F FADD FSEL FSETP ISETP" + " FFMA" * 16,
        "ISETP MOV DMUL LOP3" + " UMOV UMOV DFMA" * 17 + " DADD DADD DMUL",
    ),
    "log10": _steps(
        "MOV FSETP FMUL IADD3 LOP3 IADD3 I2F FADD FSEL FSETP ISETP" + " FFMA" * 16,
        "ISETP MOV DMUL LOP3" + " UMOV UMOV DFMA" * 17 + " DADD DADD DMUL",
    ),
    "log1p": _steps("FADD ISETP LOP3" + " FFMA" * 14, "ISETP DADD" + " UMOV UMOV DFMA" * 16),
    "sin": _steps(
        "FMUL FSETP F2I I2F FFMA FFMA FFMA LOP3 FMUL LOP3 FSEL FSEL" + " FFMA" * 7,
        "DSETP DMUL F2I I2F" + " UMOV UMOV DFMA" * 3 + " LOP3 DMUL" + " DFMA" * 9,
    ),
    "cos": _steps(
        "FMUL FSETP F2I I2F FFMA FFMA FFMA IADD3 LOP3 FMUL LOP3 FSEL FSEL" + " FFMA" * 7,
        "DSETP DMUL F2I I2F" + " UMOV UMOV DFMA" * 3 + " LOP3 DMUL" + " DFMA" * 9,
    ),
    "tan": _steps("FMUL FSETP F2I I2F" + " FFMA" * 12, "DSETP DMUL F2I I2F" + " DFMA" * 25),
    "tanh": _steps(
        "FMUL FMUL FSETP FSETP FFMA MUFU FADD FFMA FFMA MUFU FFMA FFMA FSEL LOP3",
        "DSETP" + " UMOV UMOV DFMA" * 18,
    ),
    "pow": _steps("FSETP FSEL LOP3 MUFU" + " FFMA" * 70, "DSETP LOP3" + " DFMA" * 120),
    "fmod": _steps("FSETP MUFU" + " FFMA" * 12, "DSETP MUFU" + " DFMA" * 20),
    # Python's operators on floats: C's division and floor, C's remainder and its correction.
    "floordiv": _steps(
        "MUFU FCHK" + " FFMA" * 4 + " LIBM",
        "FSETP IMAD MUFU DFMA DFMA DFMA DFMA DFMA DMUL DFMA DFMA FFMA FSETP LIBM",
    ),
    "floormod": _steps(
        "FSETP MUFU" + " FFMA" * 12 + " FSETP FADD", "DSETP MUFU" + " DFMA" * 20 + " DSETP DADD"
    ),
    "hypot": _steps("FMNMX FMNMX FFMA MUFU" + " FFMA" * 8, "DSETP MUFU" + " DFMA" * 14),
}
