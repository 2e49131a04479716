"""The report of a prediction: duration, limiter, stalls, and remedies."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent, wrap
from typing import Any

from rich.text import Text

from gpusim.advice.records import NONE, Advice
from gpusim.advice.stalls import STALLS
from gpusim.gpu.device import ABLATIONS
from gpusim.prediction.bounds import SPINNING
from gpusim.prediction.records import Prediction
from gpusim.prediction.removals import REMOVALS
from gpusim.prediction.sweeps.ablation import Ablation
from gpusim.prediction.sweeps.jobs import COMPULSORY, Forecast
from gpusim.prediction.uncertainty import Interval, kinds
from gpusim.prediction.uncertainty.kinds import CALIBRATED_NOTE, GPUS, MEASURED
from gpusim.reports import line_fetches
from gpusim.reports.advice import SENTENCES, findings_lines
from gpusim.reports.columns import Column, Columns
from gpusim.reports.device_changes import device_changes
from gpusim.reports.excerpts import LEAST_HEIGHT, SCREEN, fitting, heaviest, height, others
from gpusim.reports.generators import code_of, fallback_lines
from gpusim.reports.launches import description_lines
from gpusim.reports.layout import BAD, DIM, NO_LINE, TITLE, heading, plural, size
from gpusim.reports.operand_assumptions import assumption_lines
from gpusim.reports.quantities import (
    bar,
    duration,
    interval,
    percent,
    rate,
    signed_percent,
    tenths_of_a_percent,
    volume,
)
from gpusim.reports.runs import known_defect
from gpusim.reports.timeline import timeline_lines

LABEL_WIDTH = 12
LEAST_LINE_FRACTION = 0.005
MOST_ROWS = 4  # of bounds, stalls and loads on one screen
MOST_ABLATIONS = 5


@dataclass(frozen=True)
class Answer:
    """A forecast and its findings; with the time of the whole GPU and the ablations on request."""

    forecast: Forecast
    whole: Forecast | None = None
    ablations: Sequence[Ablation] | None = None
    findings: Sequence[Advice] = ()


def prediction_document(answer: Answer) -> dict[str, Any]:
    """Return the document of `gpusim predict --json`."""
    document = answer.forecast.to_dict()
    if answer.whole is not None:
        saved = 1 - answer.forecast.time_us / answer.whole.time_us
        document["with_all_mechanisms"] = {"time_us": answer.whole.time_us, "saves": saved}
    document["findings"] = [advice.to_dict() for advice in answer.findings]
    if answer.ablations is not None:
        document["ablations"] = [one.to_dict() for one in answer.ablations]
    return document


def prediction_report(
    answer: Answer, width: int, *, whole: bool = True, after: Sequence[Text] = ()
) -> Iterator[Text]:
    """Yield the lines of the report, none wider than `width`; `after` comes last.

    Unless `whole`, it fits on one screen: the heaviest source lines and the first rows of tables.
    """
    first = answer.forecast.first
    before, findings = [*_launch(answer, width)], [*_findings(answer, width, whole), *after]
    stalls = [*_stalls(first, width, whole)]
    shown = first.timeline
    asked = [] if shown is None else [*timeline_lines(shown, width, whole=whole)]
    room = sys.maxsize if whole else SCREEN - height([*before, *asked, *findings], width)
    parts = [
        stalls,
        [*_bounds(first, width, whole)],
        [*_memory(first, width, whole)],
        [*_classes(first, width)],
    ]
    stalls, bounds, memory, classes = map(list, fitting(parts, room - LEAST_HEIGHT, width))
    yield from [*before, *bounds, *stalls, *asked]
    left = room - height([*stalls, *bounds, *memory, *classes], width)
    lines = [*_lines(answer.forecast, width, left, whole)]
    gives_way = bool(asked and (answer.ablations or after))  # to what is requested
    if whole or not gives_way or height(lines, width) <= left:
        yield from lines
    yield from [*memory, *classes, *findings]


def _launch(answer: Answer, width: int) -> Iterator[Text]:
    """Yield the launch and its facts."""
    forecast, setup = answer.forecast, answer.forecast.job.launches[0].setup
    yield from _title(forecast)
    yield from description_lines(forecast.job.description, width)
    yield from fallback_lines(forecast.first.prepared.fallback, width)
    yield from assumption_lines([forecast], width)
    yield Text()
    yield from _facts(answer, width)
    if setup is not None and setup.entry.defect:
        yield Text()
        for part in wrap(known_defect(setup.entry), width - 4):
            yield Text(f"  {part}", BAD)
    if len(forecast.predictions) > 1:
        yield heading("Passes", "all sections below: the first pass")
        yield from _passes(forecast).lines(width)


def _findings(answer: Answer, width: int, whole: bool) -> Iterator[Text]:
    """Yield the first findings with their gains, and ablations."""
    yield heading("Findings")
    found = [one for one in answer.findings if one.kind != NONE]
    is_full = answer.ablations or answer.forecast.first.timeline is not None
    yield from findings_lines(found, width, 1 if is_full else SENTENCES, whole=whole)
    if answer.ablations:
        yield Text()
        yield from _ablations(answer.ablations, answer.forecast.time_us, width, whole)
    more = [] if whole else ["--all: every line, stall and bound"]
    if answer.ablations is None:
        more.append("--why: time without barriers, without bank conflicts, ...")
    if more:
        yield Text(f"  {'; '.join(more)}", DIM)


def _title(forecast: Forecast) -> Iterator[Text]:
    first, setup = forecast.first, forecast.job.launches[0].setup
    title = Text(forecast.job.name, TITLE)
    if setup is not None:
        what = f"{setup.operation} of {setup.n:,} {setup.dtype.name}"
    else:
        what = f"{forecast.useful_bytes:,} useful bytes"
    title.append(f"  {what} on {forecast.device.name}", "not bold")
    yield title
    launch = f"grid {size(first.launch.grid)}, block {size(first.launch.block)}"
    cc = forecast.device.gpu.compute_capability
    code = code_of(first.prepared.program)
    yield Text(f"{launch}, compute capability {cc}, {first.l2} L2, {code}", DIM)


def _facts(answer: Answer, width: int) -> Iterator[Text]:
    forecast, first = answer.forecast, answer.forecast.first
    peak = forecast.device.bandwidth.dram_peak_gbps
    setup = forecast.job.launches[0].setup
    counted = f"{setup.n:,} x {setup.dtype.itemsize} bytes" if setup else COMPULSORY
    imagined = device_changes(forecast.device, forecast.removals)
    note = f" {imagined}" if imagined else _time_note(forecast)
    yield _fact("duration", duration(forecast.time_us), note, TITLE)
    if answer.whole is not None:
        yield from _beside(forecast, answer.whole, width)
    yield _fact("", interval(*forecast.interval_us), f": 90 % interval; {interval_note(forecast)}")
    yield _fact("throughput", rate(forecast.gbps), f" of useful bytes: {counted}")
    beyond = ": the L2 serves part of them" if forecast.peak_fraction > 1 else ""
    note = f" of the DRAM's peak, {peak:,.0f} GB/s{beyond}"
    yield _fact("", percent(forecast.peak_fraction), note)
    bound = first.limiter
    fraction = percent(bound.time_us / first.time_us, 0)
    note = f": lower bound {duration(bound.time_us)}, {fraction} of the duration"
    yield _fact("limiter", bound.name, note)
    held = first.occupancy
    most = forecast.device.sm.max_threads // 32
    yield _fact(
        "occupancy",
        percent(held.fraction, 0),
        f": {plural(held.blocks, 'block')}, {held.warps} of {most} warps on an SM; "
        f"limited by {held.limit}",
    )
    yield _fact("waves", *_waves(first))
    yield from _simulated(first)


# Kinds of launches and their unknowns in words; others are said as they are.
_KINDS = {
    kinds.CATALOGUE: "catalogue kernel",
    kinds.SPINNING: "spinning blocks",
    kinds.SHORT: "short launch",
    kinds.SCATTERED_ATOMICS: "data-dependent atomics",
    kinds.RANDOM_ACCESS: "data-dependent addresses",
    kinds.DATA_BRANCHES: "data-dependent branches",
    kinds.REGULAR: "regular accesses",
    kinds.SAMPLED: "blocks sampled",
    kinds.SUPPOSED: "elements assumed",
}


def interval_note(forecast: Forecast) -> str:
    """Return the kind of launch, and the GPU's unless it is measured: those errors make it."""
    found = forecast.first.interval
    gpu = "" if found.gpu == MEASURED else f"; {_gpu_note(found)}"
    data = ["time depends on the assumed data"] if forecast.first.depends_on_data else []
    words = (_KINDS.get(one, one) for one in (found.kind, *found.unknown))
    return f"kind: {', '.join([*words, *data])}{gpu}"


