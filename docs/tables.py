"""The tables of the documentation that come from the code. A table is one function here."""

from __future__ import annotations

import csv
import functools
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import as_notebooks

import gpusim
from gpusim import catalogue
from gpusim.advice import registry
from gpusim.catalogue import Call, Entry
from gpusim.checking.rules import RULES
from gpusim.cli.plot import PICTURES
from gpusim.cli.validation import measured_gbps
from gpusim.errors import GpusimError
from gpusim.gpu import device
from gpusim.gpu.device import KEYS
from gpusim.lowering.passes.optimise import PASSES
from gpusim.lowering.passes.simplify import simplify
from gpusim.prediction.sweeps.jobs import catalogue_job
from gpusim.prediction.traffic import PREDICTED
from gpusim.reports.layout import plural
from gpusim.reports.page import terms as glossary
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.records import Trace

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from validate import files, predicted  # noqa: E402
from validate.cases import LATER, LATER_SIZES  # noqa: E402
from validate.others import ablation, errors, launch_table, misses, traffic  # noqa: E402
from validate.published import published  # noqa: E402
from validate.records import Case  # noqa: E402
from validate.residuals import coverage  # noqa: E402
from validate.residuals import pairs as residual_pairs  # noqa: E402
from validate.residuals import tables as residual_tables  # noqa: E402
from validate.residuals.records import residuals  # noqa: E402
from validate.tuning import compare as tuning  # noqa: E402

Table = Callable[[], str]
SEEN = ROOT / "tests" / "sass" / "corpus" / "seen.csv"

# On an H200: 2^20 ints, CUDA 13.0, -O3 -arch=sm_90, Nsight Compute. By kernel and block:
# instructions, machine branches, shared loads, shared stores, store wavefronts, load wavefronts
# (these with arbitration noise). reduce5 was measured with a volatile tail: reduce5_fixed here.
H200_ELEMENTS = 2**20
H200 = {
    ("reduce1", 128): (7_241_728, 262_144, 466_944, 262_144, 221_184, 388_352),
    ("reduce1", 1024): (9_936_896, 360_448, 656_384, 360_448, 228_352, 395_012),
    ("reduce2", 128): (4_030_464, 262_144, 466_944, 262_144, 221_184, 392_783),
    ("reduce2", 1024): (5_349_376, 360_448, 656_384, 360_448, 228_352, 395_961),
    ("reduce3", 128): (3_145_728, 262_144, 466_944, 262_144, 98_304, 141_959),
    ("reduce3", 1024): (4_071_424, 360_448, 656_384, 360_448, 69_632, 75_340),
    ("reduce4", 128): (1_605_632, 131_072, 233_472, 131_072, 49_152, 70_636),
    ("reduce4", 1024): (2_068_480, 180_224, 328_192, 180_224, 34_816, 37_489),
    ("reduce5_fixed", 128): (786_432, 49_152, 86_016, 57_344, 49_152, 71_295),
    ("reduce5_fixed", 1024): (1_212_416, 98_304, 137_728, 84_992, 34_816, 37_482),
    ("reduce6", 128): (643_072, 16_384, 86_016, 57_344, 49_152, 71_522),
    ("reduce6", 1024): (834_048, 16_384, 137_728, 84_992, 34_816, 37_381),
    ("reduce7", 128): (856_064, 49_152, 86_016, 73_728, 65_536, 71_197),
    ("reduce7", 1024): (1_047_040, 49_152, 137_728, 101_376, 51_200, 37_402),
}
EXACT_COLUMNS = (
    ("instructions", "instructions"),
    ("branches", "branches"),
    ("shared loads", "shared_load_instructions"),
    ("shared stores", "shared_store_instructions"),
    ("store wavefronts", "shared_store_wavefronts"),
)


def counters() -> str:
    """Every counter, in the order of the report."""
    rows = (
        (f"`{spec.name}`", spec.unit, spec.kind, f"`{spec.ncu}`" if spec.ncu else "", spec.doc)
        for spec in COUNTERS.values()
    )
    return _table(("counter", "unit", "kind", "in Nsight Compute", "what it counts"), rows)


def predicted_counters() -> str:
    """Every counter that follows from the model of memory."""
    rows = ((f"`{name}`", unit, "model", doc) for name, (unit, doc, _) in PREDICTED.items())
    return _table(("in Nsight Compute", "unit", "kind", "what it counts"), rows)


