"""Reports as text: for a terminal, and as docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.prediction.traffic import PREDICTED

from .caches import Caches, is_rate
from .compare import (
    BARS,
    ORDER,
    SMALL_REGRET,
    TAU,
    Kind,
    by_size,
    regrets_by_kernel,
    wrong_pairs,
)
from .counted import INSTRUCTIONS, Counted, Pair
from .defects import Correctness, results
from .predicted import Compared, Refused
from .records import Machine, launch_name
from .report import Report, Section
from .table import table
from .tuning import compare as tuning

MOST_ROWS = 50  # longer tables have a row for each kernel instead of each case
MOST_WRONG_PAIRS = 20
WHOSE_COUNTERS = {
    LOWERING: ("Counters", "with the lowering's code of the Python kernels"),
    NVCC: ("Counters with nvcc's code", "with nvcc's code of the counted CUDA C++"),
}
OF_CODE = {LOWERING: "gpusim's lowering", NVCC: "nvcc's code"}
CHOICES = (
    "Choices of the fastest block, grid and coarsening factor at a size, by kernel: the regret is "
    "the chosen launch's measured time over that of the fastest, less one."
)
KEPT = "<!-- kept -->"  # everything below it in a page is kept when the page is rewritten

INTRODUCTION = """# Accuracy

{lead}

Predicted and measured times. `error` is predicted over measured, less one. Two launches of one size
are *ordered* if their measured times differ by more than 5 %. No number was fitted to these
launches, with one exception: of three policies of the warp scheduler the closest to the H200's
times was chosen. Profiles of some kernels showed which mechanisms to measure with microbenchmarks.
There are two predictions if nvcc supports the GPU: with the code of gpusim's lowering, from the
Python kernel, and with nvcc's code, from the measured CUDA C++. This command writes the page:

```sh
{command}
```

Its exit code is 1 if a bar is missed. The first tables name the bars of each kind of launches:

{bars}
- counters: equal integers for kernels with right results; the lowering's instructions within 5 %
- choices of the fastest block, grid and coarsening factor of a kernel at a size, by predictions:
  good ones are at most 3 % slower than the fastest measured launch
- results: wrong for kernels with a known defect in the catalogue, right for all others
"""


def page(reports: Sequence[Report], command: str, picture: str | None) -> str:
    """Return the page: all reports, the command that writes it, and a link to a picture."""
    bars = "\n".join(f"- {name}: {meaning}" for name, meaning in BARS.items())
    parts = [INTRODUCTION.format(lead=lead(reports), command=command, bars=bars)]
    if picture:
        parts.append(f"![Predicted against measured times, and GB/s over size]({picture})\n")
    return "\n".join([*parts, *map(section, reports)])


def lead(reports: Sequence[Report]) -> str:
    """Return the mean error of each GPU's first kind of launches, in each code."""
    lines = ["Mean error of predicted times:", ""]
    for report in reports:
        first = [one for one in report.sections if one.kind == report.sections[0].kind]
        errors = [
            f"**{one.summary.mean_error:.1%}** with {OF_CODE[one.code]}"
            for one in first
            if one.summary is not None
        ]
        if errors:
            count, about = len(first[0].cases), first[0].kind.title
            gpu = report.measurements.machine.gpu
            lines.append(f"- {gpu}: {' and '.join(errors)}, over {count:,} launches ({about})")
    return "\n".join(lines)


def section(report: Report) -> str:
    """Return one GPU's report in Markdown, which also reads well at a terminal."""
    machine = report.measurements.machine
    parts = [[f"## {machine.gpu}"], [f"{machine.source}.", *_told(machine)]]
    if report.sections:
        parts += [_summaries(report.sections), _errors(report.sections)]
        parts.append(_choices(report.sections))
        for one in report.sections:
            parts.append(_refused(one))
            if {ORDER, TAU} & set(one.kind.bars):
                parts.append(_wrong_order(one))
    if machine.device == tuning.DEVICE and report.sections:
        parts.append(tuning.report(tuning.choices()))
    if report.correctness:
        parts.append(_correctness(report.correctness))
    parts += [_counters(one) for one in (report.counted, report.counted_in_nvcc) if one.launches]
    if any(one.pairs for one in report.caches):
        parts.append(_caches(report.caches))
    parts.append([f"- missed: {miss}" for miss in report.misses()])
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _told(machine: Machine) -> list[str]:
    known = [
        f"driver {machine.driver}" if machine.driver else "",
        f"CUDA {machine.cuda}" if machine.cuda else "",
        machine.compiler,
        f"{machine.sm_clock_mhz:.0f} MHz" if machine.sm_clock_mhz else "",
        machine.date,
    ]
    text = ", ".join(part for part in known if part)
    return [*([f"{text}."] if text else []), *([machine.notes] if machine.notes else [])]


