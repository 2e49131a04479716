"""Times each configuration on the GPU that is there, or predicts it under `gpusim predict`.

python validate/autotune/measure.py measured.json
gpusim predict -- python validate/autotune/measure.py predicted.json
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import triton
from kernels import searches  # type: ignore[import-not-found] # a script beside it
from triton.testing import do_bench

QUANTILES = [0.5, 0.2, 0.8]


def timed(search: Any, config: dict[str, int]) -> dict[str, Any]:
    """Return the times of a configuration, with registers and a digest of its PTX."""
    grid = search.grid(config)
    made: Any = None

    def call() -> None:
        nonlocal made
        made = search.kernel[grid](*search.arguments, **config)

    ms, low, high = do_bench(call, warmup=10, rep=60, quantiles=QUANTILES)
    place, expected = search.expected
    if expected is not None:
        torch.testing.assert_close(search.arguments[place], expected(), rtol=1e-2, atol=1e-2)
    return {
        "config": config,
        "us": round(1e3 * ms, 4),
        "low_us": round(1e3 * low, 4),
        "high_us": round(1e3 * high, 4),
        "registers": made.n_regs,
        "spills": made.n_spills,
        "code": digest(made.asm["ptx"]),
    }


def digest(ptx: str) -> str:
    """Return a digest of the instructions of a kernel, without its lines."""
    rows = re.findall(r"^\t(?!\.loc|\.file|\.section|\.b8|\.b32|//)(.*?)(?://.*)?$", ptx, re.M)
    return hashlib.sha1("\n".join(map(str.rstrip, rows)).encode()).hexdigest()[:12]


def machine() -> dict[str, str]:
    """Return what the times hold for."""
    asked = ["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm", "--format=csv,noheader"]
    try:
        driver = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        driver = ""
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": driver,
        "cuda": str(torch.version.cuda),
        "triton": triton.__version__,
        "torch": torch.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def main(path: Path, only: list[str]) -> None:
    """Write the times of all kernels, after each kernel again."""
    found: dict[str, Any] = {**machine(), "kernels": {}}
    for name, search in searches():
        if only and name not in only:
            continue
        begun = time.perf_counter()
        found["kernels"][name] = [timed(search, config) for config in search.configs]
        path.write_text(json.dumps(found, indent=1))
        print(f"{name}: {len(found['kernels'][name])} in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
