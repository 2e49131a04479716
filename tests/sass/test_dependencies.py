"""Machine code is made anew when a file that the compiler read has changed, and only then."""

from __future__ import annotations

import ctypes
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.cli.own_requests import OwnRequest
from gpusim.cuda_cpp.includes import includes
from gpusim.launch.grid import ComputeCapability
from gpusim.sass import cache, compiler, lookups, wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

NAMES = ("nested", "named", "continued", "commented", "conditional", "deep")
TEXT = """
#define HEADER "named.h"
#define AGAIN HEADER
#include "folder/outer.h"
#include AGAIN
#inc\\
lude \\
"continued.h"
/* before */ # /* within */ include /* and */ "commented.h" // and behind
#if __has_include("conditional.h")
#include "conditional.h"
#else
#define CONDITIONAL 0
#endif
#define JOINED(x) <folder/x.h>
#include JOINED(deep)
__global__ void k(int *y) {
  const int values[] = {NESTED, NAMED, CONTINUED, COMMENTED, CONDITIONAL, DEEP};
  for (int i = 0; i < 6; i++) y[i] = values[i];
}
"""


class Project:
    """A file with headers, each the definition of a number."""

    def __init__(self, folder: Path, compilations: list[str]) -> None:
        self.folder, self.compilations = folder, compilations
        (folder / "folder").mkdir()
        (folder / "folder/outer.h").write_text('#include "nested.h"\n')
        (folder / "k.cu").write_text(TEXT)
        for name in NAMES:
            self.write(name, 1)

    def path(self, name: str) -> Path:
        return self.folder / ("folder" if name in ("nested", "deep") else ".") / f"{name}.h"

    def write(self, name: str, value: int) -> None:
        self.path(name).write_text(f"#define {name.upper()} {value}\n")

    def is_compiled(self) -> bool:
        """Whether its machine code is there already."""
        made = len(self.compilations)
        kernel = gpusim.cuda_file(self.folder / "k.cu")["k"]
        kernel.code(ComputeCapability(9, 0))
        return len(self.compilations) == made

    def values(self) -> list[int]:
        gpusim.cuda_file(self.folder / "k.cu")["k"][1, 1](y := np.zeros(6, np.int32))
        return y.tolist()


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are compiled: really where they never were, else not again."""
    made: list[str] = []
    answers: dict[str, dict[str, Any]] = {}
    plain = compiler.answered

    def counted(text: str, file: str, *others: Any) -> Any:
        made.append(file)
        if file not in answers:
            answers[file] = plain(text, file, *others)
        answer = dict(answers[file])
        if answer["lookups"] is not None:
            asked = [(path, is_read) for path, is_read, _ in answer["lookups"]]
            states = cache.states(asked, list(map(str, wheels.headers())))
            answer["lookups"] = [(*one, now) for one, now in zip(asked, states, strict=True)]
        return answer

    monkeypatch.setattr(compiler, "answered", counted)
    return made


def answer_with(monkeypatch: pytest.MonkeyPatch, **members: Any) -> None:
    """Let the compiler's answers have these members."""
    made = compiler.answered
    monkeypatch.setattr(compiler, "answered", lambda *given: {**made(*given), **members})


@pytest.fixture
def project(tmp_path: Path, compilations: list[str]) -> Project:
    return Project(tmp_path, compilations)


def test_a_header_counts_however_it_is_included(project: Project) -> None:
    assert not project.is_compiled()
    assert project.is_compiled()
    for name in NAMES:
        project.write(name, 2)
        assert not project.is_compiled(), name
        assert project.is_compiled(), name
    for name in NAMES:
        project.write(name, 1)
    assert project.is_compiled()  # the first entry is there still


def test_a_header_that_comes_or_goes_counts(tmp_path: Path) -> None:
    project = Project(tmp_path, [])
    project.path("conditional").unlink()
    assert project.values() == [1, 1, 1, 1, 0, 1]
    project.write("conditional", 3)
    project.write("nested", 2)
    assert project.values() == [2, 1, 1, 1, 3, 1]