def _summaries(sections: Sequence[Section]) -> list[str]:
    """Return the errors of each kind of launches in each code, then Kendall's tau by size."""
    head = (
        "launches", "bars", "code", "cases", "mean error", "median", "90th perc.", "worst",
        "bare roofline", "pairs apart", "in wrong order", "choices", "good", "worst regret",
    )  # fmt: skip
    rows, taus = [], []
    for one in _side_by_side(sections):
        found = one.summary
        if found is None:
            continue
        rows.append(
            (
                one.kind.title,
                ", ".join(one.kind.bars) or "none",
                one.code,
                found.cases,
                f"{found.mean_error:.1%}",
                f"{found.median_error:.1%}",
                f"{found.percentile_90:.1%}",
                f"{found.worst:.1%}",
                f"{found.roofline_mean_error:.1%}",
                f"{found.pairs_apart:,}",
                f"{found.pairs_wrong:,}",
                f"{found.choices:,}",
                f"{found.choices_good:,}",
                f"{found.worst_regret:.1%}",
            )
        )
        if found.tau_by_size:
            sizes = ", ".join(f"{n:,}: {tau:.2f}" for n, tau in found.tau_by_size.items())
            taus.append(f"Kendall's tau by size, {one.kind.title}, {one.code}: {sizes}.")
    return [*table(head, rows, text=3), *(line for tau in taus for line in ("", tau))]


def _side_by_side(sections: Sequence[Section]) -> Iterator[Section]:
    """Yield the sections by kind, each in every code."""
    for kind in dict.fromkeys(section.kind for section in sections):
        yield from (section for section in sections if section.kind == kind)


def _errors(sections: Sequence[Section]) -> list[str]:
    """Return a row for each case of a short comparison, for each kernel of a long one."""
    first = [one for one in sections if one.kind == sections[0].kind]
    if len(first[0].cases) <= MOST_ROWS:
        return _case_by_case(first)
    others = [one for one in sections if one.kind != first[0].kind]
    return _kernel_by_kernel(first, others)


def _case_by_case(sections: Sequence[Section]) -> list[str]:
    """Return a table of launches: measured and, for each code, predicted times."""
    codes = [section.code for section in sections]
    head = ("kernel", "n", "block", "measured us", *(f"{code} us" for code in codes))
    by_case = [{(one.kernel, one.case): one for one in section.cases} for section in sections]
    rows = []
    for key, one in by_case[0].items():
        found = [known.get(key) for known in by_case]
        rows.append(
            (
                _name(one),
                f"{one.case.n:,}",
                one.case.block,
                f"{one.measured_us:,.1f}",
                *(f"{each.predicted_us:,.1f}" if each else "" for each in found),
                *(f"{each.error:+.1%}" if each else "" for each in found),
            )
        )
    return table((*head, *(f"error, {code}" for code in codes)), rows)


def _kernel_by_kernel(first: Sequence[Section], others: Sequence[Section]) -> list[str]:
    """Return a table of kernels: errors of the first kind in each code, mean errors elsewhere."""
    elsewhere = dict.fromkeys(one.kind for one in others)
    head = ["kernel", "cases"]
    for section in first:
        head += [f"{section.code}: mean error", "lowest", "highest"]
    head += [f"{kind.short}, {_codes(others, kind)}" for kind in elsewhere]
    rows = []
    for kernel in dict.fromkeys(one.kernel for one in first[0].cases):
        row: list[object] = [kernel, len(_errors_of(kernel, first[0]))]
        for section in first:
            errors = _errors_of(kernel, section)
            known = (_mean(errors), f"{min(errors):+.1%}", f"{max(errors):+.1%}") if errors else ()
            row += known or ("", "", "")
        for kind in elsewhere:
            of_kind = [_errors_of(kernel, one) for one in others if one.kind == kind]
            row.append(", ".join(_mean(errors) for errors in of_kind if errors))
        rows.append(row)
    text = f"By kernel: {first[0].kind.title}; in the last columns the mean error elsewhere."
    return [text, "", *table(head, rows)]


