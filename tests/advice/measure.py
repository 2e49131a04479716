"""Measures the corpus: the large launches of each pair, defect and cure, on the GPU that is there.

Run as `python tests/advice/measure.py`; needs nvcc, no package, and prints JSON. Every launch is
timed by events behind a write of 256 MB, which leaves nothing of its data in the L2; the median of
21 counts.
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

sys.path.insert(0, str(Path(__file__).parent))

from pairs import CORPUS, PAIRS, Launch

_MAIN = """
#include <algorithm>
#include <cstdio>
#include <vector>

template <typename T, typename K>
void timed(const char *name, K kernel, dim3 grid, dim3 block, size_t xs, size_t ys, int n, int k)
{
    T *x, *y;
    char *l2;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    cudaMalloc(&x, sizeof(T) * xs), cudaMalloc(&y, sizeof(T) * ys), cudaMalloc(&l2, 256 << 20);
    cudaMemset(x, 0, sizeof(T) * xs), cudaMemset(y, 0, sizeof(T) * ys);
    std::vector<float> times;
    for (int run = 0; run < 24; ++run) {
        cudaMemset(l2, run, 256 << 20);
        cudaEventRecord(begin);
        kernel<<<grid, block>>>(x, y, n, k);
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        float ms;
        cudaEventElapsedTime(&ms, begin, end);
        if (run > 2) times.push_back(ms * 1000);
    }
    std::sort(times.begin(), times.end());
    printf("%s %.3f %.3f %.3f %s\\n", name, times[2], times[10], times[18],
           cudaGetErrorString(cudaGetLastError()));
    cudaFree(x), cudaFree(y), cudaFree(l2);
}
"""
TYPES = {"float32": "float", "int32": "int"}


def program(file: str) -> str:
    """Return a C++ program that runs the pairs of a file and prints their times."""
    calls = []
    for pair in (one for one in PAIRS if one.file == file):
        sides = (pair.defect, pair.large), (pair.cure, pair.large_cure or pair.large)
        for side, (kernel, launch) in zip(("defect", "cure"), sides, strict=True):
            name = f"{pair.kind}:{pair.name}:{side}"
            calls.append(_call(name, kernel, launch, TYPES[pair.dtype]))
    body = "\n".join(calls)
    return f'#include "{CORPUS / file}"\n{_MAIN}\nint main()\n{{\n{body}\n}}\n'


def _call(name: str, kernel: str, launch: Launch, dtype: str) -> str:
    grid, block = (", ".join(map(str, one)) for one in (launch.grid, launch.block))
    numbers = f"{launch.x}, {launch.y}, {launch.n}, {launch.k}"
    return f'    timed<{dtype}>("{name}", {kernel}, dim3({grid}), dim3({block}), {numbers});'


def _asked(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def measured() -> dict[str, Any]:
    """Return the GPU, and microseconds by pair: defect and cure, 10th percentile to 90th."""
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted({pair.file for pair in PAIRS}):
            source, binary = Path(folder) / "main.cu", Path(folder) / "main"
            source.write_text(program(file), encoding="utf-8")
            _asked("nvcc", "-O3", "-arch=native", "-std=c++17", "-o", str(binary), str(source))
            for line in _asked(str(binary)).splitlines():
                name, low, median, high, error = line.split(maxsplit=4)
                if error != "no error":
                    raise RuntimeError(f"{name} failed: {error}")
                times[name] = [float(low), float(median), float(high)]
    gpu, driver = _asked(
        "nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"
    ).split(", ")
    version = re.search(r"release ([\d.]+)", _asked("nvcc", "--version"))
    return {
        "gpu": gpu,
        "driver": driver,
        "cuda": version[1] if version else "",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "times_us": times,
    }


if __name__ == "__main__":
    json.dump(measured(), sys.stdout, indent=1)
    sys.stdout.write("\n")
