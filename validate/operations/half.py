"""Half precision and bfloat16, single and in pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .operation import Operation, expressions, functions

EXACT = "hceil hfloor htrunc hrint __habs __hneg hsqrt"
APPROXIMATE = "hrsqrt hrcp hlog hlog2 hlog10 hexp hexp2 hexp10 hcos hsin htanh htanh_approx"
BINARY = (
    "__hadd __hsub __hmul __hadd_rn __hsub_rn __hmul_rn __hadd_sat __hsub_sat __hmul_sat __hmax "
    "__hmin __hmax_nan __hmin_nan"
)
COMPARES = "eq ne le ge lt gt equ neu leu geu ltu gtu"
TERNARY = "__hfma __hfma_sat __hfma_relu"


def operations() -> Iterator[Operation]:
    """Yield the room's operations."""
    for one, two in (("half", "half2"), ("bf16", "bf162")):
        yield from _scalar(one)
        yield from _packed(one, two)


def _doubled(names: str) -> str:
    """Return the names of the same functions of pairs: `h2ceil`, `__hadd2_rn`."""
    return " ".join(
        re.sub(r"^(__h[a-z]+)", r"\g<1>2", name) if name.startswith("__") else f"h2{name[1:]}"
        for name in names.split()
    )


def _scalar(one: str) -> Iterator[Operation]:
    yield from functions(f"{one}({one})", EXACT, exact=True)
    yield from functions(f"{one}({one})", APPROXIMATE, ulps=1, absolute=2.0**-12)
    yield from functions(f"{one}({one},{one})", BINARY, exact=True)
    yield from functions(f"{one}({one},{one})", "__hdiv", ulps=1)
    yield from functions(f"{one}({one},{one},{one})", TERNARY, exact=True)
    yield from functions(f"bool({one})", "__hisnan", exact=True)
    yield from functions(f"int({one})", "__hisinf", exact=True)
    yield from functions(
        f"bool({one},{one})", " ".join(f"__h{c}" for c in COMPARES.split()), exact=True
    )
    rows = [("operators", "a * b + a - b"), ("negated", "-a * b"), ("select", "a < b ? a : b")]
    yield from expressions(f"{one}({one},{one})", rows, exact=True)


def _packed(one: str, two: str) -> Iterator[Operation]:
    yield from functions(f"{two}({two})", _doubled(EXACT), exact=True)
    yield from functions(f"{two}({two})", _doubled(APPROXIMATE), ulps=1, absolute=2.0**-12)
    yield from functions(f"{two}({two})", "__hisnan2 __lowhigh2highlow", exact=True)
    yield from functions(f"{two}({two},{two})", _doubled(BINARY), exact=True)
    yield from functions(f"{two}({two},{two})", "__h2div", ulps=1)
    yield from functions(
        f"{two}({two},{two},{two})",
        "__hfma2 __hfma2_sat __hfma2_relu __hcmadd",
        exact=True,
    )
    names = COMPARES.split()
    yield from functions(f"{two}({two},{two})", " ".join(f"__h{c}2" for c in names), exact=True)
    yield from functions(f"bool({two},{two})", " ".join(f"__hb{c}2" for c in names), exact=True)
    yield from functions(f"uint({two},{two})", " ".join(f"__h{c}2_mask" for c in names), exact=True)
    yield from expressions(
        f"{two}({two},{two})",
        [
            ("mixed_halves", f"__halves2{'half2' if one == 'half' else 'bfloat162'}"
             f"(__low2{'half' if one == 'half' else 'bfloat16'}(a), "
             f"__high2{'half' if one == 'half' else 'bfloat16'}(b))"),
            ("cross", "__hmul2(a, __lowhigh2highlow(b))"),
            ("subtracted", "__hfma2(a, __hneg2(b), __habs2(a))"),
        ],
        exact=True,
    )  # fmt: skip
    low = "__low2half2" if one == "half" else "__low2bfloat162"
    high = "__high2half2" if one == "half" else "__high2bfloat162"
    yield from expressions(
        f"{two}({two},{two},{two})",
        [("broadcast", f"__hfma2({low}(a), {high}(b), c)")],
        exact=True,
    )
