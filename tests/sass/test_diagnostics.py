"""What a message shows of files that a source includes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpusim.errors import InputError
from gpusim.sass import compiler, wheels
from gpusim.sass.compiler import without_foreign_lines
from gpusim.sass.kernels import cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
SECRET = 'password = swordfish\n#include "absent.h"\n'
KERNEL = "__global__ void k(int *o) { o[0] = 1; }\n"


def complaint(folder: Path, include: str, *folders: str) -> str:
    source = folder / "own" / "a.cu"
    text = f'#include "{include}"\n{KERNEL}'
    with pytest.raises(compiler.CompileError) as raised:
        compiler.compiled(text, str(source), [], "sm_90", compiler.Options(includes=folders))
    return str(raised.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own" / "below").mkdir(parents=True)
    (tmp_path / "own" / "below" / "b.h").write_text(SECRET)
    (tmp_path / "secret.h").write_text(SECRET)
    return tmp_path


def test_lines_of_a_file_elsewhere_are_not_shown(folder: Path) -> None:
    (folder / "own" / "link.h").symlink_to(folder / "secret.h")
    for include in ("../secret.h", str(folder / "secret.h"), "link.h"):
        words = complaint(folder, include)
        assert "swordfish" not in words
        assert "secret.h(1): error: " in words or "link.h(1): error: " in words
        assert "-I FOLDER" in words


def test_lines_of_own_files_are_shown(folder: Path) -> None:
    assert "password = swordfish" in complaint(folder, "below/b.h")
    assert "password = swordfish" in complaint(folder, "../secret.h", str(folder))
    assert 'source file "absent.h"' in complaint(folder, "below/b.h")


def test_words_that_quote_a_file_elsewhere_are_cut() -> None:
    words = (
        '/x/s.h(3): error: identifier "swordfish" is undefined\n  o = swordfish;\n      ^\n'
        '          detected during instantiation of "swordfish"\n\n'
        "/x/s.h(4): catastrophic error: #error directive: swordfish\n  #error swordfish\n   ^\n\n"
        'a.cu(1): error: identifier "mine" is undefined\n  mine\n  ^'
    )
    kept = without_foreign_lines(words, "a.cu", ["/y"])
    assert "swordfish" not in kept
    assert kept.endswith('a.cu(1): error: identifier "mine" is undefined\n  mine\n  ^')


def test_a_header_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.h")
    (tmp_path / "own").mkdir()
    assert 'cannot open source file "../pipe.h"' in complaint(tmp_path, "../pipe.h")


def test_text_behind_a_null_character_is_not_left_out() -> None:
    with pytest.raises(InputError, match="has a null character"):
        cuda_source(f"{KERNEL}\0 this is not compiled")