def kernels() -> str:
    """Every kernel of the catalogue, by where it was published."""
    parts = []
    for origin, found in groupby(catalogue.entries(), key=lambda entry: entry.origin):
        entries = list(found)
        rows = ((f"`{e.name}`", e.teaches, str(e.block_rule), _remark(e)) for e in entries)
        table = _table(("kernel", "what it teaches", "block", ""), rows)
        about = f"{entries[0].family.name.capitalize()}s. {origin.about} {_link(origin.url)}"
        parts.append(f"### {origin}\n\n{about.strip()}\n\n{table}")
    return "\n\n".join(parts)


def _link(url: str) -> str:
    return f"[{url.removeprefix('https://')}]({url})" if url else ""


def _remark(entry: Entry) -> str:
    remarks = {
        f"corrects `{entry.fixes}`": entry.fixes,
        "**wrong as published**": entry.defect,
        "one block": entry.one_block,
        "no guard": not entry.guarded and not entry.one_block,
        "any grid": entry.grid_free,
        f"clusters of {entry.default_cluster} blocks": entry.default_cluster,
        f"from compute capability {entry.least_cc} on": entry.least_cc != "1.0",
        "nvcc's code alone": not entry.is_lowered,
    }
    return ", ".join(remark for remark, applies in remarks.items() if applies)


def defects() -> str:
    """What is wrong as published, and what running it here gives at either level."""
    rows = []
    for entry in catalogue.entries():
        if entry.defect:
            cure = f"`{entry.fixed_by}`" if entry.fixed_by else ""
            rows.append((f"`{entry.name}`", entry.defect, _found(entry), cure))
    return _table(("kernel", "defect", "in gpusim", "corrected"), rows)


def _found(entry: Entry) -> str:
    block = entry.block_rule.most if entry.name == "reduce6_published" else 128
    n = block if entry.one_block else 64 * block * entry.per_thread
    said = {}
    for level in ("O0", "O3"):
        call = entry.call(catalogue.sample(n, entry.dtypes[0]), block=block)
        try:
            gpusim.trace(call.configured, *call.arguments, level=level)
        except GpusimError as error:
            said[level] = str(error).splitlines()[0]
        else:
            said[level] = f"{call.wrong()} of {len(call.result)} results wrong"
    same = said["O0"] == said["O3"]
    text = f"{said['O3']} at either level" if same else f"O3: {said['O3']}; O0: {said['O0']}"
    return f"{text} (block {block})"


def instructions() -> str:
    """Counts of the seven reductions beside those of an H200."""
    rows = []
    for (name, block), measured in H200.items():
        trace, launches = _traced_part(name, block)
        cells = [f"`{name}`", str(block)]
        for (_, counter), value in zip(EXACT_COLUMNS, measured, strict=False):
            predicted = trace.counters[counter] * launches
            off = (predicted - value) / value
            cells.append(f"{predicted:,}" + (f" ({off:+.1%} of {value:,})" if off else ""))
        rows.append(cells)
    return _table(("kernel", "block", *(title for title, _ in EXACT_COLUMNS)), rows, right=2)


def load_wavefronts() -> str:
    """Wavefronts of shared loads beside those of an H200, which also count arbitration."""
    rows = []
    for (name, block), measured in H200.items():
        trace, launches = _traced_part(name, block)
        predicted = trace.counters["shared_load_wavefronts"] * launches
        noise = (measured[5] - predicted) / predicted
        rows.append(
            (f"`{name}`", str(block), f"{predicted:,}", f"{measured[5]:,}", f"{noise:+.1%}")
        )
    return _table(("kernel", "block", "gpusim", "H200", "H200 shows more"), rows, right=2)


def beside_measured() -> str:
    """Predicted times of the seven reductions beside an H200's, as they were measured."""
    n, block = 2**24, 256
    rows = []
    for name in dict.fromkeys(name for name, _ in H200):
        forecast = catalogue_job(catalogue.Request(name, n, block)).on("h200")
        measured_us = forecast.useful_bytes / dict(measured_gbps(name, "h200", block))[n] / 1000
        error = forecast.time_us / measured_us - 1
        times = (f"{time:.1f} us" for time in (forecast.time_us, measured_us))
        rows.append((f"`{name}`", forecast.first.limiter.name, *times, f"{100 * error:+.1f} %"))
    return _table(("kernel", "limiter", "predicted", "measured", "error"), rows, right=2)


