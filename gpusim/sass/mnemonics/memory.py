"""Loads, stores and atomic operations, and constants."""

from __future__ import annotations

from gpusim.isa.ops import BULK_STORE, COUNT_UP, OPS, SPIN
from gpusim.sass.table import add

WIDTHS = "U8 S8 U16 S16 32 64 128"
SCOPES = "CTA SM GPU SYS WEAK STRONG"
# Codes of addresses: in global memory they may have a descriptor.
WHERE = {"global": "g", "generic": "g", "shared": "a", "local": "a"}
CACHING = "E CONSTANT PRIVATE EF EL LU EU NA LTC64B LTC128B LTC256B"

for space, wanted in (("global", "LDG"), ("shared", "LDS"), ("local", "LDL"), ("generic", "LD")):
    add(
        wanted,
        OPS[wanted],
        modifiers=f"{WIDTHS} {SCOPES} {CACHING} U LU",
        kind="load",
        detail=space,
        shape=f"o{WHERE[space]}",
    )
for space, wanted in (("global", "STG"), ("shared", "STS"), ("local", "STL"), ("generic", "ST")):
    add(
        wanted,
        OPS[wanted],
        modifiers=f"{WIDTHS} {SCOPES} {CACHING}",
        kind="store",
        detail=space,
        shape=f"{WHERE[space]}o",
    )

OPERATIONS = "ADD MIN MAX INC DEC AND OR XOR EXCH CAS"
KINDS = "S32 U32 64 128 S64 U64 F32 F64 F16x2 BF16x2 F32x2 F32x4 FTZ RN"
for name, space in (("ATOMG", "global"), ("ATOM", "generic"), ("ATOMS", "shared")):
    add(
        name,
        OPS[name],
        modifiers=f"E {OPERATIONS} {KINDS} {SCOPES}",
        kind="atomic",
        detail=space,
        shape=f"{'' if space == 'shared' else 'q'}o{WHERE[space]}ww?",
    )
for name, space in (("RED", "global"), ("REDG", "global")):
    add(
        name,
        OPS["RED"],
        modifiers=f"E {OPERATIONS} {KINDS} {SCOPES}",
        kind="reduction",
        detail=space,
        shape="gw",
    )
add(COUNT_UP, OPS[COUNT_UP], kind="count_up", detail="shared", shape="oa")
add(SPIN, OPS[SPIN], modifiers="64", kind="cast_spin", detail="shared", shape="q?o?aww")
# After a QSPC that finds the shared memory of another block: lanes need not try one by one.
add(
    "ATOM.CAST.SPIN",
    OPS["ATOM"],
    modifiers=f"E 64 {SCOPES}",
    kind="cast_spin",
    detail="generic",
    shape="qoaww",
)
for letter, wanted in (
    ("S", "shared"),
    ("D", "shared by a cluster"),
    ("L", "local"),
    ("G", "global"),
):
    add(f"QSPC.{letter}", OPS["QSPC"], modifiers="E", kind="space", detail=wanted, shape="qoa")

add(
    "LDGSTS",
    OPS["LDGSTS"],
    modifiers=f"{WIDTHS} {SCOPES} {CACHING} BYPASS ZFILL",
    kind="copy_to_shared",
    shape="agp?",
)
for names, wanted in (("LDC", "LDC.BANK"), ("ULDC LDCU", "ULDC.BANK")):
    add(names, OPS[wanted], modifiers=WIDTHS, kind="bank", detail=wanted, shape="oc")

add("MEMBAR", OPS["MEMBAR"], modifiers="SC ALL CTA GPU SYS VC", kind="fence")
add("FENCE", OPS["ERRBAR"], modifiers="VIEW ASYNC S", kind="fence")
add("ERRBAR CGAERRBAR", OPS["ERRBAR"], kind="fence")
add("CCTL", OPS["ERRBAR"], modifiers="IVALL", kind="fence")
add("UBLKPF", OPS["ERRBAR"], modifiers="L2", kind="fence", shape="go")
add("UTMACCTL", OPS["ERRBAR"], modifiers="PF", kind="fence", shape="g")
add("UTMAPF", OPS["ERRBAR"], modifiers="L2 1D 2D 3D 4D 5D", kind="fence", shape="gg")
add("CCTL.PF1 CCTL.PF2 CCTL.PML2 CCTLL.PF1", OPS["ERRBAR"], modifiers="E", kind="fence", shape="g")

