"""The documentation is true: examples print what it shows, and tables are what the code says."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gpusim import cuda
from gpusim.catalogue import entries
from gpusim.cli import app, programs
from gpusim.compiler.calls import INTRINSICS, MATH_NAMES
from gpusim.compiler.types import DTYPES
from gpusim.sass import wheels
from gpusim.tracing.counters import COUNTERS
from validate import commands

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import pictures  # noqa: E402  it stands beside the pages
import refresh  # noqa: E402  so does this
from test_architecture import FLOORS  # noqa: E402


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", refresh.PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_its_examples_print(page: Path) -> None:
    """Where this fails because the program has changed, `python docs/refresh.py` puts it right."""
    assert refresh.refreshed(page) == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", refresh.tables.FILES, ids=lambda path: path.name)
def test_a_generated_file_is_what_the_code_makes_of_the_data(path: Path) -> None:
    """`python docs/refresh.py` writes it anew; it stays small enough to be read in a browser."""
    assert refresh.tables.FILES[path]() == path.read_text(encoding="utf-8")
    assert path.stat().st_size < 200_000


def test_an_example_that_prints_something_else_is_found(tmp_path: Path) -> None:
    page = refresh.Page("page.md", tmp_path)
    before = "```python\nprint(6 * 7)\n```\n\n```text\n41\n```\n"
    assert page.refreshed(before) == before.replace("41", "42")


def test_a_command_that_fails_is_found(tmp_path: Path) -> None:
    page = refresh.Page("page.md", tmp_path)
    with pytest.raises(ValueError, match="there is no kernel"):
        page.refreshed("```console\n$ gpusim run reduce99\n```\n")


def test_only_the_speed_of_a_run_may_differ(tmp_path: Path) -> None:
    page = refresh.Page("page.md", tmp_path)
    command = "```console\n$ gpusim run reduce3 -n 64 | tail -1\n"
    told = "256 threads in 9.00 s: 28 threads/s simulated\n```\n"
    assert page.refreshed(command + told) == command + told
    assert page.refreshed(command + told.replace("256", "255")) != command + told


# -- commands that are not executed here ---------------------------------------------------


CI_COMMANDS = ("python3 ", ".venv/")


def plain(command: str) -> str:
    """A command without the flags that only make it quiet."""
    words = shlex.split(command)
    return shlex.join(word for word in words if not word.startswith("--"))


def steps(command: str) -> list[str]:
    return [plain(part) for part in command.split(" && ")]


def test_the_test_command_of_the_readme_is_what_ci_runs() -> None:
    install, install_and_test = re.findall(
        r"^```sh\n(.*?)\n```$", text("README.md"), re.MULTILINE | re.DOTALL
    )
    in_ci = [plain(line) for line in text(".ci/run").splitlines() if line.startswith(CI_COMMANDS)]
    places = [in_ci.index(step) for step in steps(install_and_test)]
    assert places == sorted(places)
    assert places[-1] == len(in_ci) - 1
    assert steps(install)[0] == steps(install_and_test)[0]


def test_the_readme_begins_with_the_reductions_and_shows_a_file_that_is_there() -> None:
    page = text("README.md")
    commands = re.findall(r"^\$ (gpusim [^|\n]*)", page, re.MULTILINE)
    assert [command.strip() for command in commands[:3]] == [
        "gpusim trace reduce2 --block 128", "gpusim rank", "gpusim check reduction5",
    ]  # fmt: skip
    kernel = re.search(r"^```cuda (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert kernel is not None
    assert kernel[2] == text(f"docs/{kernel[1]}")


def test_the_readme_is_short_and_its_installation_has_what_it_says() -> None:
    page = text("README.md")
    assert len(page.splitlines()) <= 230
    extras = tomllib.loads(text("pyproject.toml"))["project"]["optional-dependencies"]
    (full,) = extras["full"]
    said = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \| [\d,]+ MB", page, re.M)))
    assert full == f"gpusim[{','.join(sorted(said))}]"


def parsed(command: str) -> None:
    """Let a command's parser read its words; InputError for what it does not know."""
    words = shlex.split(command.replace("\\\n", " ").partition(" > ")[0], comments=True)[1:]
    if words[0] == "validate":
        commands.parser().parse_args(words[1:])
    elif not programs.is_meant(words[0], words[1:]):
        app.parser([words[0]]).parse_args(words)


def commands_in(prose: str) -> list[str]:
    """The commands that begin a line, each with its continued lines."""
    found = re.findall(r"^ *(gpusim [a-z](?:.*\\\n)*.*)$", prose, re.MULTILINE)
    return [
        re.split(r" {3,}", command)[0] if "\\\n" not in command else command for command in found
    ]


