"""How reports write times, rates and fractions, and draw them."""

from __future__ import annotations

import sys
from collections.abc import Mapping

FULL_BAR = 24
EIGHTHS = " ▏▎▍▌▋▊▉"


def duration(time_us: float) -> str:
    """Return a time with four digits or so, in us, ms or s."""
    for unit, size in (("us", 1.0), ("ms", 1e3), ("s", 1e6)):
        value = time_us / size
        if value < 1000 or unit == "s":
            return f"{value:.{2 if value < 10 else 1}f} {unit}"
    raise AssertionError


def interval(first_us: float, last_us: float) -> str:
    """Return two times as "84.2 to 50.6 us", the unit once where it is the same."""
    first, last = duration(first_us), duration(last_us)
    number, _, unit = first.partition(" ")
    return f"{number if last.endswith(f' {unit}') else first} to {last}"


def deviations(time_us: float, low_us: float, high_us: float) -> str:
    """Return an interval around a time as "-4 +8 %", for tables."""
    return f"{100 * (low_us / time_us - 1):+.0f} {100 * (high_us / time_us - 1):+.0f} %"


def rate(gbps: float) -> str:
    """Return a bandwidth in GB/s, with a decimal where it says something."""
    return f"{gbps:,.0f} GB/s" if gbps >= 1000 else f"{gbps:,.1f} GB/s"


def volume(size_bytes: float) -> str:
    """Return a number of bytes with three digits or so, in bytes, KB, MB or GB (of 10^3 each)."""
    for unit, size in (("bytes", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        value = size_bytes / size
        if value < 999.5 or unit == "GB":
            return f"{value:,.{1 if value < 99.95 and size > 1 else 0}f} {unit}"
    raise AssertionError


def percent(fraction: float, decimals: int = 1) -> str:
    """Return a fraction as "12.3 %", and the smallest as "< 0.1 %" rather than none."""
    least = 10.0**-decimals
    if 0 < 100 * fraction < least / 2:
        return f"< {least:g} %"
    return f"{100 * fraction:.{decimals}f} %"


def signed_percent(fraction: float) -> str:
    """Return a change as "+12.3 %" or "-4.0 %"; a true minus sign is not in every font."""
    return f"{100 * fraction:+.1f} %"


def tenths_of_a_percent(fractions: Mapping[str, float]) -> dict[str, float]:
    """Return fractions in percent, rounded to a tenth so that the rounded ones add up to 100."""
    total = sum(fractions.values())
    if total <= 0:
        return dict.fromkeys(fractions, 0.0)
    exact = {name: 1000 * share / total for name, share in fractions.items()}
    floors = {name: int(value) for name, value in exact.items()}
    left = 1000 - sum(floors.values())
    for name in sorted(exact, key=lambda name: (floors[name] - exact[name], name))[:left]:
        floors[name] += 1
    return {name: value / 10 for name, value in floors.items()}


def bar(fraction: float, width: int = FULL_BAR, encoding: str | None = None) -> str:
    """Return a bar that is `width` columns long for 1, to an eighth of a column.

    `encoding` is that of the text, by default of the output.
    """
    eighths = round(8 * width * min(max(fraction, 0.0), 1.0))
    if not _has_blocks(encoding or sys.stdout.encoding or "utf-8"):
        return "#" * round(eighths / 8)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _has_blocks(encoding: str) -> bool:
    try:
        ("█" + EIGHTHS).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
