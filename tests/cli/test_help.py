"""Help, hints and lists of a file's kernels: at any terminal's width, and with the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusim.cli.app import MODULES, command, main
from gpusim.cli.options import GROUPS, RENAMED
from gpusim.sass import wheels

KERNELS = """
from gpusim import cuda

@cuda.jit
def first(x):
    x[cuda.grid(1)] = 1

@cuda.jit(device=True)
def inside(x):
    return x

@cuda.jit
def second(x):
    x[cuda.grid(1)] = 2
"""


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("name", ["", *MODULES])
def test_help_keeps_to_the_terminal(
    name: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*([name] if name else []), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    examples = next(n for n, line in enumerate(lines) if line == "examples:")
    assert max(map(len, lines[:examples])) <= width
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", MODULES)
def test_help_fits_on_a_screen_and_all_of_it_is_had_by_a_word(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([name, "--help"]) == 0
    short = capsys.readouterr().out
    assert short.count("\n") <= 60
    assert main([name, "--help", "all"]) == 0
    whole = capsys.readouterr().out
    flags = {flag for one in command(name).options for flag in one.flags if flag[0] == "-"}
    assert [flag for flag in flags if flag not in whole] == []
    assert (short == whole) != (f"gpusim {name} --help all: every option" in short)


def test_a_long_line_of_a_report_folds_below_its_second_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["predict", "reduce2", "-n", "2^12", "--code", "lowering"]) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 60
    first = out.index("  waves ")
    assert out[first:].splitlines()[1].startswith(" " * 14)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("sweep --kernels reduce1,reduce7", "write the kernels themselves, without an option"),
        ("sweep --blocks=64", "--blocks is an option of check"),
        ("sweep reduce1 --sizes 2^10", "write -n"),
        ("sweep --devices h200", "write --device"),
        ("plot bandwidth --sizes 2^10", "write -n"),
        ("validate run --output x.json", "write --out"),
    ],
)
def test_an_option_of_an_earlier_version_is_refused_with_its_name_now(
    words: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert name in capsys.readouterr().err


def test_options_have_one_name_in_all_commands_and_stand_in_groups(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = {flag for name in MODULES for one in command(name).options for flag in one.flags}
    assert not flags & RENAMED.keys()
    assert {flag for group in GROUPS.values() for flag in group} <= flags
    assert main(["predict", "--help", "all"]) == 0
    out = capsys.readouterr().out
    assert out.index("\nlaunch:") < out.index("  --grid") < out.index("\nmachine code:")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("trace reduce1 --blok 64", "; did you mean --block or --block-index?"),
        ("check reduce1 --l2 warm", "; --l2 is an option of "),
        ("run reduce1 --device h200", "; --device is an option of trace, check, "),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_or_its_commands(
    arguments: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == 2
    assert hint in capsys.readouterr().err


def test_the_kernels_of_a_python_file_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("mine.py")
    file.write_text(KERNELS, encoding="utf-8")
    assert main(["list", str(file)]) == 0
    names = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert names == [f"{file}:first", f"{file}:second"]
    assert main(["list", str(file), "--json"]) == 0
    assert f'"name": "{file}:second"' in capsys.readouterr().out


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_the_kernels_of_a_cuda_file_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("mine.cu")
    file.write_text("__global__ void one(int *x) { *x = 1; }", encoding="utf-8")
    assert main(["list", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"{file}:one", "  x: int*"]
    assert "--grid 16 --block 256" in " ".join(" ".join(lines[2:]).split())


@pytest.mark.parametrize("given", ["reduce1", "nowhere.py", "nowhere.cu"])
def test_a_list_of_no_file_of_kernels_is_refused(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", given]) == 2
    assert given in capsys.readouterr().err


def test_habitual_names_of_options_are_taken(tmp_path: Path) -> None:
    page = tmp_path / "page.svg"
    assert main(["plot", "banks", "reduce2", "--n", "256", "-o", str(page)]) == 0
    assert page.exists()


@pytest.mark.parametrize("command", ["plot", "--help"])
def test_what_is_printed_without_all_has_at_most_60_lines(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reports are in `test_screens.py`."""
    monkeypatch.setenv("COLUMNS", "80")
    main(command.split())
    captured = capsys.readouterr()
    assert 0 < len((captured.out or captured.err).splitlines()) <= 60