def _gpu_note(found: Interval) -> str:
    others = f"{found.gpus} other GPU{'' if found.gpus == 1 else 's'}"
    return f"GPU {GPUS.get(found.gpu, CALIBRATED_NOTE)} (errors of {others})"


def _time_note(forecast: Forecast) -> str:
    first = forecast.first
    if len(forecast.predictions) > 1:
        return f" for {len(forecast.predictions)} passes (model)"
    overhead = duration(first.overhead_us)
    return f" with {overhead} launch overhead; {first.cycles:,.0f} SM cycles (model)"


def _beside(forecast: Forecast, whole: Forecast, width: int) -> Iterator[Text]:
    """Yield the time of the whole GPU beside that of the one without some mechanisms."""
    names, before = sorted(forecast.device.ablations), whole.device.facts
    lines = list(map(str, forecast.removals))
    kept = [*names, *lines, *(f"{key} = {before[key].value}" for key, _ in forecast.device.changed)]
    cost = whole.time_us - forecast.time_us
    note = f"{'cost' if cost >= 0 else 'gain'} {duration(abs(cost))}"
    note += f", {percent(abs(cost) / whole.time_us)}"
    yield _fact("", duration(whole.time_us), f" with {' and '.join(kept)}; {note}")
    known = REMOVALS.all() if lines else {}
    for text in (known[one.mechanism].doc for one in forecast.removals):
        yield from _wrapped(text, width, LABEL_WIDTH + 2, DIM)
    for name in names:
        yield from _wrapped(ABLATIONS[name], width, LABEL_WIDTH + 2, DIM)