@pytest.mark.parametrize("page", refresh.PAGES, ids=lambda page: page.name)
def test_commands_that_are_shown_without_being_run_are_understood(page: Path) -> None:
    """Those that need a GPU, or minutes: each option is one that the command has."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    for command in commands_in("".join(blocks)):
        parsed(command)


FIRST_HOUR = ("README.md", "docs/tour.md", "docs/commands.md")
NOT_WHOLE = re.compile(r"\b[A-Z]{4}\b|\.\.\.|^gpusim \w+$")  # NAME and FILE; names alone
OF_A_LIST = {"list", "ci", "devices", "rank"}  # that are whole without a word after them
READERS_OWN = {
    "my.cu": text("docs/transpose.cu"),
    "app.py": "print('no launch')\n",
    "softmax.py": "print('no launch')\n",
    "pyproject.toml": '[[tool.gpusim.launch]]\nname = "sum"\nkernel = "reduce7"\nn = 4096\n',
}


def in_sentences() -> list[Any]:
    """Commands that pages have within sentences and tables, without names of parts and files."""
    every = {
        command
        for page in FIRST_HOUR
        for command in re.findall(r"`(gpusim [^`]+)`", refresh.BLOCKS.sub("", text(page)))
        if not NOT_WHOLE.search(command) or command.split()[-1] in OF_A_LIST
    }
    slow = pytest.mark.slow  # 813 launches
    return [pytest.param(one, marks=slow) if "validate" in one else one for one in sorted(every)]


@pytest.mark.parametrize("command", in_sentences())
def test_a_command_in_a_sentence_runs_as_it_is(command: str, tmp_path: Path) -> None:
    """With a reader's own files beside it; the blocks of commands are run as examples."""
    for name, content in READERS_OWN.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert refresh.Page("page.md", tmp_path).run(command, fails=False)


@pytest.mark.parametrize("name", app.MODULES)
def test_the_examples_of_a_commands_help_are_understood(name: str) -> None:
    examples = commands_in("\n".join(app.command(name).notes))
    assert examples
    for example in examples:
        parsed(example)


def test_the_examples_of_the_whole_help_are_understood() -> None:
    every = (app.EXAMPLES, commands.EXAMPLES, commands.RUN_EXAMPLES, commands.COUNTERS_EXAMPLES,
             commands.CALIBRATE_EXAMPLES, commands.COMPARE_EXAMPLES)  # fmt: skip
    for examples in every:
        found = [one for one in commands_in(examples) if "COMMAND" not in one]
        assert found
        for example in found:
            parsed(example)


# -- nothing is left out -------------------------------------------------------------------


def test_every_page_is_linked_from_the_readme() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{page.name})" in text("README.md"), page.name


def test_links_lead_to_files_that_are_there() -> None:
    for page in refresh.PAGES:
        prose = re.sub(
            r"^```.*?^```$|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S
        )
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


SHOWN = ("gpusim", "validate", "docs", "benchmarks")  # and the pages at the top


def test_texts_are_named_by_their_titles() -> None:
    """Not by names of files, such as three digits and a hash, that no user can open."""
    pages = [*ROOT.glob("*.md"), *(path for name in SHOWN for path in (ROOT / name).rglob("*.*"))]
    texts = {".py", ".md", ".toml", ".json", ".ipynb", ".cu"}
    read = [path for path in pages if path.suffix in texts]
    named = re.compile(rb"\b\d{3}_[0-9a-f]{16}\b")
    assert len(read) > 500
    assert [path.name for path in read if named.search(path.read_bytes())] == []


def test_the_dialect_has_every_word() -> None:
    page = text("docs/dialect.md")
    words = [f"cuda.{name}" for name in INTRINSICS if hasattr(cuda, name)]
    words += [f"`{name}`" for name in (*MATH_NAMES, *map(str, DTYPES))]
    words += [f"cuda.{name}.array" for name in ("shared", "local")]
    assert [word for word in words if word not in page] == []


def test_every_counter_and_every_kernel_has_a_row() -> None:
    for name in COUNTERS:
        assert f"\n| `{name}` |" in text("docs/counters.md")
    for entry in entries():
        assert f"\n| `{entry.name}` |" in text("docs/kernels.md")


def test_the_floors_are_the_ones_of_the_test() -> None:
    page = text("docs/architecture.md")
    for number, names in enumerate(FLOORS):
        row = re.search(rf"^\| {number} \| (.*?) \|", page, re.MULTILINE)
        assert row is not None
        assert set(re.findall(r"`(\w+)`", row[1])) == names


# -- pictures ------------------------------------------------------------------------------


def texts(picture: Path) -> list[str]:
    """What a picture says, in order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))


def test_every_picture_has_its_command_and_is_shown() -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in refresh.PAGES)
    assert {path.name for path in pictures.FOLDER.iterdir()} == set(pictures.NAMES)
    assert [name for name in pictures.NAMES if f"pictures/{name})" not in shown] == []


def test_no_picture_is_large() -> None:
    for suffix in ("svg", "png"):
        for path in (ROOT / "docs").rglob(f"*.{suffix}"):
            assert path.stat().st_size < pictures.MOST_BYTES, path.name


@pytest.mark.parametrize("name", ["banks-reduce2.svg", "divergence-reduce3.svg", "model.svg"])
def test_a_picture_says_what_its_command_draws(name: str, tmp_path: Path) -> None:
    """Where this fails because the program has changed, `python docs/pictures.py` puts it right."""
    drawn = pictures.draw(name, tmp_path)
    assert texts(drawn) == texts(pictures.FOLDER / name)
    assert len(texts(drawn)) > 10


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_the_picture_of_the_page_has_the_words_of_the_page(tmp_path: Path) -> None:
    """Where this fails, `python docs/pictures.py page.png` draws it again; numbers may differ."""
    image = pytest.importorskip("PIL.Image", reason="it comes with Matplotlib, of the extra plot")
    page = tmp_path / "page.html"
    pictures.write_page(page)
    with image.open(pictures.FOLDER / pictures.PAGE) as picture:
        assert picture.text[pictures.WORDS] == pictures.words_of(page)
    assert f"`gpusim {pictures.README_REPORT}` writes this page" in text("README.md")