def _choices(sections: Sequence[Section]) -> list[str]:
    """Return a row for each kernel with a choice: how many are good in each code, and the worst."""
    first = [one for one in sections if one.kind == sections[0].kind]
    found = [regrets_by_kernel(one.cases) for one in first]
    kernels = dict.fromkeys(kernel for one in found for kernel in one)
    head = ["kernel", "choices"]
    for section in first:
        head += [f"{section.code}: good", "worst regret"]
    rows = []
    for kernel in kernels:
        of_codes = [one.get(kernel, []) for one in found]
        row: list[object] = [kernel, max(map(len, of_codes))]
        for regrets in of_codes:
            good = sum(regret <= SMALL_REGRET for regret in regrets)
            row += [good, f"{max(regrets):.1%}"] if regrets else ["", ""]
        rows.append(row)
    return [CHOICES, "", *table(head, rows)] if rows else []


def _codes(sections: Sequence[Section], kind: Kind) -> str:
    return ", ".join(one.code for one in sections if one.kind == kind)


def _errors_of(kernel: str, section: Section) -> list[float]:
    return [one.error for one in section.cases if one.kernel == kernel]


def _mean(errors: Sequence[float]) -> str:
    return f"{sum(map(abs, errors)) / len(errors):.1%}"


def _refused(section: Section) -> list[str]:
    return [
        f"- {_name(one)}, block {one.case.block}, n {one.case.n:,}: {one.reason}"
        for one in section.refused
    ]


def _wrong_order(section: Section) -> list[str]:
    """Return the pairs in the wrong order, the widest apart first; at most twenty."""
    wrong = [pair for group in by_size(section.cases).values() for pair in wrong_pairs(group)]
    wrong.sort(key=lambda pair: pair[1].measured_us / pair[0].measured_us)
    if not wrong:
        return [f"Every pair is in the right order ({section.code})."]
    shown = [
        f"- n {slow.case.n:,}: {_name(slow)} at block {slow.case.block} took "
        f"{slow.measured_us:,.1f} us and {_name(fast)} at block {fast.case.block} "
        f"{fast.measured_us:,.1f} us; predicted are {slow.predicted_us:,.1f} and "
        f"{fast.predicted_us:,.1f} us"
        for slow, fast in wrong[:MOST_WRONG_PAIRS]
    ]
    about = f"{section.code}; {len(wrong):,} in all, the widest apart first"
    return [
        f"Pairs in the wrong order ({about}):",
        "",
        *shown,
    ]


def _correctness(found: Sequence[Correctness]) -> list[str]:
    """Return the measured results of wrong kernels, beside their defects in the catalogue."""
    wrong = [one for one in found if one.wrong or one.defect]
    right = [one for one in found if not one.wrong]
    every = [shown.case for one in wrong for shown in one.shown]
    blocks = sorted({case.block for case in every})
    sizes = sorted({case.n for case in every if case.n > max(blocks)})
    rows = []
    for one in wrong:
        by_block = {shown.case.block: results(shown) for shown in one.shown}
        rows.append((one.kernel, *(by_block.get(block, "") for block in blocks)))
    lines = [
        f"- {one.kernel}: {one.verdict}. {one.defect or 'The catalogue knows no defect of it.'}"
        + (f" Corrected: {one.fixed_by}." if one.fixed_by else "")
        for one in wrong
    ]
    return [
        "### Wrong as published",
        "",
        f"Wrong results of one cold launch on fresh random data, by block size ("
        f"{', '.join(f'{n:,}' for n in sizes)} elements; scans, as many as the block has threads). "
        "Below, the known defects of the catalogue.",
        "",
        *table(("kernel", *(f"block {block}" for block in blocks)), rows),
        "",
        *lines,
        "",
        f"The other {len(right)} kernels gave right results in all of their "
        f"{sum(one.launches for one in right):,} launches.",
    ]


def _counters(found: Counted) -> list[str]:
    """Return the number of agreeing launches by metric, and the disagreements."""
    rows = (
        (
            f"`{row.metric.name}`",
            f"`{row.metric.counter}`",
            row.metric.kind,
            row.metric.bar or "none",
            f"{row.equal} of {row.launches}",
            "" if row.metric.is_held_equal else f"{row.near} of {row.launches}",
        )
        for row in found.agreements
    )
    held = sum(launch.is_held for launch in found.launches)
    title, whose = WHOSE_COUNTERS[found.code]
    return [
        f"### {title}",
        "",
        f"Nsight Compute's counts of {len(found.launches)} launches and gpusim's, {whose}. The "
        f"bars apply to the {held} launches of kernels without a defect.",
        "",
        *table(("metric", "counter", "kind", "bar", "equal", "within 5%"), rows, text=4),
        "",
        *_noise(found),
        "",
        *_unequal(found.unequal),
        "",
        *(
            f"- {one.kernel}, block {one.case.block}, cannot be run: {one.reason}"
            for one in found.refused
        ),
    ]


