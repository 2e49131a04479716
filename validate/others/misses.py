"""The launches predicted worst with nvcc's code, and the reasons that are known for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..table import table
from .errors import Compared, Key

FAR = 0.2  # of the measured time: beyond it a launch is in the table

# By kernel and size.
REASONS: dict[Key, str] = {
    ("saxpy_stride", 1 << 24): "stores of 128-byte rows by warps that have drifted apart: DRAM "
    "takes longer for these",
    ("convolution_5x5", 1 << 10): "warps share windows of 25 words: the number of loads in flight "
    "explains large images, small ones take longer",
    (
        "count_distinct",
        1 << 22,
    ): "all warps count in one word, beside atomics on a table in DRAM: a count takes the L2 4.3 "
    "cycles then, and 1.4 with the table in the L2",
    ("rmsnorm", 1 << 22): "eight warps of an SM read rows of 16 KB twice: the L1 hit rate is "
    "right, but so few warps wait less for DRAM than predicted",
    ("mask_logits", 512): "loads of sectors that a neighbour has just stored in part, in "
    "unaligned rows: 2^24 words updated or stored by alternating lanes take 197 us, in "
    "aligned rows 64 us",
    ("seismic", 768): "blocks update rows that share sectors with neighbouring rows: 225 us, with "
    "aligned rows 172 us",
    ("mri_q", 1 << 18): "62 warps of an SM read 16 KB of constants by ULDC: Nsight Compute counts "
    "21.7 warps stalled on them (`imc_miss`) for each issue, with 8 warps 0.8; the model assumes "
    "that all warps share the 2 KB cache in step",
    ("constant_polynomial", 1 << 20): "many warps at different positions of 49 KB of code and 8 KB "
    "of constants, 13.3 of them stalled (`imc_miss`) for each issue: the model assumes that they "
    "share the caches in step",
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
