"""Command lines of whole programs: which are meant, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Run

from gpusim.cli.program_modes import LaunchChoice
from gpusim.cli.programs import is_meant
from gpusim.errors import InputError


def test_a_program_stands_behind_two_dashes_or_is_a_file_with_a_main(tmp_path: Path) -> None:
    whole, kernel = tmp_path / "whole.cu", tmp_path / "kernel.cu"
    whole.write_text("int main(int n, char** v) { return 0; }")
    kernel.write_text("// int main() {}\n__global__ void k() {}")
    assert is_meant("run", ["--", "app"])
    assert is_meant("trace", [str(whole)])
    assert not is_meant("trace", [str(kernel)])
    assert is_meant("run", [str(kernel)])
    assert not is_meant("run", [f"{kernel}:k"])
    (tmp_path / "host.cpp").write_text("int main() { return 0; }")
    assert is_meant("trace", [str(kernel), str(tmp_path / "host.cpp")])
    assert not is_meant("trace", [str(tmp_path / "host.cpp")])
    assert not is_meant("trace", [f"{whole}:k"])
    for option in (["--block", "64"], ["--block=64"], ["-n", "100"]):
        assert not is_meant("predict", [str(whole), *option])
    assert not is_meant("lower", ["--", "app"])


def test_launches_are_chosen_by_number_and_by_name() -> None:
    choice = LaunchChoice.of(["add"], ["3..4,9", "20.."])
    assert [n for n in range(1, 30) if choice.takes(n, "vadd")] == [3, 4, 9, *range(20, 30)]
    assert not choice.takes(3, "scale")
    assert LaunchChoice().takes(1, "anything")
    with pytest.raises(InputError, match="--launch is 'x'"):
        LaunchChoice.of([], ["x"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--"], "no program is given; write gpusim run -- PROGRAM"),
        (["run", "--json", "--", "app"], "give --json --out FILE"),
        (["run", "--device", "nope", "--", "app"], "nope"),
        (["run", "--nope", "--", "app"], "unrecognized arguments: --nope"),
        (["run", "missing.cu", "--", "1"], "missing.cu: there is no such file"),
        (["run", "missing.cu"], "missing.cu: there is no such file"),
        (["run", "missing.cu:k"], "missing.cu: there is no such file"),
        (["run", "missing.py:k"], "missing.py: there is no such file"),
        (["run", "./missing"], "missing: there is no such file"),
        (["predict", "--l2", "hot", "--", "app"], "cold, warm or dirty"),
    ],
)
def test_a_wrong_command_line_is_a_sentence(run: Run, arguments: list[str], words: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_run_of_a_file_that_is_no_program_names_the_way_to_its_kernel(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text("// int main() {}\n__global__ void k() {}")
    Path("l.py").write_text("")
    Path("folder.cu").mkdir()
    for arguments, words in (
        (["k.cu"], "k.cu has no main function, and is no program; gpusim trace k.cu:KERNEL"),
        (["k.cu", "--", "3"], "k.cu has no main function"),
        (["k.cu:k"], "gpusim trace k.cu:k (or predict, check, report) takes a kernel of k.cu"),
        (["l.py"], "gpusim trace l.py (or predict, check, report)"),
        (["./k"], "k: there is no such file"),
        (["folder.cu"], "folder.cu: is a folder"),
    ):
        code, out, err = run("run", *arguments)
        assert (code, out) == (2, "")
        assert words in err
    Path("program").write_text("")
    assert "gpusim run -- ./program" in run("run", "./program")[2]
