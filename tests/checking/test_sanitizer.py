"""What compute-sanitizer says of the planted kernels on an H200, beside what gpusim says."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

from checking.planted import CASES, KINDS

FOLDER = Path(__file__).parent
VERDICTS: dict[str, Any] = json.loads((FOLDER / "sanitizer_h200.json").read_text())["verdicts"]

for kind in KINDS:
    importlib.import_module(f"checking.planted_{kind}")


def test_all_that_compute_sanitizer_finds_is_planted_in_python_too() -> None:
    found = {name for name, verdict in VERDICTS.items() if verdict["bug"]}
    assert found <= {case.name for case in CASES}


def test_compute_sanitizer_finds_nothing_in_the_twins() -> None:
    assert [name for name, verdict in VERDICTS.items() if verdict["twin"]] == []


def test_the_kernels_in_cuda_are_those_that_were_measured() -> None:
    source = (FOLDER / "planted.cu").read_text()
    assert re.findall(r"__global__ void (\w+)\(", source) == list(VERDICTS)


def test_the_lines_that_were_measured_are_those_of_the_file() -> None:
    lines = (FOLDER / "planted.cu").read_text().splitlines()
    verdict = VERDICTS["reversal_without_barrier"]["bug"]["racecheck"]
    stored, read = (lines[number - 1].strip() for number in verdict["lines"])
    assert (stored, read) == ("s[t] = x[t];", "out[t] = s[127 - t];")