def published_times() -> str:
    """Predicted times of single launches beside those that were published, by GPU."""
    rows = []
    for one in published():
        predicted_us = one.predicted_us()
        error = f"{100 * (predicted_us / one.measured_us - 1):+.0f} %"
        times = (f"{time:,.0f} us" for time in (predicted_us, one.measured_us))
        rows.append((one.gpu.name, f"`{one.kernel}`", *times, error))
    return _table(("GPU", "kernel", "predicted", "published", "error"), rows, right=2)


# Sources that name a publication or tool before a comma, and those that only describe it.


def gpus() -> str:
    """The GPUs, and what was measured of each: numbers of its device file, times of launches.

    GPUs of which as much is known share a row; the best known come first.
    """
    rows: dict[str, list[device.Device]] = {}
    found = sorted(map(device.load, device.names()), key=lambda one: -len(_measured_of(one)))
    for one in found:
        rows.setdefault(_known_of(one), []).append(one)
    return _table(
        ("GPU", "`--device`", "cc", "measured"),
        [
            (
                ", ".join(one.name for one in alike),
                ", ".join(f"`{one.id}`" for one in alike),
                ", ".join(dict.fromkeys(one.gpu.compute_capability for one in alike)),
                known,
            )
            for known, alike in rows.items()
        ],
    )


def _measured_of(one: device.Device) -> list[device.Fact]:
    return [fact for fact in one.facts.values() if fact.kind == "measured"]


def _known_of(one: device.Device) -> str:
    """Return what was measured of a GPU, and whether here."""
    facts = _measured_of(one)
    is_own = any("gpusim validate calibrate" in fact.source for fact in facts)
    path = ROOT / "validate" / "measured" / f"{one.id}.json"
    times = json.loads(path.read_text(encoding="utf-8"))["times"]["rows"] if path.exists() else ()
    parts = [plural(len(facts), "number")] * bool(facts) + [f"{len(times):,} times"] * bool(times)
    if not parts:
        return "its data sheet alone"
    return " and ".join(parts) + ("" if is_own else ", published")


# M. Harris, Optimizing Parallel Reduction in CUDA: milliseconds on a G80, 2^22 ints, blocks of 128.
G80_MS = {
    "reduce1": 8.054,
    "reduce2": 3.456,
    "reduce3": 1.722,
    "reduce4": 0.965,
    "reduce5_fixed": 0.536,
    "reduce6": 0.381,
    "reduce7": 0.268,
}
H200_N, H200_BLOCK = 2**24, 256


def harris() -> str:
    """Times of the seven reductions with step and cumulative speedups: published, H200, gpusim."""
    published = list(G80_MS.values())
    measured = [_measured_us(name, H200_BLOCK) for name in G80_MS]
    forecasts = [
        catalogue_job(catalogue.Request(name, H200_N, H200_BLOCK)).on("h200") for name in G80_MS
    ]
    predicted = [one.time_us for one in forecasts]
    rows = []
    for place, name in enumerate(G80_MS):
        cells = [f"`{name}`", f"{published[place]:.3f} ms", *_speedups(published, place)]
        for times in (measured, predicted):
            cells += [f"{times[place]:.1f} us", *_speedups(times, place)]
        rows.append(cells)
    whose, parts = ("G80", "H200", "gpusim"), ("", " step", " all")
    columns = [f"{who}{part}" for who in whose for part in parts]
    return _table(("kernel", *columns), rows, right=1)


def _speedups(times: Sequence[float], place: int) -> list[str]:
    """Return the speedup over the kernel before, and over the first."""
    if not place:
        return ["", ""]
    return [f"{times[place - 1] / times[place]:.2f}x", f"{times[0] / times[place]:.2f}x"]


def _measured_us(name: str, block: int, grid: int | None = None) -> float:
    """Return the time of a reduction of H200_N ints, measured on an H200."""
    cases = (
        one
        for one in files.load("h200").times
        if (one.kernel, one.case.n, one.case.block, one.case.grid) == (name, H200_N, block, grid)
        and (one.case.dtype, one.case.l2, one.case.scope) == ("int32", "cold", "single")
    )
    (found,) = {one.time_us for one in cases if one.case.operation == "sum"}
    return float(found)