def _fact(label: str, value: str, note: str, style: str = "") -> Text:
    line = Text(f"  {label:<{LABEL_WIDTH}}", DIM)
    line.append(value, style or "not dim")
    line.append(note, "not dim")
    return line


def _waves(prediction: Prediction) -> tuple[str, str]:
    held, gpu = prediction.occupancy.blocks, prediction.device.gpu
    whole = int(prediction.waves)
    part = prediction.waves - whole
    of = f" of {held * gpu.sms:,} blocks ({held} on each of {gpu.sms} SMs)"
    if whole == 0:
        return f"{prediction.waves:.2f}", f"{of}: less than a full wave"
    tail = f"; tail of {percent(part, 0)} of a wave" if part > 0 else "; no tail"
    return f"{prediction.waves:,.1f}", of + tail


def _simulated(prediction: Prediction) -> Iterator[Text]:
    done = prediction.extent
    simulated = f"{done.simulated:,} of one SM's {plural(done.blocks_on_sm, 'block')}"
    parts = [f"{done.extrapolated:,} extrapolated"] if done.extrapolated else []
    if done.iterations_simulated < done.iterations:
        some, all_ = done.iterations_simulated, done.iterations
        parts.append(f"{some:,} of the longest loop's {all_:,} iterations")
    if not parts:
        yield _fact("simulated", simulated, "; none extrapolated")
        return
    yield _fact("simulated", simulated, f"; {', '.join(parts)}, spread {percent(done.spread, 2)}")


