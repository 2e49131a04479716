"""The guide for contributors names what is there, and workflows run what it says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = ROOT / ".github" / "workflows"


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_files_that_the_guide_names_are_there() -> None:
    named = re.findall(r"`([\w./-]+/[\w./-]*)`", text("CONTRIBUTING.md"))
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_extras_that_pages_name_are_declared() -> None:
    declared = tomllib.loads(text("pyproject.toml"))["project"]["optional-dependencies"]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *WORKFLOWS.glob("*.yml")]
    named = {
        extra
        for page in pages
        for group in re.findall(r"'(?:\.|gpusim)\[([\w,]+)\]'", page.read_text(encoding="utf-8"))
        for extra in group.split(",")
    }
    assert {"test", "docs", "nvcc"} <= named <= set(declared)


def test_the_workflow_runs_the_checks_of_the_guide() -> None:
    checks = re.search(r"^```sh\n(ruff.*?)^```", text("CONTRIBUTING.md"), re.M | re.S)
    assert checks is not None
    workflow = text(".github/workflows/tests.yml")
    for command in re.split(r" && |\n", checks[1].strip()):
        assert f"- run: {command}\n" in workflow
    assert "- run: mkdocs build --strict\n" in workflow


def test_a_release_needs_no_secret() -> None:
    for workflow in WORKFLOWS.glob("*.yml"):
        assert "secrets" not in workflow.read_text(encoding="utf-8")
    assert "id-token: write" in text(".github/workflows/release.yml")


def test_hooks_before_a_commit_fetch_nothing() -> None:
    assert re.findall(r"repo: (\S+)", text(".pre-commit-config.yaml")) == ["local"]


def test_the_changelog_has_a_section_of_this_version() -> None:
    import gpusim

    sections = re.findall(r"^## \[?([\w.]+)", text("CHANGELOG.md"), re.MULTILINE)
    assert sections[0] == gpusim.__version__


def test_examples_for_ci_have_the_tag_of_this_version() -> None:
    import gpusim

    pages = "README.md", "action.yml", "docs/ci.md"
    tags = [tag for page in pages for tag in re.findall(r"(?:gpusim@|rev: )v([\d.]+)", text(page))]
    assert tags == [gpusim.__version__] * 4


def changes() -> list[tuple[Path, str]]:
    """Return the lines of changes since the last release, each with its file."""
    files = sorted((ROOT / "changes").glob("*.*.md"))
    return [(path, line) for path in files for line in path.read_text("utf-8").splitlines()]


def test_a_change_is_one_sentence_of_at_most_25_words() -> None:
    assert [line for _, line in changes() if len(line.split()) > 25 or line[-1:] != "."] == []


def test_each_change_is_an_entry_of_the_next_changelog() -> None:
    draft = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "next"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout
    assert sorted(re.findall(r"^- (.*)", draft, re.M)) == sorted(line for _, line in changes())
    kinds = tomllib.loads(text("pyproject.toml"))["tool"]["towncrier"]["type"]
    headings = {kind["directory"]: f"### {kind['name']}\n" for kind in kinds}
    assert all(headings[path.name.split(".")[1]] in draft for path, _ in changes())
