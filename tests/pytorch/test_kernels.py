"""Kernels of Triton under each command: results equal PyTorch's, findings name planted faults."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
from pytorch.programs import IS_TRITON_3_6, PROLOGUE, Programs, needs_torch

from gpusim.cli.app import main

pytestmark = needs_torch
KERNELS = Path(__file__).with_name("kernels.py")
COMMANDS = ("run", "trace", "predict", "check", "report")


@pytest.fixture
def programs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Programs:
    return Programs(tmp_path, capfd)


def names() -> list[str]:
    """Return the names of the twenty kernels."""
    text = KERNELS.read_text()
    listed = text[text.index("KERNELS = (") :].partition(")")[0]
    return [one.id for one in ast.walk(ast.parse(f"{listed})")) if isinstance(one, ast.Name)][1:]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_twenty_kernels_agree_with_pytorch(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / ("out.html" if command == "report" else "out.json")
    form = [] if command == "report" else ["--json"]
    python = [sys.executable, "-W", "ignore", str(KERNELS)]
    assert main([command, *form, "--out", str(out), "--", *python]) == 0
    assert sorted(capfd.readouterr().out.split()) == sorted(names())
    assert len(names()) == 20
    if command == "check":
        launches = json.loads(out.read_text())["launches"]
        assert [one["kernel"] for one in launches if one["check"]["counts"]["error"]] == []


FAULTS = """
@triton.jit
def helper(p, i, n):
    return tl.load(p + i)
@triton.jit
def bounds(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + tl.program_id(0), tl.sum(helper(x, i, n), 0))
@triton.jit
def uninitialised(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i))
@triton.jit
def race(x, o, B: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * B + tl.arange(0, B))
    tl.store(o + tl.arange(0, B), v)
@triton.jit
def lanes(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i // 2, tl.load(x + i))
@triton.jit
def tail(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n), mask=i <= n)
@triton.jit
def asserts(x, B: tl.constexpr):
    tl.device_assert(tl.load(x + tl.arange(0, B)) < 2, "too large")
@triton.jit
def prints(x, B: tl.constexpr):
    tl.device_print("value", tl.load(x + tl.arange(0, B)))
x, o = torch.full((200,), 3.0, device="cuda"), torch.zeros(256, device="cuda")
prints[(1,)](x, B=1, num_warps=1)
bounds[(2,)](x, o, 200, B=128)
uninitialised[(1,)](torch.empty(128, device="cuda"), o, B=128)
race[(2,)](torch.arange(256.0, device="cuda"), o, B=128)
lanes[(1,)](torch.arange(256.0, device="cuda"), o, B=256)
tail[(2,)](x, torch.zeros(200, device="cuda"), 200, B=128)
asserts[(1,)](x, B=128, debug=True)
"""
LINES = {
    text: number
    for number, text in enumerate((PROLOGUE + FAULTS).splitlines(), 1)
    if text.startswith(" ")
}


def test_planted_faults_are_found_at_their_lines(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Triton keeps compiled code by its text, with the path of the file that it was first in.
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "compiled"))
    ran = programs.run(FAULTS, "check")
    found = {
        (one["kernel"], finding["rule"], *finding["lines"])
        for one in ran.launches
        for finding in one["check"]["findings"]
        if finding["severity"] == "error"
    }
    assert ran.code == 1
    assert found == {
        ("bounds", "bounds", line("return tl.load(p + i)")),
        ("uninitialised", "uninitialised", line("tl.store(o + i, tl.load(x + i))")),
        ("race", "block-race", line("tl.store(o + tl.arange(0, B), v)")),
        ("lanes", "one-instruction", line("tl.store(o + i // 2")),
        ("tail", "bounds", line("mask=i <= n")),
        ("asserts", "fault", line("tl.device_assert(tl.load(x + tl.arange")),
    }
    assert "x[200] is out of bounds: x has 200 elements" in ran.err
    assert IS_TRITON_3_6 or "helper, called from line" in ran.err
    assert "value: 3" in "\n".join(ran.out)


def line(text: str) -> int:
    """Return the number of the line with a text."""
    return next(number for one, number in LINES.items() if text in one)


FREED = """
@triton.jit
def reads(p, o, behind):
    tl.store(o, tl.load(p + behind))
freed = torch.ones(100, device="cuda")
address = freed.data_ptr()
del freed
p, o = torch.ones(100, device="cuda"), torch.empty(1, device="cuda")
reads[(1,)](p, o, (address - p.data_ptr()) // 4)
"""


def test_memory_of_a_small_tensor_is_freed_with_it_in_the_order_of_the_program(
    programs: Programs,
) -> None:
    ran = programs.run(FREED, "check")
    (launch,) = ran.launches
    assert [one["rule"] for one in launch["check"]["findings"]] == ["use-after-free"]
    assert "byte 0 of a freed allocation of 400 bytes" in " ".join(ran.err.split())
