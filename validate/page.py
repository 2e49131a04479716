"""A comparison as text: for a terminal, and as a section of docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Sequence

from .compare import Compared, Refused, summary, wrong_pairs
from .records import Measurements

INTRODUCTION = """# Accuracy

Predicted beside measured, misses as plainly as hits. Written by
`gpusim validate compare --page docs/accuracy.md`; nothing on this page was fitted to.

`error` is predicted over measured, less one. Two launches of one size have an order where their
measured times differ by more than 5 %.
"""


def section(measurements: Measurements, found: Sequence[Compared | Refused]) -> str:
    """Return one GPU's comparison in Markdown, which also reads well at a terminal."""
    cases = [c for c in found if isinstance(c, Compared)]
    machine = measurements.machine
    lines = [f"## {machine.gpu}", "", f"{machine.source}."]
    known = [
        f"driver {machine.driver}" if machine.driver else "",
        f"CUDA {machine.cuda}" if machine.cuda else "",
        f"{machine.sm_clock_mhz:.0f} MHz" if machine.sm_clock_mhz else "",
        machine.date,
    ]
    told = ", ".join(part for part in known if part)
    lines += [f"{told}." if told else "", machine.notes, ""]
    if not cases:
        return "\n".join([*lines, "Nothing of it can be predicted.", ""])
    told_of = summary(cases)
    lines += [
        "| what | value |",
        "| --- | --- |",
        f"| cases | {told_of.cases} |",
        f"| mean absolute error | {told_of.mean_error:.1%} |",
        f"| 90th percentile | {told_of.percentile_90:.1%} |",
        f"| worst | {told_of.worst:.1%} |",
        f"| mean absolute error of a bare roofline | {told_of.roofline_mean_error:.1%} |",
        f"| pairs of one size more than 5 % apart | {told_of.pairs_apart} |",
        f"| of these in the wrong order | {told_of.pairs_wrong} |",
        "",
        "Kendall's tau by size: "
        + ", ".join(f"{n:,}: {tau:.2f}" for n, tau in told_of.tau_by_size.items())
        + ".",
        "",
        *_table(cases),
        "",
        *_wrong(cases),
    ]
    refused = [c for c in found if isinstance(c, Refused)]
    lines += [f"- {r.kernel}, block {r.case.block}, n {r.case.n:,}: {r.reason}" for r in refused]
    return "\n".join(lines).rstrip() + "\n"


def _table(cases: Sequence[Compared]) -> list[str]:
    """Return a row for each case of a short table, for each kernel of a long one."""
    if len(cases) <= 50:
        rows = [
            f"| {c.kernel} | {c.case.n:,} | {c.case.block} | {c.measured_us:,.1f} | "
            f"{c.predicted_us:,.1f} | {c.error:+.1%} |"
            for c in cases
        ]
        head = "| kernel | n | block | measured us | predicted us | error |"
        return [head, "| --- | ---: | ---: | ---: | ---: | ---: |", *rows]
    by_kernel: dict[str, list[Compared]] = {}
    for case in cases:
        by_kernel.setdefault(case.kernel, []).append(case)
    rows = []
    for kernel, group in by_kernel.items():
        errors = [c.error for c in group]
        mean = sum(map(abs, errors)) / len(errors)
        rows.append(
            f"| {kernel} | {len(group)} | {mean:.1%} | {min(errors):+.1%} | {max(errors):+.1%} |"
        )
    head = "| kernel | cases | mean absolute error | lowest | highest |"
    return [head, "| --- | ---: | ---: | ---: | ---: |", *rows]


def _wrong(cases: Sequence[Compared]) -> list[str]:
    """Return the pairs in the wrong order, the widest apart first; at most twenty."""
    by_size: dict[int, list[Compared]] = {}
    for case in cases:
        by_size.setdefault(case.case.n, []).append(case)
    wrong = [pair for group in by_size.values() for pair in wrong_pairs(group)]
    wrong.sort(key=lambda pair: pair[1].measured_us / pair[0].measured_us)
    if not wrong:
        return ["Every pair is in the right order."]
    shown = [
        f"- n {slow.case.n:,}: {slow.kernel} at block {slow.case.block} took "
        f"{slow.measured_us:,.1f} us and {fast.kernel} at block {fast.case.block} "
        f"{fast.measured_us:,.1f} us; predicted are {slow.predicted_us:,.1f} and "
        f"{fast.predicted_us:,.1f} us"
        for slow, fast in wrong[:20]
    ]
    return [f"Pairs in the wrong order ({len(wrong)} in all, the widest apart first):", "", *shown]
