"""What compute-sanitizer says of the planted kernels: builds them and prints its verdicts.

    python tests/checking/sanitize.py [--arch sm_90] [--only NAME] > sanitizer_h200.json

Needs nvcc, compute-sanitizer and a GPU, and nothing of gpusim. Every kernel runs in a process of
its own under each tool, with a limit of time: some bugs never end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("planted_main.cu")
TOOLS = ("racecheck", "synccheck", "initcheck", "memcheck")
VARIANTS = {"bug": [], "twin": ["-DFIXED"]}
LIMIT_S = 25
AT_A_TIME = 6
KINDS = r"^========= ((?:Error|Warning|Invalid|Uninit|Barrier|Race)[^\n]{0,90})"


def main() -> None:
    """Print the verdicts as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--only")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = {
            variant: build(Path(folder) / variant, options, chosen.arch)
            for variant, options in VARIANTS.items()
        }
        names = said([programs["bug"]]).split()
        kernels = [name for name in names if chosen.only in (None, name)]
        jobs = [(v, k, t) for k in kernels for v in VARIANTS for t in TOOLS]
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            verdicts = list(pool.map(lambda job: verdict(programs[job[0]], *job[1:]), jobs))
    print(json.dumps({"made_with": made_with(), "verdicts": nested(jobs, verdicts)}, indent=1))


def build(program: Path, options: list[str], arch: str) -> Path:
    """Return the program of one variant, built with line numbers."""
    words = ["nvcc", "-O1", "-lineinfo", f"-arch={arch}", *options, str(SOURCE), "-o", str(program)]
    subprocess.run(words, check=True)
    return program


def verdict(program: Path, kernel: str, tool: str) -> dict[str, Any]:
    """Return what a tool says of a kernel: errors, warnings, lines of the source; or no end."""
    words = ["compute-sanitizer", "--tool", tool, str(program), kernel]
    try:
        output = said(words, LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"ends": False}
    found: dict[str, Any] = {"errors": 0, "warnings": 0}
    summary = re.search(r"ERROR SUMMARY: (\d+) error", output)
    races = re.search(r"RACECHECK SUMMARY: .*\((\d+) errors?, (\d+) warnings?\)", output)
    if races:
        found = {"errors": int(races[1]), "warnings": int(races[2])}
    elif summary:
        found["errors"] = int(summary[1])
    elif "RACECHECK SUMMARY: 0" not in output:
        found["unreadable"] = output[-400:]
    lines = sorted({int(line) for line in re.findall(r"planted\.cu:(\d+)", output)})
    kinds = re.findall(KINDS, output, re.MULTILINE)
    return {**found, "lines": lines, "says": sorted(set(kinds))[:4]}


def said(words: Iterable[Any], limit_s: float = 60) -> str:
    """Return what a command prints; at the limit it ends with all that it has started."""
    command = list(map(str, words))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:
        try:
            return process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def made_with() -> dict[str, str]:
    """Return the GPU, its driver and the versions of the tools."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    sanitizer = re.search(r"Version ([\d.]+)", said(["compute-sanitizer", "--version"]))
    compiler = re.search(r"release ([\d.]+)", said(["nvcc", "--version"]))
    gpu, _, driver = said(query).splitlines()[0].partition(", ")
    return {
        "gpu": gpu,
        "driver": driver,
        "compute-sanitizer": sanitizer[1] if sanitizer else "",
        "nvcc": compiler[1] if compiler else "",
    }


def nested(jobs: list[tuple[str, str, str]], verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the verdicts by kernel, variant and tool, without those that find nothing."""
    tree: dict[str, Any] = {}
    for (variant, kernel, tool), found in zip(jobs, verdicts, strict=True):
        tools = tree.setdefault(kernel, {}).setdefault(variant, {})
        if not found.get("ends", True) or found["errors"] or found["warnings"]:
            tools[tool] = found
    return tree


if __name__ == "__main__":
    main()
