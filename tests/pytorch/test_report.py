"""The page of a Triton script: its Python lines, its machine code, and findings with gains."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pytorch.programs import IS_TRITON_3_6, PROLOGUE, Programs, needs_torch

pytestmark = needs_torch

COLUMNS = """
@triton.jit
def loaded(p, i, n):
    return tl.load(p + i, mask=i < n, other=0.0)
@triton.jit
def columns(x, o, rows, n, R: tl.constexpr):
    r = tl.arange(0, R)
    v = loaded(x, r * n + tl.program_id(0), rows * n)
    tl.device_print("sum", tl.sum(v, 0))
    tl.store(o + tl.program_id(0), tl.sum(v, 0))
x, o = torch.ones(256, 64, device="cuda"), torch.empty(64, device="cuda")
columns[(64,)](x, o, 256, 64, R=256)
"""


def test_a_page_has_the_lines_of_helpers_machine_code_and_findings(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A column of 64: each lane reads a sector of its own, of which it uses an eighth."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "compiled"))
    page = tmp_path / "page.html"
    ran = Programs(tmp_path, capfd).run(COLUMNS, "report", "--out", str(page))
    assert ran.code == 0
    assert sum("sum: 256" in line for line in ran.out) >= 64
    text = " ".join(re.sub(r"<[^>]*>", " ", page.read_text(encoding="utf-8")).split())
    lines = (PROLOGUE + COLUMNS).splitlines()
    load = next(number for number, line in enumerate(lines, 1) if "tl.load" in line)
    call = next(number for number, line in enumerate(lines, 1) if "= loaded" in line)
    assert IS_TRITON_3_6 or f"loaded, called from line {call}" in text
    assert re.search(r"LDG\.E R\d+, desc", text)
    assert re.search(
        rf"uncoalesced fixing it: [\d.]+ us \([\d.]+x faster\) line {load}: stride 64", text
    )
