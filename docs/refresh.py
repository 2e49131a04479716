"""Keep the documentation true: run its examples and write the tables that come from the code.

`python docs/refresh.py` rewrites the pages; a test fails where that would change
anything. What a page may hold:

- a `console` block: each line after `$ ` is a command (`gpusim ...`, with `| head -N` or
  `| tail -N` after it); what follows it is what it prints. It may fail only where a message
  that begins with `gpusim: ` follows.
- a `python` block is executed, after those before it on the page. A `text` block right after it
  is what it prints. With a file name beside `python` it is also written to that file, for
  commands to use.
- a `cuda` or `toml` block with a file name is written to that file. Commands and `python` blocks
  that name a `.cu` file need the wheels of the extra `nvcc`: without them they stand as they are.
- between `<!-- table: NAME -->` and `<!-- end -->` stands a table of docs/tables.py.

Files that come from the code as a whole (`tables.FILES`) are written too.

Other blocks, such as `sh`, are left alone.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tables

from gpusim.cli.app import INPUT_ERROR
from gpusim.cli.app import main as gpusim
from gpusim.codegen.generators import AUTO, LOWERING, VARIABLE
from gpusim.sass import wheels

os.environ[VARIABLE] = LOWERING  # what the pages show needs no compiler
COMPILED_PAGES = ("README.md",)  # but these show what the extra full prints
ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
)

# What differs from run to run: the old text stays where nothing else has changed.
VARYING = re.compile(r"in [\d.,]+ s: [\d,]+ threads/s simulated|NVRTC [\d.]+")

BLOCKS = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMPILED = re.compile(r"\.cu\b")
_PIECE = re.compile(
    r"^```(?P<language>\w*)[ ]?(?P<name>[\w.]*)\n(?P<body>.*?)^```\n"
    r"|^<!-- table: (?P<table>\w[\w: ]*) -->\n(?P<rows>.*?)^<!-- end -->\n",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Page:
    """One page while it is being refreshed: where its files are, and what its code has defined."""

    name: str
    directory: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    blocks: int = 0
    printed: str = ""

    @property
    def is_compiled(self) -> bool:
        """Whether Python kernels of its examples have nvcc's code."""
        return self.name in COMPILED_PAGES

    def refreshed(self, text: str) -> str:
        """Return the page's text with what its examples print now and its tables as they are."""
        pieces = []
        end = 0
        for piece in _PIECE.finditer(text):
            between = text[end : piece.start()]
            self._claim(between.strip())
            pieces += [between, self._piece(piece)]
            end = piece.end()
        self._claim("the end of the page")
        return "".join([*pieces, text[end:]])

    def _piece(self, piece: re.Match[str]) -> str:
        whole, language = piece[0], piece["language"]
        if piece["table"]:
            table = tables.TABLES[piece["table"]]()
            return f"<!-- table: {piece['table']} -->\n\n{table}\n\n<!-- end -->\n"
        if language in ("cuda", "toml") and piece["name"]:
            (self.directory / piece["name"]).write_text(piece["body"], encoding="utf-8")
            return whole
        if language == "text" and self.printed:
            printed, self.printed = self.printed, ""
            return f"```text\n{_kept(piece['body'], printed)}```\n"
        self._claim(f"a {language} block")
        if language == "python" and not _lacks_compiler(piece["body"]):
            self.printed = self._execute(piece["body"], piece["name"])
        elif language == "console":
            return f"```console\n{''.join(self._commands(piece['body']))}```\n"
        return whole

    def _claim(self, following: str) -> None:
        if self.printed and following:
            raise ValueError(
                f"{self.name}: a python block prints {self.printed!r}; a text block must follow it"
            )

    def _execute(self, body: str, name: str) -> str:
        """Run a block from a file, so that the source of its kernels can be read."""
        self.blocks += 1
        path = self.directory / (name or f"{Path(self.name).stem}_{self.blocks}.py")
        path.write_text(body, encoding="utf-8")
        with self._captured() as printed:
            exec(compile(body, str(path), "exec"), self.names)
        return self._shown(printed.getvalue())

    def _commands(self, body: str) -> Iterator[str]:
        """Yield each command of a block, and what it prints."""
        for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE):
            if not part:
                continue
            command, _, old = part.partition("\n")
            while command.endswith("\\"):
                more, _, old = old.partition("\n")
                command += "\n" + more
            if not command.startswith("$ gpusim"):
                raise ValueError(f"{self.name}: only gpusim commands are run, not {command!r}")
            if _lacks_compiler(command) or (self.is_compiled and not wheels.are_there()):
                yield part
                continue
            fails = old.startswith("gpusim: ")
            yield f"{command}\n{_kept(old, self.run(command[2:], fails))}"

    def run(self, command: str, fails: bool) -> str:
        """Return what a command prints; one that is not shown to fail must succeed."""
        words = shlex.split(command.replace("\\\n", ""))
        limit = slice(None)
        if "|" in words:
            bar = words.index("|")
            tool, count = words[bar + 1], int(words[bar + 2].removeprefix("-"))
            limit = {"head": slice(count), "tail": slice(-count, None)}[tool]
            words = words[:bar]
        with self._captured() as printed:
            code = gpusim(words[1:])
        if (code == INPUT_ERROR) != fails:
            raise ValueError(f"{self.name}: {command}: {printed.getvalue()}")
        lines = self._shown(printed.getvalue()).splitlines()
        return "".join(f"{line.rstrip()}\n" for line in lines[limit])

    @contextlib.contextmanager
    def _captured(self) -> Iterator[io.StringIO]:
        """Collect what is printed, at 100 columns, in the page's directory."""
        printed = io.StringIO()
        settings = {"COLUMNS": "100", VARIABLE: AUTO if self.is_compiled else LOWERING}
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        try:
            with (
                contextlib.chdir(self.directory),
                contextlib.redirect_stdout(printed),
                contextlib.redirect_stderr(printed),
            ):
                yield printed
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({} if value is None else {name: value})

    def _shown(self, printed: str) -> str:
        return printed.replace(str(self.directory), "/home/me")


def _lacks_compiler(code: str) -> bool:
    """Return whether code needs nvcc's compiler where it is not installed."""
    return bool(_COMPILED.search(code)) and not wheels.are_there()


def _kept(old: str, new: str) -> str:
    """Return what is printed now, or the old text where only what varies is different."""
    return old if VARYING.sub("", old) == VARYING.sub("", new) else new


def refreshed(path: Path) -> str:
    """Return what a page should say."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "docs").symlink_to(ROOT / "docs")  # as at the root of a checkout
        page = Page(path.name, Path(directory).resolve())
        return page.refreshed(path.read_text(encoding="utf-8"))


def main() -> None:
    """Rewrite the pages that have changed, or only those that are named."""
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    for path in chosen:
        text = refreshed(path)
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(ROOT)} is refreshed")
    if not sys.argv[1:]:
        _write_files()


def _write_files() -> None:
    for path, made in tables.FILES.items():
        path.write_text(made(), encoding="utf-8")


if __name__ == "__main__":
    main()