def _caches(found: Sequence[Caches]) -> list[str]:
    """Return the errors of cache and DRAM counters, over all launches and by kernel."""
    rows = (
        (
            f"`{row.metric}`",
            one.code,
            "model",
            row.launches,
            off(row.metric, row.mean_error),
            off(row.metric, row.median_error),
            off(row.metric, row.percentile_90),
            off(row.metric, row.worst),
            f"{row.near} of {row.launches}",
        )
        for metric in PREDICTED
        for one in found
        for row in one.agreements
        if row.metric == metric
    )
    head = (
        "metric", "code", "kind", "launches", "mean error", "median", "90th perc.", "worst",
        "within 5%",
    )  # fmt: skip
    return [
        "### Counters of caches and DRAM",
        "",
        "The same launches, predicted with a cold L2, as Nsight Compute flushes the caches; "
        "without bars. Errors of a rate are differences, in percentage points.",
        "",
        *table(head, rows, text=3),
        "",
        *_caches_by_kernel(found),
    ]


def _caches_by_kernel(found: Sequence[Caches]) -> list[str]:
    """Return the mean error of each kernel's launches, by code."""
    metrics = list(dict.fromkeys(pair.metric for one in found for pair in one.pairs))
    kernels = dict.fromkeys(pair.kernel for one in found for pair in one.pairs)
    rows = []
    for kernel in kernels:
        row = [kernel]
        for metric in metrics:
            errors = [[pair.error for pair in one.of(kernel, metric)] for one in found]
            row.append(", ".join(off(metric, fmean(map(abs, each))) for each in errors if each))
        rows.append(row)
    codes = ", ".join(one.code for one in found)
    text = f"By kernel: the mean error with each code ({codes})."
    return [text, "", *table(("kernel", *(f"`{name}`" for name in metrics)), rows)]


def off(metric: str, error: float) -> str:
    """Return an error as text: a percentage, for a rate in percentage points."""
    return f"{100 * error:.1f} points" if is_rate(metric) else f"{error:.1%}"


def _noise(found: Counted) -> list[str]:
    """Return the arbitration noise in the wavefronts of loads, by kernel and block."""
    noisy = found.noise
    if not noisy:
        return ["No load from shared memory has waited for arbitration."]
    blocks = sorted({pair.case.block for pair in noisy})
    by_kernel: dict[str, dict[int, Pair]] = {}
    for pair in noisy:
        by_kernel.setdefault(_name(pair), {})[pair.case.block] = pair
    rows = (
        (
            kernel,
            *(
                f"{pairs[b].noise:,.0f} ({pairs[b].noise / pairs[b].predicted:.1%})"
                if b in pairs
                else "0"
                for b in blocks
            ),
        )
        for kernel, pairs in by_kernel.items()
    )
    return [
        "Arbitration noise: wavefronts of shared loads that the hardware counts beyond the number "
        "from addresses. Its raw bank conflicts have the same excess.",
        "",
        *table(("kernel", *(f"block {block}" for block in blocks)), rows),
    ]


def _unequal(pairs: Sequence[Pair]) -> list[str]:
    """Return a row for each kernel and metric with different counts, with all of its blocks."""
    if not pairs:
        return ["All counters with the bar *equal* are equal, instructions included."]
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((_name(pair), pair.metric.counter), []).append(pair)
    rows = (
        (kernel, f"`{counter}`", "; ".join(_difference(pair) for pair in group))
        for (kernel, counter), group in groups.items()
    )
    head = ("kernel", "counter", "block: measured, predicted")
    return ["Not equal:", "", *table(head, rows, text=3)]


def _difference(pair: Pair) -> str:
    error = f" ({pair.predicted / pair.measured - 1:+.1%})" if pair.measured else ""
    share = error if pair.metric.counter == INSTRUCTIONS else ""
    return f"{pair.case.block}: {pair.measured:,.0f}, {pair.predicted:,}{share}"


def _name(launch: Compared | Refused | Pair) -> str:
    return launch_name(launch.kernel, launch.case)
