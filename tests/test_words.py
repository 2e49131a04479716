"""Sentences have nouns: words of relative clauses are few in docstrings, comments and pages."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from gpusim.cli.app import MODULES, main

ROOT = Path(__file__).parent.parent
CLAUSES = re.compile(
    r"\b(what|whatever|which|those|whose|whom|so many|so much|of which|in which|such a)\b", re.I
)
WORD = re.compile(r"[A-Za-z']+")
MOST = 12  # of 1,000 words
LEAST_WORDS = 300  # of a folder: in fewer a single sentence decides
CODE = re.compile(r"^```.*?^```$|^<!-- table.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
# Words that had a term of the field all along, as they stood in outputs.
RETIRED = re.compile(
    r"\b(what to make of it|what would change it|standstill|stands still|to mend|binds|"
    r"nothing stands out|go(es)? round for ever|t(old|ells?) apart|gone over|goes on where|"
    r"so many|stands? (behind|outside|beside|in no)|made anew|which is no|is made with)\b",
    re.I,
)
HELD = re.compile(r"\bh(e|o)ld(s)? (.{1,40} )?against\b|\bheld to\b", re.I)
# Kinds of sentences that a reader reads twice, in outputs, help and the page.
KINDS = {
    "a program that speaks": r"(asks? for|asked for|tells?|told|says?|said|judge[sd]?|say which)",
    "is no, for is not a": r"(?<!there )(is|are) no (?!longer\b|more\b)\w+",
    "behind, for after": "behind",
    "a clause for a noun": r"(whose|whom|whatever|(those|what) (that|of|which|is|was|it|they|the|a)"
    r"|which (is|are) (those|what))",
    "a verb of our own": r"((hold|holds|held) (\w+ ){0,8}to (limits|them|it)"
    r"|(leave|leaves) (\w+ )?as (it is|they are)|(go|goes|going|gone) (over|on where)"
    r"|(stand|stands|standing) (behind|beside|in the|nowhere|out))",
    "a person for a thread": r"(nobody|somebody|who (comes?|asks?|stores?|polls?|waits?))",
    "taken for, for assumed": "taken for",
    "one's own, for your": "of one's own",
    "a word of our own": r"(anew|at work|under way|for want of|gives? back|given back|all the same"
    r"|begin of)",
    "no number, or a negative in its place": r"(no \w+( \w+)? is (reached|worth|near)"
    r"|without it \d|nothing (that|stands))",
}
LEAST_OF_A_MESSAGE = 3  # words: fewer are names
SENTENCE = 5  # words of a text, at least, for a sentence or a part of one
SHOWN = [
    *sorted((ROOT / "gpusim" / "reports" / "page").rglob("*.jinja")),
    *sorted((ROOT / "gpusim" / "reports" / "page" / "scripts").glob("*.js")),
    ROOT / "gpusim" / "reports" / "words.toml",
]


# Of a line: tokens of Python take five times as long to find.
COMMENT = re.compile(r"""(?:[^'"#]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*(#.*)""")


@cache
def read(path: Path) -> tuple[str, list[str]]:
    """Return the docstrings and comments of a file of Python, and its other texts."""
    text = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    docstrings = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds)]
    within = {
        line
        for node in nodes
        if isinstance(node, ast.Constant | ast.JoinedStr)
        for line in range(node.lineno, node.end_lineno or 0)
    }
    lines = ((number, COMMENT.match(line)) for number, line in enumerate(text.split("\n"), 1))
    comments = [found[1] for number, found in lines if found and number not in within]
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    others = [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
    ]
    return "\n".join([*docstrings, *comments]), others


def prose(path: Path) -> str:
    """Return the docstrings and comments of a file of Python."""
    return read(path)[0]


def texts(path: Path) -> list[str]:
    """Return the texts of a file of Python that are no docstrings."""
    return read(path)[1]


def rate(text: str) -> float:
    """Return words of relative clauses in 1,000 words of a text."""
    return 1000 * len(CLAUSES.findall(text)) / max(1, len(WORD.findall(text)))


def folders(*names: str) -> list[Path]:
    return sorted({path.parent for name in names for path in (ROOT / name).rglob("*.py")})


@pytest.mark.parametrize(
    "folder",
    folders("gpusim", "validate", "benchmarks"),
    ids=lambda one: one.relative_to(ROOT).as_posix(),
)
def test_docstrings_and_comments_have_nouns(folder: Path) -> None:
    text = "\n".join(map(prose, sorted(folder.glob("*.py"))))
    assert len(WORD.findall(text)) <= LEAST_WORDS or rate(text) <= MOST


PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.relative_to(ROOT).as_posix())
def test_pages_have_nouns(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    assert rate(text) <= MOST


def test_changes_have_nouns() -> None:
    files = sorted((ROOT / "changes").glob("*.md"))
    assert rate("\n".join(path.read_text(encoding="utf-8") for path in files)) <= MOST


def test_each_term_stands_once_among_the_words() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "words.md").read_text("utf-8"), re.M)
    terms = Counter(
        term.strip()
        for row in rows
        for term in re.sub(r"\([^)]*\)", "", row).split(",")
        if row not in ("term", "---")
    )
    assert terms
    assert [term for term, count in terms.items() if count > 1] == []


def sentences(folder: Path) -> str:
    """Return the texts of a folder's modules that users read: messages, options, findings."""
    found = [text for path in sorted(folder.glob("*.py")) for text in texts(path)]
    return "\n".join(text for text in found if len(WORD.findall(text)) >= SENTENCE)


