"""Hooks of MkDocs: pages of the repository outside docs/, the reference, and links between them.

The pages are written for a reader of the repository. On the site README.md is the first page,
links follow their pages, and links to source files are plain text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
# Pages outside docs/, by their names on the site.
OUTSIDE = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "benchmarks.md": "benchmarks/README.md",
}
_ON_SITE = {source: page for page, source in OUTSIDE.items()}

REFERENCE = "reference.md"
# The public names by subject; modules stand for all that they define.
SUBJECTS = {
    "Run, predict, check": ("trace", "predict", "check", "rank", "sweep", "tune"),
    "Kernels and arguments": ("cuda_file", "cuda_source", "array_spec"),
    "Results": ("Trace", "Prediction", "Findings"),
    "Devices": ("Device", "ComputeCapability"),
    "Observers": ("Observer", "SpanObserver"),
    "Tests of kernels": ("testing",),
    "Errors": ("errors",),  # GpusimError and its kinds
}

_FENCE = r"^ *```.*?^ *```$"
_LINK = re.compile(
    rf"(?P<code>{_FENCE}|`[^`\n]+`)|(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)
_EQUATION = re.compile(r'<div class="equation">(?P<latex>.*?)</div>', re.DOTALL)
_SIDES = {"l": r"\left", "r": r"\right"}
_TOP_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are outside docs/, and the reference."""
    from mkdocs.structure.files import File

    pages = {name: (ROOT / source).read_text("utf-8") for name, source in OUTSIDE.items()}
    for name, text in (pages | {REFERENCE: reference()}).items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page as Python-Markdown reads it, with links that hold on the site."""
    source = OUTSIDE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return indented(titled(linked(markdown, source)))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with its equations as MathML, which browsers show without a script."""
    from latex2mathml.converter import convert

    def equation(block: re.Match[str]) -> str:
        return str(convert(stretched(unescape(block["latex"])), display="block"))

    return _EQUATION.sub(equation, html)


def stretched(latex: str) -> str:
    """Return an equation with delimiters that grow by themselves, as MathML's do."""
    return re.sub(r"\\[bB]ig([lr])", lambda big: _SIDES[big[1]], latex)


def linked(markdown: str, source: str) -> str:
    """Return the text of a page of the repository with links between pages of the site."""
    folder = posixpath.dirname(_place(source) or "") or "."

    def moved(link: re.Match[str]) -> str:
        target = link["target"] or "#"
        if link["code"] or target.startswith(("#", "https:", "http:")):
            return link[0]
        path, _, anchor = target.partition("#")
        there = _place(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        if there is None:
            return link["text"]
        there = posixpath.relpath(there, folder)
        return f"{link['image']}[{link['text']}]({there}{'#' * bool(anchor)}{anchor})"

    return _LINK.sub(moved, markdown)


def _place(path: str) -> str | None:
    """Return where a file of the repository is on the site, None where it is not."""
    inside = path.removeprefix("docs/") if path.startswith("docs/") else None
    return _ON_SITE.get(path, inside)


def titled(markdown: str) -> str:
    """Return the text with names of files beside a language as titles of blocks."""
    return re.sub(r"^```(\w+) ([\w.]+)$", r'```\1 title="\2"', markdown, flags=re.MULTILINE)


def indented(markdown: str) -> str:
    """Return the text with what belongs to numbered items indented by four columns, not three."""
    parts = _TOP_FENCE.split(markdown)
    parts[::2] = [re.sub(r"^   (?=.*\S)", "    ", part, flags=re.MULTILINE) for part in parts[::2]]
    return "".join(parts)


def reference() -> str:
    """Return the page of the public names, which mkdocstrings fills with their docstrings."""
    return "\n\n".join(["# Reference", *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    import gpusim
    import gpusim.testing.assertions

    yield (
        "All of it is found by `import gpusim`. The words of kernels, `gpusim.cuda`, are listed "
        "with [the dialect](dialect.md#intrinsics); types such as `gpusim.float32` are those of "
        "signatures. Results have methods that draw ([seeing it](seeing.md))."
    )
    for subject, names in SUBJECTS.items():
        yield f"## {subject}"
        for name in names:
            yield from (f"::: {path}" for path in _paths(getattr(gpusim, name), name))


def _paths(found: Any, name: str) -> list[str]:
    """Return where a public name is defined; of the module of errors, where each error is."""
    if name == "errors":
        kinds = (one for one in vars(found).values() if isinstance(one, type))
        return [f"gpusim.errors.{one.__name__}" for one in kinds if issubclass(one, Exception)]
    return [f"{found.__module__}.{found.__qualname__}" if callable(found) else found.__name__]