def test_a_header_earlier_in_the_search_counts(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    text = '#include "value.h"\n__global__ void k(int *y) { *y = VALUE; }'
    for name, value in (("second", 2), ("first", 1)):
        (tmp_path / name / "value.h").write_text(f"#define VALUE {value}\n")
        folders = [str(tmp_path / "first"), str(tmp_path / "second")]
        gpusim.cuda_source(text, includes=folders)["k"][1, 1](y := np.zeros(1, np.int32))
        assert y[0] == value


def test_a_folder_of_headers_is_another_one_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file with the same -I, from two places."""
    (tmp_path / "k.cu").write_text('#include "v.h"\n__global__ void k(int *y) { *y = VALUE; }')
    for value in (1, 2):
        (tmp_path / f"{value}/inc").mkdir(parents=True)
        (tmp_path / f"{value}/inc/v.h").write_text(f"#define VALUE {value}\n")
        monkeypatch.chdir(tmp_path / str(value))
        file = gpusim.cuda_file(tmp_path / "k.cu", includes=["inc"])
        file["k"][1, 1](y := np.zeros(1, np.int32))
        assert y[0] == value


def test_host_code_alone_is_no_reason_to_compile(tmp_path: Path, compilations: list[str]) -> None:
    for host in ("k<<<1, 1>>>(0)", "k<<<2, 1>>>(0)"):
        text = f"__global__ void k(int *y) {{ *y = 1; }}\nint main() {{ {host}; return 0; }}\n"
        (tmp_path / "k.cu").write_text(text)
        gpusim.cuda_file(tmp_path / "k.cu")["k"].code(ComputeCapability(9, 0))
    assert len(compilations) == 1


def test_what_nobody_can_follow_is_not_kept_where_lookups_are_not_seen(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, lookups=None)
    assert [project.is_compiled(), project.is_compiled()] == [False, False]
    (project.folder / "k.cu").write_text(TEXT.replace("JOINED(deep)", "<folder/deep.h>"))
    assert [project.is_compiled(), project.is_compiled()] == [False, True]
    project.write("nested", 7)
    assert not project.is_compiled()


def test_a_scan_sees_nested_and_named_headers_and_says_where_it_does_not(project: Project) -> None:
    found = includes(TEXT, [str(project.folder)])
    assert {path.name for path in found.found} == {
        "outer.h", "nested.h", "named.h", "continued.h", "commented.h", "conditional.h",
    }  # fmt: skip
    assert not found.is_complete
    assert includes('// #include ODD\nauto s = R"(\n#include ODD2\n)";', []).is_complete
    assert includes("#include MACRO", ["."], ['MACRO="none.h"']).is_complete


def test_a_header_that_includes_itself_by_longer_paths_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.h").write_text('#include "../sub/a.h"\n')
    assert len(includes('#include "sub/a.h"', [str(tmp_path)]).found) == 1


def test_kernels_stand_in_headers_of_headers(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.h").write_text('#define IT "b.h"\n#include IT\n')
    (tmp_path / "sub/b.h").write_text("__global__ void k(int *y, float x) { *y = x; }\n")
    (tmp_path / "k.cu").write_text('#include "sub/a.h"\n')
    kernel = gpusim.cuda_file(tmp_path / "k.cu")["k"]
    assert kernel.source.parameters == ("y", "x")


def test_what_does_not_compile_has_its_files_too(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text('#include "v.h"\n__global__ void k() { no; }')
    (tmp_path / "v.h").write_text("")
    file = gpusim.cuda_file(tmp_path / "k.cu")
    known = {path: state for path, _, state in file.lookups("k", ComputeCapability(9, 0))}
    assert len(known[str(tmp_path / "v.h")]) == 64


def test_a_path_has_a_state(tmp_path: Path) -> None:
    file = tmp_path / "a.h"
    file.write_text("1")
    assert lookups.state(str(tmp_path / "none"), is_read=True) == lookups.ABSENT
    assert lookups.state(str(file), is_read=False) == lookups.PRESENT
    first = lookups.state(str(file), is_read=True)
    file.write_text("2")
    assert lookups.state(str(file), is_read=True) != first
    assert lookups.state(str(tmp_path), is_read=True).startswith("no file")
    stamp = cache.states([(str(file), True)], [str(tmp_path)])
    assert stamp == [f"1 {file.stat().st_mtime_ns}"]


def test_functions_that_a_library_calls_are_seen_on_the_way() -> None:
    names = {name for name, _ in lookups._slots(ctypes.CDLL(str(wheels.library())))}
    assert names & set(lookups.READING)


def test_a_nested_header_makes_other_rows_of_a_sweep(project: Project) -> None:
    """The digest of a kernel's files is part of a row's key."""
    chosen = Namespace(grid="1", arg=["int32[8]"], passes="one")
    asked = f"{project.folder / 'k.cu'}:k", chosen, [ComputeCapability(9, 0)]
    first = OwnRequest.of(*asked)
    assert OwnRequest.of(*asked) == first
    for name in NAMES:
        project.write(name, 2)
        assert OwnRequest.of(*asked) != first, name
        project.write(name, 1)


def test_a_module_below_makes_other_rows_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    module = tmp_path / "below/far_below_here.py"
    module.write_text("ONE = 1\n")
    (tmp_path / "mine.py").write_text(
        "from below.far_below_here import ONE\nfrom gpusim import cuda\n"
        "@cuda.jit\ndef k(y):\n    y[0] = ONE\n"
    )
    asked = f"{tmp_path / 'mine.py'}:k", Namespace(grid="1", arg=["int32[8]"], passes="one")
    first = OwnRequest.of(*asked)
    module.write_text("ONE = 2\n")
    assert OwnRequest.of(*asked) != first


@pytest.mark.parametrize("version", ["12.4", "13.0", "14.2"])
def test_any_version_of_the_compiler_is_taken_and_named(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, version=version)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = f"// {version}\n__global__ void k(int *y) {{ y[0] = 1; }}"
    found = compiler.compiled(text, "k.cu", ["k"], "sm_90")
    assert found.generator == f"NVRTC {version}"