def _passes(forecast: Forecast) -> Columns:
    made = Columns(
        Column("pass"),
        Column("elements"),
        Column("blocks"),
        Column("time"),
        Column("L2", "left"),
        Column("limiter", "left"),
    )
    launches = zip(forecast.job.launches, forecast.predictions, strict=True)
    for number, (launch, prediction) in enumerate(launches, 1):
        made.row(
            str(number),
            f"{launch.setup.n:,}" if launch.setup else "",
            f"{prediction.launch.blocks:,}",
            duration(prediction.time_us),
            prediction.l2,
            prediction.limiter.name,
        )
    return made


def _bounds(prediction: Prediction, width: int, whole: bool) -> Iterator[Text]:
    yield heading("Lower bounds", "duration with one limiter alone; the longest is the limiter")
    made = Columns(Column("", "left"), Column("time"), Column("share"), Column("", "left"))
    binding = prediction.limiter
    for bound in prediction.lower_bounds if whole else prediction.lower_bounds[:MOST_ROWS]:
        fraction = bound.time_us / prediction.time_us
        style = TITLE if bound == binding else ""
        made.row(
            (f"  {bound.name}", style),
            (duration(bound.time_us), style),
            (percent(fraction, 0), style),
            (bar(fraction), "cyan"),
        )
    yield from made.lines(width)


def _cycles_shown(prediction: Prediction) -> tuple[str, str]:
    """Return the cycles after stalls and source lines: parked warps have none."""
    if any(one.name == SPINNING for one in prediction.bounds):
        return "warp cycles without spinning on other blocks", "fraction of these cycles"
    return "cycles of all warps", "fraction of all warp cycles"


def _stalls(prediction: Prediction, width: int, whole: bool) -> Iterator[Text]:
    yield heading("Stalls", f"{_cycles_shown(prediction)[0]}, by Nsight Compute's reasons")
    made = Columns(Column("", "left"), Column(""), Column("", "left"), Column("", "left", "fold"))
    fractions = tenths_of_a_percent(prediction.stalls)
    found = sorted((item for item in fractions.items() if item[1]), key=lambda item: -item[1])
    for name, fraction in found if whole else found[:MOST_ROWS]:
        colour = "green" if name == "selected" else "yellow"
        meaning = STALLS[name].meaning if name in STALLS else ""
        made.row(f"  {name}", f"{fraction:.1f} %", (bar(fraction / 100), colour), (meaning, DIM))
    yield from made.lines(width)


def _lines(forecast: Forecast, width: int, room: int, whole: bool) -> Iterator[Text]:
    first = forecast.first
    least = 0.0 if whole else LEAST_LINE_FRACTION
    known = {line: fraction for line, fraction in first.lines.items() if fraction >= least}
    file = first.prepared.source_file
    texts = [linecache.getline(file, line).rstrip() if line else "" for line in known]
    plain = dedent("\n".join(text or " " for text in texts)).split("\n")
    rows = list(zip(known.items(), plain, strict=True))
    yield heading("Source lines", _cycles_shown(first)[1])
    lines, left_out = heaviest(rows, list(known.values()), _lines_table, room - 3, width)
    yield from lines
    shown = len(known) - len(left_out)
    if rest := len(first.lines) - shown:
        small = sum(first.lines.values()) - sum(known.values())
        part = percent(small + sum(fraction for (_, fraction), _ in left_out))
        yield Text(f"  {plural(rest, 'other line')}: {part} together", DIM)


def _lines_table(rows: Sequence[tuple[tuple[int, float], str]]) -> Columns:
    made = Columns(
        Column("line"),
        Column("source", "left", "fold", hang=4),
        Column("fraction"),
        Column("", "left"),
    )
    most = max((fraction for (_, fraction), _ in rows), default=0.0)
    for (line, fraction), text in rows:
        style = TITLE if fraction == most else ""
        made.row(
            (str(line or ""), style or DIM),
            (text.rstrip() if line else NO_LINE, style),
            (percent(fraction), style),
            (bar(fraction), "yellow"),
        )
    return made


