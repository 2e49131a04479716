"""The notebooks of the pages: whole, without outputs, and they run."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import as_notebooks  # noqa: E402  it stands beside the pages

MOST_BYTES = 60_000


def document(page: str) -> Any:
    return json.loads((as_notebooks.FOLDER / f"{page}.ipynb").read_text(encoding="utf-8"))


def cells(page: str, kind: str) -> list[str]:
    found = document(page)["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


@pytest.mark.parametrize("page", as_notebooks.PAGES)
def test_every_example_of_the_page_is_a_cell(page: str) -> None:
    """That the file is what its page makes of it is tested with the other generated files."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    code = cells(page, "code")
    commands = re.findall(r"^\$ gpusim ", text, re.MULTILINE)
    pictures = re.findall(r"^!\[.*\]\(pictures/", text, re.MULTILINE)
    blocks = re.findall(r"^```(?:python|cuda)", text, re.MULTILINE)
    assert len(code) == 1 + len(commands) + len(pictures) + len(blocks)
    assert len([one for one in code if one.startswith("%gpusim")]) == len(commands) + len(pictures)
    assert [one for one in code if " | " in one and one.startswith("%gpusim")] == []


@pytest.mark.parametrize("page", as_notebooks.PAGES)
def test_every_lesson_has_an_exercise(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    lessons = re.split(r"^## (?=\d\. )", text, flags=re.MULTILINE)[1:]
    assert len(lessons) == {"tour": 7, "lessons": 6}[page]
    assert [lesson.splitlines()[0] for lesson in lessons if "\nexercise(" not in lesson] == []


@pytest.mark.parametrize("page", as_notebooks.PAGES)
def test_it_is_small_and_kept_without_outputs(page: str) -> None:
    assert (as_notebooks.FOLDER / f"{page}.ipynb").stat().st_size < MOST_BYTES
    for cell in document(page)["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.parametrize("page", as_notebooks.PAGES)
def test_its_links_lead_to_files_that_are_there(page: str) -> None:
    for text in cells(page, "markdown"):
        prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            assert (as_notebooks.FOLDER / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize("page", as_notebooks.PAGES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_it_runs_with_tables_pictures_and_exercises(page: str, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    made = nbformat.read(as_notebooks.FOLDER / f"{page}.ipynb", 4)
    nbformat.validate(made)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(made, timeout=600, kernel_name="python3", resources=where).execute()
    for cell in made.cells:
        if cell.cell_type == "code" and cell.source.startswith("%gpusim"):
            (shown,) = [one for one in cell.outputs if one.output_type == "execute_result"]
            is_picture = cell.source.startswith("%gpusim plot")
            kinds = ("image/svg+xml", "image/png") if is_picture else ("text/html",)
            assert any(kind in shown.data for kind in kinds), cell.source
        elif "\nexercise(" in f"\n{cell.source}" and cell.cell_type == "code":
            assert "in place of ..." in cell.outputs[0].text
