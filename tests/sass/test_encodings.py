"""Sources as people keep them: in any encoding that nvcc takes, in .cpp files and notebooks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Run

from gpusim.cuda_cpp.embedded import cuda_of_notebook
from gpusim.errors import InputError
from gpusim.host import files
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_file

needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
KERNEL = "__global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }  // "
LAUNCH = ("--grid", "1", "--block", "32", "--arg", "float32[32]")
ENCODED = [
    (f"{KERNEL}René".encode("latin-1"), "Ren?"),
    (f"{KERNEL}中文".encode("gbk"), "????"),
    (f"{KERNEL}René".encode("utf-16"), "René"),
    (f"{KERNEL}René".encode("utf-8-sig"), "René"),
]


@needs_compiler
@pytest.mark.parametrize(
    ("name", "content", "shown"), [("k.cu", *one) for one in ENCODED] + [("k.cpp", *ENCODED[0])]
)
def test_a_source_is_listed_traced_and_shown(
    run: Run, tmp_path: Path, name: str, content: bytes, shown: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    code, out, _ = run("list", file)
    assert code == 0
    assert f"{name}:twice" in out.replace("\n", "")
    code, out, _ = run("trace", f"{file}:twice", *LAUNCH)
    assert code == 0
    assert f"{KERNEL}{shown}" in out


@needs_compiler
def test_bytes_of_strings_reach_the_compiler_as_they_are(tmp_path: Path) -> None:
    """Of Latin-1 a letter is a byte; in UTF-8 it would be two."""
    file = tmp_path / "k.cu"
    file.write_bytes('__global__ void size(int *x) { *x = sizeof("é"); }'.encode("latin-1"))
    x = np.zeros(1, np.int32)
    cuda_file(file)["size"][1, 1](x)
    assert x[0] == 2


def test_a_mark_of_utf_16_without_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_bytes(b"\xff\xfea")
    with pytest.raises(InputError, match="damaged UTF-16"):
        files.source(tmp_path / "k.cu", 100)


def notebook(*cells: str) -> str:
    made = [{"cell_type": "code", "source": one.splitlines(keepends=True)} for one in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "text"}, *made]})


CELLS = (
    "%load_ext x\nk = RawKernel(r'''\n__global__ void a(int *x) { *x = 1; }\n''', 'a')",
    "%%cuda\n__global__ void b(int *x)\n{ *x = 2; }",
)


def test_a_notebook_has_the_kernels_of_its_cells_and_strings() -> None:
    """Lines are counted over all cells of code."""
    assert cuda_of_notebook(notebook(*CELLS), "n.ipynb").split("\n") == [
        "", "", "__global__ void a(int *x) { *x = 1; }", "", "", "__global__ void b(int *x)",
        "{ *x = 2; }",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [{}]}', '{"cells": 3}'])
def test_a_file_that_is_no_notebook_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"n.ipynb cannot be parsed as a notebook"):
        cuda_of_notebook(text, "n.ipynb")


@needs_compiler
def test_kernels_of_a_notebook_are_listed_and_traced(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "n.ipynb"
    file.write_text(notebook(*CELLS))
    code, out, _ = run("list", file)
    assert code == 0
    assert "n.ipynb:a" in out
    assert "n.ipynb:b" in out
    arguments = ("--grid", "1", "--block", "1", "--arg", "int32[1]")
    code, out, _ = run("trace", f"{file}:b", *arguments)
    assert code == 0
    assert "{ *x = 2; }" in out
