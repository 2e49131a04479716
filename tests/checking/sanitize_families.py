"""What compute-sanitizer says of the kernels of families.py: builds them and prints its verdicts.

    python tests/checking/sanitize_families.py [--arch sm_90] > families_h200.json

Needs nvcc, compute-sanitizer and a GPU, and nothing of gpusim. A process runs many kernels under
one tool; where one does not end, or leaves an error behind, another process goes on with the next.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from families import PAIRS, source
from sanitize import TOOLS, made_with

PLAIN = "plain"  # no tool: results alone
VARIANTS = {"bug": [], "twin": ["-DFIXED"]}
PARTS = 4  # processes that share the kernels under one tool
AT_A_TIME = 16
START_S = 30  # until a process has run its first kernel
LIMIT_S = 10  # for each other kernel
KINDS = r"(?:Error: |Warning: |Invalid |Uninit|Barrier|Race|Potential)[^\n]*"
MOST_S = 100  # a process, and those that go on for it

MAIN = """
#include <cstdio>
#include <cstdlib>

struct Case { const char *name; void (*kernel)(int *, int *); int blocks, threads; };
static const Case CASES[] = {
%s};

// Runs the kernels with the numbers that are given, each on new arrays.
int main(int count, char **numbers) {
    static int in[1024], result[1024];
    for (int i = 0; i < 1024; i++) in[i] = i;
    int *x, *out;
    cudaMalloc(&x, sizeof in);
    cudaMalloc(&out, sizeof in);
    for (int at = 1; at < count; at++) {
        const Case &one = CASES[atoi(numbers[at])];
        cudaMemcpy(x, in, sizeof in, cudaMemcpyHostToDevice);
        cudaMemset(out, 0, sizeof in);
        one.kernel<<<one.blocks, one.threads>>>(x, out);
        cudaError_t said = cudaDeviceSynchronize();
        unsigned sum = 0;
        if (said == cudaSuccess) cudaMemcpy(result, out, sizeof in, cudaMemcpyDeviceToHost);
        for (int i = 0; i < 1024; i++) sum += (i + 1u) * (unsigned)result[i];
        printf("ran %%s %%d %%u\\n", one.name, (int)said, sum);
        fflush(stdout);
        if (said != cudaSuccess) return 1;
    }
}
"""


@dataclass
class Found:
    """What one tool said of one kernel."""

    ends: bool = False
    status: int = 0
    checksum: int = 0
    says: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """Return what there is to say, ready for JSON."""
        found: dict[str, Any] = {} if self.ends else {"ends": False}
        found |= {"status": self.status} if self.status else {}
        return found | ({"says": dict(self.says)} if self.says else {})


def main() -> None:
    """Print the verdicts as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--logs", type=Path, help="a folder for all that the tools print")
    chosen = parser.parse_args()
    numbers = list(range(len(PAIRS)))
    with tempfile.TemporaryDirectory() as folder:
        with ThreadPoolExecutor(len(VARIANTS)) as pool:
            built = list(pool.map(lambda one: build(Path(folder), one, chosen.arch), VARIANTS))
        programs = dict(zip(VARIANTS, built, strict=True))
        jobs = [
            (variant, tool, part)
            for tool in (*TOOLS, PLAIN)
            for variant in VARIANTS
            for part in range(PARTS)
        ]
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            parts = pool.map(
                lambda job: sanitized(
                    programs[job[0]], job[1], numbers[job[2] :: PARTS], chosen.logs
                ),
                jobs,
            )
            verdicts: dict[str, Any] = {one.name: {} for one in PAIRS}
            for (variant, tool, _), found in zip(jobs, parts, strict=True):
                for name, one in found.items():
                    said = verdicts[name].setdefault(variant, {})
                    said |= {tool: one.to_dict()} if one.to_dict() else {}
                    said |= {"checksum": one.checksum} if tool == PLAIN and one.ends else {}
    made = {**made_with(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    print(json.dumps({"made_with": made, "verdicts": verdicts}, indent=1))


def program_text() -> str:
    """Return all kernels, and a program that runs those with the numbers that it is given."""
    rows = [f'    {{"{one.name}", {one.name}, {one.blocks}, {one.threads}}},\n' for one in PAIRS]
    return source(PAIRS) + MAIN % "".join(rows)


def build(folder: Path, variant: str, arch: str) -> Path:
    """Return the program of one variant, built with line numbers."""
    text, program = folder / f"{variant}.cu", folder / variant
    text.write_text(program_text())
    words = ["nvcc", "-O3", "-lineinfo", f"-arch={arch}", *VARIANTS[variant]]
    subprocess.run([*words, str(text), "-o", str(program)], check=True)
    return program


def sanitized(
    program: Path, tool: str, numbers: list[int], logs: Path | None = None
) -> dict[str, Found]:
    """Return what a tool says of some kernels; its output goes to `logs` as well."""
    found = {PAIRS[number].name: Found() for number in numbers}
    left, spent = list(numbers), 0
    while left and spent * LIMIT_S < MOST_S:
        words = ["compute-sanitizer", "--tool", tool, "--print-limit", "1000"]
        command = [*([] if tool == PLAIN else words), str(program), *map(str, left)]
        output, is_over = lines_of(command)
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
            (logs / f"{program.name}-{tool}-{left[0]}.txt").write_text(output)
        read(output, found)
        ran = sum(found[PAIRS[number].name].ends for number in left)
        left = left[ran + (not is_over) :] if ran or not is_over else left[1:]
        spent += 1
    return found


def read(output: str, found: dict[str, Found]) -> None:
    """Enter the records of an output: each begins with its kind, and names a kernel."""
    for name, status, checksum in re.findall(r"^ran (\w+) (\d+) (\d+)$", output, re.MULTILINE):
        one = found[name]
        one.ends, one.status, one.checksum = True, int(status), int(checksum)
    for record in re.split(r"^========= (?=\S)", output, flags=re.MULTILINE)[1:]:
        kind = re.match(
            r"(?:Error: |Warning: |Invalid |Uninit|Barrier|Race|Potential)[^\n]*", record
        )
        names = [name for name in re.findall(r"\w+", record) if name in found]
        if kind and names:
            text = re.sub(r" at \S+\([^)]*\)\S*| in \S+:\d+|\d+ hazards?", "", kind[0])
            found[names[0]].says[" ".join(text.split())[:80]] += 1


def lines_of(command: list[str]) -> tuple[str, bool]:
    """Return what a command prints, and whether it ended by itself: not at the limit of time."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        return _watched(process)


def _watched(process: subprocess.Popen[bytes]) -> tuple[str, bool]:
    assert process.stdout is not None
    waiting = selectors.DefaultSelector()
    waiting.register(process.stdout, selectors.EVENT_READ)
    output, last = b"", time.monotonic() + START_S
    while time.monotonic() < last:
        if not waiting.select(timeout=0.5):
            continue
        part = process.stdout.read()
        if not part:
            process.wait()
            return output.decode(errors="replace"), True
        output += part
        if b"ran " in part:
            last = time.monotonic() + LIMIT_S
    os.killpg(process.pid, signal.SIGKILL)
    return output.decode(errors="replace"), False


if __name__ == "__main__":
    main()