def _memory(prediction: Prediction, width: int, whole: bool) -> Iterator[Text]:
    found = line_fetches.by_line(prediction.traffic.fetches)
    if not found:
        return
    most = len(found) if whole else MOST_ROWS
    yield heading("Memory", line_fetches.NOTE)
    line, array, *numbers = line_fetches.TITLES
    made = Columns(Column(line), Column(array, "left", "fold"), *map(Column, numbers))
    for one in found[:most]:
        made.row(*one.cells)
    yield from made.lines(width)
    rest = found[most:]
    if rest:
        loaded = volume(sum(one.loaded_bytes for one in rest))
        yield Text(f"  {plural(len(rest), 'other row')}: {loaded} together", DIM)


def _classes(prediction: Prediction, width: int) -> Iterator[Text]:
    classes = prediction.classes
    run = plural(classes.probed, "block")
    if classes.is_sampled:
        note, text = _some_for_all(prediction)
        yield heading("Blocks", f"{run} {note}")
        yield from _wrapped(text, width)
        return
    simulated = f"{classes.probed:,} of {prediction.launch.blocks:,} simulated"
    yield heading("Blocks", f"{simulated}; the others are taken to equal their neighbours")
    parts = [_alike(one.blocks) for one in sorted(classes.classes, key=lambda c: -c.blocks)]
    shown = parts[:6]
    if len(parts) > len(shown):
        shown.append(f"{len(parts) - len(shown)} more classes")
    instructions = f"{prediction.instructions:,} warp instructions in all"
    yield from _wrapped(f"{', '.join(shown)}; {instructions}", width)


def _some_for_all(prediction: Prediction) -> tuple[str, str]:
    """Return the phrase for representative blocks: sampled ones, or watched ones."""
    classes, blocks = prediction.classes, f"{prediction.launch.blocks:,} blocks"
    kinds = f"{len(classes.classes):,} class{'' if len(classes.classes) == 1 else 'es'}"
    instructions = f"{prediction.instructions:,} warp instructions in all"
    if classes.sampling_error is None:
        return (
            "recorded; each is the representative of its neighbours",
            f"The {blocks} wait for each other; {kinds} among the recorded ones. About "
            f"{instructions}, without polls repeated.",
        )
    return (
        "run; a stratified sample, each the representative of its stratum",
        f"The {blocks} are of too many classes to find all: {kinds} in the sample; {instructions}, "
        f"± {percent(classes.sampling_error)} (standard error).",
    )


def _alike(blocks: int) -> str:
    return f"class of {blocks:,} blocks" if blocks > 1 else "class of 1 block"


def _ablations(
    ablations: Sequence[Ablation], whole_us: float, width: int, whole: bool
) -> Iterator[Text]:
    most = len(ablations) if whole else MOST_ABLATIONS
    kept = sorted(ablations, key=lambda one: -abs(one.time_us - whole_us))[:most]
    made = Columns(
        Column("  without", "left"),
        Column("time"),
        Column("change"),
        Column("meaning", "left", "fold"),
    )
    for one in [one for one in ablations if one in kept]:
        change = one.time_us / whole_us - 1
        style = "" if abs(change) >= 0.005 else DIM
        made.row(
            (f"  {one.mechanism}", style),
            (duration(one.time_us), style),
            (signed_percent(change), style),
            (ABLATIONS[one.mechanism], DIM),
        )
    yield from made.lines(width)
    yield from others(len(ablations) - most, "mechanism", " with less")


def _wrapped(text: str, width: int, indent: int = 2, style: str = "") -> Iterator[Text]:
    for part in wrap(text, max(20, width - indent - 2)):
        yield Text(" " * indent + part, style)
