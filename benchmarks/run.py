"""Measure gpusim on one core, beside Numba's CUDA simulator: a table, and a file of JSON.

`python benchmarks/run.py [--out FILE] [PART ...]`; the parts are those of parts.py.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parts import PARTS

HERE = Path(__file__).resolve().parent

# The bars.
LEAST_INSTRUCTIONS_PER_S = 25e6
LEAST_OF_OTHERS_PER_S, LEAST_MEDIAN_PER_S = 2e6, 10e6
LEAST_DATA_DEPENDENT_PER_S = 10e6
LEAST_KEPT_PER_S, LEAST_MEDIAN_KEPT_PER_S = 5e6, 25e6
MOST_TIMES_NUMPY, LEAST_TIMES_OF_FEW_WARPS = 1.1, 40.0
LEAST_TIMES_OF_CHECKS = 10.0
MOST_SECONDS = 3.0
MOST_BYTES = 500e6
LEAST_RATIO = 3000.0
MOST_COLD_SECONDS = 0.6
LEAST_SIMULATED_PER_S = 8e6
LEAST_TIMES_SIMPY = 16.0
MOST_SECONDS_FOR_SEVEN = 0.4
MOST_SECONDS_OF_A_STAGE = 0.02
MOST_TIMES_A_TRACE, MOST_TIMES_A_PREDICT = 1.15, 2.0
MOST_SECONDS_FOR_A_SWEEP = 240.0
SWEEP_CORES = 2
MOST_COLD_SECONDS_TO_PREDICT = 0.5
MOST_HUGE_OVER_LARGE = 1.3
MOST_SECONDS_OF_A_PAGE, MOST_BYTES_OF_A_PAGE, MOST_SECONDS_TO_OPEN = 10.0, 2e6, 1.5


def pinned() -> int | None:
    """Pin this process and its children to the last core; None if unsupported."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def measured(part: str) -> dict[str, Any]:
    """Return a part's result, from a separate process."""
    paths = [str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "GPUSIM_CODE": "lowering",  # equal work with and without an installed compiler
    }
    done = subprocess.run(
        [sys.executable, str(HERE / "parts.py"), part],
        check=True,
        stdout=subprocess.PIPE,
        env=environment,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def machine(core: int | None) -> dict[str, Any]:
    """Return a description of the machine and its load."""
    import numpy

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "pinned_to": core,
        "load_before": list(os.getloadavg()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def report(results: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table: results beside their bars."""
    about = results["machine"]
    yield (
        f"{results['date']}  {about['processor']}, {about['cores']} cores, "
        f"load {about['load_before'][0]:.1f} before; Python {about['python']}, "
        f"NumPy {about['numpy']}"
    )
    for part, lines in REPORTS.items():
        if part in results:
            yield ""
            yield from lines(results)


def _speed(results: dict[str, Any]) -> Iterator[str]:
    found = results["speed"]
    yield (
        f"2^{found['elements'].bit_length() - 1} ints on one core, all counters on, median of "
        f"{found['repeats']} (bars: {MOST_SECONDS:.0f} s, "
        f"{LEAST_INSTRUCTIONS_PER_S / 1e6:.0f} M warp-instructions/s)"
    )
    yield (
        f"  {'kernel':14}{'block':>6}{'s':>8}{'M warp-instr/s':>16}{'M threads/s':>13}"
        f"{'no counters: s':>16}{'times':>7}"
    )
    for row in found["rows"]:
        rate = row["warp_instructions_per_s"]
        good = row["seconds"] <= MOST_SECONDS and rate >= LEAST_INSTRUCTIONS_PER_S
        yield (
            f"  {row['kernel']:14}{row['block']:6}{row['seconds']:8.2f}{rate / 1e6:16.2f}"
            f"{row['threads_per_s'] / 1e6:13.2f}{row['seconds_without_counters']:16.2f}"
            f"{row['seconds'] / row['seconds_without_counters']:7.2f}{_mark(good)}"
            f"{'' if row['right'] else '  WRONG RESULT'}"
        )


def _others(results: dict[str, Any]) -> Iterator[str]:
    found = results["others"]
    if "missing" in found:
        yield f"kernels of other kinds in nvcc's own code: not measured ({found['missing']})"
        return
    rates = [row["warp_instructions_per_s"] for row in found["rows"]]
    median = statistics.median(rates)
    yield (
        f"kernels of other kinds in nvcc's own code, all counters on: median {median / 1e6:.1f} "
        f"M warp-instructions/s (bar: {LEAST_MEDIAN_PER_S / 1e6:.0f}, none below "
        f"{LEAST_OF_OTHERS_PER_S / 1e6:.0f}){_mark(median >= LEAST_MEDIAN_PER_S)}"
    )
    yield from _counted(found["rows"], LEAST_OF_OTHERS_PER_S)


def _evaluators(results: dict[str, Any]) -> Iterator[str]:
    found = results["evaluators"]
    if "missing" in found:
        yield f"both evaluators of the machine: not measured ({found['missing']})"
        return
    smallest = [row for row in found["rows"] if not row["kind"]]
    rates = sorted(row["warp_instructions"] / row["kept_seconds"] / 1e6 for row in smallest)
    slower = [
        row["kernel"]
        for row in smallest
        for name in ("kept_seconds", "first_seconds")
        if row[name] > MOST_TIMES_NUMPY * row["numpy_seconds"]
    ]
    unequal = [row["kernel"] for row in found["rows"] if not row["equal"]]
    below = sum(rate < LEAST_KEPT_PER_S / 1e6 for rate in rates)
    median = statistics.median(rates)
    yield (
        f"the smallest launches of {len(smallest)} other kernels, nvcc's code, all counters on, "
        f"compiled code kept: median {median:.1f} M warp-instructions/s (bar: "
        f"{LEAST_MEDIAN_KEPT_PER_S / 1e6:.0f}), slowest {rates[0]:.1f}, {below} below "
        f"{LEAST_KEPT_PER_S / 1e6:.0f}{_mark(median >= LEAST_MEDIAN_KEPT_PER_S / 1e6)}"
    )
    yield (
        f"  slower than {MOST_TIMES_NUMPY} times NumPy's, kept or with making it: "
        f"{len(slower)} ({', '.join(slower) or 'none'}); not equal: {', '.join(unequal) or 'none'}"
    )
    yield "  kernel of few warps      kind                      NumPy M/s  compiled  times"
    for row in found["rows"]:
        if row["kind"]:
            count, times = (
                row["warp_instructions"] / 1e6,
                row["numpy_seconds"] / row["kept_seconds"],
            )
            yield (
                f"  {row['kernel']:24} {row['kind']:25} {count / row['numpy_seconds']:9.2f}"
                f" {count / row['kept_seconds']:9.1f} {times:6.1f}"
                f"{_mark(times >= LEAST_TIMES_OF_FEW_WARPS)}"
            )


def _checks(results: dict[str, Any]) -> Iterator[str]:
    found = results["checks"]
    if "missing" in found:
        yield f"checks of few warps: not measured ({found['missing']})"
        return
    rows = found["rows"]
    times = sorted(row["numpy_seconds"] / row["kept_seconds"] for row in rows)
    unequal = [row["kernel"] for row in rows if not row["equal"]]
    median = statistics.median(times)
    yield (
        f"checks of {len(rows)} launches of few warps, nvcc's code, compiled code kept: median "
        f"{median:.1f} times as fast as step by step (bar: {LEAST_TIMES_OF_CHECKS:.0f}), least "
        f"{times[0]:.1f}, most {times[-1]:.1f}{_mark(median >= LEAST_TIMES_OF_CHECKS)}; not equal: "
        f"{', '.join(unequal) or 'none'}"
    )


def _data_dependent(results: dict[str, Any]) -> Iterator[str]:
    yield (
        f"kernels whose branches and addresses follow the data, lowered, all counters on "
        f"(bar: {LEAST_DATA_DEPENDENT_PER_S / 1e6:.0f} M warp-instructions/s)"
    )
    yield from _counted(results["data_dependent"]["rows"], LEAST_DATA_DEPENDENT_PER_S)


def _counted(rows: list[dict[str, Any]], bar: float) -> Iterator[str]:
    yield f"  {'kernel':22}{'n':>8}{'M warp-instr/s':>16}{'times as without':>18}"
    for row in rows:
        rate = row["warp_instructions_per_s"]
        yield (
            f"  {row['kernel']:22}{row['n']:8}{rate / 1e6:16.2f}{row['times_as_long']:18.2f}"
            f"{_mark(rate >= bar)}"
        )


def _clock(results: dict[str, Any]) -> Iterator[str]:
    found = results["clock"]
    size = found["elements"].bit_length() - 1
    yield (
        f"predictions for an H200, 2^{size} ints, block {found['block']}, one core; warp "
        f"instructions simulated by SimPy and compiled"
    )
    yield (
        f"(bars: {LEAST_SIMULATED_PER_S / 1e6:.0f} M/s, {LEAST_TIMES_SIMPY:.0f} times SimPy's)"
        + ("" if found["is_compiled"] else "; wasmtime does not run here")
    )
    for row in found["rows"]:
        rate, ratio = row["compiled_per_s"], row["compiled_per_s"] / row["simpy_per_s"]
        good = rate >= LEAST_SIMULATED_PER_S and ratio >= LEAST_TIMES_SIMPY
        yield (
            f"  {row['kernel']:14}{row['seconds']:8.3f} s{row['simpy_per_s'] / 1e6:8.2f} M/s"
            f"{rate / 1e6:8.2f} M/s{ratio:7.1f} times{_mark(good)}"
        )
    whole = sum(row["seconds"] for row in found["rows"])
    yield (
        f"  all seven {whole:.2f} s (bar: {MOST_SECONDS_FOR_SEVEN:.1f} s), "
        f"{found['peak_bytes'] / 1e6:.0f} MB (bar: {MOST_BYTES / 1e6:.0f} MB)"
        f"{_mark(whole <= MOST_SECONDS_FOR_SEVEN and found['peak_bytes'] <= MOST_BYTES)}"
    )
    yield f"  {'':14}{'2^24: s':>8}{'2^30: s':>9}{'times':>7}  (bar: {MOST_HUGE_OVER_LARGE})"
    for row in found["sizes"]:
        ratio = row["huge"] / row["large"]
        yield (
            f"  {row['kernel']:14}{row['large']:8.2f}{row['huge']:9.2f}{ratio:7.2f}"
            f"{_mark(ratio <= MOST_HUGE_OVER_LARGE)}"
        )


def _planning(results: dict[str, Any]) -> Iterator[str]:
    found = results["planning"]
    size = found["elements"].bit_length() - 1
    yield (
        f"before the clock of an H200 begins, 2^{size} ints, block {found['block']}, "
        f"{len(found['rows'])} kernels (bar: {MOST_SECONDS_OF_A_STAGE * 1000:.0f} ms each)"
    )
    for stage in ("lowering", "classification", "steps"):
        rows = sorted(found["rows"], key=lambda row: row[stage])
        worst, above = rows[-1], [row for row in rows if row[stage] > MOST_SECONDS_OF_A_STAGE]
        middle = statistics.median(row[stage] for row in rows)
        yield (
            f"  {stage:14} median {middle * 1000:6.1f} ms, worst {worst[stage] * 1000:6.1f} ms "
            f"({worst['kernel']}), {len(above)} above{_mark(not above)}"
        )


def _advice(results: dict[str, Any]) -> Iterator[str]:
    found = results["advice"]
    size = found["elements"].bit_length() - 1
    yield (
        f"findings of 2^{size} ints, block {found['block']}: trace with them over one without "
        f"(bar: {MOST_TIMES_A_TRACE}), gains over a predict (bar: {MOST_TIMES_A_PREDICT})"
    )
    for row in found["rows"]:
        good = row["trace"] <= MOST_TIMES_A_TRACE and row["predict"] <= MOST_TIMES_A_PREDICT
        yield f"  {row['kernel']:14}{row['trace']:8.2f}{row['predict']:8.2f}{_mark(good)}"


def _memory(results: dict[str, Any]) -> Iterator[str]:
    found = results["memory"]
    yield (
        f"peak memory of tracing {found['kernel']}, 2^{found['elements'].bit_length() - 1} ints: "
        f"{found['peak_bytes'] / 1e6:.0f} MB, of which the input is "
        f"{found['input_bytes'] / 1e6:.0f} MB, in {found['seconds']:.1f} s "
        f"(bar: {MOST_BYTES / 1e6:.0f} MB){_mark(found['peak_bytes'] <= MOST_BYTES)}"
    )


def _numba(results: dict[str, Any]) -> Iterator[str]:
    found = results["numba"]
    if "missing" in found:
        yield f"Numba's CUDA simulator is not here: {found['missing']}"
        return
    yield (
        f"Numba {found['version']} CUDA simulator, {found['elements']:,} ints, same core, "
        f"same kernels (bar: {LEAST_RATIO:,.0f} times its threads/s)"
    )
    yield f"  {'kernel':14}{'threads/s':>10}{'gpusim':>9}{'with counters':>15}"
    ours = {(row["kernel"], row["block"]): row for row in results.get("speed", {}).get("rows", ())}
    for row in found["rows"]:
        rate = row["threads_per_s"]
        line = f"  {row['kernel']:14}{rate:10,.0f}"
        mine = ours.get((row["kernel"], row["block"]))
        if mine is not None:
            plain = mine["threads_per_s_without_counters"] / rate
            counted = mine["threads_per_s"] / rate
            line += f"{plain:8,.0f}x{counted:14,.0f}x{_mark(plain >= LEAST_RATIO)}"
        yield line


def _cold(results: dict[str, Any]) -> Iterator[str]:
    yield from _cold_start(results["cold"], MOST_COLD_SECONDS)


def _page(results: dict[str, Any]) -> Iterator[str]:
    found = results["page"]
    made, size = found["made_s"], found["bytes"]
    yield (
        f"page of {found['kernels']} kernels: made in {made:.1f} s (bar: {MOST_SECONDS_OF_A_PAGE})"
        f"{_mark(made <= MOST_SECONDS_OF_A_PAGE)}, {size / 1e6:.2f} MB (bar: "
        f"{MOST_BYTES_OF_A_PAGE / 1e6:g}){_mark(size <= MOST_BYTES_OF_A_PAGE)}"
    )
    if found["opened_s"]:
        middle = statistics.median(found["opened_s"])
        mark = _mark(middle <= MOST_SECONDS_TO_OPEN)
        yield f"  opened in {middle:.2f} s (bar: {MOST_SECONDS_TO_OPEN}){mark}"


def _cold_prediction(results: dict[str, Any]) -> Iterator[str]:
    yield from _cold_start(results["cold_prediction"], MOST_COLD_SECONDS_TO_PREDICT)


def _cold_start(found: dict[str, Any], bar: float) -> Iterator[str]:
    seconds = found["seconds"]
    middle = statistics.median(seconds)
    yield (
        f"gpusim {found['command']} from a cold start: {middle:.2f} s, median of "
        f"{len(seconds)} ({min(seconds):.2f} to {max(seconds):.2f}; bar: {bar} s)"
        f"{_mark(middle <= bar)}"
    )


def _recording(results: dict[str, Any]) -> Iterator[str]:
    found = results["recording"]
    if "missing" in found:
        yield f"streams of blocks in compiled code: not measured ({found['missing']})"
        return
    yield "classes of blocks, most of their steps in compiled code, and how many times NumPy takes"
    yield "  kernel                 n       s  times"
    for row in found["rows"]:
        yield f"  {row['kernel']:16s}{row['n']:8d}{row['seconds']:8.2f}{row['times']:7.1f}"


def _sweep(results: dict[str, Any]) -> Iterator[str]:
    found = results["sweep"]
    whole = found["seconds"] / found["done"] * found["cases"] / SWEEP_CORES
    yield (
        f"a sweep of {found['cases']:,} predictions on {SWEEP_CORES} cores: {whole:.0f} s, from "
        f"{found['done']} of them in {found['seconds']:.1f} s (bar: "
        f"{MOST_SECONDS_FOR_A_SWEEP:.0f} s){_mark(whole <= MOST_SECONDS_FOR_A_SWEEP)}"
    )


REPORTS = {
    "speed": _speed,
    "others": _others,
    "evaluators": _evaluators,
    "checks": _checks,
    "data_dependent": _data_dependent,
    "clock": _clock,
    "advice": _advice,
    "recording": _recording,
    "planning": _planning,
    "sweep": _sweep,
    "memory": _memory,
    "numba": _numba,
    "page": _page,
    "cold": _cold,
    "cold_prediction": _cold_prediction,
}


def _mark(good: bool) -> str:
    return "" if good else "  < missed"


def main() -> None:
    """Measure, print, write."""
    today = datetime.date.today().isoformat()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--out", type=Path, default=HERE / "results" / f"{today}.json", metavar="FILE"
    )
    chosen = parser.parse_args()
    core = pinned()
    results: dict[str, Any] = {"date": today, "machine": machine(core)}
    for part in chosen.parts or PARTS:
        if part not in PARTS:
            parser.error(f"there is no part {part!r}; there are {', '.join(PARTS)}")
        print(f"measuring {part} ...", file=sys.stderr, flush=True)
        results[part] = measured(part)
    results["report"] = list(report(results))
    print("\n".join(results["report"]))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
