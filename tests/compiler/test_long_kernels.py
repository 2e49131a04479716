"""Kernels of hundreds of statements are made and run in seconds, however they are arranged."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import numpy as np
import pytest

import gpusim

COUNT = 500
HEAD = "from gpusim import cuda\n@cuda.jit\ndef k(o):\n    x = o[0]\n"
ELSE = "".join(f"    elif x == {n}:\n        o[{n % 32}] = {n}\n" for n in range(COUNT))
BODIES = {
    "if": "".join(f"    if x == {n}:\n        o[{n % 32}] = {n}\n" for n in range(COUNT)),
    "elif": f"    if x < 0:\n        o[1] = 2\n{ELSE}    else:\n        o[5] = 1\n",
    "statements": "".join(f"    x = x * 3 + o[{n % 32}]\n" for n in range(COUNT))
    + "    o[0] = x\n",
    "returns": "".join(f"    if x == -{n}:\n        return\n" for n in range(1, COUNT)),
}


@pytest.mark.parametrize("body", BODIES)
def test_a_long_kernel_is_lowered_and_run_in_seconds(tmp_path: Path, body: str) -> None:
    file = tmp_path / f"{body}.py"
    file.write_text(HEAD + BODIES[body])
    spec = importlib.util.spec_from_file_location(f"long_{body}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    begin = time.process_time()
    spec.loader.exec_module(module)
    given = np.arange(32, dtype=np.int32) + 7
    expected = given.tolist()
    gpusim.trace(module.k[1, 32], given, code="lowering")
    assert time.process_time() - begin < 15
    if body == "statements":
        x = expected[0]
        for n in range(COUNT):
            x = x * 3 + expected[n % 32]
        expected[0] = (x + 2**31) % 2**32 - 2**31
    elif body != "returns":
        expected[7] = 7
    assert given.tolist() == expected
