"""Tensors of PyTorch's CPU build on a simulated device."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pytorch.programs import needs_torch

pytestmark = needs_torch
CHECKS = Path(__file__).with_name("tensors.py")
NAMES = [
    one.name
    for one in ast.parse(CHECKS.read_text()).body
    if isinstance(one, ast.FunctionDef) and one.name.count("_") > 1
]


@pytest.fixture(scope="module")
def failed() -> dict[str, str]:
    """Return what fails in one process, by the names of the checks."""
    command = [sys.executable, "-m", "gpusim", "run", "--", sys.executable, "-W", "ignore", CHECKS]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(ran.stdout))


@pytest.mark.parametrize("name", NAMES)
def test_of_tensors(failed: dict[str, str], name: str) -> None:
    assert failed[name] == ""