@pytest.mark.parametrize(
    "folder", folders("gpusim"), ids=lambda one: one.relative_to(ROOT).as_posix()
)
def test_messages_have_nouns(folder: Path) -> None:
    text = sentences(folder)
    assert len(WORD.findall(text)) <= LEAST_WORDS or rate(text) <= MOST


def of_kind(text: str) -> list[str]:
    """Return the kinds of sentences in a text, each with its words; `{...}` has names alone."""
    plain = re.sub(r"\{[^{}]*\}|`[^`]*`", "", text)
    if len(WORD.findall(plain)) < LEAST_OF_A_MESSAGE:
        return []
    found = {kind: re.search(rf"\b{pattern}\b", plain, re.I) for kind, pattern in KINDS.items()}
    return [f"{kind}: {match[0]}" for kind, match in found.items() if match]


def page_texts(path: Path) -> str:
    """Return the words of a part of the page, without markup, names and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".js":
        code = re.sub(r"^\s*//.*$|Selector(All)?\([^)]*\)", "", text, flags=re.M)
        return "\n".join(re.findall(r"""["`]([^"`\n]*)["`]""", code))
    return re.sub(r"<[^>]*>|\{[{%#].*?[#%}]\}", "", text, flags=re.DOTALL)


def test_outputs_have_no_sentence_of_these_kinds() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {one}: {' '.join(text.split())[:120]}"
        for name in ("gpusim", "validate")
        for path in sorted((ROOT / name).rglob("*.py"))
        if path.parent != ROOT / "gpusim" / "wasm"  # about the text of gpusim's own functions
        for text in texts(path)
        for one in of_kind(text)
    ]
    assert found == []


@pytest.mark.parametrize("name", [*MODULES, ""])
def test_help_has_no_sentence_of_these_kinds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*([name] if name else []), "--help", "all"]) == 0
    parts = re.split(r"\n\s*\n", capsys.readouterr().out)
    assert [one for part in parts for one in of_kind(" ".join(part.split()))] == []


@pytest.mark.parametrize("path", SHOWN, ids=lambda one: one.name)
def test_the_page_has_no_sentence_of_these_kinds(path: Path) -> None:
    lines = page_texts(path).split("\n")
    assert [f"{one}: {line}" for line in lines for one in of_kind(line)] == []


# Releases keep their words.
@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "CHANGELOG"],
                         ids=lambda one: one.relative_to(ROOT).as_posix())  # fmt: skip
def test_pages_have_no_sentence_of_these_kinds(page: Path) -> None:
    text = re.sub(r"\]\([^)]*\)", "]", CODE.sub("", page.read_text(encoding="utf-8")))
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    found = [
        f"{one}: {sentence}"
        for paragraph in paragraphs
        for sentence in re.split(r"(?<=[.:;!?|])\s+", paragraph)
        for one in of_kind(sentence)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "the program asks for a table, and fails",
        "'x.txt' is no file of kernels",
        "put a fence behind the store in line 3",
        "an array whose members lie elsewhere",
        "the arrays of those that are not done",
        "hold every launch of the test to limits",
        "more launches stand in the JSON, in full",
        "the baseline is damaged; write it anew",
        "No lower bound is reached: the nearest is latency",
        "bank conflicts; without it 6.94 us, faster",
        "nobody reads the old value, so lanes are added up",
        "missing elements are taken for ordinary numbers",
        "kernels of one's own are ranked as well",
    ],
)
def test_each_kind_of_sentence_is_found(text: str) -> None:
    assert len(of_kind(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "there is no kernel of that name; gpusim list has all",
        "this option is no longer an option; write --arg",
        "put a fence after the store in line 3",
        "the array {those that} and `what is` are names here",
        "gpusim check FILE: a name",
    ],
)
def test_plain_sentences_are_of_no_kind(text: str) -> None:
    assert of_kind(text) == []


@pytest.mark.parametrize("path", SHOWN, ids=lambda one: one.name)
def test_the_page_has_nouns_and_no_retired_words(path: Path) -> None:
    text = re.sub(r"^\s*//.*$|<[^>]*>", "", path.read_text(encoding="utf-8"), flags=re.M)
    assert RETIRED.search(text) is None
    assert len(WORD.findall(text)) <= LEAST_WORDS or rate(text) <= MOST


def test_retired_words_stay_out_of_outputs() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for name in ("gpusim", "validate")
        for path in sorted((ROOT / name).rglob("*.py"))
        for text in texts(path)
        if RETIRED.search(text) or HELD.search(text)
    ]
    assert found == []


def test_nothing_is_held_against_anything_in_docstrings_and_pages() -> None:
    """Results are compared, launches are checked against limits."""
    modules = [path for name in ("gpusim", "validate") for path in (ROOT / name).rglob("*.py")]
    read = [(path, prose(path)) for path in modules]
    read += [(page, CODE.sub("", page.read_text(encoding="utf-8"))) for page in PAGES]
    found = [f"{path.relative_to(ROOT)}: {one[0]}" for path, text in read
             for one in HELD.finditer(text)]  # fmt: skip
    assert found == []


def test_a_text_of_relative_clauses_is_above_the_bar() -> None:
    assert rate("what is read of those whose blocks wait, in which order") > MOST
    assert rate("reads of waiting blocks, in order") == 0
