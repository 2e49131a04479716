"""Rows that read constant banks and special registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpusim.sass.decoding.sources import expect
from gpusim.sass.decoding.steps import Context, Decode, Micro, several
from gpusim.sass.listing import Row
from gpusim.sass.table import Mnemonic

SPECIAL_REGISTERS = {
    **{f"SR_TID.{axis}": f"tid.{axis.lower()}" for axis in "XYZ"},
    **{f"SR_CTAID.{axis}": f"ctaid.{axis.lower()}" for axis in "XYZ"},
    **{f"SR_NTID.{axis}": f"ntid.{axis.lower()}" for axis in "XYZ"},
    **{f"SR_NCTAID.{axis}": f"nctaid.{axis.lower()}" for axis in "XYZ"},
    "SR_LANEID": "laneid",
    "SR_LMEMHIOFF": "zero",  # where a thread's stack ends: it grows down to 0
    "SR_SWINHI": "shared_window",
    "SR_CgaCtaId": "zero",  # of a cluster of several blocks, its rank
    "SR_CgaSize": "zero",  # where the driver's words on clusters lie: one of two places
    "SR_SMEMSZ": "shared_bytes",
    "SR_VIRTID": "warp_place",
    "SR_VIRTUALSMID": "zero",  # all blocks run on the one multiprocessor that there is
    "SRZ": "zero",
    **{f"SR_{which}MASK": f"lanes_{which.lower()}" for which in ("LT", "LE", "GT", "GE", "EQ")},
}


RANK = "cluster_ctarank"
# By the half of the time that comes first.
CLOCKS = {
    "SR_CLOCKLO": "lower", "SR_GLOBALTIMERLO": "lower",
    "SR_CLOCKHI": "upper", "SR_GLOBALTIMERHI": "upper",
}  # fmt: skip


_BANK_TYPES = {"U8": (1, False), "S8": (1, True), "U16": (2, False), "S16": (2, True)}


def _bank(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    expect(len(row.operands) == 2 and row.operands[1].kind == "C", row)
    where = row.operands[1]
    size, signed = next(
        (held for name, held in _BANK_TYPES.items() if name in row.modifiers), (4, False)
    )
    words = 4 if "128" in row.modifiers else 2 if "64" in row.modifiers else 1
    terms = [term for term in where.terms if not term.register.endswith("Z")]
    expect(all(term.bits == 32 and term.scale == 1 for term in terms), row)
    sources = tuple(term.register for term in terms)
    detail = ("bank", (where.bank, int(where.number), size, signed))
    results = several(row.operands[0].name, words)
    yield Micro(str(found.detail), place, detail, sources, results, row.guard)


def _special(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    expect(len(row.operands) == 2, row)
    result, source = row.operands
    name = SPECIAL_REGISTERS.get(source.name)
    if source.name == "SR_CgaCtaId" and context.clusters:
        name = RANK
    wide = row.mnemonic == "CS2R" and "32" not in row.modifiers
    results = several(result.name, 2 if wide else 1)
    if source.name in CLOCKS:
        half = CLOCKS[source.name]
        expect(half == "lower" or not wide, row)
        yield Micro("CS2R.CLOCK", place, half, (), results, row.guard)
        return
    expect(name is not None and (not wide or name == "zero"), row)
    yield Micro(row.mnemonic, place, name, (), results, row.guard)


DECODERS: Mapping[str, Decode] = {"bank": _bank, "special": _special}
