"""The launches predicted worst with nvcc's code, and the reasons that are known for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..table import table
from .errors import Compared, Key

FAR = 0.2  # of the measured time: beyond it a launch is in the table

# By kernel and size.
REASONS: dict[Key, str] = {
    ("saxpy_stride", 1 << 24): "rows of 128 bytes that the warps of a loop write after they have "
    "drifted apart: DRAM takes longer for them",
    ("convolution_5x5", 1 << 10): "windows of 25 words that warps share: how many loads may wait "
    "at a time explains large pictures, small ones take longer",
    (
        "count_distinct",
        1 << 22,
    ): "all warps count in one word, beside atomics that fetch a table out of DRAM: each count "
    "takes the L2 4.3 cycles then, and 1.4 where the L2 has the table",
    ("rmsnorm", 1 << 22): "eight warps of an SM read rows of 16 KB, twice: as much as predicted is "
    "found in the L1, but so few warps wait less for DRAM than here",
    ("mask_logits", 512): "warps load sectors of which a neighbour has just stored a part, in rows "
    "that begin within one: 2^24 words updated or stored by turns of lanes take 197 us so, 64 us "
    "where rows begin with lines",
    ("seismic", 768): "blocks update rows that share sectors with their neighbours': 225 us, 172 "
    "where rows begin with lines",
    ("mri_q", 1 << 18): "64 warps of an SM go through 16 KB of constants, each at its own place: "
    "the cache of 2 KB is taken to serve them as if all ran together",
    ("constant_polynomial", 1 << 20): "many warps at different places of 49 KB of code and 8 KB of "
    "constants, which share the caches of these: here each has them as if all ran together",
}


def memory_misses(found: Sequence[Compared]) -> Iterator[tuple[str, Compared]]:
    """Yield each reason with its launch with a cold L2, where that is predicted."""
    cold = {(one.kernel, one.n): one for one in found if (one.code, one.l2) == ("nvcc", "cold")}
    for key, reason in REASONS.items():
        if key in cold:
            yield reason, cold[key]


def table_of(found: Sequence[Compared]) -> list[str]:
    """Return the table of kernels with a launch farther off than `FAR`, then the known reasons."""
    head = "kernel", "group", "n", "L2", "measured us", "predicted us", "off by"
    worst: dict[str, Compared] = {}
    for one in sorted(found, key=lambda one: -abs(one.error)):
        if one.code == "nvcc" and abs(one.error) > FAR:
            worst.setdefault(one.kernel, one)
    rows = [
        [
            *(one.kernel, one.group, f"{one.n:,}", one.l2),
            *(f"{one.measured_us:,.1f}", f"{one.predicted_us:,.1f}", f"{one.error:+.1%}"),
        ]
        for one in worst.values()
    ]
    known = {kernel: reason for (kernel, _), reason in REASONS.items() if kernel in worst}
    reasons = [f"- `{kernel}`: {known[kernel]}" for kernel in worst if kernel in known]
    return [*table(head, rows, text=2), "", *reasons]
