"""Measures the kernels of this folder, with three defects and with each one left out.

Needs nvcc and a GPU, no package. Every launch is timed by events behind a write of 256 MB, which
leaves nothing of its data in the L2; the median of 21 counts.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parent / "kernels.cu"
BLOCKS, THREADS, LOADS, REPETITIONS = 1056, 256, 64, 256
CURES = range(4)

_MAIN = """
#include <algorithm>
#include <cstdio>
#include <vector>

template <typename K> void timed(const char *name, int cure, K kernel, float *x, float *y, char *l2)
{{
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    std::vector<float> times;
    for (int run = 0; run < 24; ++run) {{
        cudaMemset(l2, run, 256 << 20);
        cudaEventRecord(begin);
        kernel<<<{blocks}, {threads}>>>(x, y, {blocks} * {threads}, {repetitions});
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        float ms;
        cudaEventElapsedTime(&ms, begin, end);
        if (run > 2) times.push_back(ms * 1000);
    }}
    std::sort(times.begin(), times.end());
    printf("%s %d %.3f %.3f %.3f %s\\n", name, cure, times[2], times[10], times[18],
           cudaGetErrorString(cudaGetLastError()));
}}

int main()
{{
    float *x, *y;
    char *l2;
    size_t bytes = 4ull * {loads} * {blocks} * {threads};
    cudaMalloc(&x, bytes), cudaMalloc(&y, bytes), cudaMalloc(&l2, 256 << 20);
    cudaMemset(x, 0, bytes);
{calls}
}}
"""


def names() -> list[str]:
    """Return the names of the kernels."""
    return re.findall(r"__global__ void (\w+)\(", KERNELS.read_text(encoding="utf-8"))


def program() -> str:
    """Return a C++ program that runs every kernel with each cure and prints its times."""
    calls = [
        f'    timed("{name}", {cure}, {name}<{cure}>, x, y, l2);'
        for name in names()
        for cure in CURES
    ]
    main = _MAIN.format(
        blocks=BLOCKS,
        threads=THREADS,
        repetitions=REPETITIONS,
        loads=LOADS,
        calls="\n".join(calls),
    )
    return f'#include "{KERNELS}"\n{main}'


def _asked(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def measured() -> dict[str, Any]:
    """Return the GPU and the times in microseconds by kernel: a list by cure, 0 without one."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "main.cu", Path(folder) / "main"
        source.write_text(program(), encoding="utf-8")
        _asked("nvcc", "-O3", "-arch=native", "-o", str(binary), str(source))
        rows = [line.split(maxsplit=5) for line in _asked(str(binary)).splitlines()]
    wrong = {row[5] for row in rows} - {"no error"}
    if wrong:
        raise RuntimeError(f"the launches failed: {', '.join(wrong)}")
    gpu, driver = _asked(
        "nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"
    ).split(", ")
    version = re.search(r"release ([\d.]+)", _asked("nvcc", "--version"))
    times: dict[str, list[float]] = {}
    for name, _, _, median, _, _ in rows:
        times.setdefault(name, []).append(float(median))
    return {
        "gpu": gpu,
        "driver": driver,
        "cuda": version[1] if version else "",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "times_us": times,
        "spread_us": {
            f"{name}<{cure}>": [float(low), float(high)] for name, cure, low, _, high, _ in rows
        },
    }


if __name__ == "__main__":
    json.dump(measured(), sys.stdout, indent=1)
    sys.stdout.write("\n")
