"""Nsight Compute's counters of every kernel, if its program `ncu` is installed.

`ncu` runs this package, which launches each kernel once in a known order, and prints the counts as
a table.
"""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess
from collections.abc import Sequence

from gpusim.errors import GpusimError
from gpusim.tracing.counters import COUNTERS

from .cases import Pair
from .records import Counts

INSTALL = "install Nsight Compute, which comes with the CUDA toolkit, and put ncu on the PATH"

# In addition to gpusim's own counters.
METRICS = (
    "launch__registers_per_thread",
    "smsp__sass_branch_targets.sum",
    "smsp__inst_executed_op_shared_atom.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "sm__cycles_elapsed.max",
    "sm__cycles_active.avg",
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
    "l1tex__t_sector_hit_rate.pct",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
)

STALLS = tuple(
    f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    for reason in (
        "barrier", "branch_resolve", "dispatch_stall", "drain", "imc_miss", "lg_throttle",
        "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc",
        "no_instruction", "not_selected", "selected", "short_scoreboard", "wait",
    )
)  # fmt: skip

# Counters of the source view need another mode, in which Nsight prints nothing else.
SOURCE_VIEW = "derived__"


# Far longer than any run; without a limit a hanging profiler would hang gpusim.
LONGEST_S = 1800


class ProfilerError(GpusimError):
    """Nsight Compute is missing, or its answer cannot be used."""


def metrics() -> tuple[str, ...]:
    """Return the collected metrics: gpusim's counters, and metrics that explain time."""
    named = dict.fromkeys(spec.ncu for spec in COUNTERS.values())
    wanted = [name for name in named if name and not name.startswith(SOURCE_VIEW)]
    return (*dict.fromkeys((*wanted, *METRICS)), *STALLS)


def program() -> str:
    """Return the profiler; raises ProfilerError if it is missing."""
    found = shutil.which("ncu")
    if found is None:
        raise ProfilerError(f"reading hardware counters needs ncu: {INSTALL}")
    return found


def collect(pairs: Sequence[Pair], command: Sequence[str]) -> list[Counts]:
    """Return the counters of these launches; `command` launches each once, in order.

    After a faulting launch, the following ones are missing. Raises ProfilerError if `ncu` is
    missing or does not count.
    """
    ncu = program()
    # Launches of the measurement itself are excluded.
    names = "|".join(sorted({kernel.name for kernel, _ in pairs}))
    options = ["--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
    options += ["--kernel-name", f"regex:^({names})$"]
    wanted = list(metrics())
    while True:
        ran = subprocess.run(
            [ncu, *options, "--metrics", ",".join(wanted), *command],
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        )
        printed = ran.stdout + ran.stderr
        unknown = [name for name in wanted if name in _complaints(printed)]
        if table(ran.stdout) or not unknown:
            break
        wanted = [name for name in wanted if name not in unknown]
    rows = table(ran.stdout)
    if not rows:
        raise ProfilerError("ncu counted nothing:\n" + printed.strip()[-2000:])
    return [
        Counts(kernel.name, case, _values(row, kernel.name))
        for (kernel, case), row in zip(pairs, rows, strict=False)
    ]


def _complaints(text: str) -> str:
    """Return ncu's complaints about unknown metrics."""
    return "\n".join(line for line in text.splitlines() if "==" in line and "metric" in line)


def table(text: str) -> list[dict[str, str]]:
    """Return the rows of `ncu --csv --page raw` output, without the row of units."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    return [row for row in rows if (row.get("ID") or "").isdigit()]


def _values(row: dict[str, str], kernel: str) -> dict[str, float]:
    """Return the metrics of a row; ProfilerError if it belongs to another kernel."""
    if not re.search(rf"\b{kernel}\b", row.get("Kernel Name", "")):
        raise ProfilerError(f"ncu counted {row.get('Kernel Name')} where {kernel} was launched")
    found = {}
    for name in metrics():
        text = (row.get(name) or "").replace(",", "")
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value):
            found[name] = int(value) if value.is_integer() else value
    return found
