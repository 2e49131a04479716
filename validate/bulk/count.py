"""Nsight Compute's counters of the launches of count.cu: `python3 count.py OUT` beside `count`.

OUT becomes a CSV with a row for each launch and counter that is not zero, of those that name
shared memory, global memory, the L2 or a copy engine, and of gpusim's.
"""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

WANTED = re.compile(
    r"^(?!.*(_pred_o|surface|texture|stsm|_dot_|local|ipa|misc))"
    r"(l1tex__m_(xbar2l1tex|l1tex2xbar)_(read|write)_(requests|sectors)\w*(tma|dshared)\w*"
    r"|smsp__(sass_)?inst_executed_op_\w+|smsp__inst_executed(_pipe_(tma|uniform|lsu))?"
    r"|l1tex__t_(requests|sectors)_pipe_lsu_mem_\w+_op_(ld|st|atom|red)"
    r"|l1tex__data_pipe_lsu_wavefronts_mem_shared\w*|smsp__sass_branch_targets\w*"
    r"|smsp__thread_inst_executed(_pred_on)?)$"
)
AT_ONCE = 60  # counters of a run: each takes passes of its own


def printed(*command: str) -> str:
    """Return what a program prints; its errors are shown."""
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        print(ran.stdout[-1000:], ran.stderr[-1000:], file=sys.stderr)
    return ran.stdout


def counters() -> list[str]:
    """Return the names of the GPU's counters that are wanted."""
    lines = printed("ncu", "--query-metrics").splitlines()
    return sorted({line.split()[0] for line in lines if line and WANTED.match(line.split()[0])})


def main(out: Path) -> None:
    """Write the counters of all launches."""
    launches = [line.strip() for line in printed("./count").splitlines() if "," in line]
    names = [f"{name}.sum" for name in counters()]
    print(len(names), "counters", len(launches), "launches")
    with out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["launch", "counter", "value"])
        for first in range(0, len(names), AT_ONCE):
            wanted = ",".join(names[first : first + AT_ONCE])
            options = "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"
            text = printed("ncu", *options, "--metrics", wanted, "./count")
            start = text.find('"ID"')
            rows = [row for row in csv.DictReader(io.StringIO(text[start:])) if row["ID"].isdigit()]
            for launch, row in zip(launches, rows, strict=True):
                for name in names[first : first + AT_ONCE]:
                    value = (row.get(name) or "0").replace(",", "")
                    if value not in ("0", "n/a", ""):
                        table.writerow([launch, name, value])
            file.flush()


main(Path(sys.argv[1]))