# Barriers in shared memory. Barriers with a count of bytes are of the tensor memory accelerator.
add("SYNCS.EXCH.64", OPS["STS"], kind="set_barrier", shape="oao")
add(
    "SYNCS.ARRIVE.TRANS64.A1T0 SYNCS.ARRIVE.TRANS64.ART0", OPS["ATOMS"], modifiers="OPTOUT",
    kind="arrive_at_word", shape="oao",
)  # fmt: skip
add(
    "SYNCS.ARRIVE.TRANS64.RED", OPS["ATOMS"], modifiers="A0T1 A0TR A0TX A1T0 ART0",
    kind="arrive_at_word", shape="oao",
)  # fmt: skip
add("SYNCS.ARRIVE.TRANS64", OPS["ATOMS"], kind="arrive_at_word", shape="oao")
add("UBLKCP.S.G", OPS["UBLKCP.LOAD"], kind="bulk_copy", detail="load", shape="ggo")
add("UBLKCP.G.S", OPS[BULK_STORE], kind="bulk_copy", detail="store", shape="ggo")
add("UBLKCP.S.G.MULTICAST", OPS["UBLKCP.LOAD"], kind="bulk_copy", detail="multicast", shape="ggo")
add("UBLKCP.S.S", OPS["UBLKCP.PEER"], kind="bulk_copy", detail="peer", shape="ggo")
add(
    "UBLKRED.G.S", OPS[BULK_STORE],
    modifiers="ADD MIN MAX INC DEC AND OR XOR S32 U64 S64 F16 BF16 F32 F64 RN",
    kind="bulk_copy", detail="reduction", shape="ggo",
)  # fmt: skip
add(
    "UBLKRED.S.S", OPS["UBLKCP.PEER"], modifiers="ADD MIN MAX INC DEC AND OR XOR S32 U64",
    kind="bulk_copy", detail="peer", shape="ggo",
)  # fmt: skip
_RANKS = "1D 2D 3D 4D 5D"
add("UTMALDG", OPS["UBLKCP.LOAD"], modifiers=_RANKS, kind="tensor_copy", detail="load", shape="gg")
add(
    "UTMALDG.MULTICAST", OPS["UBLKCP.LOAD"], modifiers=_RANKS,
    kind="tensor_copy", detail="multicast", shape="ggo",
)  # fmt: skip
add("UTMASTG", OPS[BULK_STORE], modifiers=_RANKS, kind="tensor_copy", detail="store", shape="gg")
add(
    "UTMAREDG", OPS[BULK_STORE], modifiers=f"{_RANKS} ADD MIN MAX INC DEC AND OR XOR",
    kind="tensor_copy", detail="reduction", shape="gg",
)  # fmt: skip
add("STAS", OPS["ST"], modifiers="64 128", kind="store_and_count", shape="ao")
add(
    "REDAS",
    OPS["ATOM"],
    modifiers="ADD MIN MAX INC DEC AND OR XOR S32 64",
    kind="store_and_count",
    shape="ao",
)
add("UTMACMDFLUSH", OPS["UTMACMDFLUSH"], kind="commit_bulk")
add(
    "ARRIVES.LDGSTSBAR.64",
    OPS["ATOMS"],
    modifiers="ARVCNT TRANSCNT",
    kind="arrive_behind_copies",
    shape="a",
)
add("ATOMS.ARRIVE.64", OPS["ATOMS"], kind="arrive_at_word", shape="oa")
add("SYNCS.PHASECHK.TRANS64", OPS["LDS"], modifiers="TRYWAIT", kind="ask_for_phase", shape="qao")
add("SYNCS.CCTL", OPS["ERRBAR"], modifiers="IV", kind="fence", shape="a")
