"""Counts the kernels of others.cu with Nsight Compute, each launch once, and writes a table.

    nvcc -O3 -arch=native -std=c++17 -o others others.cu
    python count.py ./others h200_counters.csv

A row is a kernel with its grid and block, for each of which one launch is profiled.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

METRICS = (
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed.sum",
    "smsp__thread_inst_executed_pred_on.sum",
    "smsp__sass_branch_targets.sum",
    "smsp__sass_branch_targets_threads_divergent.sum",
    "smsp__inst_executed_op_shared_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "smsp__inst_executed_op_global_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "smsp__inst_executed_op_global_st.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__inst_executed_op_shared_atom.sum",
    "launch__registers_per_thread",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
)


def counted(program: str) -> list[list[str]]:
    """Return name, grid, block and metrics of each launch that was profiled."""
    command = [
        "ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
        "--filter-mode", "per-launch-config", "--launch-count", "1",
        "--metrics", ",".join(METRICS), program,
    ]  # fmt: skip
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = told.splitlines()
    begin = next(k for k, line in enumerate(lines) if line.startswith('"ID"'))
    table = csv.DictReader(io.StringIO("\n".join(lines[begin:])))
    rows = [row for row in table if row["Kernel Name"]]
    return [
        [row["Kernel Name"], row["Grid Size"], row["Block Size"], *(row[m] for m in METRICS)]
        for row in rows
        if "read_all" not in row["Kernel Name"]
    ]


def main(program: str, table: str) -> None:
    """Write the table."""
    with Path(table).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "grid", "block", *METRICS])
        writer.writerows(counted(program))


if __name__ == "__main__":
    main(*sys.argv[1:])
