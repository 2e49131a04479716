"""The documentation as a site: every page is in it, and links between pages hold there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import gpusim
from gpusim.compiler.types import DTYPES

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import site_hooks  # noqa: E402  it stands beside the pages


def navigation() -> set[str]:
    """The pages that the site's navigation leads to."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return set(re.findall(r"^ +- .*: ([\w-]+\.md)$", text, re.MULTILINE))


def test_every_page_is_in_the_navigation() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert navigation() == pages | set(site_hooks.OUTSIDE) | {site_hooks.REFERENCE}


def test_every_public_name_is_in_the_reference() -> None:
    named = {name for names in site_hooks.SUBJECTS.values() for name in names}
    left = set(gpusim.__all__) - named - {"__version__", "cuda", "GpusimError"}
    assert left == {str(dtype).replace("bool", "boolean") for dtype in DTYPES} | {"void"}
    assert "::: gpusim.errors.GpusimError\n" in site_hooks.reference()


@pytest.mark.parametrize(
    ("source", "written", "there"),
    [
        ("README.md", "[a](docs/tour.md)", "[a](tour.md)"),
        ("README.md", "![p](docs/pictures/model.svg)", "![p](pictures/model.svg)"),
        ("docs/words.md", "[a](../README.md#how-far)", "[a](index.md#how-far)"),
        ("docs/tour.md", "[a](checking.md)", "[a](checking.md)"),
        ("docs/tour.md", "[a](#an-anchor)", "[a](#an-anchor)"),
        ("docs/kernels.md", "[gpusim/kernels](../gpusim/kernels)", "gpusim/kernels"),
        ("benchmarks/README.md", "[a](../docs/model.md)", "[a](model.md)"),
        ("docs/tour.md", "[a](https://wasmtime.dev)", "[a](https://wasmtime.dev)"),
        ("docs/tour.md", "`x[0](docs/y)`", "`x[0](docs/y)`"),
        ("docs/tour.md", "```\nx[0](docs/y)\n```", "```\nx[0](docs/y)\n```"),
    ],
)
def test_a_link_of_the_repository_leads_to_the_page_of_the_site(
    source: str, written: str, there: str
) -> None:
    assert site_hooks.linked(written, source) == there


def test_files_of_examples_are_titles_and_items_hold_their_blocks() -> None:
    assert site_hooks.titled("```cuda saxpy.cu\n") == '```cuda title="saxpy.cu"\n'
    assert site_hooks.indented("1. a\n\n   b\n") == "1. a\n\n    b\n"
    assert site_hooks.indented("```\n   b\n```\n") == "```\n   b\n```\n"


def test_large_delimiters_of_equations_grow_by_themselves() -> None:
    assert site_hooks.stretched(r"\Bigl\lfloor \tfrac{B}{R} \Bigr\rfloor") == (
        r"\left\lfloor \tfrac{B}{R} \right\rfloor"
    )


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the extra 'docs' is not installed")
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="tour/"' in page
    assert 'src="pictures/page.png"' in page
    assert 'id="gpusim.tracing.trace.trace"' in (tmp_path / "reference" / "index.html").read_text()
    model = (tmp_path / "model" / "index.html").read_text(encoding="utf-8")
    written = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
    assert model.count("<math ") == written.count("```math")
    assert not re.search(r"\\(lfloor|frac|text)", model)


def test_links_of_a_page_in_a_folder_lead_out_of_it() -> None:
    text = "[a](../tour.md) [b](row_sums.py) [c](../lessons.md#1-x)"
    moved = site_hooks.linked(text, "docs/assignment/README.md")
    assert moved == "[a](../tour.md) [b](row_sums.py) [c](../lessons.md#1-x)"


def test_the_menu_is_folded() -> None:
    """31 pages do not fit on a screen: the sections of other pages are closed."""
    features = re.search(
        r"^  features:\n((?:    - .*\n)*)", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M
    )
    assert features is not None
    assert "navigation.sections" not in features[1]
    assert "navigation.expand" not in features[1]
