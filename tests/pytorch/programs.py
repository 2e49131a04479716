"""Runs Python texts that import torch and triton, on a simulated GPU."""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from gpusim.cli.app import main

IS_THERE = all(map(importlib.util.find_spec, ("torch", "triton")))
needs_torch = pytest.mark.skipif(
    not IS_THERE, reason="needs PyTorch's CPU build and Triton: pip install '.[torch]'"
)
IS_TRITON_3_6 = IS_THERE and version("triton").startswith("3.6")  # its PTX names no helpers
PROLOGUE = "import torch\nimport triton\nimport triton.language as tl\n"


class Ran:
    """What a program and gpusim printed, and the JSON document."""

    def __init__(self, code: int, out: str, err: str, document: Path) -> None:
        self.code, self.out, self.err = code, out.splitlines(), err
        self._document = document

    @property
    def launches(self) -> list[dict[str, Any]]:
        """The launches of the document."""
        return list(json.loads(self._document.read_text())["launches"])


class Programs:
    """Runs texts behind a prologue of imports."""

    def __init__(self, folder: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.folder, self.captured = folder, captured

    def run(self, text: str, *command: str, name: str = "program.py") -> Ran:
        """Run a text under a command of gpusim, `run` without one."""
        program, document = self.folder / name, self.folder / "out.json"
        program.write_text(PROLOGUE + text)
        own = list(command or ("run",))
        self.captured.readouterr()
        with_document = ["--json", "--out", str(document)] if own[0] != "report" else []
        python = [sys.executable, "-W", "ignore", str(program)]
        code = main([*own, *with_document, "--", *python])
        printed = self.captured.readouterr()
        return Ran(code, printed.out, printed.err, document)
