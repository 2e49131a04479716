"""Matrix products of a warp, and loads and stores of their fragments: the tensor cores' rows.

A row's `detail` has the types of A, B and of the sums, and whether single bits are combined by
"and" or "xor"; its first modifier is the shape. HMMA's m, n and k stand without anything between
them; where they could be read in several ways, PTX has one of these shapes.
"""

from __future__ import annotations

from gpusim.isa.ops import OPS, WARPGROUP_WAIT
from gpusim.sass.table import add

# Names of shapes: m, n, k.
SHAPES = {
    "1688": (16, 8, 8), "16816": (16, 8, 16), "1684": (16, 8, 4), "16832": (16, 8, 32),
    "16864": (16, 8, 64), "8816": (8, 8, 16), "8832": (8, 8, 32), "88128": (8, 8, 128),
    "168128": (16, 8, 128), "168256": (16, 8, 256), "884": (8, 8, 4), "8x8x4": (8, 8, 4),
    "16x8x4": (16, 8, 4), "16x8x8": (16, 8, 8), "16x8x16": (16, 8, 16),
}  # fmt: skip
# Shapes, types of A, B and sums, by the modifiers that name these; the row's sources.
_HALVES, _BYTES, _BITS = "1688 16816", "8816 16816 16832", "88128 168128 168256"
_NIBBLES = "8832 16832 16864"
_PLAIN, _WITH_SIDES = "oooo", "ojyo"

for name, shapes, types in (
    ("HMMA.F16", _HALVES, ("f16", "f16", "f16")),
    ("HMMA.F32", _HALVES, ("f16", "f16", "f32")),
    ("HMMA.F32.BF16", _HALVES, ("bf16", "bf16", "f32")),
    ("HMMA.F32.TF32", "1684 1688", ("tf32", "tf32", "f32")),
    ("DMMA", "884 8x8x4 16x8x4 16x8x8 16x8x16", ("f64", "f64", "f64")),
):
    add(
        name, OPS[name.partition(".")[0]], modifiers=shapes, kind="matrix_product",
        detail=(*types, ""), shape=_PLAIN,
    )  # fmt: skip
for kinds, shapes in ((("S8", "U8"), _BYTES), (("S4", "U4"), _NIBBLES)):
    for a in kinds:
        for b in kinds:
            add(
                f"IMMA.{a}.{b}", OPS["IMMA"], modifiers=f"{shapes} SAT", kind="matrix_product",
                detail=(a.lower(), b.lower(), "s32", ""), shape=_WITH_SIDES,
            )  # fmt: skip
for a in ("E4M3", "E5M2"):
    for b in ("E4M3", "E5M2"):
        for sums in ("F16", "F32"):
            add(
                f"QMMA.{sums}.{a}.{b}", OPS["QMMA"], modifiers="16816 16832", kind="matrix_product",
                detail=(a.lower(), b.lower(), sums.lower(), ""), shape=_WITH_SIDES,
            )  # fmt: skip
for operation in ("AND", "XOR"):
    add(
        f"BMMA.{operation}.POPC", OPS["BMMA"], modifiers=_BITS, kind="matrix_product",
        detail=("b1", "b1", "s32", operation.lower()), shape=_WITH_SIDES,
    )  # fmt: skip

# Products of a warpgroup, by the shapes of a k: B, and A unless it is in registers, lie in shared
# memory. A result is there after the wait for its group, that of the last product with gsb0.
_GROUP = "oe?Gop?t?"


def _of_k(k: int) -> str:
    return " ".join(f"64x{n}x{k}" for n in range(8, 257, 8))


for name, k, types in (
    ("HGMMA.F16", 16, ("f16", "f16", "f16")),
    ("HGMMA.F32", 16, ("f16", "f16", "f32")),
    ("HGMMA.F32.BF16", 16, ("bf16", "bf16", "f32")),
    ("HGMMA.F32.TF32", 8, ("tf32", "tf32", "f32")),
    *(
        (f"QGMMA.{sums}.{a}.{b}", 32, (a.lower(), b.lower(), sums.lower()))
        for a in ("E4M3", "E5M2")
        for b in ("E4M3", "E5M2")
        for sums in ("F16", "F32")
    ),
    *(
        (f"IGMMA.{a}.{b}", 32, (a.lower(), b.lower(), "s32"))
        for a in ("S8", "U8")
        for b in ("S8", "U8")
    ),
):
    add(
        name, OPS[name.partition(".")[0]], modifiers=f"{_of_k(k)} SAT", kind="warpgroup_product",
        detail=(*types, ""), shape=_GROUP,
    )  # fmt: skip
add(
    "BGMMA.AND.POPC", OPS["BGMMA"], modifiers=_of_k(256), kind="warpgroup_product",
    detail=("b1", "b1", "s32", "and"), shape=_GROUP,
)  # fmt: skip
add("WARPGROUP.ARRIVE", OPS["WARPGROUP.ARRIVE"], kind="warpgroup_arrive")
add("WARPGROUP.DEPBAR", OPS[WARPGROUP_WAIT], modifiers="LE", kind="warpgroup_wait", shape="t#")

# Fragments of one, two or four matrices of halves, in shared memory or transposed from there.
add("LDSM", OPS["LDSM"], modifiers="16 M88 MT88 2 4", kind="matrix_load", shape="oa")
add("STSM", OPS["STSM"], modifiers="16 M88 MT88 2 4", kind="matrix_store", shape="ao")