def small_grids() -> str:
    """Times of reduce7 on an H200 with its launch rule's grid, and with 528 blocks."""
    rows = []
    for block in (64, 128, 256, 512, 1024):
        cells = [str(block)]
        for name, grid in (("reduce6", None), ("reduce7", None), ("reduce7", 528)):
            request = catalogue.Request(name, H200_N, block, grid=grid)
            predicted = catalogue_job(request).on("h200").time_us
            cells += [f"{_measured_us(name, block, grid):.1f} us", f"{predicted:.1f} us"]
        rows.append(cells)
    of = ("`reduce6`", "`reduce7`", "528 blocks")
    titles = [f"{one}, {how}" for one in of for how in ("measured", "predicted")]
    return _table(("block", *titles), rows, right=1)


def later_kernels() -> str:
    """Times of kernels with newer hardware beside the lecture's last, at three sizes on an H200."""
    measured = {}
    for name in ("h200", "h200-hopper"):
        for one in files.load(name).times:
            measured[one.kernel, one.case] = one.time_us
    rows = []
    for kernel in ("reduce6", "reduce7", *LATER):
        cells = [f"`{kernel}`"]
        for n in LATER_SIZES:
            case = Case(n, H200_BLOCK, "int32")
            (made,) = predicted.predictions(kernel, case, "h200", "nvcc")
            time = measured[kernel, case]
            assert time is not None
            cells += [f"{time:.1f} us", f"{made.time_us:.1f} us ({made.time_us / time - 1:+.0%})"]
        rows.append(cells)
    sizes = [f"2^{n.bit_length() - 1}" for n in LATER_SIZES]
    titles = [f"{size}, {how}" for size in sizes for how in ("measured", "predicted")]
    return _table(("kernel", *titles), rows, right=1)


@functools.cache
def _traced_part(name: str, block: int) -> tuple[Trace, int]:
    """Return a trace of a 32nd of the measured launch, whose blocks are alike, and 32."""
    part = 32
    call: Call = catalogue.find(name).call(
        catalogue.sample(H200_ELEMENTS // part, "int32"), block=block
    )
    return gpusim.trace(call.configured, *call.arguments), part


# The symbols of docs/model.md, and their keys of a device file.
LETTERS = {
    "t_launch": "interval_cycles.block_launch",
    "t_start": "latency_cycles.block_start",
    "t_warp": "latency_cycles.warp_start",
    "t_end": "latency_cycles.block_end",
    "t_last begin": "latency_cycles.launch_last",
    "t_completion": "interval_cycles.block_completion",
    "t_cold": "latency_cycles.cold_start",
    "λ, ALU": "latency_cycles.alu",
    "λ, FMA": "latency_cycles.fma",
    "λ, multiplier": "latency_cycles.imad",
    "λ, FP64": "latency_cycles.fp64",
    "λ of a guard": "latency_cycles.predicate",
    "λ_xu": "latency_cycles.xu",
    "I_xu": "interval_cycles.xu",
    "I_wide": "interval_cycles.imad_wide",
    "S_wide": "interval_cycles.imad_wide_dispatch",
    "I of the ALU": "interval_cycles.alu",
    "I of FMA": "interval_cycles.fma",
    "I of FP64": "interval_cycles.fp64",
    "λ_tensor": "latency_cycles.tensor",
    "δ_tensor": "latency_cycles.tensor_register",
    "I_tensor": "interval_cycles.tensor",
    "I_tensor of single": "interval_cycles.tensor_single",
    "I_tensor at least": "interval_cycles.tensor_least",
    "λ_tensor of FP64": "latency_cycles.tensor_fp64",
    "I_tensor of FP64": "interval_cycles.tensor_fp64",
    "λ_warpgroup": "latency_cycles.warpgroup_product",
    "I_column": "interval_cycles.warpgroup_column",
    "t_control": "latency_cycles.control",
    "t_branch": "latency_cycles.branch",
    "I_exit": "interval_cycles.exit",
    "I_adu": "interval_cycles.adu",
    "λ_special": "latency_cycles.special_register",
    "λ_constant": "latency_cycles.constant",
    "I_lookup": "interval_cycles.constant_lookup",
    "constant_piece_bytes": "capacity.constant_piece_bytes",
    "λ_L1.5": "latency_cycles.constant_l15",
    "constant_bytes": "capacity.constant_bytes",
    "lsu_depth": "queue.lsu_depth",
    "λ_shared": "latency_cycles.shared_load",
    "λ_far": "latency_cycles.l2_far",
    "I_store": "interval_cycles.store_packet",
    "packets of the L2": "bandwidth.l2_stores_per_cycle",
    "packets of whole sectors": "bandwidth.l2_whole_stores_per_cycle",
    "load_depth": "queue.load_depth",
    "store_depth": "queue.store_depth",
    "t_last": "latency_cycles.last_store",
    "I_atomic": "interval_cycles.global_atomic_same_address",
    "I_float": "interval_cycles.global_atomic_float_same_address",
    "U": "bandwidth.l2_atomic_units",
    "U_old": "bandwidth.l2_atomic_answers",
    "atomic_depth": "queue.atomic_depth",
    "t_fence": "latency_cycles.fence",
    "t_one line": "latency_cycles.fence_of_one_line",
    "t_many lines": "latency_cycles.fence_of_many_lines",
    "t_overlap": "latency_cycles.fence_overlap",
    "t_flag": "latency_cycles.flag",
    "t_fenced": "latency_cycles.fenced_flag",
    "t_per warp": "latency_cycles.barrier_per_warp",
    "t_barrier": "latency_cycles.barrier",
    "t_overhead": "host.launch_overhead_us",
    "t_gap": "host.pass_gap_us",
}


def letters() -> str:
    """The symbols of the model's formulae, with their values on an H200."""
    facts = device.load("h200").facts
    rows = (
        (f"`{letter}`", f"{facts[key].value:g} {facts[key].unit}", f"`{key}`", KEYS[key].doc)
        for letter, key in LETTERS.items()
    )
    return _table(("symbol", "H200", "key", "what it is"), rows)


# The keys of a device file that docs/memory.md speaks of.
MEMORY_KEYS = (
    "capacity.l1_bytes",
    "capacity.l1_kept_fraction",
    "capacity.l1_lost_fraction",
    "capacity.l1_random_kept_fraction",
    "capacity.l1_random_lost_fraction",
    "capacity.l1_without_lines_bytes",
    "capacity.l2_bytes",
    "capacity.l2_kept_fraction",
    "capacity.l2_lost_fraction",
    "capacity.l2_warm_kept_fraction",
    "capacity.l2_warm_lost_fraction",
    "capacity.l2_parts",
    "capacity.l2_far_fraction",
    "capacity.l2_far_touches",
    "capacity.l2_written_fraction",
    "latency_cycles.l1",
    "latency_cycles.l2",
    "latency_cycles.l2_far",
    "latency_cycles.l2_places",
    "latency_cycles.dram",
    "latency_cycles.global_atomic",
    "latency_cycles.fence",
    "latency_cycles.fence_of_one_line",
    "latency_cycles.fence_of_many_lines",
    "latency_cycles.fence_overlap",
    "latency_cycles.flag",
    "latency_cycles.fenced_flag",
    "bandwidth.l2_gbps",
    "bandwidth.l2_stores_per_cycle",
    "bandwidth.l2_whole_stores_per_cycle",
    "bandwidth.l2_store_part_factor",
    "bandwidth.l2_latency_growth",
    "bandwidth.dram_gbps",
    "bandwidth.dram_grain_bytes",
    "bandwidth.dram_scattered_gbps",
    "bandwidth.dram_scattered_writes_gbps",
    "bandwidth.dram_scattered_lines_gbps",
    "bandwidth.dram_write_factor",
    "bandwidth.dram_write_alone_factor",
    "bandwidth.l2_atomic_units",
    "bandwidth.l2_atomic_answers",
    "bandwidth.l2_atomic_places_a_unit",
    "bandwidth.l2_atomics_in_a_kilobyte",
    "interval_cycles.global_atomic_same_address",
    "interval_cycles.global_atomic_float_same_address",
    "interval_cycles.global_atomic_whole_sector",
    "interval_cycles.global_atomic_read",
    "interval_cycles.global_atomic_miss",
    "interval_cycles.store_joined",
    "interval_cycles.l1_miss_line",
    "queue.load_depth",
    "queue.atomic_depth",
)


def memory_keys() -> str:
    """What the memory hierarchy of an H200 is in its device file."""
    facts = device.load("h200").facts
    rows = (
        (f"`{key}`", f"{facts[key].value:,.9g} {facts[key].unit}", KEYS[key].doc)
        for key in MEMORY_KEYS
    )
    return _table(("key", "H200", "what it is"), rows)


def memory_misses() -> str:
    """Launches of validate/others that show the limits of the memory model."""
    found = misses.memory_misses(errors.compared())
    rows = (
        (
            *(reason, f"`{one.kernel}`, {one.n:,}", f"{one.measured_us:,.1f} us"),
            *(f"{one.predicted_us:,.1f} us", f"{100 * one.error:+.0f} %"),
        )
        for reason, one in found
    )
    return _table(("what", "launch", "measured", "predicted", "off by"), rows, right=2)


def benchmark() -> str:
    """The report of the newest benchmark that is kept."""
    newest = max((ROOT / "benchmarks" / "results").glob("*.json"))
    lines = json.loads(newest.read_text(encoding="utf-8"))["report"]
    return "\n".join(["```text", *lines, "```"])


def pictures() -> str:
    """Every picture of gpusim plot."""
    rows = ((f"`{name}`", picture.summary) for name, picture in PICTURES.items())
    return _table(("picture", "what it shows"), rows)


def passes() -> str:
    """The passes over the SSA form, in the order in which they run."""
    rows = []
    for step in PASSES:
        if step is not simplify:
            what = _first_sentence(inspect.getdoc(inspect.getmodule(step)) or "")
            rows.append((f"`{step.__name__}`", what))
    return _table(("pass", "what it does"), rows)


def mnemonics() -> str:
    """The rows of the table of mnemonics, and the architectures on which the tests have them."""
    with SEEN.open(encoding="utf-8", newline="") as file:
        first, *rows = csv.reader(file)
    return _table(first, ([f"`{name}`", *marks] for name, *marks in rows))


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], right: int | None = None) -> str:
    """Return a Markdown table; columns from number `right` on are aligned to the right."""
    rules = ["---:" if right is not None and k >= right else "---" for k in range(len(titles))]
    lines = [list(titles), rules, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def sanitizer() -> str:
    """What compute-sanitizer says of the planted kernels, and the rule that finds them here."""
    sys.path.insert(0, str(ROOT / "tests"))
    planted = importlib.import_module("checking.planted")
    for kind in planted.KINDS:
        importlib.import_module(f"checking.planted_{kind}")
    sys.path.remove(str(ROOT / "tests"))
    found = {case.name: case.rule for case in planted.CASES}
    measured = json.loads((ROOT / "tests" / "checking" / "sanitizer_h200.json").read_text())
    rows = (
        (
            name.replace("_", " "),
            f"`{found[name]}`" if name in found else "",
            ", ".join(_verdict(tool, said) for tool, said in verdict["bug"].items()),
        )
        for name, verdict in measured["verdicts"].items()
    )
    return _table(("planted", "gpusim check", "compute-sanitizer"), rows)


def families() -> str:
    """What compute-sanitizer says of families of pairs, and the bugs with other results."""
    folder = ROOT / "tests" / "checking"
    sys.path.insert(0, str(ROOT / "tests"))
    topics = importlib.import_module("checking.families").TOPICS
    sys.path.remove(str(ROOT / "tests"))
    measured = json.loads((folder / "families_h200.json").read_text())["verdicts"]
    tools = ("racecheck", "synccheck", "memcheck", "initcheck")
    rows = []
    for topic, pairs in topics.items():
        said = [measured[pair.name] for pair in pairs]
        found = [str(sum(tool in one["bug"] for one in said)) for tool in tools]
        every = sum(any(tool in one["bug"] for tool in tools) for one in said)
        reported = sum(any(tool in one["twin"] for tool in tools) for one in said)
        shown = sum(one["bug"].get("checksum") != one["twin"]["checksum"] for one in said)
        rows.append((topic, str(len(pairs)), *found, str(every), str(reported), str(shown)))
    titles = ("topic", "pairs", *tools, "any of them", "twins reported", "wrong results")
    return _table(titles, rows, right=1)


def _verdict(tool: str, said: dict[str, Any]) -> str:
    """Return a tool's verdict in words."""
    if not said.get("ends", True):
        return f"{tool}: does not end"
    counts = [f"{said[kind]} {kind}" for kind in ("errors", "warnings") if said[kind]]
    return f"{tool}: {', '.join(counts)}"


def rules() -> str:
    """Every rule of a check, with its severity and its fix."""
    rows = ((f"`{r.name}`", r.severity, r.title, r.fix) for r in RULES.values())
    return _table(("rule", "severity", "finding", "fix"), rows)


def intervals() -> str:
    """Coverage and width of prediction intervals on the H200, by cross-validation."""
    return "\n".join(residual_tables.whole(residuals()))


def intervals_by_gpu() -> str:
    """Coverage of launches of GPUs left out, and widths of intervals, by kind of GPU."""
    return "\n".join(residual_tables.by_gpu(residuals()))


def certainty() -> str:
    """The order of pairs of launches: limits of ties, and how left-out pairs fared."""
    return "\n".join(residual_pairs.certainty_table(residual_pairs.launches()))


def intervals_by_kind() -> str:
    """Prediction intervals by kind, with their coverage."""
    return "\n".join(residual_tables.by_kind(residuals()))


def intervals_by_unknown() -> str:
    """Factors of what was sampled, extrapolated or supposed, with coverage."""
    return "\n".join(residual_tables.by_unknown(residuals()))


def intervals_held() -> str:
    """Coverage of intervals by launches measured after the intervals stood."""
    return "\n".join(coverage.held_table(coverage.held()))


def findings() -> str:
    """Every kind of finding on performance; a few need the prediction of a device."""
    untimed = registry.rules(timed=False)
    rows = (
        (
            f"`{kind}`",
            "" if kind in untimed else "a device",
            _first_sentence(inspect.getdoc(one) or ""),
        )
        for kind, one in registry.rules(timed=True).items()
    )
    return _table(("kind", "needs", "meaning"), rows)


def others() -> str:
    """How far off predictions of kernels are that are not in the catalogue, part by part."""
    found = errors.compared()
    return "\n".join([*errors.bars(found), "", *errors.summaries(found)])


def others_by_kernel() -> str:
    """The same, kernel by kernel."""
    return "\n".join(errors.kernel_by_kernel(errors.compared()))


def ablations_of_others() -> str:
    """What each law of the memory is worth, by launches predicted without it."""
    return "\n".join(ablation.ablations())


def others_by_group() -> str:
    """The same, group by group."""
    return "\n".join(errors.group_by_group(errors.compared()))


def choices_of_others() -> str:
    """Choices of a launch by predictions, beside the fastest of the launches measured."""
    return "\n".join(tuning.report(tuning.choices()))


def others_misses() -> str:
    """The launches predicted worst, with reasons."""
    return "\n".join(misses.table_of(errors.compared()))


def others_refused() -> str:
    """Kernels without a prediction, with reasons."""
    return "\n".join(errors.refusals())


def others_traffic() -> str:
    """Errors of the predicted traffic of these kernels, group by group."""
    return "\n".join(traffic.group_by_group(traffic.traffic()))


def others_traffic_misses() -> str:
    """The launches with the largest errors of traffic."""
    return "\n".join(traffic.farthest(list(traffic.traffic())))


# Generated files beside the data, by their paths.
FILES: dict[Path, Table] = {launch_table.LAUNCHES: launch_table.text, **as_notebooks.FILES}


def words(title: str) -> str:
    """The terms of a section of the glossary."""
    rows = ((one.text, one.meaning, one.source) for one in glossary.sections()[title])
    return _table(("term", "meaning", "source"), rows)


TABLES: dict[str, Table] = {
    made.__name__: made
    for made in (
        counters,
        predicted_counters,
        kernels,
        defects,
        instructions,
        load_wavefronts,
        beside_measured,
        published_times,
        harris,
        small_grids,
        later_kernels,
        gpus,
        passes,
        pictures,
        rules,
        findings,
        sanitizer,
        families,
        letters,
        memory_keys,
        memory_misses,
        benchmark,
        mnemonics,
        intervals,
        intervals_by_gpu,
        certainty,
        intervals_by_kind,
        intervals_by_unknown,
        intervals_held,
        others,
        others_by_kernel,
        ablations_of_others,
        others_by_group,
        choices_of_others,
        others_misses,
        others_refused,
        others_traffic,
        others_traffic_misses,
    )
}
TABLES |= {f"words: {title}": functools.partial(words, title) for title in glossary.sections()}
